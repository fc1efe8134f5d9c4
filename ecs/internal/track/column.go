package track

import (
	"math/bits"
	"sync"
	"unsafe"
)

// A mark says which rows of a block of 64 are saved since the tracker was opened, which
// gave it its span: a serial number. A mark of another one says nothing, so nothing needs
// clearing when a tracker is opened anew.
type mark struct{ span, rows uint64 }

// A Column is a flat slice of rows that can be put back: while a frame is open,
// it keeps each row's value from before its first write in that frame.
//
//	Live   |  0  |  1  |  2  | ... | prot-1 | prot | ...      reads go here
//	         `--- saved before the first write ---'  `- free
//
// What it keeps of them is its Log. Whoever writes to Live asks Unsaved or calls one
// of the methods Touch before.
//
// Init makes one. It must not move then.
type Column[T any] struct {
	Live  []T
	Clone func(T) T // Set for rows that share memory when copied.
	Log   Log
	front int       // Rows of room in front of Live.
	past  sync.Pool // Chunks of pasts, for reuse.
}

// A Log is what a column knows of its rows whatever their type: which of them are
// saved, and those that are.
//
//	marks  one for 64 rows: which of them the open span has saved
//	logs   per frame: runs of row numbers and the saved rows
//
// prot, the protected length, is the largest length the column had at the start
// of any frame still kept. Rows below it are saved whether or not they are below
// the present length: going back may need them.
//
// Marks decide only whether to save. What a frame wrote is in its log.
type Log struct {
	marks  []mark
	span   uint64
	prot   int
	live   *unsafe.Pointer // The first word of the slice: where its rows lie.
	number int             // Of the column, among those of its clock.
	undoStack
	watched
}

// beforeSave comes before rows [lo, hi) are saved, once in a span.
func (l *Log) beforeSave(lo, hi int) {
	l.saving(lo, hi)
	if len(l.readers) > 0 {
		l.report(lo, hi)
	}
}

// Init readies c, which is empty. If rows hold pointers, memory in which they were
// saved is zeroed before it is used again.
func (c *Column[T]) Init(clock *Clock, pointers bool) {
	c.Log.number, clock.columns = clock.columns, clock.columns+1
	c.Log.live = (*unsafe.Pointer)(unsafe.Pointer(&c.Live))
	var zero T
	put := func(runs []Run, p unsafe.Pointer) {
		at := uintptr(0)
		for _, r := range runs {
			from := unsafe.Add(p, at*unsafe.Sizeof(zero))
			if r.N == 1 { // Scattered rows: a call of copy costs more than the row.
				c.Live[r.Row] = *(*T)(from)
			} else {
				copy(c.Live[r.Row:], rowsAt[T](from, int(r.N)))
			}
			at += uintptr(r.N)
		}
	}
	pieces := piecesOf(unsafe.Sizeof(zero), unsafe.Alignof(zero), pointers)
	size := unsafe.Sizeof(zero) / uintptr(pieces)
	c.Log.undoStack = undoStack{rows: c, size: size, pieces: pieces, width: unsafe.Sizeof(zero), put: put, clock: clock, split: ^uint32(0), wipes: pointers}
	if pieces > 1 {
		rows := &pieceRows{c, c.Log.live, size}
		c.Log.rows, c.Log.put = rows, rows.put
	}
}

// Unsaved reports whether row i must be saved before it is written:
//
//	if c.Unsaved(i) {
//		c.Save(i)
//	}
//
// It is small enough to be inlined, which a method that also calls Save is not.
func (c *Column[T]) Unsaved(i int) bool {
	if i >= c.Log.prot {
		return false
	}
	m := &c.Log.marks[i>>6]
	return m.span != c.Log.span || m.rows>>(uint(i)&63)&1 == 0
}

// Free reports whether row i is one that no frame needs: less than Unsaved asks, and
// sooner.
func (c *Column[T]) Free(i int) bool { return i >= c.Log.prot }

// Touch must be called before row i is written. Where it is called often, its
// body is written out.
func (c *Column[T]) Touch(i int) {
	if c.Unsaved(i) {
		c.Save(i)
	}
}

// Save saves row i, which is not saved yet.
//
//go:noinline
func (c *Column[T]) Save(i int) {
	tip := c.Log.tip
	if !tip.ready() || !tip.note(uint32(i), true) {
		c.saveSlow(i)
		return
	}
	c.Log.mark(i)
	*(*T)(tip.next(unsafe.Sizeof(c.Live[0]))) = c.Live[i]
}

// Overwrite saves row i, which is not saved yet, and makes it v. It returns true, as a Set
// does that ends with it.
//
//go:noinline
func (c *Column[T]) Overwrite(i int, v T) bool {
	row, tip := &c.Live[i], c.Log.tip
	if !tip.ready() || !tip.note(uint32(i), true) {
		c.saveSlow(i)
	} else {
		c.Log.mark(i)
		*(*T)(tip.next(unsafe.Sizeof(v))) = *row
	}
	*row = v
	return true
}

