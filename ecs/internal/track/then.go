package track

import (
	"math/bits"
	"slices"
	"sort"
	"unsafe"
)

// A Then is a tracker as it was at a boundary that is held, for a reader who looks while the
// tracker goes on: lengths, and the rows of two columns that were written since.
//
//	             boundary                          now
//	logs            | rows 3 4 7 | rows 4 5 | row 3 ..      or, if the boundary lies ahead,
//	                                                         those of the frames up to it
//	Columns[i]      3 4 7 5, each as it was at the boundary; another row is the live one
//
// It holds no frame, and nobody tells it anything: who reads asks [Then.Current] before, and
// calls [Then.CatchUp] if it is not. That costs O(rows written since it was current last), or
// since the boundary if a log gave up memory meanwhile. [NewThen] makes one.
type Then struct {
	Lengths
	Columns [2]Old
	t       *Tracker
	marks   uint64 // The tracker's, when it was caught up with,
	saves   uint64 // and those of the columns.
}

// NewThen returns a Then that is at no boundary yet, of two columns of t, or of one and nil.
func NewThen(t *Tracker, a, b *Log) Then {
	h := Then{t: t}
	for i, l := range [2]*Log{a, b} {
		h.Columns[i].u = &undoStack{pieces: 1}
		if l != nil {
			h.Columns[i].u = &l.undoStack
		}
	}
	return h
}

// Current reports whether nothing was saved since h was caught up with. It is right until a
// frame begins or ends. It is inlined: every look-up asks it.
func (h *Then) Current() bool {
	return h.marks == h.t.marks && h.saves == h.Columns[0].u.saves+h.Columns[1].u.saves
}

// Aim makes h forget what it found, as another boundary is meant.
func (h *Then) Aim() {
	for i := range h.Columns {
		h.Columns[i].reset()
	}
}

// CatchUp makes h what was at the beginning of frame id or, if that is undone and lies ahead,
// at its end. The logs must not be bare.
func (h *Then) CatchUp(id uint64, ahead bool) {
	var k int
	if ahead {
		k, h.Lengths = h.t.ahead(id)
	} else {
		k, h.Lengths, _ = h.t.Since(id)
	}
	h.marks, h.saves = h.t.marks, 0
	for i := range h.Columns {
		o := &h.Columns[i]
		if o.moves != o.u.moves {
			o.reset()
		}
		o.limit = h.N * o.u.pieces
		if ahead {
			o.readAhead(k)
		} else {
			o.read(k)
		}
		o.u.tip = full // What is saved next counts.
		h.saves += o.u.saves
	}
}

// ahead returns the position of the undone record, and of its logs, that is redone last on
// the way to the end of frame id, and the lengths then.
func (t *Tracker) ahead(id uint64) (k int, after Lengths) {
	k = sort.Search(len(t.forward), func(i int) bool { return t.forward[i].frame <= id })
	if k == len(t.forward) {
		return k, t.Lengths
	}
	return k, t.forward[k].Lengths
}

// An Old is the rows of a column that were written since a boundary, as they were:
//
//	blocks   | saved  0 0 1 1 0 1 .. | saved  1 1 1 1 1 1 .. |      64 rows each
//	         | rows   2 3 5          | rows   0 1 2 3 4 5 .. |      only those saved
//	                     |                       |
//	               memory of its own      that of the log, where all 64 lie side by side
//
// The memory of a log is read as long as the log keeps it: see undoStack.moves.
type Old struct {
	u      *undoStack
	added  func(row, n int, p unsafe.Pointer) // Told of rows that are new, which lie at p; may be nil.
	limit  int                                // How many rows there were; as all here, of pieces if they are large.
	whole  []uint64                           // A large row, put together.
	blocks []oldBlock
	used   []uint32 // The blocks that have any rows.
	slabs  []slab   // Its own memory,
	slab   int      // and which of it has room.
	place  place    // Up to where the logs are read.
	moves  uint64   // Of u, when reading began.
}

type oldBlock struct {
	saved uint64
	rows  unsafe.Pointer
}

// A place is one in a log.
type place struct {
	log        *undoLog
	chunk, run int // Those read last,
	rows       int // how many rows of the run were,
	before     int // and how many lie before it in the chunk.
}

// Has reports whether row i, which there was, was written since the boundary. Here, and where
// Old says no more, rows are pieces if they are large.
func (o *Old) Has(i int) bool {
	return uint(i>>6) < uint(len(o.blocks)) && o.blocks[i>>6].saved>>(uint(i)&63)&1 != 0
}

// at returns where row i lies, which o has.
func (o *Old) at(i int, size uintptr) unsafe.Pointer {
	b := &o.blocks[i>>6]
	return unsafe.Add(b.rows, uintptr(rank(b.saved, i))*size)
}

