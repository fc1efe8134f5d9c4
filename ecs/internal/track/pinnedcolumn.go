package track

import (
	"math/bits"
	"sync"
)

// groupRows is the number of consecutive rows of a [PinnedColumn] that are copied and released
// together.
const groupRows = 4096

// A PinnedColumn gives a slow reader the rows of a column at a boundary while the column continues
// to change.
//
//	frame 8 saves rows   frame 9 saves rows   now
//	        |                   |
//	store    | old rows, the oldest value of each | in the order in which they were saved
//	            ^           ^
//	group 0  | runs |       |                        copied over the live rows
//	group 1  | runs ... ----+
//
// A PinnedColumn does not retain its frame. Its owner must call Absorb for the logs of every frame
// after the boundary, oldest first, before the frame is dropped. Rows up to the length at the
// boundary must be protected: see [Tracker.Protect].
type PinnedColumn[T any] struct {
	column *Column[T]
	// All chunks. A chunk is replaced by nil once no group refers to it.
	store []*pinnedChunk[T]
	room  int // Capacity of a chunk, in values.
	// One entry per group, nil until rows of the group are saved.
	groups []*pinnedGroup
	left   int // Number of groups that are still needed.

	lo, hi int // The rows that Stage selected.
	// The group whose rows are in scratch, or -1.
	laid    int
	scratch []T
}

// A pinnedChunk holds saved values of one or more groups. Chunks are recycled and never grow, so a
// saved value is not copied again. A writer that saves rows waits at most for the allocation of one
// chunk.
type pinnedChunk[T any] struct {
	values []T
	// Number of values that belong to groups that are still needed.
	used int
}

// A pinnedGroup records which of 4096 rows were saved, and where their oldest values are stored.
type pinnedGroup struct {
	saved [groupRows / 64]uint64
	runs  []pinnedRun
}

// A pinnedRun is a range of consecutive rows whose values are consecutive in one chunk.
type pinnedRun struct {
	// row is relative to the first row of the group.
	row, n uint16
	// Position of the values, counted over all chunks.
	at uint32
}

// doneGroup is the entry for groups that are no longer needed.
var doneGroup = new(pinnedGroup)

// pinnedGroups holds groups for reuse.
var pinnedGroups = sync.Pool{New: func() any { return new(pinnedGroup) }}

// NewPinnedColumn returns a PinnedColumn of the current state of c. rows is the number of rows at
// the boundary.
func NewPinnedColumn[T any](c *Column[T], rows int) *PinnedColumn[T] {
	room := min(maxChunkRows, chunkBytes/max(1, int(c.Log.width)), rows)
	return &PinnedColumn[T]{column: c, room: max(1, room), left: groupsOf(rows)}
}

// groupsOf returns the number of groups for the given number of rows.
func groupsOf(rows int) int { return (rows + groupRows - 1) / groupRows }

// group returns group g, or nil if the group is no longer needed.
func (p *PinnedColumn[T]) group(g int) *pinnedGroup {
	for g >= len(p.groups) {
		p.groups = append(p.groups, nil)
	}
	switch group := p.groups[g]; group {
	case nil:
		p.groups[g] = pinnedGroups.Get().(*pinnedGroup)
	case doneGroup:
		return nil
	}
	return p.groups[g]
}

// Absorb copies rows from the column's logs, from position k on. It skips rows that p already has.
func (p *PinnedColumn[T]) Absorb(k int) {
	if p.column.empty() {
		return
	}
	p.column.Saved(k, func(runs []Run, values []T) {
		for _, r := range runs {
			row, n := int(r.Row), int(r.N)
			for n > 0 {
				in := min(n, groupRows-row%groupRows)
				if group := p.group(row / groupRows); group != nil {
					p.add(group, row%groupRows, values[:in])
				}
				row, n, values = row+in, n-in, values[in:]
			}
		}
	})
}

// add adds the values of row and the rows after it. It skips rows that g already has.
func (p *PinnedColumn[T]) add(g *pinnedGroup, row int, values []T) {
	for end := row + len(values); row < end; {
		n := g.same(row, end)
		if g.saved[row>>6]>>(row&63)&1 == 0 {
			p.keep(g, row, values[:n])
		}
		row, values = row+n, values[n:]
	}
}

// keep adds the values of row and the rows after it. g must have none of these rows.
func (p *PinnedColumn[T]) keep(g *pinnedGroup, row int, values []T) {
	for len(values) > 0 {
		c, at := p.tail()
		n := min(len(values), p.room-len(c.values))
		kept := append(c.values, values[:n]...)
		// A restore can make the value in the log a live row again, so clone it.
		if clone := p.column.Clone; clone != nil {
			for i, v := range values[:n] {
				kept[len(c.values)+i] = clone(v)
			}
		}
		g.note(row, n, uint32(at), len(c.values) > 0)
		// Update the chunk after all calls of clone, because clone may panic.
		c.values = kept
		c.used += n
		row, values = row+n, values[n:]
	}
}

// tail returns a chunk with space for at least one value, and the position of the next value.
func (p *PinnedColumn[T]) tail() (c *pinnedChunk[T], at int) {
	k := len(p.store) - 1
	if k < 0 || p.store[k] == nil || len(p.store[k].values) == p.room {
		c, _ = p.column.past.Get().(*pinnedChunk[T])
		// A recycled chunk may be too small, because the column had fewer rows when it was
		// allocated.
		if c == nil || cap(c.values) < p.room {
			c = &pinnedChunk[T]{values: make([]T, 0, p.room)}
		}
		p.store, k = append(p.store, c), k+1
	}
	return p.store[k], k*p.room + len(p.store[k].values)
}

