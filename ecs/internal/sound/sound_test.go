package sound

import (
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

func named(index, generation uint32) uint64 { return uint64(generation)<<32 | uint64(index) }

// sample returns a registry of two pages of indices. It also returns the entities of a storage:
// every second living entity, in reverse order.
func sample(t *testing.T) (r *Registry, entities []uint64) {
	var all []uint64
	for i := range uint32(track.PageSize + 10) {
		all = append(all, named(i, 1+i%3))
	}
	all[2], all[9] = all[9], all[2]
	r, err := CheckRegistry(all, len(all)-4, len(all)-2)
	if err != nil {
		t.Fatal(err)
	}
	for row := 0; row < r.alive; row += 2 {
		entities = append(entities, all[row])
	}
	slices.Reverse(entities)
	return r, entities
}

// put calls Put for all pages of entities, and reports whether Put accepts each of them.
func put(s *Sparse, entities []uint64) bool {
	all := true
	for page := range s.pages {
		var rows [track.PageSize]uint32
		for i := range rows {
			rows[i] = NoRow
		}
		for row, e := range entities {
			if int(uint32(e)>>track.PageBits) == page {
				rows[e&track.PageMask] = uint32(row)
			}
		}
		_, ok := s.Put(page, &rows)
		all = all && ok
	}
	return all
}

func TestCheckRegistry_Errors(t *testing.T) {
	good := []uint64{named(1, 1), named(0, 2), named(2, 1)}
	r, err := CheckRegistry(good, 1, 2)
	if err != nil || !slices.Equal(r.rows, []uint32{1, 0, 2}) {
		t.Fatalf("CheckRegistry = %v, %v", r, err)
	}
	for name, entities := range map[string][]uint64{
		"the first twice": {named(1, 1), named(1, 2), named(2, 1)},
		"another twice":   {named(1, 1), named(0, 2), named(0, 1)},
		"out of range":    {named(1, 1), named(3, 2), named(2, 1)},
		"no generation":   {named(1, 1), named(0, 0), named(2, 1)},
		"nor the first":   {named(1, 0), named(0, 2), named(2, 1)},
	} {
		if _, err := CheckRegistry(entities, 1, 2); err == nil {
			t.Errorf("%s: CheckRegistry accepts %x", name, entities)
		}
	}
	for _, sizes := range [][2]int{{-1, 2}, {2, 1}, {1, 4}} {
		if _, err := CheckRegistry(good, sizes[0], sizes[1]); err == nil {
			t.Errorf("CheckRegistry accepts %v of 3", sizes)
		}
	}
	for _, other := range []struct {
		entities    []uint64
		alive, free int
	}{{slices.Clone(good), 1, 2}, {good, 2, 2}, {good, 1, 3}, {good[:2], 1, 2}} {
		if _, ok := RowsOf(r, other.entities, other.alive, other.free); ok {
			t.Errorf("RowsOf accepts %v, which was not checked", other)
		}
	}
	if _, ok := RowsOf(nil, nil, 0, 0); ok {
		t.Error("RowsOf accepts a nil registry")
	}
}

func TestPagesOf_ValidPages(t *testing.T) {
	r, entities := sample(t)
	s := r.Sparse(entities)
	if !put(s, entities) {
		t.Fatal("Put refuses a valid page")
	}
	pages, ok := PagesOf(s, r, entities)
	if !ok || len(pages) != 2 {
		t.Fatalf("PagesOf = %d pages, %v", len(pages), ok)
	}
	for row, e := range entities {
		if got := pages[uint32(e)>>track.PageBits].Rows[e&track.PageMask]; got != uint32(row) {
			t.Fatalf("entry %d is %d, want %d", uint32(e), got, row)
		}
	}
	again, err := CheckRegistry(r.entities, r.alive, r.free)
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"rows elsewhere":   second(PagesOf(s, r, slices.Clone(entities))),
		"fewer rows":       second(PagesOf(s, r, entities[:len(entities)-1])),
		"another registry": second(PagesOf(s, again, entities)),
		"no page":          second(PagesOf(r.Sparse(entities), r, entities)),
		"nothing":          second(PagesOf(nil, r, entities)),
	} {
		if ok {
			t.Errorf("%s: PagesOf accepts the pages", name)
		}
	}
}

// Half of the entities are in page 0, and the test passes this page to Put twice. PagesOf must not
// count the page twice: it must report that half of the entities have no entry.
func TestPut_SamePageTwice(t *testing.T) {
	r, entities := sample(t)
	// Number of entities whose index is in the second page. They come first in entities.
	half := 0
	for uint32(entities[half])>>track.PageBits == 1 {
		half++
	}
	entities = entities[:2*half]
	s := r.Sparse(entities)
	var rows [2][track.PageSize]uint32
	for page := range rows {
		for i := range rows[page] {
			rows[page][i] = NoRow
		}
	}
	for row, e := range entities {
		rows[uint32(e)>>track.PageBits][e&track.PageMask] = uint32(row)
	}
	for range 2 {
		if n, ok := s.Put(0, &rows[0]); n != half || !ok || half == 0 {
			t.Fatalf("Put = %d, %v, want %d", n, ok, half)
		}
	}
	if second(PagesOf(s, r, entities)) {
		t.Error("PagesOf counts a page twice")
	}
	s.Put(1, &rows[1])
	if !second(PagesOf(s, r, entities)) {
		t.Error("PagesOf refuses complete pages")
	}
}

func second(_ []*track.Page, ok bool) bool { return ok }

// One entity of the storage is dead, stale or in two rows. Its index is valid, so Put accepts the
// page. PagesOf must reject the whole array.
func TestPagesOf_DeadEntities(t *testing.T) {
	for name, spoil := range map[string]func(r *Registry, entities []uint64){
		"free":    func(r *Registry, entities []uint64) { entities[3] = r.entities[r.alive] },
		"retired": func(r *Registry, entities []uint64) { entities[3] = r.entities[r.free] },
		"stale":   func(_ *Registry, entities []uint64) { entities[3] += 1 << 32 },
		"twice":   func(_ *Registry, entities []uint64) { entities[3] = entities[4] },
	} {
		r, entities := sample(t)
		spoil(r, entities)
		s := r.Sparse(entities)
		put(s, entities)
		if second(PagesOf(s, r, entities)) {
			t.Errorf("%s: PagesOf accepts the pages", name)
		}
	}
}

func TestPut_PageOfOtherEntities(t *testing.T) {
	r, entities := sample(t)
	for name, other := range map[string]func([]uint64) []uint64{
		"two rows swapped": func(e []uint64) []uint64 { e[0], e[5] = e[5], e[0]; return e },
		"a row too many":   func(e []uint64) []uint64 { return append(e, named(1, 2)) },
		"an index too many": func(e []uint64) []uint64 {
			// The last page has space for this index, but the registry ends before it.
			e[0] = named(uint32(len(r.rows)), 1)
			return e
		},
	} {
		if put(r.Sparse(entities), other(slices.Clone(entities))) {
			t.Errorf("%s: Put accepts the page", name)
		}
	}
	last := append(slices.Clone(entities), named(uint32(len(r.rows)), 1))
	if put(r.Sparse(last), last) {
		t.Error("Put accepts an index that no entity has")
	}
	if _, ok := r.Sparse(entities).Put(2, new([track.PageSize]uint32)); ok {
		t.Error("Put accepts a page after the last one")
	}
}
