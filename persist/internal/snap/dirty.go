package snap

import (
	"math/bits"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A pageSet is a set of page numbers: number n is bit n%64 of word n/64. Words behind the
// last are 0, so that nil is the empty set.
type pageSet []uint64

// add puts a page into s, which grows if it must.
func (s *pageSet) add(page int) {
	for page>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[page>>6] |= 1 << (page & 63)
}

// addRows adds the pages of rows [lo, hi).
func (s *pageSet) addRows(lo, hi int) {
	if lo < hi {
		for page := lo / format.PageRows; page <= (hi-1)/format.PageRows; page++ {
			s.add(page)
		}
	}
}

// addRanges adds the pages of ranges of rows.
func (s *pageSet) addRanges(ranges []raw.Range) {
	for _, r := range ranges {
		s.addRows(r.First, r.First+r.N)
	}
}

// addAll makes s the union of both. It writes into the words of s, never into those of other.
func (s *pageSet) addAll(other pageSet) {
	for i, word := range other {
		if word != 0 {
			s.add(64*i + bits.Len64(word) - 1) // Which makes room for the word.
			(*s)[i] |= word
		}
	}
}

// has reports whether page is in s.
func (s pageSet) has(page int) bool { return page>>6 < len(s) && s[page>>6]>>(page&63)&1 == 1 }

// Dirty says which pages may differ from those of a state, as ticks that were
// journaled since tell. A page that is not in it is the same; one that is in it
// may be. Pages of rows are counted in steps of 4096, whatever their size.
//
//	change of a tick          pages that may differ
//	rows written, or resized  dense and data pages of these rows (rows), of the registry (registry)
//	row gets an entity        sparse page of the entity's index (sparse)
//	entity loses a component  sparse page of its index (sparse); destroyed: in any component (destroyed)
//	component cleared         all of its sparse pages (cleared)
//
// A page of rows that is missed here is taken from the snapshot before, and so is its sum: the
// digest of the file agrees with it, and no reader notices. So where in doubt, a page is in it. One
// that turns out equal is shared all the same.
type Dirty struct {
	All        bool // Nothing is known of the pages.
	registry   pageSet
	destroyed  pageSet // Of entity indices: each may be gone from every component.
	components []dirtyComponent
}

// A dirtyComponent says which pages of a component may differ: those of its rows, dense and data alike,
// and those of its sparse array, which go by the indices of entities.
type dirtyComponent struct {
	rows    pageSet
	sparse  pageSet
	cleared bool // Every page of the sparse array may differ.
}

// component returns the pages of component number n.
func (d *Dirty) component(n int) *dirtyComponent {
	for n >= len(d.components) {
		d.components = append(d.components, dirtyComponent{})
	}
	return &d.components[n]
}

// SetRegistry notes what a tick did to the registry: it wrote rows, or there are more or
// fewer than before.
func (d *Dirty) SetRegistry(c raw.EntityChange) {
	d.registry.addRanges(c.Rows)
	d.registry.addRows(min(c.Before, c.Total), max(c.Before, c.Total))
}

// SetStorage notes what a tick did to the rows of component number n. A row that got another
// entity changes two pages that have nothing to do with each other: that of the row, and that
// of the sparse array which the entity's index is in. Entities that the component has no longer
// are in no row: they are told by SetOp.
func (d *Dirty) SetStorage(n int, c raw.StorageChange) {
	p := d.component(n)
	now := c.Storage.Rows()
	p.rows.addRanges(c.Entities)
	p.rows.addRanges(c.Values)
	p.rows.addRows(min(c.Before, now), max(c.Before, now))
	entities := c.Storage.Entities()
	for _, r := range c.Entities {
		for _, e := range entities[r.First : r.First+r.N] {
			if e != raw.Vacant {
				p.sparse.add(int(uint32(e)) / format.PageRows)
			}
		}
	}
}

// SetOp notes an operation, of component number n if it concerns one. Operations of a tick come
// behind its storages: clearing the world concerns the components that d has then. Any other has
// no row that the tick took away, since SetStorage would have been told of these.
func (d *Dirty) SetOp(kind raw.OpKind, n int, e ecs.Entity) {
	switch {
	case kind == raw.OpRemove:
		d.component(n).sparse.add(int(e.Index()) / format.PageRows)
	case kind == raw.OpDestroy:
		d.destroyed.add(int(e.Index()) / format.PageRows)
	case kind == raw.OpClear && n != format.NoComponent:
		d.component(n).cleared = true
	case kind == raw.OpClear:
		for i := range d.components {
			d.components[i].cleared = true
		}
	}
}

// Merge adds what other has: what a snapshot that failed was to write, and what changed
// since, are what the next one writes.
func (d *Dirty) Merge(other *Dirty) {
	d.All = d.All || other.All
	d.registry.addAll(other.registry)
	d.destroyed.addAll(other.destroyed)
	for n := range other.components {
		p, o := d.component(n), &other.components[n]
		p.rows.addAll(o.rows)
		p.sparse.addAll(o.sparse)
		p.cleared = p.cleared || o.cleared
	}
}
