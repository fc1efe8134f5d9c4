package track

import (
	"math"
	"math/bits"
	"unsafe"
)

// NoRow stands for a missing row. A [Sparse] has it in entries that were never written. It is
// larger than any row, even as a 32-bit int.
const NoRow uint32 = math.MaxUint32 & math.MaxInt

// A mark records which rows of a block of 64 are already saved, one bit for each row. The field
// span is the serial number of a call of Tracker.Reopen. The next call of Reopen makes the mark
// invalid, so marks need no clearing.
type mark struct{ span, rows uint64 }

// A Column is a slice of rows that can be restored. While a frame is open, the column saves the
// value of each row before the first write in that frame. It does not save rows at or above
// Log.prot, because no restore needs them. These rows are free.
//
// Live has the current rows, and Log the saved values. Code that writes to Live first calls Unsaved
// or one of the Touch methods.
//
// Init initializes a Column. The Column must not be moved afterwards.
type Column[T any] struct {
	Live []T
	// Copies a row. Nil if plain copies share no memory with the row.
	Clone func(T) T
	Log   Log
	// Number of free rows in the array of Live, before the first row.
	front int
}

// A Log is the part of a column that does not depend on the type of the rows. It knows which rows
// are saved, and holds the saved values.
//
//	marks  one for each block of 64 rows: the rows that the open span has saved
//	logs   one for each frame: runs of row numbers and the saved rows
//
// The field prot is the protected length: rows below prot are saved before a write. It is at least
// the length of the column at the start of each retained frame. A restore needs all these rows,
// even if the column is shorter now. Readers can increase prot.
type Log struct {
	marks []mark
	span  uint64
	prot  int
	// Points to the data pointer of the slice Live. So the Log finds the rows after Live has been
	// reallocated.
	live *unsafe.Pointer
	// The number of the column among the columns of its clock.
	number int
	undoStack
	watched
}

// beforeSave runs before rows [lo, hi) are saved, once per row in a span.
func (l *Log) beforeSave(lo, hi int) {
	l.saving(lo, hi)
	if len(l.readers) > 0 {
		l.report(lo, hi)
	}
}

// Init initializes c, which must be empty. If rows hold pointers, recycled memory of saved rows is
// zeroed.
func (c *Column[T]) Init(clock *Clock, pointers bool) {
	c.Log.number, clock.columns = clock.columns, clock.columns+1
	c.Log.live = (*unsafe.Pointer)(unsafe.Pointer(&c.Live))
	var zero T
	put := func(runs []Run, p unsafe.Pointer) {
		at := uintptr(0)
		for _, r := range runs {
			from := unsafe.Add(p, at*unsafe.Sizeof(zero))
			// For a single row, an assignment is faster than a call of copy.
			if r.N == 1 {
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
// Unsaved does not call Save itself, so that the compiler can inline it.
func (c *Column[T]) Unsaved(i int) bool {
	if i >= c.Log.prot {
		return false
	}
	m := &c.Log.marks[i>>6]
	return m.span != c.Log.span || m.rows>>(uint(i)&63)&1 == 0
}

// Free reports whether row i can be written without saving it, because no frame needs it. Free
// checks less than Unsaved and is faster.
func (c *Column[T]) Free(i int) bool { return i >= c.Log.prot }

// Raw returns the live rows of c. The result stays valid when the column grows.
func (c *Column[T]) Raw() RawRows {
	return RawRows{c.Log.live, c.Log.width}
}

// Touch must be called before row i is written. Hot callers inline its body by hand.
func (c *Column[T]) Touch(i int) {
	if c.Unsaved(i) {
		c.Save(i)
	}
}

// Save saves row i, which is not yet saved.
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

// Overwrite saves row i, which is not yet saved, and sets it to v. It always returns true, so that
// a Set method can return its result.
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

// saveSlow does the work of Save if the fast path cannot save the row.
//
//go:noinline
func (c *Column[T]) saveSlow(i int) {
	if c.Log.Note(i) {
		return
	}
	c.Log.beforeSave(i, i+1)
	if c.clones() {
		// Mark the row after Clone, because Clone may panic.
		v := c.Clone(c.Live[i])
		c.Log.mark(i)
		*(*T)(c.Log.placeSlow(i)) = v
		c.Log.tip = noRoom // Disable the fast path, because the next save must call Clone, too.
		return
	}
	c.Log.mark(i)
	if kept := c.Log.placeSlow(i); kept != nil {
		*(*T)(kept) = c.Live[i]
	}
}

// Note handles a save if no log is open. It marks row i as saved and reports it to the readers, but
// saves no value. It then returns true. If a log is open, Note only returns false.
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

// clones reports whether saving a row now clones it.
func (c *Column[T]) clones() bool { return c.Clone != nil && c.Log.top != nil && !c.Log.top.bare }

// mark marks row i as saved in the open span.
func (l *Log) mark(i int) { l.markOf(i).rows |= 1 << (uint(i) & 63) }

// markOf returns the mark of row i's block for the open span. i must be below prot.
func (l *Log) markOf(i int) *mark {
	m := (*mark)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.marks)), uintptr(i)>>6*unsafe.Sizeof(mark{})))
	if m.span != l.span {
		*m = mark{span: l.span}
	}
	return m
}

