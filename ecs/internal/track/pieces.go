package track

import "unsafe"

// A large row has more than 256 bytes and no pointers. It is divided into pieces. The log of a
// column with large rows counts pieces where other logs count rows.
//
// Before the first write of a row in a frame, the log saves all pieces of the row. When the frame
// ends, the log drops the pieces that are equal to the live pieces. In this example, a row has four
// pieces, and a write of row 2 changes only piece 9:
//
//	                              pieces in the log
//	before row 2 is written       8 9 10 11
//	after the end of the frame    9
//
// If no log since a boundary has a row, the row still has its value from that boundary. The same is
// true of pieces. So the same code merges, exchanges and restores logs of rows and logs of pieces.
//
// Only the code that reads old rows is different. It copies the live row. Then it copies the oldest
// saved value of each piece over this copy.
const (
	largeRow   = 256
	pieceBytes = 64 // Maximum size of a piece.
)

// piecesOf returns the number of pieces of a row, or 1 if the row is not large. All pieces have the
// same size and the alignment of the row.
func piecesOf(size, align uintptr, pointers bool) int {
	if size <= largeRow || pointers {
		return 1
	}
	piece := pieceBytes &^ (align - 1)
	for size%piece != 0 {
		piece -= align
	}
	return int(size / piece)
}

// pieceRows implements [rowsOf] for logs that count pieces.
type pieceRows struct {
	// The operations of the column on whole rows.
	rowsOf
	live *unsafe.Pointer
	size uintptr
}

func (p *pieceRows) alloc(n int) unsafe.Pointer {
	return allocRows[uint64]((n*int(p.size) + 7) / 8)
}

func (p *pieceRows) from(piece int) unsafe.Pointer {
	return unsafe.Add(*p.live, uintptr(piece)*p.size)
}

func (p *pieceRows) swap(piece int, other unsafe.Pointer, n int) {
	swapRows(p.bytes(p.from(piece), n), p.bytes(other, n))
}

func (p *pieceRows) move(dst, src unsafe.Pointer, n int) { copy(p.bytes(dst, n), p.bytes(src, n)) }

func (p *pieceRows) wipe(at unsafe.Pointer, n int) { clear(p.bytes(at, n)) }

func (p *pieceRows) put(runs []Run, from unsafe.Pointer) {
	at := uintptr(0)
	for _, r := range runs {
		p.move(p.from(int(r.Row)), unsafe.Add(from, at), int(r.N))
		at += uintptr(r.N) * p.size
	}
}

// bytes returns n pieces as bytes. The parameter from is the address of the first piece.
func (p *pieceRows) bytes(from unsafe.Pointer, n int) []byte {
	return unsafe.Slice((*byte)(from), n*int(p.size))
}

// wholeRows returns the rows whose pieces are in r.
func (u *undoStack) wholeRows(r Run) Run {
	if u.pieces == 1 {
		return r
	}
	n := uint32(u.pieces)
	first := r.Row / n
	return Run{first, (r.Row+r.N-1)/n - first + 1}
}

// wholeRuns returns the rows whose pieces are in the given runs. A row whose pieces are in several
// consecutive runs is returned once.
func (u *undoStack) wholeRuns(runs []Run) (rows []Run) {
	next := uint32(0)
	for _, r := range runs {
		r = u.wholeRows(r)
		if end := r.Row + r.N; len(rows) == 0 || r.Row+1 != next {
			rows, next = append(rows, r), end
		} else if r.N > 1 {
			rows, next = append(rows, Run{next, r.N - 1}), end
		}
	}
	return rows
}

// dropUnchanged removes from the newest log the pieces that its finished frame did not change.
func (u *undoStack) dropUnchanged() {
	k := len(u.logs) - 1
	if u.pieces == 1 || k < 0 || u.logs[k].bare || len(u.logs[k].chunks) == u.logs[k].pared {
		return
	}
	l, top := u.logs[k], u.top
	whole := append(u.clock.chunks[:0], l.chunks[l.pared:]...)
	u.top = l
	l.cut(l.pared)
	for _, c := range whole {
		spans, n := u.differing(c, l.repeats)
		// If more than half of the pieces have changed, keep the chunk as it is.
		if 2*n > c.rows.n && !l.repeats {
			l.add(c)
			continue
		}
		for _, s := range spans {
			u.keep(int(s.Row), s.old, int(s.N), 1)
		}
		if !l.repeats {
			u.recycleChunk(c)
		}
		u.moves++
	}
	if l.repeats {
		for _, c := range whole {
			for _, r := range c.runs {
				u.clock.Seen.remove(r)
			}
			u.recycleChunk(c)
		}
	}
	l.pared, u.top = len(l.chunks), top
	clear(whole)
	u.clock.chunks = whole[:0]
}

