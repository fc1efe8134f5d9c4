package ecs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// Load gives the same world from a state that the world may own, and from states whose rows are in
// pages.
func TestLoad_SameFromMemoryAndPages(t *testing.T) {
	source, _ := loadable(t)
	want := source.Digest()
	for name, change := range map[string]func(*raw.State){
		"owned": func(s *raw.State) { s.Owned = true },
		"pages": func(s *raw.State) {
			for i := range s.Storages {
				inPages(&s.Storages[i], 2)
			}
		},
		"one page": func(s *raw.State) {
			for i := range s.Storages {
				inPages(&s.Storages[i], 64)
			}
		},
	} {
		w, p := loadable(t)
		state := stateOf(source)
		state.Registry = slices.Clone(state.Registry)
		for i := range state.Storages {
			state.Storages[i].Entities = slices.Clone(state.Storages[i].Entities)
		}
		change(state)
		if err := w.Raw().Load(state); err != nil || w.Digest() != want {
			t.Errorf("%s: Load = %v, digest %v, want %v", name, err, w.Digest(), want)
		}
		kept := len(state.Registry) > 0 && &raw.As[Entity](state.Registry)[0] == &w.entities.dense.Live[0]
		if kept != state.Owned {
			t.Errorf("%s: the world shares the registry: %v", name, kept)
		}
		e := w.Create() // The world can continue to use the memory of the state.
		p.Set(e, plain{1, 2})
		w.Commit()
	}
}

// inPages splits the rows of s into pages of n rows.
func inPages(s *raw.StorageState, n int) {
	rest := s.Rows
	rows := max(1, len(s.Entities))
	for row := 0; row < rows; row += n {
		before := rest
		for range min(n, rows-row) {
			_, rest, _ = s.Layout.Next(rest)
		}
		s.Pages = append(s.Pages, before[:len(before)-len(rest)])
	}
	s.Rows, s.PageRows = nil, n
}

func TestLoad_InvalidPages(t *testing.T) {
	for name, change := range map[string]func(*raw.StorageState){
		"one too few":   func(s *raw.StorageState) { s.Pages = s.Pages[1:] },
		"one too many":  func(s *raw.StorageState) { s.Pages = append(s.Pages, nil) },
		"of no rows":    func(s *raw.StorageState) { s.PageRows = 0 },
		"swapped":       func(s *raw.StorageState) { s.Pages[0], s.Pages[len(s.Pages)-1] = s.Pages[len(s.Pages)-1], s.Pages[0] },
		"with too much": func(s *raw.StorageState) { s.Pages[0] = append(slices.Clone(s.Pages[0]), 0) },
	} {
		w, _ := loadable(t)
		state := stateOf(w)
		for i := range state.Storages {
			if s := &state.Storages[i]; s.Name == "list" {
				inPages(s, 3)
				change(s)
			}
		}
		before := w.Digest()
		err := w.Raw().Load(state)
		if !errors.Is(err, raw.ErrState) || !strings.Contains(err.Error(), "component list: ") || w.Digest() != before {
			t.Errorf("%s: Load = %v", name, err)
		}
	}
}
