// Package sound holds checked data of a world, in the form in which a world stores it. Only this
// package can create these values, so a world uses them without further checks:
//
//   - CheckRegistry returns a Registry. Every index occurs in it once.
//   - Registry.Sparse returns a Sparse, and Put adds its pages. If entry i names a row, the entity
//     in that row has index i.
//   - PagesOf returns the pages if all entities are alive and every row has its entry.
//
// PagesOf only counts the entries. Two entries cannot name the same row, because the entity in that
// row has only one index. So if a sparse array has as many entries as the storage has rows, every
// row has its entry.
//
// Package raw exports Registry and Sparse. Only package ecs reads their contents.
package sound

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// NoRow is the value of an entry without a row.
const NoRow = math.MaxUint32

// PageRows is the number of entries of a page.
const PageRows = track.PageSize

// A Registry is a checked registry of entities, with the row of each index.
type Registry struct {
	entities    []uint64
	alive, free int
	rows        []uint32
}

// CheckRegistry checks a registry of entities. Rows [0, alive) must be alive and rows [alive, free)
// free. The error says what is wrong. The caller must not change the slice afterwards.
func CheckRegistry(entities []uint64, alive, free int) (*Registry, error) {
	total := len(entities)
	if alive < 0 || alive > free || free > total {
		return nil, fmt.Errorf("entities: %d alive, %d with free ones, %d in all", alive, free, total)
	}
	rows := make([]uint32, total)
	for r, e := range entities {
		i := uint32(e)
		// rows[i] is 0 until index i has occurred. For the index of entities[0], it stays 0, so
		// this index is compared separately.
		if uint64(i) >= uint64(total) || rows[i] != 0 || r > 0 && i == uint32(entities[0]) || e>>32 == 0 {
			return nil, fmt.Errorf("entities: row %d holds %dv%d, which is out of range or there twice", r, i, e>>32)
		}
		rows[i] = uint32(r)
	}
	return &Registry{entities, alive, free, rows}, nil
}

// A Sparse is the sparse array of a storage. It contains the pages that Put has checked.
type Sparse struct {
	registry *Registry
	entities []uint64
	pages    []*track.Page
	entries  []int // Number of entries of each page.
	// Set if a page has an entry for an entity that is not alive.
	dead atomic.Bool
}

// Sparse returns the sparse array for a storage with the given entities, in dense order. The array
// has no pages yet: see Put. The caller must not change the slice afterwards.
func (r *Registry) Sparse(entities []uint64) *Sparse {
	pages := (len(r.rows) + track.PageMask) >> track.PageBits
	return &Sparse{registry: r, entities: entities, pages: make([]*track.Page, pages), entries: make([]int, pages)}
}

// Put checks a page and adds a copy of it. Each element of rows is the row of an index, or [NoRow].
// Put returns the number of elements that name a row. ok is false if such a row does not exist, or
// if the entity in the row has another index.
//
// Goroutines may call Put at the same time for different pages. A second Put of a page replaces it.
func (s *Sparse) Put(page int, rows *[PageRows]uint32) (entries int, ok bool) {
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

// RowsOf returns the row of each index. ok is true only if CheckRegistry created r from the given
// slice and numbers.
func RowsOf(r *Registry, entities []uint64, alive, free int) (rows []uint32, ok bool) {
	if r == nil || !same(r.entities, entities) || r.alive != alive || r.free != free {
		return nil, false
	}
	return r.rows, true
}

// PagesOf returns the pages of s. ok is true only if r.Sparse created s from the given entities. In
// addition, all entities must be alive in r, and the pages must have an entry for each of them.
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

// same reports whether a and b have the same memory and length.
func same(a, b []uint64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
