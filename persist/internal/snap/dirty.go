package snap

import (
	"math/bits"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A pageSet is a set of page numbers: number n is bit n%64 of word n/64. Missing words are 0, so
// nil is the empty set.
type pageSet []uint64

// add adds a page to s.
func (s *pageSet) add(page int) {
	for page>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[page>>6] |= 1 << (page & 63)
}

// remove removes a page from s.
func (s pageSet) remove(page int) {
	if s.has(page) {
		s[page>>6] &^= 1 << (page & 63)
	}
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

// addAll adds all pages of the other set to s. It never writes to the words of the other set.
func (s *pageSet) addAll(other pageSet) {
	for i, word := range other {
		if word != 0 {
			// Adding the highest page makes s long enough for the whole word.
			s.add(64*i + bits.Len64(word) - 1)
			(*s)[i] |= word
		}
	}
}

// has reports whether s contains page.
func (s pageSet) has(page int) bool { return page>>6 < len(s) && s[page>>6]>>(page&63)&1 == 1 }

// Dirty is a set of pages of a state that may differ from those of an earlier state. It is computed
// from the ticks between the two. Pages of rows are counted in steps of 4096 rows, whatever their
// real size. Each set has its own field:
//
//	field      change of a tick           pages that may differ
//	registry   rows of the registry       pages of these rows
//	rows       rows written, or resized   dense and data pages of these rows
//	sparse     row gets an entity         sparse page of the entity's index
//	sparse     entity loses a component   sparse page of its index
//	destroyed  entity is destroyed        sparse page of its index, in every component
//	cleared    component cleared          all of its sparse pages
//
// For a page outside this set, a snapshot uses the page and checksum of the previous snapshot. If
// such a page has changed, no reader detects the error. So in doubt, add the page.
type Dirty struct {
	All      bool // Set if all pages may differ.
	registry pageSet
	// Pages of the indices of destroyed entities. An entity may have been in any component.
	destroyed  pageSet
	components []dirtyComponent
}

// A dirtyComponent is the set of pages of a component that may differ. rows are its dense and data
// pages; sparse are the pages of its sparse array, numbered by entity index.
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

// SetRegistry adds the changes of a tick to the registry: written, new and removed rows.
func (d *Dirty) SetRegistry(c raw.EntityChange) {
	d.registry.addRanges(c.Rows)
	d.registry.addRows(min(c.Before, c.Total), max(c.Before, c.Total))
}

// SetStorage adds the changes of a tick to the rows of component number n. A row with a new entity
// changes two unrelated pages: the page of the row, and the sparse page of the entity's index.
// Entities that left the component are in no row, so SetOp adds their sparse pages.
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

// SetOp adds an operation of a tick. n is its component number, or format.NoComponent. An operation
// that clears the world marks only the components that d already contains. So call SetStorage for
// all changes of the tick first.
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

// Merge adds the pages of another Dirty to d. After a failed snapshot, the next snapshot writes the
// pages of both.
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