// saveSlow is Save for all cases.
//
//go:noinline
func (c *Column[T]) saveSlow(i int) {
	if c.Log.Note(i) {
		return
	}
	c.Log.beforeSave(i, i+1)
	if c.clones() {
		v := c.Clone(c.Live[i]) // Marked behind it, as it may panic.
		c.Log.mark(i)
		*(*T)(c.Log.placeSlow(i)) = v
		c.Log.tip = full // The next row is cloned too.
		return
	}
	c.Log.mark(i)
	if kept := c.Log.placeSlow(i); kept != nil {
		*(*T)(kept) = c.Live[i]
	}
}

// Note does what Save does where no frame is open: it reports row i. It reports whether that is so.
//
//go:noinline
func (l *Log) Note(i int) bool {
	if l.top != nil {
		return false
	}
	l.saving(i, i+1)
	l.mark(i)
	for _, n := range l.readers {
		n.addRow(uint32(i))
	}
	return true
}

// clones reports whether what is saved now are clones of rows.
func (c *Column[T]) clones() bool { return c.Clone != nil && c.Log.top != nil && !c.Log.top.bare }

// mark marks row i as saved.
func (l *Log) mark(i int) { l.markOf(i).rows |= 1 << (uint(i) & 63) }

// markOf returns the mark of row i, which is below prot, for the open span.
func (l *Log) markOf(i int) *mark {
	m := (*mark)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.marks)), uintptr(i)>>6*unsafe.Sizeof(mark{})))
	if m.span != l.span {
		*m = mark{span: l.span}
	}
	return m
}

// row returns where row i lies.
func (l *Log) row(i int) unsafe.Pointer { return unsafe.Add(*l.live, uintptr(i)*l.width) }

// TouchRange must be called before rows [lo, hi) are written.
func (c *Column[T]) TouchRange(lo, hi int) {
	if hi = min(hi, c.Log.prot); lo >= hi {
		return
	}
	if lo = c.Log.skip(lo, hi); !c.clones() {
		c.Log.saveRange(lo, hi)
		return
	}
	for ; lo < hi; lo++ { // One by one, as Clone may panic.
		c.Touch(lo)
	}
}

// TouchRows is Touch for the rows whose bits in words are set: row base+rows[i] for bit i,
// none where rows has NoRow.
func (c *Column[T]) TouchRows(words []uint64, rows []uint32, base int) {
	if c.Log.prot == 0 {
		return
	}
	var some [64]uint32
	for w, word := range words {
		n := 0
		if of := rows[w<<6:]; word == ^uint64(0) {
			for _, r := range of[:64] {
				some[n&63] = r + uint32(base)
				n += notNone(r)
			}
		} else {
			for ; word != 0; word &= word - 1 {
				r := of[bits.TrailingZeros64(word)]
				some[n&63] = r + uint32(base)
				n += notNone(r)
			}
		}
		c.touchEach(&some, n)
	}
}

// notNone returns 1 for a row, 0 for NoRow.
func notNone(r uint32) int {
	if r == NoRow {
		return 0
	}
	return 1
}

// TouchEach is Touch for the first n of rows, which may repeat. It looks at the marks of
// all before it copies one: so the misses of the rows overlap, where a loop of Touch has
// one behind the other. It writes over rows.
func (c *Column[T]) TouchEach(rows *[64]uint32, n int) {
	if c.Log.prot > 0 {
		c.touchEach(rows, n)
	}
}

func (c *Column[T]) touchEach(rows *[64]uint32, n int) {
	if c.clones() {
		for _, r := range rows[:n] { // One by one, as Clone may panic.
			c.Touch(int(r))
		}
		return
	}
	for fresh := rows[:c.Log.markEach(rows, n)]; len(fresh) > 0; {
		p, n := c.Log.saveEach(fresh)
		if p != nil {
			kept, live := rowsAt[T](p, n), c.Live
			for i, r := range fresh[:n] {
				kept[i] = live[r]
			}
		}
		fresh = fresh[n:]
	}
}

// markEach marks the first n of rows, and leaves in front those that were not: it returns
// how many.
func (l *Log) markEach(rows *[64]uint32, n int) (fresh int) {
	marks, span, prot := l.marks, l.span, l.prot
	for _, r := range rows[:n] {
		if int(r) >= prot {
			continue
		}
		m := &marks[r>>6]
		if m.span != span {
			*m = mark{span: span}
		}
		rows[fresh&63] = r
		fresh += int(^m.rows >> (r & 63) & 1)
		m.rows |= 1 << (r & 63)
	}
	for _, r := range rows[:fresh] {
		l.beforeSave(int(r), int(r)+1)
	}
	return fresh
}

