package ecs

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/sound"
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// ownedState returns the state of w, with Owned set. So a world that loads the state may keep its
// memory.
func ownedState(w *World) *raw.State {
	s := stateOf(w)
	s.Owned, s.Registry = true, slices.Clone(s.Registry)
	for i := range s.Storages {
		s.Storages[i].Entities = slices.Clone(s.Storages[i].Entities)
	}
	return s
}

// checkedState returns the state of w together with the results of all checks. Load need not repeat
// these checks.
func checkedState(w *World) *raw.State {
	s := ownedState(w)
	var err error
	if s.Checked, err = raw.CheckRegistry(s.Registry, s.Alive, s.Free); err != nil {
		failf("CheckRegistry: %v", err)
	}
	for i := range s.Storages {
		putAll(s, &s.Storages[i], s.Storages[i].Entities)
	}
	return s
}

// putAll computes the sparse array for the given entities, and passes its pages to Put. The array
// then belongs to st, a storage of s. putAll reports whether Put accepted every page.
func putAll(s *raw.State, st *raw.StorageState, entities []uint64) (all bool) {
	if st.Resource {
		return true
	}
	all, st.Checked = true, s.Checked.Sparse(st.Entities)
	for page := range (len(s.Registry) + track.PageMask) >> track.PageBits {
		all = putPage(st, page, entities) && all
	}
	return all
}

// putPage computes one page of the sparse array from entities, and passes it to st.Checked. It
// reports whether Put accepted the page. It skips a page without entries.
func putPage(st *raw.StorageState, page int, entities []uint64) bool {
	var rows [track.PageSize]uint32
	for i := range rows {
		rows[i] = raw.NoRow
	}
	want := 0
	for row, e := range entities {
		if i := Entity(e).Index(); e != raw.Vacant && int(i>>track.PageBits) == page {
			rows[i&track.PageMask] = uint32(row)
			want++
		}
	}
	if want == 0 {
		return true
	}
	n, ok := st.Checked.Put(page, &rows)
	return ok && n == want
}

// Load uses checked data without further checks. The world is the same as after a load with checks.
func TestLoad_CheckedStateGivesSameWorld(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0x10ad))
		register := func() (*World, [5]*Storage[plain]) {
			w, all := NewWorld(Options{}), [5]*Storage[plain]{}
			for i, k := range []Kind{Sparse, Sparse, Indexed, Hashed, Sparse} {
				all[i] = MustRegister(w, Component[plain]{Name: "p" + string(rune('0'+i)), Kind: k})
			}
			checkAtEnd(t, w)
			return w, all
		}
		source, from := register()
		var entities []Entity
		for range 3*track.PageSize - 5 {
			entities = append(entities, source.Create())
		}
		random.Shuffle(len(entities), func(i, j int) { entities[i], entities[j] = entities[j], entities[i] })
		for i, e := range entities {
			for k, s := range from[:4] { // The fifth storage stays empty.
				if random.IntN(k+1) == 0 {
					s.Set(e, plain{int32(i), int32(k)})
				}
			}
			if random.IntN(9) == 0 {
				source.Destroy(entities[random.IntN(i+1)])
			}
		}
		state := checkedState(source)
		rows, ok := sound.RowsOf((*sound.Registry)(state.Checked), state.Registry, state.Alive, state.Free)
		pages, whole := sound.PagesOf((*sound.Sparse)(state.Storages[1].Checked), (*sound.Registry)(state.Checked), state.Storages[1].Entities)
		if !ok || !whole {
			t.Fatalf("seed %d: the checked data is incomplete", seed)
		}
		w, to := register()
		if err := w.Raw().Load(state); err != nil || w.Digest() != source.Digest() {
			t.Fatalf("seed %d: Load = %v", seed, err)
		}
		if &rows[0] != &w.entities.sparse[0] || pages[0] != to[1].sparse.Pages[0] || pages[2] != to[1].sparse.Pages[2] {
			t.Errorf("seed %d: the world copied the checked data", seed)
		}
		for range 500 { // The source and the loaded world must behave equally.
			e := entities[random.IntN(len(entities))]
			k := random.IntN(4)
			for _, s := range []*Storage[plain]{from[k], to[k]} {
				switch {
				case s.Has(e):
					s.Remove(e)
				case s.w.Alive(e):
					s.Set(e, plain{7, 7})
				default:
					s.Set(s.w.Create(), plain{8, 8})
				}
			}
		}
		if w.Digest() != source.Digest() {
			t.Errorf("seed %d: the loaded world behaves differently", seed)
		}
	}
}

