package snap

import (
	"math"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A rowReader appends encoded rows. It is a [raw.Pin], which reads the rows that its method Stage
// has selected, or presentRows.
type rowReader interface {
	AppendEntities(dst []byte, lo, hi int) []byte
	AppendRows(dst []byte, lo, hi int) []byte
}

// presentRows reads the present rows of a storage. It is used for resources and for storages that
// do not rewind, because a pin does not cover them.
type presentRows struct{ raw.Storage }

// AppendEntities appends the entities in rows [lo, hi). It appends nothing for a resource.
func (p presentRows) AppendEntities(dst []byte, lo, hi int) []byte {
	entities := p.Entities()
	if entities == nil {
		return dst
	}
	return digest.AppendEntities(dst, entities[lo:hi])
}

// A rowCopy is the copy of the registry or of a component for a snapshot, in groups of 4096 rows. A
// group has its entities first, and then its data pages. The fields rows and dense say what is
// copied of a group g:
//
//	rows.has(g)                  entities and data, for all pages of the group
//	dense, but not rows.has(g)   entities only, because sparse pages are made from them
//	neither                      nothing, because the snapshot refers to the previous one
//
// The digest of a state has a checksum for each group. If the data was copied, the checksum is
// computed from the copy. Otherwise it is the checksum in the previous snapshot.
type rowCopy struct {
	number  int         // Component number. -1 for the registry.
	storage raw.Storage // Storage to copy. Nil for the registry.
	size    format.ComponentSize
	width   int
	summed  bool    // The digest covers the storage.
	rows    pageSet // Groups to copy.
	dense   bool    // If set, copy the entities of all groups, for the sparse pages.
	sparse  pageSet // Pages of the sparse array to write.
	groups  []rowGroup
	taken   bool // Set once all groups are copied.
}

// A rowGroup is the copy of 4096 consecutive rows.
type rowGroup struct {
	// The copied rows, or nil if they are not copied. BufferList.get returns this buffer, and Put
	// takes it back.
	bytes    []byte
	entities int   // Length in bytes of the entities, which are the beginning of the copied rows.
	ends     []int // Ends of the data pages in bytes.
	whole    bool  // Entities and data were copied.
}

// wants reports whether a part of group g must be copied.
func (c *rowCopy) wants(g int) bool { return !c.taken && (c.dense || c.rows.has(g)) }

// cost returns the estimated size of a group in bytes, before it is copied. It assumes 64 bytes for
// a row of varying width. Advance later subtracts the real size from the budget.
func (c *rowCopy) cost() int {
	width := c.width
	if width < 0 {
		width = 64
	}
	return format.PageRows * (8 + width)
}

// take copies groups [first, last) of the pinned state and returns their size in bytes.
func (c *rowCopy) take(from raw.Pin, first, last int, buffers *BufferList) (n int) {
	lo, hi := first*format.PageRows, min(last*format.PageRows, c.size.Rows)
	from.Stage(c.storage, lo, hi)
	for g := first; g < last; g++ {
		n += c.takeGroup(from, g, buffers)
	}
	from.Done(c.storage, lo, hi)
	return n
}

// skip calls Done for groups that will not be copied, so that the world does not keep their old
// rows.
func (c *rowCopy) skip(from raw.Pin) {
	for g := range c.groups {
		if !c.wants(g) {
			from.Done(c.storage, g*format.PageRows, min((g+1)*format.PageRows, c.size.Rows))
		}
	}
}

// takeGroup copies the wanted parts of group g. A pin must have staged the rows of the group.
// takeGroup always copies the entities. It copies the data page by page, and records the page ends.
func (c *rowCopy) takeGroup(from rowReader, g int, buffers *BufferList) int {
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

// page returns data page i of the group, or nil if the data was not copied.
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

// A StateCopy is the progress of copying a state for a snapshot. The copy proceeds column by
// column, and group by group within a column.
type StateCopy struct {
	columns []*rowCopy
	buffers *BufferList

	column, group int // The next group to copy.
}

// Advance copies about budget bytes and reports whether the copy is complete. With any positive
// budget it copies at least one group, so the copy always ends. It copies adjacent groups together,
// because each call of Stage has a fixed cost.
func (s *StateCopy) Advance(from raw.Pin, budget int) (done bool) {
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

// Unlimited is a budget that copies everything.
const Unlimited = math.MaxInt

// A BufferList keeps the buffers of one snapshot for the next. Only the world's goroutine may use
// it. That goroutine calls Put once the snapshot is written.
type BufferList struct {
	free [][]byte
	kept int // Total size of the free buffers in bytes.
}

// maxKeptBuffers is the maximum number of bytes that a BufferList keeps between snapshots. The
// garbage collector frees all other buffers.
const maxKeptBuffers = 64 << 20

// get returns an empty buffer with a capacity of at least n bytes. It takes the last free buffer
// that is large enough, and drops the smaller ones after it.
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

// Put returns the buffers of c to l. The buffers contain the pages of the snapshot, so the snapshot
// must not be used any more.
func (l *BufferList) Put(c *StateCopy) {
	for _, column := range c.columns {
		for _, g := range column.groups {
			l.keep(g.bytes)
		}
	}
}

// keep puts b on the free list if there is room.
func (l *BufferList) keep(b []byte) {
	if size := cap(b); size > 0 && l.kept+size <= maxKeptBuffers {
		l.free, l.kept = append(l.free, b), l.kept+size
	}
}
