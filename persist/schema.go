package persist

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

const (
	denseSchema   = 1 // All components have dense rows,
	indexedSchema = 2 // or some have rows at entity indices,
	evolvedSchema = 3 // or some have versions or were converted.
	maxFormer     = 1 << 10
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
	Version  uint32
	Former   []formerEntry // What the store had before it was converted, oldest first.
}

// A formerEntry is what a component was in the same store before.
type formerEntry struct {
	Name    string
	Version uint32
	Layout  *layout.Type
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
	return s.add(entryOf(st))
}

func entryOf(st ecs.AnyStorage) schemaEntry {
	e := schemaEntry{Name: st.Name(), Layout: st.Layout(), Resource: st.IsResource(), Rewinds: st.Rewinds(), Version: st.Version()}
	if e.Indexed = st.Kind() == ecs.Indexed; e.Indexed {
		e.Default = st.AppendDefault(nil)
	}
	return e
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
		if format >= indexedSchema {
			e.bool(c.Indexed)
			e.bin(c.Default)
		}
		if format >= evolvedSchema {
			e.uint(uint64(c.Version))
			c.encodeFormer(e)
		}
	}
	return e.buf
}

// format returns the oldest format that can hold s.
func (s *schema) format() uint64 {
	format := uint64(denseSchema)
	for _, c := range s.components {
		if c.Version > 0 || len(c.Former) > 0 {
			return evolvedSchema
		}
		if c.Indexed {
			format = indexedSchema
		}
	}
	return format
}

// entryLen returns how many values describe a component.
func entryLen(format uint64) int {
	switch format {
	case indexedSchema:
		return 6
	case evolvedSchema:
		return 8
	}
	return 4
}

func decodeSchema(src []byte) (*schema, error) {
	d := decoder{src: src}
	d.array(2)
	format := d.uint()
	if d.err == nil && (format < denseSchema || format > evolvedSchema) {
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
		if format >= indexedSchema {
			e.Indexed = d.bool()
			e.Default = slices.Clone(d.bin())
		}
		if format >= evolvedSchema {
			e.Version = uint32(d.count("version", math.MaxUint32))
			e.Former = d.former()
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

// checkGaps returns what is wrong with what c says of gaps.
func (c *schemaEntry) checkGaps() error {
	switch {
	case c.Indexed && c.Resource:
		return errors.New("a resource has no entity indices")
	case len(c.Default) == 0:
		return nil
	case !c.Indexed:
		return errors.New("a default without gaps")
	}
	return c.Layout.Check(c.Default, 1)
}

// same reports whether ticks and rows under c mean the same under e.
func (c *schemaEntry) same(e *schemaEntry) bool {
	return c.Name == e.Name && c.Version == e.Version && c.Resource == e.Resource && c.Rewinds == e.Rewinds &&
		c.Indexed == e.Indexed && c.Layout.Equal(e.Layout) && string(c.gap()) == string(e.gap())
}

// gap returns the row that gaps hold, nil if there are none.
func (c *schemaEntry) gap() []byte {
	if c.Indexed && len(c.Default) == 0 {
		return c.Layout.AppendZero(nil)
	}
	return c.Default
}

// differs returns an error unless one of s and t continues the other: numbers are
// only added.
func (s *schema) differs(t *schema) error {
	for n := range min(len(s.components), len(t.components)) {
		if c, e := &s.components[n], &t.components[n]; !c.same(e) {
			return fmt.Errorf("component number %d is %s %v here and %s %v before", n, e.Name, e.Layout, c.Name, c.Layout)
		}
	}
	return nil
}

func (c *schemaEntry) encodeFormer(e *encoder) {
	e.array(len(c.Former))
	for _, f := range c.Former {
		e.array(3)
		e.string(f.Name)
		e.uint(uint64(f.Version))
		e.bin(f.Layout.Append(nil))
	}
}

// former reads what a component was before.
func (d *decoder) former() (former []formerEntry) {
	n := d.arrayLen()
	if n > maxFormer {
		d.fail("%d former layouts, at most %d", n, maxFormer)
		return nil
	}
	for range n {
		d.array(3)
		f := formerEntry{Name: d.string(), Version: uint32(d.count("version", 1<<32-1))}
		described := d.bin()
		if d.err != nil {
			return nil
		}
		var err error
		if f.Layout, err = layout.Parse(described); err != nil {
			d.fail("former layout of %.40q: %v", f.Name, err)
			return nil
		}
		former = append(former, f)
	}
	return former
}

// states returns what is in s as storages without rows.
func (s *schema) states() []ecs.StorageState {
	states := make([]ecs.StorageState, len(s.components))
	for n, c := range s.components {
		states[n] = ecs.StorageState{Name: c.Name, Version: c.Version, Layout: c.Layout, Resource: c.Resource, Indexed: c.Indexed}
		if len(c.Default) > 0 {
			states[n].Default = c.Default
		}
	}
	return states
}