// rank returns how many rows of a block lie before row i.
func rank(saved uint64, i int) int { return bits.OnesCount64(saved & (1<<(uint(i)&63) - 1)) }

// reset forgets all rows.
func (o *Old) reset() {
	for _, b := range o.used {
		o.blocks[b] = oldBlock{}
	}
	for i := range o.slabs {
		s := &o.slabs[i]
		if o.u.wipes {
			o.u.rows.wipe(s.p, s.n)
		}
		s.n = 0
	}
	o.used, o.slab, o.place, o.moves = o.used[:0], 0, place{}, o.u.moves
}

// read adds what the logs from k on hold: oldest first, as the oldest row counts.
func (o *Old) read(k int) {
	logs := o.u.logs
	for i := len(logs) - 1; i > k; i-- {
		if logs[i] == o.place.log {
			k = i
		}
	}
	for ; k < len(logs); k++ {
		o.readLog(logs[k])
	}
}

// readLog adds what l holds behind the place, if that is in it.
func (o *Old) readLog(l *undoLog) {
	at := &o.place
	if at.log != l {
		*at = place{log: l}
	}
	for {
		if at.chunk == len(l.chunks) {
			return
		}
		c := l.chunks[at.chunk]
		for i, r := range c.runs[at.run:] {
			if i > 0 {
				at.run, at.before, at.rows = at.run+1, at.before+at.rows, 0
			}
			if n := int(r.N) - at.rows; n > 0 {
				o.add(int(r.Row)+at.rows, n, c.rows.at(at.before+at.rows, o.u.size))
			}
			at.rows = int(r.N)
		}
		if at.chunk == len(l.chunks)-1 { // More may follow, and its last run become longer.
			return
		}
		at.chunk, at.run, at.rows, at.before = at.chunk+1, 0, 0, 0
	}
}

// readAhead adds what the undone logs from k on hold. Redoing exchanges rows with the log, so
// that of a row the one exchanged last counts.
func (o *Old) readAhead(k int) {
	for ; k < len(o.u.forward); k++ {
		for _, c := range slices.Backward(o.u.forward[k].chunks) {
			at := c.rows.n
			for _, r := range slices.Backward(c.runs) {
				at -= int(r.N)
				o.add(int(r.Row), int(r.N), c.rows.at(at, o.u.size))
			}
		}
	}
}

// add adds n rows from row on, which lie at p, as far as there were such and o has none of
// them.
func (o *Old) add(row, n int, p unsafe.Pointer) {
	end := min(row+n, o.limit)
	if row < end && end > len(o.blocks)<<6 {
		o.blocks = append(o.blocks, make([]oldBlock, (o.limit+63)>>6-len(o.blocks))...)
	}
	for at := row; at < end; {
		stop := min(at|63+1, end)
		o.addTo(uint32(at>>6), blockMask(uint32(at), uint32(stop)), unsafe.Add(p, uintptr(at-row)*o.u.size))
		at = stop
	}
}

// addTo adds the rows of block b whose bits are in want, one run that lies at p.
func (o *Old) addTo(b uint32, want uint64, p unsafe.Pointer) {
	block := &o.blocks[b]
	fresh := want &^ block.saved
	if fresh == 0 {
		return
	}
	if block.saved == 0 {
		o.used = append(o.used, b)
	}
	if fresh == ^uint64(0) {
		block.saved, block.rows = fresh, p
		o.tell(int(b)<<6, 64, p)
		return
	}
	for first := bits.TrailingZeros64(want); fresh != 0; {
		from := bits.TrailingZeros64(fresh)
		n := bits.TrailingZeros64(^(fresh >> from))
		rows := unsafe.Add(p, uintptr(from-first)*o.u.size)
		o.insert(block, from, n, rows)
		o.tell(int(b)<<6|from, n, rows)
		fresh &^= (1<<n - 1) << from
	}
}

func (o *Old) tell(row, n int, p unsafe.Pointer) {
	if o.added != nil {
		o.added(row, n, p)
	}
}

// insert adds n rows from row i of the block on, which lie at p and are fewer than 64.
func (o *Old) insert(b *oldBlock, i, n int, p unsafe.Pointer) {
	u := o.u
	have, before := bits.OnesCount64(b.saved), rank(b.saved, i)
	if have == 0 || have+n > blockRoom(have) {
		rows := o.alloc(blockRoom(have + n))
		if have > 0 {
			o.move(rows, b.rows, have)
		}
		b.rows = rows
	}
	at := unsafe.Add(b.rows, uintptr(before)*u.size)
	if have > before {
		o.move(unsafe.Add(at, uintptr(n)*u.size), at, have-before)
	}
	o.move(at, p, n)
	b.saved |= (1<<n - 1) << i
}

