package track

import (
	"sync"
	"unsafe"
)

// A mark says which rows of a block of 64 the open span has already saved. A
// mark of another span says nothing, so a new span needs no clearing.
type mark struct{ span, rows uint64 }

// A Column is a flat slice of rows that can be put back: while a frame is open,
// it keeps each row's value from before its first write in that frame.
//
//	Live   |  0  |  1  |  2  | ... | prot-1 | prot | ...      reads go here
//	         `--- saved before the first write ---'  `- free
//	marks  one for 64 rows: which of them the open span has saved
//	logs   per frame: runs of row numbers and the saved rows
//
// prot, the protected length, is the largest length the column had at the start
// of any frame still kept. Rows below it are saved whether or not they are below
// the present length: going back may need them.
//
// Marks decide only whether to save. What a frame wrote is in its log.
//
// Init makes one. Whoever writes to Live asks Unsaved or calls one of the
// methods Touch before.
type Column[T any] struct {
	Live  []T
	marks []mark
	span  uint64
	prot  int
	undoStack[T]
	watched

	Clone func(T) T // Set for rows that share memory when copied.
	past  sync.Pool // Groups of pasts, for reuse.
}

// Init readies c, which is empty. If rows hold pointers, memory in which they were
// saved is zeroed before it is used again.
func (c *Column[T]) Init(clock *Clock, pointers bool) {
	c.undoStack = undoStack[T]{clock: clock, split: ^uint32(0), clear: pointers}
}

// Unsaved reports whether row i must be saved before it is written:
//
//	if c.Unsaved(i) {
//		c.Save(i)
//	}
//
// It is small enough to be inlined, which a method that also calls Save is not.
func (c *Column[T]) Unsaved(i int) bool {
	if i >= c.prot {
		return false
	}
	m := &c.marks[i>>6]
	return m.span != c.span || m.rows>>(uint(i)&63)&1 == 0
}

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
	c.beforeSave(i, i+1)
	if c.Clone != nil && !c.top.bare {
		v := c.Clone(c.Live[i]) // Marked behind it, as it may panic.
		c.markSaved(i)
		c.saveOne(i, &v)
		return
	}
	c.markSaved(i)
	c.saveOne(i, &c.Live[i])
}

func (c *Column[T]) markSaved(i int) {
	m := &c.marks[i>>6]
	if m.span != c.span {
		*m = mark{span: c.span}
	}
	m.rows |= 1 << (uint(i) & 63)
}

// TouchRange must be called before rows [lo, hi) are written.
func (c *Column[T]) TouchRange(lo, hi int) {
	if hi = min(hi, c.prot); lo < hi {
		c.saveRange(lo, hi)
	}
}

// TouchRuns is Touch for the rows of runs: numbers in groups of stride, of which
// the one at at is the first row and the last one the number of rows.
func (c *Column[T]) TouchRuns(runs []uint32, at, stride int) {
	for ; len(runs) >= stride; runs = runs[stride:] {
		row, n := int(runs[at]), int(runs[stride-1])
		switch {
		case n > 1:
			c.TouchRange(row, row+n)
		case c.Unsaved(row):
			c.Save(row)
		}
	}
}

// FetchRuns reads a byte of the first row of each run. The processor does that
// side by side, where a loop's body, which does more, would wait for row after
// row of a long column.
func (c *Column[T]) FetchRuns(runs []uint32, at, stride int) (sum byte) {
	for ; len(runs) >= stride && !c.empty(); runs = runs[stride:] {
		sum += *(*byte)(unsafe.Pointer(&c.Live[runs[at]]))
	}
	return sum
}

// empty reports whether rows have size 0.
func (c *Column[T]) empty() bool {
	var zero T
	return unsafe.Sizeof(zero) == 0
}

// saveRange saves the rows of [lo, hi) that the span has not saved yet, in as
// few copies as there are spans of them.
func (c *Column[T]) saveRange(lo, hi int) {
	for lo&63 == 0 && lo+64 <= hi && c.marks[lo>>6] == (mark{c.span, ^uint64(0)}) {
		lo += 64 // The usual case: all of it is saved.
	}
	if c.Clone != nil && !c.top.bare { // One by one, as it may panic.
		for ; lo < hi; lo++ {
			c.Touch(lo)
		}
		return
	}
	from := lo // Rows [from, lo) are to be saved.
	for lo < hi {
		end := min(lo|63+1, hi)
		want := blockMask(uint32(lo), uint32(end))
		m := &c.marks[lo>>6]
		if m.span != c.span {
			*m = mark{span: c.span}
		}
		switch m.rows & want {
		case 0:
			m.rows |= want
			lo = end
			continue
		case want:
			c.saveRows(from, lo)
			lo, from = end, end
			continue
		}
		for ; lo < end; lo++ {
			if bit := uint64(1) << (uint(lo) & 63); m.rows&bit != 0 {
				c.saveRows(from, lo)
				from = lo + 1
			} else {
				m.rows |= bit
			}
		}
	}
	c.saveRows(from, hi)
}

func (c *Column[T]) saveRows(lo, hi int) {
	if lo < hi {
		c.beforeSave(lo, hi)
		c.undoStack.save(lo, c.Live[lo:hi])
	}
}

// open makes the newest log, if there is one, the one that is written under
// span.
func (c *Column[T]) open(span uint64, prot int) {
	c.span, c.prot = span, c.pick(prot)
	for need := (c.prot + 63) / 64; len(c.marks) < need; {
		c.marks = append(c.marks, make([]mark, need-len(c.marks))...)
	}
}

// putBack restores every row saved in logs[k:] to its oldest value there and
// forgets those logs.
func (c *Column[T]) putBack(k int) {
	live := c.Live
	c.Oldest(k, func(row int, values []T) {
		if len(values) == 1 { // Scattered rows: a call of copy costs more than the row.
			live[row] = values[0]
			return
		}
		copy(live[row:], values)
	})
	for _, l := range c.logs[k:] {
		c.tell(l)
	}
	c.cut(k)
}

func (c *Column[T]) undo() { c.undoStack.undo(c.rows) }
func (c *Column[T]) redo() { c.undoStack.redo(c.rows) }

func (c *Column[T]) rows(row, n int) []T { return c.Live[row : row+n] }

// Memory is what a column takes, in bytes, beside its rows.
type Memory struct {
	Marks int64
	Undo  int64 // The logs.
	Spare int64 // Recycled memory that waits for rows to save.
}

// Memory returns what c takes beside Live.
func (c *Column[T]) Memory() (m Memory) {
	m.Undo, m.Spare = c.memory()
	m.Marks = room(c.marks)
	return m
}
