package snap

import (
	"math/bits"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A pageSet is a set of page numbers.
type pageSet []uint64

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

func (s *pageSet) addRanges(ranges []raw.Range) {
	for _, r := range ranges {
		s.addRows(r.First, r.First+r.N)
	}
}

func (s *pageSet) addAll(other pageSet) {
	for i, word := range other {
		if word != 0 {
			s.add(64*i + bits.Len64(word) - 1)
			(*s)[i] |= word
		}
	}
}

func (s pageSet) has(page int) bool { return page>>6 < len(s) && s[page>>6]>>(page&63)&1 == 1 }

// Dirty says which pages may differ from those of a state, as ticks that were
// journaled since tell. A page that is not in it is the same; one that is in it
// may be. Pages of rows are counted in steps of 4096, whatever their size.
type Dirty struct {
	All        bool // Nothing is known of the pages.
	registry   pageSet
	destroyed  pageSet // Of entity indices: each may be gone from every component.
	components []dirtyComponent
}

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

// SetRegistry notes what a tick did to the registry.
func (d *Dirty) SetRegistry(c raw.EntityChange) {
	d.registry.addRanges(c.Rows)
	d.registry.addRows(min(c.Before, c.Total), max(c.Before, c.Total))
}

// SetStorage notes what a tick did to the rows of component number n. Entities
// that it has no longer are told by SetOp.
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

// SetOp notes an operation, of component number n if it concerns one.
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

// Merge adds what other has.
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
