package persist

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

// conversions returns what must be converted to make a state with this schema one
// of w. An error names the first field in which the stored schema does not fit
// the types registered in w.
func (s *schema) conversions(w *ecs.World) ([]ecs.Conversion, error) {
	registered := map[string]bool{}
	for _, st := range w.Storages() {
		registered[st.Name()] = true
	}
	for _, st := range w.Storages() {
		n, stored := s.find(st)
		if !stored {
			if err := s.outgrown(st, registered); err != nil {
				return nil, err
			}
			continue
		}
		c := &s.components[n]
		switch {
		case !st.Persistent():
			return nil, fmt.Errorf("%w: %s is stored, but registered with NoPersist", ErrSchema, c.Name)
		case c.Resource != st.IsResource():
			return nil, fmt.Errorf("%w: %s is a resource in one of store and program, a component in the other", ErrSchema, c.Name)
		case st.Version() < c.Version:
			return nil, fmt.Errorf("%w: %s has version %d, the program version %d", ErrNewer, c.Name, c.Version, st.Version())
		case c.had(st):
			return nil, fmt.Errorf("%w: %s: %s; the store was converted from what the program has. To go back to it, give %s the version %d",
				ErrNewer, c.Name, layout.Diff(c.Layout, st.Layout()), c.Name, c.Version+1)
		}
	}
	conversions, err := w.Conversions(s.states())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return conversions, nil
}

// find returns the number of what st is in s: by its name, or by a former one.
func (s *schema) find(st ecs.AnyStorage) (n int, ok bool) {
	name, ok := st.StoredAs(func(name string) bool { _, ok := s.numbers[name]; return ok })
	return s.numbers[name], ok
}

// outgrown returns an error if st, which is not stored, has a name that something
// stored had before that the program does not know, so that it is the older one.
func (s *schema) outgrown(st ecs.AnyStorage, registered map[string]bool) error {
	for i := range s.components {
		c := &s.components[i]
		if !registered[c.Name] && slices.ContainsFunc(c.Former, func(f formerEntry) bool { return f.Name == st.Name() }) {
			return fmt.Errorf("%w: %s became %s in this store", ErrNewer, st.Name(), c.Name)
		}
	}
	return nil
}

// had reports whether c was converted from the layout that st has.
func (c *schemaEntry) had(st ecs.AnyStorage) bool {
	if st.Version() > c.Version || c.Layout.Equal(st.Layout()) {
		return false
	}
	return slices.ContainsFunc(c.Former, func(f formerEntry) bool {
		return f.Version == st.Version() && f.Layout.Equal(st.Layout())
	})
}

// withoutEntities returns the state of w, which has no entities.
func withoutEntities(w *ecs.World) *ecs.State {
	state := &ecs.State{Tick: w.Tick()}
	for _, st := range w.Storages() {
		if st.IsResource() && st.Layout() != nil {
			state.Storages = append(state.Storages, ecs.StorageState{
				Name: st.Name(), Version: st.Version(), Layout: st.Layout(), Resource: true, Rows: st.AppendRows(nil, 0, 1),
			})
		}
	}
	return state
}
