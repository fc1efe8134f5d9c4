package image

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A program can continue a store if each of its types fits the stored component of the same name:
//
//	registered and stored   converted, or refused if the program's type is older
//	only stored             the values would be lost
//	only registered         new, or refused if the store has renamed the component: see outgrown

// Conversions returns the conversions that turn a state with schema s into a state of w. They
// include stored components without a registered type, and registered types without a stored
// component. The errors are:
//
//   - A type does not match: the error names the fields, see [raw.World.Conversions].
//   - The only problem is that stored values would be lost: the error wraps [raw.ErrDropped], and
//     Conversions also returns the conversions.
//   - The program has an older type than the store: ErrNewer, which names only such components. So
//     an outdated program cannot convert a store back.
//
// A type is older if its version is lower, or if it equals a former layout or name of the
// component.
func Conversions(s *format.Schema, w *ecs.World) ([]raw.Conversion, error) {
	registered := map[string]bool{}
	for _, st := range w.Raw().Storages() {
		registered[st.Name()] = true
	}
	var newer []string
	for _, st := range w.Raw().Storages() {
		var text string
		if n, stored := NumberOf(s, st); stored {
			text = outdated(&s.Components[n], st)
		} else {
			text = outgrown(s, st, registered)
		}
		if text != "" {
			newer = append(newer, text)
		}
	}
	if len(newer) > 0 {
		return nil, fmt.Errorf("%w: %s", format.ErrNewer, joined(newer))
	}
	conversions, err := w.Raw().Conversions(s.States())
	if err != nil {
		return conversions, fmt.Errorf("%w: %w", format.ErrSchema, err)
	}
	return conversions, nil
}

// joined returns the first 20 texts as lines, and the number of the others.
func joined(texts []string) string {
	const most = 20
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "\n")
}

// NumberOf returns the number of st in s. It looks up the name of st, and the former names that the
// program registered.
func NumberOf(s *format.Schema, st raw.Storage) (n int, ok bool) {
	name, ok := st.StoredAs(func(name string) bool { _, ok := s.Numbers[name]; return ok })
	return s.Numbers[name], ok
}

// outdated returns an error text if the type of st is older than that of c. Otherwise it returns
// "".
func outdated(c *format.Entry, st raw.Storage) string {
	name := naming.Shown(c.Name)
	switch {
	case st.Version() < c.Version:
		return fmt.Sprintf("%s has version %d, the program version %d", name, c.Version, st.Version())
	case had(c, st):
		return fmt.Sprintf("%s: %s; the store was converted from the program's type. To convert it back, give %s the version %d",
			name, layout.Diff(c.Layout, st.Layout()), name, c.Version+1)
	}
	return ""
}

// outgrown returns an error text if the program is older than the store. The caller has found no
// component with the name of st. If that is the former name of a stored component, a newer program
// has renamed the component. This program does not register the new name.
func outgrown(s *format.Schema, st raw.Storage, registered map[string]bool) string {
	for i := range s.Components {
		c := &s.Components[i]
		if !registered[c.Name] && slices.ContainsFunc(c.Former, func(f format.Former) bool { return f.Name == st.Name() }) {
			return fmt.Sprintf("%s became %s in this store", naming.Shown(st.Name()), naming.Shown(c.Name))
		}
	}
	return ""
}

// had reports whether the stored component c was converted from the type of st.
func had(c *format.Entry, st raw.Storage) bool {
	if st.Version() > c.Version || c.Layout.Equal(st.Layout()) {
		return false
	}
	return slices.ContainsFunc(c.Former, func(f format.Former) bool {
		return f.Version == st.Version() && f.Layout.Equal(st.Layout())
	})
}

// WithoutEntities returns the state of w without any alive entities. The state contains the
// registry with the generations of all indices, and the resources except those with NoPersist.
// w can load the state again. NoPersist resources then keep their values.
func WithoutEntities(w *ecs.World) *raw.State {
	rows, alive, free := w.Raw().Registry()
	state := &raw.State{Tick: w.Tick(), Registry: slices.Clone(rows), Alive: alive, Free: free}
	for _, st := range w.Raw().Storages() {
		if st.IsResource() && st.Persistent() {
			e := format.EntryOf(st)
			stored := e.State()
			stored.Rows = st.AppendRows(nil, 0, 1)
			state.Storages = append(state.Storages, stored)
		}
	}
	return state
}
