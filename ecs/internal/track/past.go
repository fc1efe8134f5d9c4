package track

import (
	"math/bits"
	"sync"
)

// groupRows is the number of rows of a [Past] that are copied and released together.
const groupRows = 4096

// A Past is a column at a boundary, for a slow reader that works while the column goes on.
//
//	frame 8 saves rows   frame 9 saves rows   now
//	        |                   |
//	store    | old rows, the oldest value of each | in the order in which they were saved
//	            ^           ^
//	group 0  | runs |       |                        copied over the live rows
//	group 1  | runs ... ----+
//
// A Past does not retain its frame. It must Absorb the logs of every frame after the boundary,
// oldest first, before the frame is dropped. Rows up to the length at the boundary must be
// protected: see [Tracker.Protect].
type Past[T any] struct {
	column *Column[T]
	// A chunk is nil when no group refers to it any more.
	store []*pastChunk[T]
	room  int // Capacity of a chunk, in values.
	// Entries are nil until rows of the group are saved.
	groups []*pastGroup
	left   int // Number of groups that are not done.

	lo, hi int // The staged rows.
	// The group that scratch holds, or -1.
	laid    int
	scratch []T
}

// A pastChunk holds saved values of any groups. Chunks are recycled and never grow, so a saved
// value is not copied again. The code that saves rows only waits for the memory of one chunk.
type pastChunk[T any] struct {
	values []T
	// Number of values that belong to groups that are not done.
	used int
}

// A pastGroup records which of 4096 rows were saved, and where their oldest values are.
type pastGroup struct {
	saved [groupRows / 64]uint64
	runs  []pastRun
}

// A pastRun is a range of consecutive rows whose values are consecutive in one chunk.
type pastRun struct {
	// row is relative to the first row of the group.
	row, n uint16
	// Position of the values, counted over all chunks.
	at uint32
}

// doneGroup marks groups that are done.
var doneGroup = new(pastGroup)

// pastGroups holds groups for reuse.
var pastGroups = sync.Pool{New: func() any { return new(pastGroup) }}

// NewPast returns a Past of the first rows of c at this moment.
func NewPast[T any](c *Column[T], rows int) *Past[T] {
	room := min(maxChunkRows, chunkBytes/max(1, int(c.Log.width)), rows)
	return &Past[T]{column: c, room: max(1, room), left: groupsOf(rows)}
}

// groupsOf returns the number of groups that the given number of rows takes.
func groupsOf(rows int) int { return (rows + groupRows - 1) / groupRows }

// group returns group g, or nil if the group is done.
func (p *Past[T]) group(g int) *pastGroup {
	for g >= len(p.groups) {
		p.groups = append(p.groups, nil)
	}
	switch group := p.groups[g]; group {
	case nil:
		p.groups[g] = pastGroups.Get().(*pastGroup)
	case doneGroup:
		return nil
	}
	return p.groups[g]
}