func (l *Log) reserve(rows int) {
	if need := (rows + 63) / 64; need > len(l.marks) {
		marks := make([]mark, need)
		copy(marks, l.marks)
		l.marks = marks
	}
}

// row returns the address of live row i.
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
	// Save one row at a time, because Clone may panic.
	for ; lo < hi; lo++ {
		c.Touch(lo)
	}
}

// TouchRows calls Touch for several rows. Bit i of words is bit i%64 of words[i/64]. If it is set,
// TouchRows touches row base+rows[i], unless rows[i] is NoRow.
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
		c.TouchEach(&some, n)
	}
}

// notNone returns 0 for NoRow and 1 for any other row.
func notNone(r uint32) int {
	if r == NoRow {
		return 0
	}
	return 1
}

// TouchEach calls Touch for rows[:n]. A row may occur more than once. TouchEach reads the marks of
// all these rows before it copies the first row. So the processor can load several marks into the
// cache at the same time. TouchEach overwrites the array rows.
func (c *Column[T]) TouchEach(rows *[64]uint32, n int) {
	switch {
	case c.Log.prot == 0:
		return
	case c.clones():
		// Save one row at a time, because Clone may panic.
		for _, r := range rows[:n] {
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

// markEach marks rows[:n] as saved. It moves the rows that must now be saved to the front of the
// array, and returns their number. These are the protected rows that were not marked before.
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

// FetchRows reads a byte of each row in rows, to bring the rows into the cache. It skips NoRow and
// other numbers of rows that do not exist.
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

// skip returns the start of [lo, hi) without its leading blocks that are completely saved. A block
// has 64 rows. So a range in which all rows are saved costs little time.
func (l *Log) skip(lo, hi int) int {
	for lo&63 == 0 && lo+64 <= hi && l.marks[lo>>6] == (mark{l.span, ^uint64(0)}) {
		lo += 64
	}
	return lo
}

// saveRange saves the rows of [lo, hi) that the span has not yet saved. It makes one copy for each
// run of such rows.
func (l *Log) saveRange(lo, hi int) {
	// Rows [from, lo) are still to be saved.
	from := lo
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

// open makes the newest log the open log, to which saves append rows. The parameter marks is a new
// serial number, so all older marks become invalid.
func (l *Log) open(marks uint64, prot int) {
	l.span, l.prot = marks, l.pick(prot)
	l.reserve(l.prot)
}

// The following methods implement [rowsOf] for a column.

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

// SavedRuns calls f for the runs of the logs from position k on, oldest first. If the log counts
// pieces, f gets the runs of their rows. The slice is valid until f returns.
func (l *Log) SavedRuns(k int, f func(runs []Run)) {
	for ; k < len(l.logs); k++ {
		for _, c := range l.logs[k].chunks {
			if l.pieces > 1 {
				f(l.wholeRuns(c.runs))
			} else {
				f(c.runs)
			}
		}
	}
}

// Memory is the memory size of a column in bytes, without its rows.
type Memory struct {
	Marks int64
	// Bytes of the logs.
	Undo int64
	// Bytes of recycled chunks.
	Spare int64
}

// Memory returns the memory of l.
func (l *Log) Memory() Memory { return Memory{Marks: room(l.marks), Undo: l.used, Spare: l.spare} }
