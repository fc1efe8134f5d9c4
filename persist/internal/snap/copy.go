package snap

import (
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A past is the state that a snapshot copies: a [raw.Pin] of a tick, or the
// present. A storage that is nil is the registry.
//
// Rows are read in the order Stage, then AppendEntities and AppendRows of parts of what is staged,
// then Done: what is done is not asked for again.
type past interface {
	Registry() (alive, free, total int)
	Len(st raw.Storage) int
	Stage(st raw.Storage, lo, hi int)
	AppendEntities(dst []byte, lo, hi int) []byte
	AppendRows(dst []byte, lo, hi int) []byte
	Done(st raw.Storage, lo, hi int)
}

// A present reads the world as it is now. It serves what has no past: resources, and storages that
// do not rewind.
type present struct {
	*ecs.World
	staged   raw.Storage
	entities []uint64 // Of what is staged; nil: a resource.
}

// Registry returns the sizes of the registry.
func (p *present) Registry() (alive, free, total int) {
	rows, alive, free := p.World.Raw().Registry()
	return alive, free, len(rows)
}

// Len returns the rows of st.
func (p *present) Len(st raw.Storage) int { return st.Rows() }

// Stage makes st what AppendEntities and AppendRows append.
func (p *present) Stage(st raw.Storage, _, _ int) {
	if p.staged = st; st == nil {
		p.entities, _, _ = p.World.Raw().Registry()
		return
	}
	p.entities = st.Entities()
}

// AppendEntities appends the entities in rows [lo, hi).
func (p *present) AppendEntities(dst []byte, lo, hi int) []byte {
	if p.entities == nil {
		return dst
	}
	return digest.AppendEntities(dst, p.entities[lo:hi])
}

// AppendRows appends the values in rows [lo, hi).
func (p *present) AppendRows(dst []byte, lo, hi int) []byte { return p.staged.AppendRows(dst, lo, hi) }

// Done does nothing: the present is not kept.
func (p *present) Done(_ raw.Storage, _, _ int) {}

// A rowCopy is the registry or a component on its way to a snapshot, in groups
// of 4096 rows.
//
//	group    | entities | data page | data page | ... |    as digests sum it
//
// Groups that did not change since the snapshot before are not copied, and of some only the
// entities are:
//
//	rows.has(g)   entities and data   dense page, data pages, sum of the group
//	else dense    entities            nothing of the group, but part of what sparse pages are made of
//	else          nothing             all as in the snapshot before
//
// A group is what a digest sums, so the sum of a group takes no second look at the world.
type rowCopy struct {
	number  int         // Of the component; -1: the registry.
	storage raw.Storage // nil: the registry.
	size    format.ComponentSize
	width   int
	summed  bool    // It counts in the digest.
	rows    pageSet // Groups to copy,
	dense   bool    // and whether the entities of the others are needed as well,
	sparse  pageSet // to make these pages of the sparse array.
	groups  []rowGroup
	taken   bool // All is copied.
}

// A rowGroup is what was copied of 4096 rows side by side.
type rowGroup struct {
	bytes    []byte // nil: not copied. From a BufferList, and back to it by Put.
	entities int    // How many of them are entities.
	ends     []int  // Where in bytes the pages of data end.
	whole    bool   // Not only the entities were copied.
}

// wants reports whether something of group g is to be copied.
func (c *rowCopy) wants(g int) bool { return !c.taken && (c.dense || c.rows.has(g)) }

// cost returns about how many bytes a group takes, before it is copied. Rows that vary in
// width are taken for 64 bytes; what they really had is subtracted from the budget afterwards.
func (c *rowCopy) cost() int {
	width := c.width
	if width < 0 {
		width = 64
	}
	return format.PageRows * (8 + width)
}

// take copies groups [first, last) and returns how many bytes they have.
func (c *rowCopy) take(from past, first, last int, buffers *BufferList) (n int) {
	lo, hi := first*format.PageRows, min(last*format.PageRows, c.size.Rows)
	from.Stage(c.storage, lo, hi)
	for g := first; g < last; g++ {
		n += c.takeGroup(from, g, buffers)
	}
	from.Done(c.storage, lo, hi)
	return n
}

// skip tells from which groups will not be copied, so that the world need not keep what they
// were when it writes to them.
func (c *rowCopy) skip(from past) {
	for g := range c.groups {
		if !c.wants(g) {
			from.Done(c.storage, g*format.PageRows, min((g+1)*format.PageRows, c.size.Rows))
		}
	}
}

// takeGroup copies what is wanted of group g, whose rows are staged: the entities in any case, the
// data page by page, so that rows which vary in width need not be cut apart again.
func (c *rowCopy) takeGroup(from past, g int, buffers *BufferList) int {
	lo, hi := g*format.PageRows, min((g+1)*format.PageRows, c.size.Rows)
	group := &c.groups[g]
	buf := from.AppendEntities(buffers.get((hi-lo)*(8+max(c.width, 0))), lo, hi)
	group.entities = len(buf)
	if group.whole = c.rows.has(g); group.whole && c.storage != nil && c.width != 0 {
		for ; lo < hi; lo += c.size.PageRows {
			buf = from.AppendRows(buf, lo, min(lo+c.size.PageRows, hi))
			group.ends = append(group.ends, len(buf))
		}
	}
	group.bytes = buf
	return len(buf)
}

// page returns the i-th page of data, counted within the group, or nothing if the rows were not copied.
func (g *rowGroup) page(i int) []byte {
	if !g.whole {
		return nil
	}
	start := g.entities
	if i > 0 {
		start = g.ends[i-1]
	}
	return g.bytes[start:g.ends[i]]
}

// A StateCopy is a state on its way to a snapshot: what of it is to be copied, and how far that
// has come. Steps go through the columns once, from the first group of the first one to the last
// of the last one.
type StateCopy struct {
	columns []*rowCopy
	buffers *BufferList

	column, group int // What is to be copied next.
}

// Advance copies until about budget bytes are copied or all is, which it reports. However
// small the budget, unless it is 0, a group is copied, so that a copy comes to an end. Groups
// side by side are taken together, since each take has a price of its own: from stages them.
func (s *StateCopy) Advance(from past, budget int) (done bool) {
	for s.column < len(s.columns) {
		c := s.columns[s.column]
		for s.group < len(c.groups) && !c.wants(s.group) {
			s.group++
		}
		if s.group == len(c.groups) {
			s.column, s.group = s.column+1, 0
			continue
		}
		if budget <= 0 {
			return false
		}
		last := s.group + 1
		for last < len(c.groups) && c.wants(last) && (last-s.group)*c.cost() < budget {
			last++
		}
		budget -= c.take(from, s.group, last, s.buffers)
		s.group = last
	}
	return true
}

// Unlimited is a budget that copies all that is left.
const Unlimited = math.MaxInt

// A BufferList keeps the buffers of one snapshot for the next. It belongs to the world's
// goroutine: buffers come back by Put once the snapshot is written, not from who writes it.
type BufferList struct {
	free [][]byte
	kept int // Their bytes.
}

// maxKeptBuffers is how many bytes a BufferList keeps between snapshots; the rest is left to the
// garbage collector.
const maxKeptBuffers = 64 << 20

// get returns an empty buffer, with room for n bytes at first. It takes the last that was
// kept, and drops those that are too small: storages that grew would find them too small again.
func (l *BufferList) get(n int) []byte {
	for k := len(l.free) - 1; k >= 0; k-- {
		b := l.free[k]
		l.free = l.free[:k]
		l.kept -= cap(b)
		if cap(b) >= n {
			return b[:0]
		}
	}
	return make([]byte, 0, n)
}

// Put takes back the buffers of c, in which the pages of its snapshot lie: nothing may read these
// any more.
func (l *BufferList) Put(c *StateCopy) {
	for _, column := range c.columns {
		for _, g := range column.groups {
			l.keep(g.bytes)
		}
	}
}

// keep takes back b, if there is room.
func (l *BufferList) keep(b []byte) {
	if size := cap(b); size > 0 && l.kept+size <= maxKeptBuffers {
		l.free, l.kept = append(l.free, b), l.kept+size
	}
}
