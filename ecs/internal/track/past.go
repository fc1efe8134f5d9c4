package track

import "math/bits"

// groupRows is how many rows of a [Past] are taken over and given up together.
const groupRows = 4096

// A Past is a column as it was at a boundary, for a reader that takes its time
// while the column goes on.
//
//	frame 8 saves rows   frame 9 saves rows   now
//	        |                   |
//	group 0  | old rows, the oldest value of each |  laid over the live rows
//	group 1  | ...                                |
//
// It holds no frame: it must Absorb the logs of every frame after the boundary,
// oldest first, before it is forgotten, and rows up to the length at the
// boundary must be protected: see [Tracker.Protect].
type Past[T any] struct {
	column *Column[T]
	groups []*pastGroup[T]
	done   *pastGroup[T] // Stands for groups that are done.
	left   int           // How many are not.

	lo, hi  int // The rows that are staged.
	laid    int // The group of them that scratch holds; -1: none.
	scratch []T
}

// A pastGroup holds what was saved of 4096 rows, the oldest value of each.
type pastGroup[T any] struct {
	saved  [groupRows / 64]uint64
	runs   []pastRun
	values []T // Of the runs, one after the other.
}

type pastRun struct{ row, n uint16 } // row less the group's first one

// NewPast returns the past of the first rows of c from now on.
func NewPast[T any](c *Column[T], rows int) *Past[T] {
	return &Past[T]{column: c, left: groupsOf(rows)}
}

// groupsOf returns how many groups have so many rows.
func groupsOf(rows int) int { return (rows + groupRows - 1) / groupRows }

// group returns group g, or nil if it is done.
func (p *Past[T]) group(g int) *pastGroup[T] {
	for g >= len(p.groups) {
		p.groups = append(p.groups, nil)
	}
	group := p.groups[g]
	switch group {
	case nil:
		group, _ = p.column.past.Get().(*pastGroup[T])
		if group == nil {
			group = new(pastGroup[T])
		}
		p.groups[g] = group
	case p.done:
		return nil
	}
	return group
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
					group.add(row%groupRows, values[:in], p.column.Clone)
				}
				row, n, values = row+in, n-in, values[in:]
			}
		}
	})
}

// add adds the values of rows from row on that g does not have.
func (g *pastGroup[T]) add(row int, values []T, clone func(T) T) {
	for end := row + len(values); row < end; {
		n := g.same(row, end)
		if g.saved[row>>6]>>(row&63)&1 == 0 {
			g.push(row, values[:n], clone)
		}
		row, values = row+n, values[n:]
	}
}

// same returns how many rows from row to end are all saved, or all not.
func (g *pastGroup[T]) same(row, end int) int {
	invert := -(g.saved[row>>6] >> (row & 63) & 1) // All ones if they are.
	for at := row; at < end; at = (at | 63) + 1 {
		if differ := (g.saved[at>>6] ^ invert) >> (at & 63); differ != 0 {
			return min(at+bits.TrailingZeros64(differ), end) - row
		}
	}
	return end - row
}

// push adds the values of rows from row on.
func (g *pastGroup[T]) push(row int, values []T, clone func(T) T) {
	n := len(values)
	kept := append(g.values, values...)
	if clone != nil { // What a log holds can become a live row again.
		for i := range values {
			kept[len(g.values)+i] = clone(values[i])
		}
	}
	g.values = kept // Behind all of them, as clone may panic.
	if k := len(g.runs) - 1; k >= 0 && int(g.runs[k].row+g.runs[k].n) == row {
		g.runs[k].n += uint16(n)
	} else {
		g.runs = append(g.runs, pastRun{uint16(row), uint16(n)})
	}
	for at := row; at < row+n; at = (at | 63) + 1 {
		g.saved[at>>6] |= blockMask(uint32(at), uint32(min(row+n, (at|63)+1)))
	}
}

// Done says that rows [lo, hi) will not be staged any more, so that nothing needs
// to be taken over of the groups of 4096 rows that lie in it.
func (p *Past[T]) Done(lo, hi int) {
	if p.done == nil {
		p.done = new(pastGroup[T])
	}
	for g := groupsOf(lo); g < groupsOf(hi); g++ {
		for g >= len(p.groups) {
			p.groups = append(p.groups, nil)
		}
		if p.groups[g] != p.done {
			p.giveBack(g)
			p.groups[g] = p.done
			p.left--
		}
	}
}

// Finished reports whether no rows will be staged any more.
func (p *Past[T]) Finished() bool { return p.left <= 0 }

// giveBack makes the memory of group g free for others.
func (p *Past[T]) giveBack(g int) {
	group := p.groups[g]
	if group == nil || group == p.done {
		return
	}
	if p.column.Log.wipes {
		clear(group.values)
	}
	*group = pastGroup[T]{runs: group.runs[:0], values: group.values[:0]}
	p.column.past.Put(group)
}

// Release gives up what p took over.
func (p *Past[T]) Release() {
	for g := range p.groups {
		p.giveBack(g)
	}
	p.groups, p.left = nil, 0
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
		return group.values[at : at+hi-lo]
	}
	from, to := max(p.lo, base), min(p.hi, base+groupRows)
	if p.laid != g {
		p.laid = g
		p.scratch = append(p.scratch[:0], p.column.Live[from:to]...)
		values := group.values
		for _, r := range group.runs {
			lay(p.scratch, base+int(r.row)-from, values[:r.n])
			values = values[r.n:]
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