// differing returns the pieces of c that differ from the live pieces, and their number. If repeats
// is set, a piece may occur more than once in the log, and only the first occurrence counts.
// Clock.Seen then contains the pieces that have occurred.
func (u *undoStack) differing(c *chunk, repeats bool) (spans []Span, n int) {
	spans = u.clock.spans[:0]
	differ := func(piece, n uint32, p unsafe.Pointer) { spans = u.appendDiffering(spans, piece, n, p) }
	at := uint32(0)
	for _, r := range c.runs {
		if repeats {
			u.clock.Seen.Add(r, func(piece, n uint32) { differ(piece, n, c.rows.at(int(at+piece-r.Row), u.size)) })
		} else {
			differ(r.Row, r.N, c.rows.at(int(at), u.size))
		}
		at += r.N
	}
	for i := range spans {
		n += int(spans[i].N)
	}
	u.clock.spans = spans
	return spans, n
}

// appendDiffering appends to spans the pieces that differ from the live pieces. It compares n
// pieces, beginning with the given piece. Their saved values are at p. To save time, it compares
// several pieces at once until it finds a difference.
func (u *undoStack) appendDiffering(spans []Span, piece, n uint32, p unsafe.Pointer) []Span {
	live := u.rows.from(int(piece))
	same := func(lo, hi uint32) bool {
		at, size := uintptr(lo)*u.size, uintptr(hi-lo)*u.size
		return unsafe.String((*byte)(unsafe.Add(live, at)), size) == unsafe.String((*byte)(unsafe.Add(p, at)), size)
	}
	several := max(1, uint32(8*pieceBytes/u.size))
	for at := uint32(0); at < n; {
		end := min(at+several, n)
		if same(at, end) {
			at = end
			continue
		}
		for at < end {
			from := at
			for at < n && !same(at, at+1) {
				at++
			}
			if from < at {
				spans = append(spans, Span{piece + from, at - from, unsafe.Add(p, uintptr(from)*u.size)})
			}
			at++
		}
	}
	return spans
}

// readLarge implements [Spans.Read] for large rows. If the log has all pieces of each row side by
// side, the spans refer to the memory of the log. Otherwise readLarge allocates memory. It copies
// the live rows there, and then copies the saved pieces over them.
func (s *Spans) readLarge(l *Log, k int) {
	n := uint32(l.pieces)
	whole := true
	l.oldest(k, func(piece int, p unsafe.Pointer, some int) {
		s.all = append(s.all, Span{uint32(piece), uint32(some), p})
		whole = whole && uint32(piece)%n == 0 && uint32(some)%n == 0
	})
	s.Sort()
	if whole {
		for i := range s.all {
			s.all[i].Row, s.all[i].N = s.all[i].Row/n, s.all[i].N/n
		}
		return
	}
	pieces := make([]Span, len(s.all))
	for i := range pieces {
		pieces[i] = *s.At(i)
	}
	s.all, s.order = s.all[:0], s.order[:0]
	for _, p := range pieces {
		first := p.Row / n
		if k := len(s.all); k > 0 && s.all[k-1].Row == first {
			first++
		}
		for row := first; row <= (p.Row+p.N-1)/n; row++ {
			s.all = append(s.all, Span{row, 1, nil})
		}
	}
	width := int(l.width)
	memory := make([]uint64, (width*len(s.all)+7)/8)
	at := unsafe.Pointer(unsafe.SliceData(memory))
	for i := range s.all {
		s.all[i].old = unsafe.Add(at, i*width)
		copyRow(s.all[i].old, l.row(int(s.all[i].Row)), l.width)
	}
	i := 0
	for _, p := range pieces {
		for done := uint32(0); done < p.N; {
			piece := p.Row + done
			for s.all[i].Row < piece/n {
				i++
			}
			some := min(p.N-done, n-piece%n)
			copyRow(unsafe.Add(s.all[i].old, uintptr(piece%n)*l.size), unsafe.Add(p.old, uintptr(done)*l.size), uintptr(some)*l.size)
			done += some
		}
	}
}
