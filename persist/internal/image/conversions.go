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

// A program can continue a store if each storage fits. The registered and the stored storages are
// compared:
//
//	stored and registered      converted, unless the program's type is the older one
//	only stored                values would be lost
//	only registered            new, unless a stored component had this name before (outgrown)

// Conversions returns the conversions that turn a state with schema s into a state of w. They
// include stored components that are not registered, and registered ones that are not stored. The
// error names the first field in which s does not match the registered types. If values would only
// be lost, the error wraps [raw.ErrDropped], and the conversions are returned, too.
//
// If the registered types are older than the stored ones, the error is ErrNewer, not ErrSchema.
// Conversions detects this by the version, by the former layouts of a component, and by its former
// names. So an outdated program cannot convert a store back.
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
			return nil, fmt.Errorf("%w: %s: %s; the store was converted from the program's type. To convert it back, give %s the version %d",
				format.ErrNewer, naming.Shown(c.Name), layout.Diff(c.Layout, st.Layout()), naming.Shown(c.Name), c.Version+1)
		}
	}
	conversions, err := w.Raw().Conversions(s.States())
	if err != nil {
		return conversions, fmt.Errorf("%w: %w", format.ErrSchema, err)
	}
	return conversions, nil
}

// NumberOf returns the number of st in s. It looks up the name of st, and the former names that the
// program registered.
func NumberOf(s *format.Schema, st raw.Storage) (n int, ok bool) {
	name, ok := st.StoredAs(func(name string) bool { _, ok := s.Numbers[name]; return ok })
	return s.Numbers[name], ok
}

// outgrown returns an error if st has a former name of a stored component that the program does not
// have. st itself is not stored. The program is then older than the store.
func outgrown(s *format.Schema, st raw.Storage, registered map[string]bool) error {
	for i := range s.Components {
		c := &s.Components[i]
		if !registered[c.Name] && slices.ContainsFunc(c.Former, func(f format.Former) bool { return f.Name == st.Name() }) {
			return fmt.Errorf("%w: %s became %s in this store", format.ErrNewer, naming.Shown(st.Name()), naming.Shown(c.Name))
		}
	}
	return nil
}

// had reports whether c was converted from the layout of st.
func had(c *format.Entry, st raw.Storage) bool {
	if st.Version() > c.Version || c.Layout.Equal(st.Layout()) {
		return false
	}
	return slices.ContainsFunc(c.Former, func(f format.Former) bool {
		return f.Version == st.Version() && f.Layout.Equal(st.Layout())
	})
}

// WithoutEntities returns the state of w without any alive entities. The state contains the
// registry with the generations of all indices, and the resources.
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
