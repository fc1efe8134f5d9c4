package format

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// The formats of a schema, and its limits. The encoder uses the oldest format that can hold the
// schema.
const (
	denseSchema   = 1 // For schemas whose components all have dense rows.
	indexedSchema = 2 // For schemas with rows at entity indices.
	evolvedSchema = 3 // For schemas with versions or converted components.
	MaxFormer     = 1 << 10
	MaxComponents = 1 << 16
	MaxName       = 1 << 12
)

// A Schema numbers the components and resources of a store. Ticks and snapshots refer to components
// by number, so numbers are only added. The schema grows while a program registers more components.
// Each change adds a preamble to the journal.
//
//	[format, components]    format 1: [name, layout, resource, rewinds], …
//	                        2: [name, layout, resource, rewinds, indexed, default], …
//	                        3: [name, layout, …, default, version, former], …
//
// All components of a schema are encoded in one format: the oldest format that can hold each of
// them.
type Schema struct {
	Components []Entry        // In the order of their numbers.
	Numbers    map[string]int // Numbers of the components by name.
}

// An Entry describes a component or resource.
type Entry struct {
	Name     string
	Layout   *layout.Type
	Resource bool
	// False for a component that keeps its values when the world rewinds. A tick that changed such
	// a component contains all its rows, and no digest covers it.
	Rewinds bool
	Indexed bool   // The row of an entity is its index. Gaps are ecs.Vacant.
	Default []byte // The row in gaps. Empty means the zero value.
	Version uint32
	Former  []Former // Types of the component before conversions of the store, oldest first.
}

// A Former is an earlier type of a component in the same store. If a program still has this type,
// the program is older than the store and is refused: see Conversions in package image.
type Former struct {
	Name    string
	Version uint32
	Layout  *layout.Type
}

// NewSchema returns an empty schema.
func NewSchema() *Schema { return &Schema{Numbers: make(map[string]int)} }

// SchemaOf returns the schema of all persistent components and resources of w.
func SchemaOf(w *ecs.World) *Schema {
	s := NewSchema()
	for _, st := range w.Raw().Storages() {
		if st.Persistent() {
			s.Number(st)
		}
	}
	return s
}

// Number returns the number of st. It adds st to the schema if necessary.
func (s *Schema) Number(st raw.Storage) int {
	if n, ok := s.Numbers[st.Name()]; ok {
		return n
	}
	return s.Add(EntryOf(st))
}

// EntryOf describes a registered storage or resource.
func EntryOf(st raw.Storage) Entry {
	e := Entry{Name: st.Name(), Layout: st.Layout(), Resource: st.IsResource(), Rewinds: st.Rewinds(), Version: st.Version()}
	if e.Indexed = st.IsIndexed(); e.Indexed {
		e.Default = st.AppendDefault(nil)
	}
	return e
}

// Rewinds reports whether digests cover st, a storage of s. That depends on the schema only, even
// if the program registers the component differently.
func (s *Schema) Rewinds(st raw.Storage) bool { return s.Components[s.Number(st)].Rewinds }

// Add adds e and returns its number.
func (s *Schema) Add(e Entry) int {
	n := len(s.Components)
	s.Components = append(s.Components, e)
	s.Numbers[e.Name] = n
	return n
}

// Encode returns the canonical bytes of s.
func (s *Schema) Encode() []byte {
	e := NewEncoder()
	e.array(2)
	format := s.format()
	e.Uint(format)
	e.array(len(s.Components))
	for _, c := range s.Components {
		e.array(entryLen(format))
		e.str(c.Name)
		e.bin(c.Layout.Append(nil))
		e.bool(c.Resource)
		e.bool(c.Rewinds)
		if format >= indexedSchema {
			e.bool(c.Indexed)
			e.bin(c.Default)
		}
		if format >= evolvedSchema {
			e.Uint(uint64(c.Version))
			c.encodeFormer(e)
		}
	}
	return e.Buf
}

// format returns the oldest format that can hold s, so that older programs can read it.
func (s *Schema) format() uint64 {
	format := uint64(denseSchema)
	for _, c := range s.Components {
		if c.Version > 0 || len(c.Former) > 0 {
			return evolvedSchema
		}
		if c.Indexed {
			format = indexedSchema
		}
	}
	return format
}

// entryLen returns the number of values of an encoded component.
func entryLen(format uint64) int {
	switch format {
	case indexedSchema:
		return 6
	case evolvedSchema:
		return 8
	}
	return 4
}

