// Package sound has parts of a state that were checked, in the form in which a world keeps
// them. Nobody else can make them, so a world takes them as they are:
//
//	registry   every index is there once                           CheckRegistry ─▶ Registry
//	sparse     entry i names a row, whose entity has index i       Registry.Sparse, Put ─▶ Sparse
//	           and is alive
//
// As many entries as rows, each of another index, are those of all rows: then no entity has two.
// Package raw hands both out under its own names. What is in them is only for package ecs.
package sound

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// NoRow is an entry that names no row.
const NoRow = math.MaxUint32

// A Registry is a registry of entities that was checked, and the row of each index.
type Registry struct {
	entities    []uint64
	alive, free int
	rows        []uint32
}

// CheckRegistry checks a registry, whose rows [0, alive) are alive and [alive, free) free. The
// error says what is wrong. entities must not be changed any more.
func CheckRegistry(entities []uint64, alive, free int) (*Registry, error) {
	total := len(entities)
	if alive < 0 || alive > free || free > total {
		return nil, fmt.Errorf("entities: %d alive, %d with free ones, %d in all", alive, free, total)
	}
	rows := make([]uint32, total)
	for r, e := range entities {
		i := uint32(e)
		// Row 0 looks like none. Its index is that of the first entity.
		if uint64(i) >= uint64(total) || rows[i] != 0 || r > 0 && i == uint32(entities[0]) || e>>32 == 0 {
			return nil, fmt.Errorf("entities: row %d holds %dv%d, which is out of range or there twice", r, i, e>>32)
		}
		rows[i] = uint32(r)
	}
	return &Registry{entities, alive, free, rows}, nil
}

// A Sparse is the sparse array of a storage, as far as its pages were checked.
type Sparse struct {
	registry *Registry
	entities []uint64
	pages    []*track.Page
	entries  []int       // Of each page.
	dead     atomic.Bool // Some entity is not alive.
}

// Sparse returns the sparse array of a storage with these entities, in dense order, none of whose
// pages were checked yet. They must not be changed any more.
func (r *Registry) Sparse(entities []uint64) *Sparse {
	pages := (len(r.rows) + track.PageMask) >> track.PageBits
	return &Sparse{registry: r, entities: entities, pages: make([]*track.Page, pages), entries: make([]int, pages)}
}

// Put copies a page: the row of each index, or [NoRow]. It returns how many entries there are, and
// whether each names a row of its index. It may be called for several pages at the same time; one that
// was put before is replaced.
func (s *Sparse) Put(page int, rows *[track.PageSize]uint32) (entries int, ok bool) {
	if page >= len(s.pages) {
		return 0, false
	}
	to, first := new(track.Page), uint32(page<<track.PageBits)
	known := s.registry.rows[first:min(int(first)+track.PageSize, len(s.registry.rows))]
	alive := s.registry.entities[:s.registry.alive]
	dead := false
	for i, row := range rows {
		if row == NoRow {
			to.Rows[i] = track.NoRow
			continue
		}
		if uint64(row) >= uint64(len(s.entities)) || i >= len(known) {
			return 0, false
		}
		e := s.entities[row]
		if uint32(e) != first+uint32(i) {
			return 0, false
		}
		if r := int(known[i]); r >= len(alive) || alive[r] != e {
			dead = true
		}
		to.Rows[i] = row
		entries++
	}
	if dead {
		s.dead.Store(true)
	}
	s.pages[page], s.entries[page] = to, entries
	return entries, true
}

// RowsOf returns the row of each index of the registry that r was made of, if it is that one.
func RowsOf(r *Registry, entities []uint64, alive, free int) (rows []uint32, ok bool) {
	if r == nil || !same(r.entities, entities) || r.alive != alive || r.free != free {
		return nil, false
	}
	return r.rows, true
}

// PagesOf returns the pages of s if they are the whole sparse array of these entities, all of which
// are alive in r.
func PagesOf(s *Sparse, r *Registry, entities []uint64) (pages []*track.Page, ok bool) {
	if s == nil || s.registry != r || !same(s.entities, entities) || s.dead.Load() {
		return nil, false
	}
	entries := 0
	for _, n := range s.entries {
		entries += n
	}
	if entries != len(entities) {
		return nil, false
	}
	return s.pages, true
}

// same reports whether a and b are the same memory.
func same(a, b []uint64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
