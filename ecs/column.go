package ecs

import (
	"sync"
	"unsafe"
)

// A mark says which rows of a block of 64 the open span has already saved. A
// mark of another span says nothing, so a new span needs no clearing.
type mark struct{ span, rows uint64 }

// A column is a flat slice of rows that can be put back. This is the one idea
// of the package: while a frame is open, a column keeps each row's value from
// before its first write in that frame.
//
//	live   |  0  |  1  |  2  | ... | prot-1 | prot | ...      reads go here
//	         `--- saved before the first write ---'  `- free
//	marks  one for 64 rows: which of them the open span has saved
//	logs   per frame: runs of row numbers and the saved rows
//
// prot, the protected length, is the largest length the column had at the start
// of any frame still held. Rows below it are saved whether or not they are below
// the present length: a restore may need them.
//
// Marks decide only whether to save. What a frame wrote is in its log.
type column[T any] struct {
	live  []T
	marks []mark
	span  uint64
	prot  int
	guard guard //nolint:unused // Of a debug build.
	undoStack[T]

	clone func(T) T   // Set for rows that share memory when copied.
	moved func(r run) // Told which rows restore, undo and redo wrote; may be nil.
	seen  *rowSet     // Scratch of the world.
	past  sync.Pool   // Groups of pins, for reuse.
}

func newColumn[T any](w *World) column[T] {
	return column[T]{undoStack: undoStack[T]{split: ^uint32(0), held: &w.undoBytes}, seen: &w.seen}
}

// unsaved reports whether row i must be saved before it is written:
//
//	if c.unsaved(i) {
//		c.save(i)
//	}
//
// It is small enough to be inlined, which a method that also calls save is not.
func (c *column[T]) unsaved(i int) bool {
	if i >= c.prot {
		return false
	}
	m := &c.marks[i>>6]
	return m.span != c.span || m.rows>>(uint(i)&63)&1 == 0
}

// touch must be called before row i is written. Where it is called often, its
// body is written out.
func (c *column[T]) touch(i int) {
	if c.unsaved(i) {
		c.save(i)
	}
}

//go:noinline
func (c *column[T]) save(i int) {
	m := &c.marks[i>>6]
	if m.span != c.span {
		*m = mark{span: c.span}
	}
	m.rows |= 1 << (uint(i) & 63)
	if c.clone != nil && !c.top.bare {
		v := c.clone(c.live[i])
		c.saveOne(i, &v)
		return
	}
	c.saveOne(i, &c.live[i])
}

// touchRange must be called before rows [lo, hi) are written.
func (c *column[T]) touchRange(lo, hi int) {
	if hi = min(hi, c.prot); lo < hi {
		c.saveRange(lo, hi)
	}
}

// touchRuns is touch for the rows of runs, as a cursor returns them: numbers in
// groups of stride, of which the one at at is the first row and the last one the
// number of rows.
func (c *column[T]) touchRuns(runs []uint32, at, stride int) {
	for ; len(runs) >= stride; runs = runs[stride:] {
		row, n := int(runs[at]), int(runs[stride-1])
		switch {
		case n > 1:
			c.touchRange(row, row+n)
		case c.unsaved(row):
			c.save(row)
		}
	}
}

// fetchRuns reads a byte of the first row of each run. The processor does that
// side by side, where a loop's body, which does more, would wait for row after
// row of a large storage.
func (c *column[T]) fetchRuns(runs []uint32, at, stride int) (sum byte) {
	for ; len(runs) >= stride && !c.empty(); runs = runs[stride:] {
		sum += *(*byte)(unsafe.Pointer(&c.live[runs[at]]))
	}
	return sum
}

// empty reports whether rows have size 0.
func (c *column[T]) empty() bool {
	var zero T
	return unsafe.Sizeof(zero) == 0
}

// saveRange saves the rows of [lo, hi) that the span has not saved yet, in as
// few copies as there are spans of them.
func (c *column[T]) saveRange(lo, hi int) {
	for lo&63 == 0 && lo+64 <= hi && c.marks[lo>>6] == (mark{c.span, ^uint64(0)}) {
		lo += 64 // The usual case: all of it is saved.
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

func (c *column[T]) saveRows(lo, hi int) {
	if lo < hi {
		c.undoStack.save(lo, c.live[lo:hi], c.clone)
	}
}

// The methods below are what a tracker asks of each of its columns.

// open makes the newest log, if there is one, the one that is written under
// span.
func (c *column[T]) open(span uint64, prot int) {
	c.span, c.prot = span, prot
	for need := (prot + 63) / 64; len(c.marks) < need; {
		c.marks = append(c.marks, make([]mark, need-len(c.marks))...)
	}
	c.top = nil
	if k := len(c.logs); k > 0 {
		c.top = c.logs[k-1]
	}
}

// putBack restores every row saved in logs[k:] to its oldest value there and
// forgets those logs.
func (c *column[T]) putBack(k int) {
	live := c.live
	c.undoStack.putBack(k, c.seen, func(row int, values []T) {
		if len(values) == 1 { // Scattered rows: a call of copy costs more than the row.
			live[row] = values[0]
			return
		}
		copy(live[row:], values)
	})
	if c.moved != nil {
		for _, l := range c.logs[k:] {
			l.eachRun(c.moved)
		}
	}
	c.cut(k)
}

func (c *column[T]) undo() { c.report(c.undoStack.undo(c.rows)) }
func (c *column[T]) redo() { c.report(c.undoStack.redo(c.rows)) }

func (c *column[T]) report(l *undoLog[T]) {
	if c.moved != nil {
		l.eachRun(c.moved)
	}
}

func (c *column[T]) rows(row, n int) []T { return c.live[row : row+n] }

func (c *column[T]) again()             { c.undoStack.again(c.seen) }
func (c *column[T]) merge(older, k int) { c.undoStack.merge(older, k, c.seen) }
