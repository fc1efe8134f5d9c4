package track

import (
	"math/bits"
	"sync"
)

// groupRows is how many rows of a [Past] are taken over and given up together.
const groupRows = 4096

// A Past is a column as it was at a boundary, for a reader that takes its time
// while the column goes on.
//
//	frame 8 saves rows   frame 9 saves rows   now
//	        |                   |
//	store    | old rows, the oldest value of each | in the order in which they were saved
//	            ^           ^
//	group 0  | runs |       |                        laid over the live rows
//	group 1  | runs ... ----+
//
// It holds no frame: it must Absorb the logs of every frame after the boundary,
// oldest first, before it is forgotten, and rows up to the length at the
// boundary must be protected: see [Tracker.Protect].
type Past[T any] struct {
	column *Column[T]
	store  []*pastChunk[T] // nil: no group has rows of it any more.
	room   int             // How many values a chunk holds.
	groups []*pastGroup
	left   int // How many groups are not done.

	lo, hi  int // The rows that are staged.
	laid    int // The group of them that scratch holds; -1: none.
	scratch []T
}

// A pastChunk holds saved values of any groups. It is recycled, never grown: a value that was
// saved is not copied again, and who saves some rows waits for no more memory than these take.
type pastChunk[T any] struct {
	values []T
	used   int // Of them, how many are of groups that are not done.
}

// A pastGroup says which of 4096 rows were saved, and where the oldest value of each is.
type pastGroup struct {
	saved [groupRows / 64]uint64
	runs  []pastRun
}

// A pastRun are rows side by side, whose values lie side by side in one chunk.
type pastRun struct {
	row, n uint16 // row less the group's first one
	at     uint32 // Where the values begin, as if all chunks lay behind each other.
}

// doneGroup stands for groups that are done.
var doneGroup = new(pastGroup)

// pastGroups are groups for reuse.
var pastGroups = sync.Pool{New: func() any { return new(pastGroup) }}

// NewPast returns the past of the first rows of c from now on.
func NewPast[T any](c *Column[T], rows int) *Past[T] {
	room := min(maxChunkRows, chunkBytes/max(1, int(c.Log.width)), rows)
	return &Past[T]{column: c, room: max(1, room), left: groupsOf(rows)}
}

// groupsOf returns how many groups have so many rows.
func groupsOf(rows int) int { return (rows + groupRows - 1) / groupRows }

// group returns group g, or nil if it is done.
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

// Absorb takes over what the column's logs from k on hold and p does not, yet.
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

// add adds the values of rows from row on that g does not have.
func (p *Past[T]) add(g *pastGroup, row int, values []T) {
	for end := row + len(values); row < end; {
		n := g.same(row, end)
		if g.saved[row>>6]>>(row&63)&1 == 0 {
			p.keep(g, row, values[:n])
		}
		row, values = row+n, values[n:]
	}
}

// keep adds the values of rows from row on, which g does not have.
func (p *Past[T]) keep(g *pastGroup, row int, values []T) {
	for len(values) > 0 {
		c, at := p.tail()
		n := min(len(values), p.room-len(c.values))
		kept := append(c.values, values[:n]...)
		if clone := p.column.Clone; clone != nil { // What a log holds can become a live row again.
			for i, v := range values[:n] {
				kept[len(c.values)+i] = clone(v)
			}
		}
		g.note(row, n, uint32(at), len(c.values) > 0)
		c.values = kept // Behind all of them, as clone may panic.
		c.used += n
		row, values = row+n, values[n:]
	}
}

// tail returns the chunk that the next value goes to, which has room for one at least, and where
// it will lie.
func (p *Past[T]) tail() (c *pastChunk[T], at int) {
	k := len(p.store) - 1
	if k < 0 || p.store[k] == nil || len(p.store[k].values) == p.room {
		c, _ = p.column.past.Get().(*pastChunk[T])
		if c == nil || cap(c.values) < p.room { // The column was smaller then.
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

// note adds rows from row on, whose values lie at at, behind others in the chunk or not.
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

// joins reports whether next goes on where r ends.
func (r pastRun) joins(next pastRun) bool {
	return r.row+r.n == next.row && r.at+uint32(r.n) == next.at
}

// same returns how many rows from row to end are all saved, or all not.
func (g *pastGroup) same(row, end int) int {
	invert := -(g.saved[row>>6] >> (row & 63) & 1) // All ones if they are.
	for at := row; at < end; at = (at | 63) + 1 {
		if differ := (g.saved[at>>6] ^ invert) >> (at & 63); differ != 0 {
			return min(at+bits.TrailingZeros64(differ), end) - row
		}
	}
	return end - row
}

// Done says that rows [lo, hi) will not be staged any more, so that nothing needs
// to be taken over of the groups of 4096 rows that lie in it.
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

// Finished reports whether no rows will be staged any more.
func (p *Past[T]) Finished() bool { return p.left <= 0 }

// giveBack makes the memory of group g free for others, and that of chunks of which no other
// group has rows.
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

// Release gives up what p took over.
func (p *Past[T]) Release() {
	for g := range p.groups {
		p.giveBack(g)
	}
	p.groups, p.store, p.left = nil, nil, 0
}

// Stage makes rows [lo, hi) those that Rows returns, until the next Stage or
// change of the column.
func (p *Past[T]) Stage(lo, hi int) { p.lo, p.hi, p.laid = lo, hi, -1 }

// Each calls f for rows [lo, hi), of those that are staged, in pieces. They are
// valid until f returns.
func (p *Past[T]) Each(lo, hi int, f func(rows []T)) {
	for lo < hi {
		end := min(hi, (lo/groupRows+1)*groupRows)
		f(p.read(lo, end))
		lo = end
	}
}

// read returns rows [lo, hi), which lie in one group: the live ones, or what was
// saved if that is all of them, or a copy of the former with the latter laid over.
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
			lay(p.scratch, base+int(r.row)-from, p.at(r))
		}
	}
	return p.scratch[lo-from : hi-from]
}

// lay puts values at rows[at:], as far as that exists.
func lay[T any](rows []T, at int, values []T) {
	switch {
	case at >= len(rows) || at+len(values) <= 0:
	case at < 0:
		copy(rows, values[-at:])
	default:
		copy(rows[at:], values)
	}
}