// move makes the n rows at dst those at src. Those without pointers are bytes.
func (o *Old) move(dst, src unsafe.Pointer, n int) {
	if o.u.wipes {
		o.u.rows.move(dst, src, n)
		return
	}
	copyRow(dst, src, uintptr(n)*o.u.size)
}

// blockRoom returns for how many rows a block has room that holds so many, one or more.
func blockRoom(rows int) int {
	switch {
	case rows <= 4:
		return 4
	case rows <= 16:
		return 16
	}
	return 64
}

// alloc returns memory for n rows, at most 64.
func (o *Old) alloc(n int) unsafe.Pointer {
	for ; o.slab < len(o.slabs); o.slab++ {
		if s := &o.slabs[o.slab]; s.n+n <= s.room {
			s.n += n
			return s.at(s.n-n, o.u.size)
		}
	}
	room := max(64, o.u.chunkRows(o.slab))
	o.slabs = append(o.slabs, slab{p: o.u.rows.alloc(room), n: n, room: room})
	return o.slabs[o.slab].p
}

// Lives reports whether the live row i of c is what it was at the boundary of o. Of large rows it
// says no. It is inlined, which RowThen is not.
func Lives[T any](c *Column[T], o *Old, i int) bool {
	return unsafe.Sizeof(c.Live[0]) <= largeRow && !o.Has(i)
}

// RowThen returns row i of c as it was at the boundary of o. It must not be written, and is
// valid until the next call.
func RowThen[T any](c *Column[T], o *Old, i int) *T {
	switch {
	case o.u.pieces > 1:
		return (*T)(o.together(c.Log.row(i), i))
	case !o.Has(i):
		return &c.Live[i]
	}
	return (*T)(o.at(i, unsafe.Sizeof(c.Live[0])))
}

// together returns large row i, which lies at live: itself, or a copy over which the pieces
// that o has are laid.
func (o *Old) together(live unsafe.Pointer, i int) unsafe.Pointer {
	n, size := o.u.pieces, o.u.size
	if !o.Any(i*n, (i+1)*n) {
		return live
	}
	o.whole = sized(o.whole, int(o.u.width+7)/8)
	row := unsafe.Pointer(unsafe.SliceData(o.whole))
	copyRow(row, live, o.u.width)
	o.each(i*n, (i+1)*n, func(piece, some int) {
		copyRow(unsafe.Add(row, uintptr(piece-i*n)*size), o.at(piece, size), uintptr(some)*size)
	})
	return row
}

// each calls f for the rows in [lo, hi) that o has: some from row on, which lie side by side.
func (o *Old) each(lo, hi int, f func(row, some int)) {
	for at := lo; at < hi && at>>6 < len(o.blocks); {
		stop := min(at|63+1, hi)
		saved := o.blocks[at>>6].saved & blockMask(uint32(at), uint32(stop))
		for saved != 0 {
			from := bits.TrailingZeros64(saved)
			n := bits.TrailingZeros64(^(saved >> from))
			f(at&^63+from, n)
			saved &^= (1<<n - 1) << from
		}
		at = stop
	}
}

// RowsThen makes dst the rows of c from row on as they were at the boundary of o. It returns
// dst, or live rows if none was written since, which must not be written.
func RowsThen[T any](c *Column[T], o *Old, row int, dst []T) []T {
	end := row + len(dst)
	switch n := o.u.pieces; {
	case !o.Any(row*n, end*n):
		return c.Live[row:end:end]
	case n > 1:
		for i := range dst {
			dst[i] = *RowThen(c, o, row+i)
		}
		return dst
	}
	live := row // Rows [live, at) are to be copied from the live ones.
	o.each(row, end, func(at, n int) {
		copy(dst[live-row:], c.Live[live:at])
		copy(dst[at-row:], rowsAt[T](o.at(at, o.u.size), n))
		live = at + n
	})
	copy(dst[live-row:], c.Live[live:end])
	return dst
}

// Any reports whether one of rows [lo, hi), which there were, was written since the boundary.
func (o *Old) Any(lo, hi int) bool {
	for hi = min(hi, len(o.blocks)<<6); lo < hi; lo = lo | 63 + 1 {
		if o.blocks[lo>>6].saved&blockMask(uint32(lo), uint32(min(lo|63+1, hi))) != 0 {
			return true
		}
	}
	return false
}

// OnOld makes f be told of rows of c that o comes to have.
func OnOld[T any](_ *Column[T], o *Old, f func(row int, rows []T)) {
	o.added = func(row, n int, p unsafe.Pointer) { f(row, rowsAt[T](p, n)) }
}