// at returns the values of r.
func (p *PinnedColumn[T]) at(r pinnedRun) []T {
	at := int(r.at) % p.room
	return p.store[int(r.at)/p.room].values[at : at+int(r.n)]
}

// note records the n rows that begin with row, whose values are at position at. behind is false if
// the values start a chunk. They then cannot extend the last run, which is in another chunk.
func (g *pinnedGroup) note(row, n int, at uint32, behind bool) {
	k, r := len(g.runs)-1, pinnedRun{uint16(row), uint16(n), at}
	if behind && k >= 0 && g.runs[k].joins(r) {
		g.runs[k].n += r.n
	} else {
		g.runs = append(g.runs, r)
	}
	for end := row + n; row < end; row = (row | 63) + 1 {
		g.saved[row>>6] |= blockMask(uint32(row), uint32(min(end, (row|63)+1)))
	}
}

// joins reports whether next continues r, both in its rows and in the positions of its values.
func (r pinnedRun) joins(next pinnedRun) bool {
	return r.row+r.n == next.row && r.at+uint32(r.n) == next.at
}

// same returns the number of rows, from row to at most end, that have the same state as row: saved
// or unsaved.
func (g *pinnedGroup) same(row, end int) int {
	// All ones if row is saved.
	invert := -(g.saved[row>>6] >> (row & 63) & 1)
	for at := row; at < end; at = (at | 63) + 1 {
		if differ := (g.saved[at>>6] ^ invert) >> (at & 63); differ != 0 {
			return min(at+bits.TrailingZeros64(differ), end) - row
		}
	}
	return end - row
}

// Done declares that rows [lo, hi) will not be staged again. Groups of 4096 rows within that range
// are released.
func (p *PinnedColumn[T]) Done(lo, hi int) {
	for g := groupsOf(lo); g < groupsOf(hi); g++ {
		for g >= len(p.groups) {
			p.groups = append(p.groups, nil)
		}
		if p.groups[g] != doneGroup {
			p.giveBack(g)
			p.groups[g] = doneGroup
			p.left--
		}
	}
}

// Finished reports whether all groups are released.
func (p *PinnedColumn[T]) Finished() bool { return p.left <= 0 }

// giveBack recycles group g, and the chunks that no other group uses.
func (p *PinnedColumn[T]) giveBack(g int) {
	group := p.groups[g]
	if group == nil || group == doneGroup {
		return
	}
	for _, r := range group.runs {
		k := int(r.at) / p.room
		c := p.store[k]
		if c.used -= int(r.n); c.used > 0 {
			continue
		}
		if p.column.Log.wipes {
			clear(c.values)
		}
		c.values = c.values[:0]
		p.column.past.Put(c)
		p.store[k] = nil
	}
	*group = pinnedGroup{runs: group.runs[:0]}
	pinnedGroups.Put(group)
}

// Release releases the memory of p.
func (p *PinnedColumn[T]) Release() {
	for g := range p.groups {
		p.giveBack(g)
	}
	p.groups, p.store, p.left = nil, nil, 0
}

// Stage selects rows [lo, hi) for Each. The selection is valid until the next Stage or change of
// the column.
func (p *PinnedColumn[T]) Stage(lo, hi int) { p.lo, p.hi, p.laid = lo, hi, -1 }

// Each calls f for rows [lo, hi), which must be staged, in several slices. A slice is valid until f
// returns.
func (p *PinnedColumn[T]) Each(lo, hi int, f func(rows []T)) {
	for lo < hi {
		end := min(hi, (lo/groupRows+1)*groupRows)
		f(p.read(lo, end))
		lo = end
	}
}

// read returns rows [lo, hi), which are in one group. It returns the live rows if none of them was
// saved, and the saved values if one run covers all of them. Otherwise it returns a copy of the
// live rows with the saved values written over them.
func (p *PinnedColumn[T]) read(lo, hi int) []T {
	if p.column.empty() {
		return make([]T, hi-lo)
	}
	g := lo / groupRows
	if g >= len(p.groups) || p.groups[g] == nil || len(p.groups[g].runs) == 0 {
		return p.column.Live[lo:hi:hi]
	}
	group, base := p.groups[g], g*groupRows
	if first := group.runs[0]; int(first.row) <= lo-base && hi-base <= int(first.row+first.n) {
		at := lo - base - int(first.row)
		return p.at(first)[at : at+hi-lo]
	}
	from, to := max(p.lo, base), min(p.hi, base+groupRows)
	if p.laid != g {
		p.laid = g
		p.scratch = append(p.scratch[:0], p.column.Live[from:to]...)
		for _, r := range group.runs {
			overlay(p.scratch, base+int(r.row)-from, p.at(r))
		}
	}
	return p.scratch[lo-from : hi-from]
}

// overlay copies values to rows[at:] and ignores values outside of rows.
func overlay[T any](rows []T, at int, values []T) {
	switch {
	case at >= len(rows) || at+len(values) <= 0:
	case at < 0:
		copy(rows, values[-at:])
	default:
		copy(rows[at:], values)
	}
}