// Absorb copies from the column's logs, from k on, the rows that p does not have yet.
func (p *Past[T]) Absorb(k int) {
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

// add adds those values, for row and the rows after it, that g does not have yet.
func (p *Past[T]) add(g *pastGroup, row int, values []T) {
	for end := row + len(values); row < end; {
		n := g.same(row, end)
		if g.saved[row>>6]>>(row&63)&1 == 0 {
			p.keep(g, row, values[:n])
		}
		row, values = row+n, values[n:]
	}
}

// keep adds the values of row and the rows after it. g must not have any of them.
func (p *Past[T]) keep(g *pastGroup, row int, values []T) {
	for len(values) > 0 {
		c, at := p.tail()
		n := min(len(values), p.room-len(c.values))
		kept := append(c.values, values[:n]...)
		// A value in a log can become a live row again.
		if clone := p.column.Clone; clone != nil {
			for i, v := range values[:n] {
				kept[len(c.values)+i] = clone(v)
			}
		}
		g.note(row, n, uint32(at), len(c.values) > 0)
		// After all clones, because clone may panic.
		c.values = kept
		c.used += n
		row, values = row+n, values[n:]
	}
}

// tail returns the chunk for the next value, which has space for at least one, and the position of
// that value.
func (p *Past[T]) tail() (c *pastChunk[T], at int) {
	k := len(p.store) - 1
	if k < 0 || p.store[k] == nil || len(p.store[k].values) == p.room {
		c, _ = p.column.past.Get().(*pastChunk[T])
		// The column was smaller when this chunk was allocated.
		if c == nil || cap(c.values) < p.room {
			c = &pastChunk[T]{values: make([]T, 0, p.room)}
		}
		p.store, k = append(p.store, c), k+1
	}
	return p.store[k], k*p.room + len(p.store[k].values)
}

// at returns the values of r.
func (p *Past[T]) at(r pastRun) []T {
	at := int(r.at) % p.room
	return p.store[int(r.at)/p.room].values[at : at+int(r.n)]
}

// note records n rows from row on, whose values are at position at. behind is false for the first
// values of a chunk.
func (g *pastGroup) note(row, n int, at uint32, behind bool) {
	k, r := len(g.runs)-1, pastRun{uint16(row), uint16(n), at}
	if behind && k >= 0 && g.runs[k].joins(r) {
		g.runs[k].n += r.n
	} else {
		g.runs = append(g.runs, r)
	}
	for end := row + n; row < end; row = (row | 63) + 1 {
		g.saved[row>>6] |= blockMask(uint32(row), uint32(min(end, (row|63)+1)))
	}
}

// joins reports whether next continues r, in its rows and in its values.
func (r pastRun) joins(next pastRun) bool {
	return r.row+r.n == next.row && r.at+uint32(r.n) == next.at
}

// same returns how many rows, from row to at most end, are all saved or all unsaved.
func (g *pastGroup) same(row, end int) int {
	// All ones if row is saved.
	invert := -(g.saved[row>>6] >> (row & 63) & 1)
	for at := row; at < end; at = (at | 63) + 1 {
		if differ := (g.saved[at>>6] ^ invert) >> (at & 63); differ != 0 {
			return min(at+bits.TrailingZeros64(differ), end) - row
		}
	}
	return end - row
}

// Done ends the use of rows [lo, hi): they will not be staged again. Groups of 4096 rows within
// that range need no more copies.
func (p *Past[T]) Done(lo, hi int) {
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

// Finished reports whether no more rows will be staged.
func (p *Past[T]) Finished() bool { return p.left <= 0 }

// giveBack recycles group g, and the chunks that no other group uses.
func (p *Past[T]) giveBack(g int) {
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
	*group = pastGroup{runs: group.runs[:0]}
	pastGroups.Put(group)
}

// Release releases the memory of p.
func (p *Past[T]) Release() {
	for g := range p.groups {
		p.giveBack(g)
	}
	p.groups, p.store, p.left = nil, nil, 0
}

// Stage selects rows [lo, hi) for Each. The selection ends at the next Stage or change of the
// column.
func (p *Past[T]) Stage(lo, hi int) { p.lo, p.hi, p.laid = lo, hi, -1 }

// Each calls f for rows [lo, hi), which must be staged, in several parts. A part is valid until f
// returns.
func (p *Past[T]) Each(lo, hi int, f func(rows []T)) {
	for lo < hi {
		end := min(hi, (lo/groupRows+1)*groupRows)
		f(p.read(lo, end))
		lo = end
	}
}

// read returns rows [lo, hi), which are in one group. It returns the live rows if none was saved,
// and the saved values if one run covers all rows. Otherwise it returns a copy of the live rows
// with the saved values written over them.
func (p *Past[T]) read(lo, hi int) []T {
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

// overlay copies values to rows[at:], as far as these rows exist.
func overlay[T any](rows []T, at int, values []T) {
	switch {
	case at >= len(rows) || at+len(values) <= 0:
	case at < 0:
		copy(rows, values[-at:])
	default:
		copy(rows[at:], values)
	}
}
