package persist

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

const (
	denseSchema   = 1 // All components have dense rows,
	indexedSchema = 2 // or some have rows at entity indices.
	maxComponents = 1 << 16
	maxName       = 1 << 12
)

// A schema numbers the components and resources of a store. Numbers are only
// added: payloads and snapshots name components by them.
type schema struct {
	components []schemaEntry
	numbers    map[string]int
}

// A schemaEntry describes a component or resource.
type schemaEntry struct {
	Name     string
	Layout   *layout.Type
	Resource bool
	Rewinds  bool   // false: given whole in every tick that changed it.
	Indexed  bool   // The row of an entity is its index; gaps are ecs.Vacant
	Default  []byte // and hold this row; empty: the zero value.
}

func newSchema() *schema { return &schema{numbers: make(map[string]int)} }

// schemaOf returns the schema of all that w saves.
func schemaOf(w *ecs.World) *schema {
	s := newSchema()
	for _, st := range w.Storages() {
		if st.Persistent() {
			s.number(st)
		}
	}
	return s
}

// number returns the number of st, which it adds if need be.
func (s *schema) number(st ecs.AnyStorage) int {
	if n, ok := s.numbers[st.Name()]; ok {
		return n
	}
	e := schemaEntry{Name: st.Name(), Layout: st.Layout(), Resource: st.IsResource(), Rewinds: st.Rewinds()}
	if e.Indexed = st.Kind() == ecs.Indexed; e.Indexed {
		e.Default = st.AppendDefault(nil)
	}
	return s.add(e)
}

// rewinds reports whether st, which is in s, counts in digests. One that was
// stored as not rewinding does not, even if the program does not know it.
func (s *schema) rewinds(st ecs.AnyStorage) bool { return s.components[s.number(st)].Rewinds }

func (s *schema) add(e schemaEntry) int {
	n := len(s.components)
	s.components = append(s.components, e)
	s.numbers[e.Name] = n
	return n
}

// encode returns the canonical bytes of s.
func (s *schema) encode() []byte {
	e := newEncoder()
	e.array(2)
	format := s.format()
	e.uint(format)
	e.array(len(s.components))
	for _, c := range s.components {
		e.array(entryLen(format))
		e.string(c.Name)
		e.bin(c.Layout.Append(nil))
		e.bool(c.Resource)
		e.bool(c.Rewinds)
		if format == indexedSchema {
			e.bool(c.Indexed)
			e.bin(c.Default)
		}
	}
	return e.buf
}

// format returns the oldest format that can hold s.
func (s *schema) format() uint64 {
	for _, c := range s.components {
		if c.Indexed {
			return indexedSchema
		}
	}
	return denseSchema
}

// entryLen returns how many values describe a component.
func entryLen(format uint64) int {
	if format == indexedSchema {
		return 6
	}
	return 4
}

func decodeSchema(src []byte) (*schema, error) {
	d := decoder{src: src}
	d.array(2)
	format := d.uint()
	if d.err == nil && format != denseSchema && format != indexedSchema {
		return nil, fmt.Errorf("%w: schema format %d", ErrNewer, format)
	}
	n := d.arrayLen()
	if n > maxComponents {
		return nil, fmt.Errorf("schema of %d components, at most %d", n, maxComponents)
	}
	s := newSchema()
	for range n {
		d.array(entryLen(format))
		e := schemaEntry{Name: d.string()}
		described := d.bin()
		e.Resource, e.Rewinds = d.bool(), d.bool()
		if format == indexedSchema {
			e.Indexed = d.bool()
			e.Default = slices.Clone(d.bin())
		}
		if d.err != nil {
			break
		}
		if _, twice := s.numbers[e.Name]; twice || e.Name == "" || len(e.Name) > maxName {
			return nil, fmt.Errorf("schema: component name %.40q is empty, too long or there twice", e.Name)
		}
		var err error
		if e.Layout, err = layout.Parse(described); err != nil {
			return nil, fmt.Errorf("schema: component %s: %w", e.Name, err)
		}
		if err := e.checkGaps(); err != nil {
			return nil, fmt.Errorf("schema: component %s: %w", e.Name, err)
		}
		s.add(e)
	}
	if err := d.end(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// checkGaps returns what is wrong with what e says of gaps.
func (e *schemaEntry) checkGaps() error {
	switch {
	case e.Indexed && e.Resource:
		return errors.New("a resource has no entity indices")
	case len(e.Default) == 0:
		return nil
	case !e.Indexed:
		return errors.New("a default without gaps")
	}
	return e.Layout.Check(e.Default, 1)
}

// fits returns an error that names the first field in which the stored schema
// differs from the types registered in w.
func (s *schema) fits(w *ecs.World) error {
	for _, st := range w.Storages() {
		n, stored := s.numbers[st.Name()]
		if !stored {
			continue
		}
		c := s.components[n]
		switch {
		case !st.Persistent():
			return fmt.Errorf("%w: %s is stored, but registered with NoPersist", ErrSchema, c.Name)
		case c.Resource != st.IsResource():
			return fmt.Errorf("%w: %s is a resource in one of store and program, a component in the other", ErrSchema, c.Name)
		case layout.Diff(c.Layout, st.Layout()) != "":
			return fmt.Errorf("%w: %s: %s", ErrSchema, c.Name, layout.Diff(c.Layout, st.Layout()))
		}
	}
	return nil
}

// continues is fits for a store that w is to be kept in: what a tick gives of a
// component also depends on whether it rewinds.
func (s *schema) continues(w *ecs.World) error {
	for _, st := range w.Storages() {
		n, stored := s.numbers[st.Name()]
		if !stored || st.Unknown() {
			continue
		}
		if s.components[n].Rewinds != st.Rewinds() {
			return fmt.Errorf("%w: %s is registered with NoRewind in one of store and program, without in the other", ErrSchema, st.Name())
		}
		if s.components[n].Indexed != (st.Kind() == ecs.Indexed) {
			return fmt.Errorf("%w: %s is registered as Indexed in one of store and program, as another kind in the other", ErrSchema, st.Name())
		}
	}
	return s.fits(w)
}

// adopt adds to im the components that s has beyond those of im. The others must
// be the same: numbers are only added.
func (im *Image) adopt(s *schema) error {
	if im.schema == s {
		return nil
	}
	for n, c := range im.Components {
		if n >= len(s.components) {
			break // An older segment: it names fewer.
		}
		if e := s.components[n]; e.Name != c.Name || !e.Layout.Equal(c.Layout) || e.Indexed != c.Indexed {
			return fmt.Errorf("component number %d is %s %v here and %s %v before", n, e.Name, e.Layout, c.Name, c.Layout)
		}
	}
	im.extend(s)
	im.schema = s
	return nil
}
