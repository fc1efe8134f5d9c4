// Package sound holds parts of a world's state that were checked, in the form in which a world
// stores them. Only this package can create them, so a world can use them without further checks:
//
//	registry   every index occurs once                             CheckRegistry ─▶ Registry
//	sparse     entry i names a row, whose entity has index i       Registry.Sparse, Put ─▶ Sparse
//	           and is alive
//
// If there are as many entries as rows, each row has an entry, and no entity has two rows.
// Package raw exports both under its own names. Only package ecs reads their contents.
package sound

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// NoRow is an entry without a row.
const NoRow = math.MaxUint32

// A Registry is a checked registry of entities, with the row of each index.
type Registry struct {
	entities    []uint64
	alive, free int
	rows        []uint32
}

// CheckRegistry checks a registry in which rows [0, alive) are alive and rows [alive, free) are
// free. The error says what is wrong. The caller must not change entities afterwards.
func CheckRegistry(entities []uint64, alive, free int) (*Registry, error) {
	total := len(entities)
	if alive < 0 || alive > free || free > total {
		return nil, fmt.Errorf("entities: %d alive, %d with free ones, %d in all", alive, free, total)
	}
	rows := make([]uint32, total)
	for r, e := range entities {
		i := uint32(e)
		// A row of 0 may mean that the index was not seen. Only entities[0] has row 0.

		if uint64(i) >= uint64(total) || rows[i] != 0 || r > 0 && i == uint32(entities[0]) || e>>32 == 0 {
			return nil, fmt.Errorf("entities: row %d holds %dv%d, which is out of range or there twice", r, i, e>>32)
		}
		rows[i] = uint32(r)
	}
	return &Registry{entities, alive, free, rows}, nil
}

// A Sparse is the sparse array of a storage. It contains the pages that were checked.
type Sparse struct {
	registry *Registry
	entities []uint64
	pages    []*track.Page
	entries  []int // Number of entries of each page.
	// Some entity is not alive.
	dead atomic.Bool
}

// Sparse returns the sparse array for a storage with these entities, in dense order. No page is
// checked yet. The caller must not change entities afterwards.
func (r *Registry) Sparse(entities []uint64) *Sparse {
	pages := (len(r.rows) + track.PageMask) >> track.PageBits
	return &Sparse{registry: r, entities: entities, pages: make([]*track.Page, pages), entries: make([]int, pages)}
}

// Put checks and copies a page, which holds the row of each index, or [NoRow]. It returns the
// number of entries, and whether each entry names a row of its index. Several goroutines may call
// it for different pages. It replaces a page that was put before.
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

// RowsOf returns the row of each index if r was created from this registry.
func RowsOf(r *Registry, entities []uint64, alive, free int) (rows []uint32, ok bool) {
	if r == nil || !same(r.entities, entities) || r.alive != alive || r.free != free {
		return nil, false
	}
	return r.rows, true
}

// PagesOf returns the pages of s if they are complete for these entities and all entities are alive
// in r.
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

// same reports whether a and b share the same memory and length.
func same(a, b []uint64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
