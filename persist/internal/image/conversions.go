package image

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Whether a program can take a store over is decided storage by storage, by what is registered and
// what is stored:
//
//	stored and registered      converted, unless the program's type is the older one
//	stored only                values that would be lost
//	registered only            new, unless it is what something stored was before (outgrown)

// Conversions returns what must be converted to make a state with this schema one
// of w, what of it is not registered, and what is registered and not stored. An error
// names the first field in which the stored schema does not fit the types registered
// in w; if it is only that values would be lost, it wraps [raw.ErrDropped], and the
// conversions are returned with it.
//
// Older types than the stored ones are refused as newer data, not as data that does not
// fit: by their version, by the layouts that a component was converted from, and by the
// names that it had. A program that was not brought up to date must not take a store back.
func Conversions(s *format.Schema, w *ecs.World) ([]raw.Conversion, error) {
	registered := map[string]bool{}
	for _, st := range w.Raw().Storages() {
		registered[st.Name()] = true
	}
	for _, st := range w.Raw().Storages() {
		n, stored := NumberOf(s, st)
		if !stored {
			if err := outgrown(s, st, registered); err != nil {
				return nil, err
			}
			continue
		}
		c := &s.Components[n]
		switch {
		case !st.Persistent():
			return nil, fmt.Errorf("%w: %s is stored, but registered with NoPersist", format.ErrSchema, naming.Shown(c.Name))
		case c.Resource != st.IsResource():
			return nil, fmt.Errorf("%w: %s is a resource in one of store and program, a component in the other", format.ErrSchema, naming.Shown(c.Name))
		case st.Version() < c.Version:
			return nil, fmt.Errorf("%w: %s has version %d, the program version %d", format.ErrNewer, naming.Shown(c.Name), c.Version, st.Version())
		case had(c, st):
			return nil, fmt.Errorf("%w: %s: %s; the store was converted from what the program has. To go back to it, give %s the version %d",
				format.ErrNewer, naming.Shown(c.Name), layout.Diff(c.Layout, st.Layout()), naming.Shown(c.Name), c.Version+1)
		}
	}
	conversions, err := w.Raw().Conversions(s.States())
	if err != nil {
		return conversions, fmt.Errorf("%w: %w", format.ErrSchema, err)
	}
	return conversions, nil
}

// NumberOf returns the number of what st is in s: by its name, or by a former one that the program
// gives it.
func NumberOf(s *format.Schema, st raw.Storage) (n int, ok bool) {
	name, ok := st.StoredAs(func(name string) bool { _, ok := s.Numbers[name]; return ok })
	return s.Numbers[name], ok
}

// outgrown returns an error if st, which is not stored, has a name that something
// stored had before that the program does not know, so that it is the older one.
func outgrown(s *format.Schema, st raw.Storage, registered map[string]bool) error {
	for i := range s.Components {
		c := &s.Components[i]
		if !registered[c.Name] && slices.ContainsFunc(c.Former, func(f format.Former) bool { return f.Name == st.Name() }) {
			return fmt.Errorf("%w: %s became %s in this store", format.ErrNewer, naming.Shown(st.Name()), naming.Shown(c.Name))
		}
	}
	return nil
}

// had reports whether c was converted from the layout that st has.
func had(c *format.Entry, st raw.Storage) bool {
	if st.Version() > c.Version || c.Layout.Equal(st.Layout()) {
		return false
	}
	return slices.ContainsFunc(c.Former, func(f format.Former) bool {
		return f.Version == st.Version() && f.Layout.Equal(st.Layout())
	})
}

// WithoutEntities returns the state of w, in which no entity is alive: the registry, which knows the
// generations of indices, and the resources.
func WithoutEntities(w *ecs.World) *raw.State {
	rows, alive, free := w.Raw().Registry()
	state := &raw.State{Tick: w.Tick(), Registry: slices.Clone(rows), Alive: alive, Free: free}
	for _, st := range w.Raw().Storages() {
		if st.IsResource() && st.Layout() != nil {
			e := format.EntryOf(st)
			stored := e.State()
			stored.Rows = st.AppendRows(nil, 0, 1)
			state.Storages = append(state.Storages, stored)
		}
	}
	return state
}