// DecodeSchema decodes the output of [Schema.Encode]. It checks every length before it allocates.
func DecodeSchema(src []byte) (*Schema, error) {
	d := decoder{src: src}
	d.array(2)
	format := d.uint()
	if d.err == nil && (format < denseSchema || format > evolvedSchema) {
		return nil, fmt.Errorf("%w: schema format %d", ErrNewer, format)
	}
	n := d.arrayLen()
	if n > MaxComponents {
		return nil, fmt.Errorf("schema of %d components, at most %d", n, MaxComponents)
	}
	s := NewSchema()
	for range n {
		d.array(entryLen(format))
		e := Entry{Name: d.str()}
		described := d.bin()
		e.Resource, e.Rewinds = d.bool(), d.bool()
		if format >= indexedSchema {
			e.Indexed = d.bool()
			e.Default = slices.Clone(d.bin())
		}
		if format >= evolvedSchema {
			e.Version = d.uint32("version")
			e.Former = d.former()
		}
		if d.err != nil {
			break
		}
		if _, twice := s.Numbers[e.Name]; twice || e.Name == "" || len(e.Name) > MaxName {
			return nil, fmt.Errorf("schema: component name %.40q is empty, too long or duplicated", e.Name)
		}
		var err error
		if e.Layout, err = layout.Parse(described); err != nil {
			return nil, fmt.Errorf("schema: component %s: %w", naming.Shown(e.Name), err)
		}
		if err := e.CheckGaps(); err != nil {
			return nil, fmt.Errorf("schema: component %s: %w", naming.Shown(e.Name), err)
		}
		s.Add(e)
	}
	if err := d.end(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// CheckGaps returns an error if the default row of c is invalid. Only indexed components have gaps,
// and the default must be a row of the layout.
func (c *Entry) CheckGaps() error {
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

// Same reports whether ticks and rows have the same meaning under c and e. Former types do not
// matter. Gaps are compared by their contents: an empty default equals the zero value.
func (c *Entry) Same(e *Entry) bool {
	return c.Name == e.Name && c.Version == e.Version && c.Resource == e.Resource && c.Rewinds == e.Rewinds &&
		c.Indexed == e.Indexed && c.Layout.Equal(e.Layout) && string(c.Gap()) == string(e.Gap())
}

// Gap returns the row in gaps, or nil if c has no gaps.
func (c *Entry) Gap() []byte {
	if c.Indexed && len(c.Default) == 0 {
		return c.Layout.AppendZero(nil)
	}
	return c.Default
}

// Differs compares the components that both s and t have. It returns nil if they are equal; one of
// the schemas may have additional components. Otherwise, the store was converted between s and t.
// Then the error names the first difference.
func (s *Schema) Differs(t *Schema) error {
	for n := range min(len(s.Components), len(t.Components)) {
		if c, e := &s.Components[n], &t.Components[n]; !c.Same(e) {
			return fmt.Errorf("component number %d is %s %v here and %s %v before", n, naming.Shown(e.Name), e.Layout, naming.Shown(c.Name), c.Layout)
		}
	}
	return nil
}

// encodeFormer writes the former types of a component, oldest first.
func (c *Entry) encodeFormer(e *Encoder) {
	e.array(len(c.Former))
	for _, f := range c.Former {
		e.array(3)
		e.str(f.Name)
		e.Uint(uint64(f.Version))
		e.bin(f.Layout.Append(nil))
	}
}

// former reads the former types of a component.
func (d *decoder) former() (former []Former) {
	n := d.arrayLen()
	if n > MaxFormer {
		d.fail("%d former layouts, at most %d", n, MaxFormer)
		return nil
	}
	for range n {
		d.array(3)
		f := Former{Name: d.str(), Version: d.uint32("version")}
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

// States returns the components of s as storages without rows.
func (s *Schema) States() []raw.StorageState {
	states := make([]raw.StorageState, len(s.Components))
	for n := range s.Components {
		states[n] = s.Components[n].State()
	}
	return states
}

// State returns c as a storage without rows.
func (c *Entry) State() raw.StorageState {
	s := raw.StorageState{Name: c.Name, Version: c.Version, Layout: c.Layout, Resource: c.Resource, Indexed: c.Indexed}
	if len(c.Default) > 0 {
		s.Default = c.Default
	}
	return s
}