// FetchRows reads a byte of each of rows, as far as there are such rows. It goes through
// them one after the other: where the processor counts zeros to find the next one, it
// can wait for the one before (BSF keeps what its target held if there is nothing to
// count).
func (c *Column[T]) FetchRows(rows []uint32) (sum byte) {
	if c.empty() {
		return 0
	}
	for _, r := range rows {
		if int(r) < len(c.Live) {
			sum += *(*byte)(unsafe.Pointer(&c.Live[r]))
		}
	}
	return sum
}

// empty reports whether rows have size 0.
func (c *Column[T]) empty() bool {
	var zero T
	return unsafe.Sizeof(zero) == 0
}

// skip returns lo, or the first row behind it whose block of 64 is not all saved. The
// usual case is that all of [lo, hi) is.
func (l *Log) skip(lo, hi int) int {
	for lo&63 == 0 && lo+64 <= hi && l.marks[lo>>6] == (mark{l.span, ^uint64(0)}) {
		lo += 64
	}
	return lo
}

// saveRange saves the rows of [lo, hi) that the span has not saved yet, in as
// few copies as there are spans of them.
func (l *Log) saveRange(lo, hi int) {
	from := lo // Rows [from, lo) are to be saved.
	for lo < hi {
		end := min(lo|63+1, hi)
		want := blockMask(uint32(lo), uint32(end))
		m := &l.marks[lo>>6]
		if m.span != l.span {
			*m = mark{span: l.span}
		}
		switch m.rows & want {
		case 0:
			m.rows |= want
			lo = end
			continue
		case want:
			l.saveRows(from, lo)
			lo, from = end, end
			continue
		}
		for ; lo < end; lo++ {
			if bit := uint64(1) << (uint(lo) & 63); m.rows&bit != 0 {
				l.saveRows(from, lo)
				from = lo + 1
			} else {
				m.rows |= bit
			}
		}
	}
	l.saveRows(from, hi)
}

func (l *Log) saveRows(lo, hi int) {
	if lo < hi {
		l.beforeSave(lo, hi)
		l.save(lo, hi-lo)
	}
}

// open makes the newest log, if there is one, the one that is written under these marks.
func (l *Log) open(marks uint64, prot int) {
	l.span, l.prot = marks, l.pick(prot)
	l.reserve(l.prot)
}

// What follows makes a column the [rowsOf] of its logs.

func (c *Column[T]) alloc(n int) unsafe.Pointer { return allocRows[T](n) }

func (c *Column[T]) from(row int) unsafe.Pointer { return unsafe.Pointer(&c.Live[row]) }

func (c *Column[T]) swap(row int, p unsafe.Pointer, n int) {
	swapRows(c.Live[row:row+n], rowsAt[T](p, n))
}

func (c *Column[T]) move(dst, src unsafe.Pointer, n int) { copy(rowsAt[T](dst, n), rowsAt[T](src, n)) }

func (c *Column[T]) wipe(p unsafe.Pointer, n int) { clear(rowsAt[T](p, n)) }

func allocRows[T any](n int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(make([]T, n))) }

func rowsAt[T any](p unsafe.Pointer, n int) []T { return unsafe.Slice((*T)(p), n) }

func swapRows[T any](a, b []T) {
	b = b[:len(a)]
	for i := range a {
		a[i], b[i] = b[i], a[i]
	}
}

// Saved calls f for what the logs from k on, which may be none, hold, oldest first:
// runs, and behind each other the values that their rows had; no values in a bare log.
// Large rows come once, in their order. The slices are valid until f returns.
func (c *Column[T]) Saved(k int, f func(runs []Run, values []T)) {
	if c.Log.pieces > 1 {
		var large Spans
		large.Read(&c.Log, k)
		for i := range large.Len() {
			s := large.At(i)
			f([]Run{{s.Row, s.N}}, c.Old(s))
		}
		return
	}
	c.Log.saved(k, func(runs []Run, rows slab) { f(runs, rowsAt[T](rows.p, min(rows.n, rows.room))) })
}

// SavedRuns is [Column.Saved] without the values.
func (l *Log) SavedRuns(k int, f func(runs []Run)) {
	l.saved(k, func(runs []Run, _ slab) {
		if l.pieces > 1 {
			runs = l.wholeRuns(runs)
		}
		f(runs)
	})
}

// Memory is what a column takes, in bytes, beside its rows.
type Memory struct {
	Marks int64
	Undo  int64 // The logs.
	Spare int64 // Recycled memory that waits for rows to save.
}

// Memory returns what l takes.
func (l *Log) Memory() (m Memory) {
	m.Undo, m.Spare = l.memory()
	m.Marks = room(l.marks)
	return m
}