// In each case, the check result is incomplete, or belongs to other data than the state. Load must
// then check the data itself.
func TestLoad_InvalidCheckResults(t *testing.T) {
	var before, after *raw.Registry
	for _, tt := range []struct {
		name  string
		spoil func(s *raw.State, st *raw.StorageState)
		text  string // The text of the error. "" means that Load succeeds.
	}{
		{"a dead entity", func(s *raw.State, st *raw.StorageState) {
			st.Entities[1] = s.Registry[s.Alive]
			putAll(s, st, st.Entities)
		}, "component list: row 1 belongs to"},
		{"a stale entity", func(s *raw.State, st *raw.StorageState) {
			st.Entities[1] += 1 << 32
			putAll(s, st, st.Entities)
		}, "component list: row 1 belongs to"},
		{"an entity twice", func(s *raw.State, st *raw.StorageState) {
			st.Entities[1] = st.Entities[0]
			putAll(s, st, st.Entities)
		}, "component list: 0v1 has two rows"},
		{"a row of another entity", func(s *raw.State, st *raw.StorageState) {
			other := slices.Clone(st.Entities)
			other[0], other[1] = other[1], other[0]
			if putAll(s, st, other) {
				s.Storages = nil // Put accepted wrong rows: make the test fail.
			}
		}, ""},
		{"no page", func(s *raw.State, st *raw.StorageState) { st.Checked = s.Checked.Sparse(st.Entities) }, ""},
		{"rows elsewhere", func(_ *raw.State, st *raw.StorageState) { st.Entities = slices.Clone(st.Entities) }, ""},
		{"a registry elsewhere", func(s *raw.State, _ *raw.StorageState) { s.Registry = slices.Clone(s.Registry) }, ""},
		{"another registry", func(s *raw.State, _ *raw.StorageState) {
			before = s.Checked
			s.Checked, _ = raw.CheckRegistry(s.Registry, s.Alive, s.Free)
			after = s.Checked
		}, ""},
		{"fewer alive", func(s *raw.State, st *raw.StorageState) { s.Alive-- }, "row"},
		{"a state of its own", func(s *raw.State, _ *raw.StorageState) { s.Owned = false }, ""},
	} {
		source, _ := loadable(t)
		state := checkedState(source)
		tt.spoil(state, &state.Storages[1])
		w, _ := loadable(t)
		err := w.Raw().Load(state)
		switch {
		case tt.text != "" && (err == nil || !strings.Contains(err.Error(), tt.text)):
			t.Errorf("%s: Load = %v, want %q in it", tt.name, err, tt.text)
		case tt.text == "" && (err != nil || w.Digest() != source.Digest()):
			t.Errorf("%s: Load = %v, digest %v, want %v", tt.name, err, w.Digest(), source.Digest())
		}
	}
	if before == after {
		t.Error("two checks of a registry return the same Registry")
	}
}

// If a state is not owned, Load copies all its data.
func TestLoad_CopiesStateNotOwned(t *testing.T) {
	source, _ := loadable(t)
	state := checkedState(source)
	state.Owned = false
	a, p := loadable(t)
	b, _ := loadable(t)
	for _, w := range []*World{a, b} {
		if err := w.Raw().Load(state); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range slices.Clone(p.Entities()) {
		a.Destroy(e)
	}
	if b.Digest() != source.Digest() {
		t.Error("two worlds share a state")
	}
}
