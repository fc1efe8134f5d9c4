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

// The formats of a schema, of which the oldest that can hold it is written, and what one may claim
// at most.
const (
	denseSchema   = 1 // All components have dense rows,
	indexedSchema = 2 // or some have rows at entity indices,
	evolvedSchema = 3 // or some have versions or were converted.
	MaxFormer     = 1 << 10
	MaxComponents = 1 << 16
	MaxName       = 1 << 12
)

// A Schema numbers the components and resources of a store. Numbers are only
// added: payloads and snapshots name components by them. It grows while a program
// registers more; a preamble of the journal says when.
//
//	[format, components]    format 1: [name, layout, resource, rewinds], …
//	                        2: [name, layout, resource, rewinds, indexed, default], …
//	                        3: [name, layout, resource, rewinds, indexed, default, version, former], …
//
// The format is that of all components: one that needs a later one takes the others with it.
type Schema struct {
	Components []Entry        // By number.
	Numbers    map[string]int // By name.
}

// An Entry describes a component or resource.
type Entry struct {
	Name     string
	Layout   *layout.Type
	Resource bool
	Rewinds  bool   // false: given whole in every tick that changed it, and in no digest.
	Indexed  bool   // The row of an entity is its index; gaps are ecs.Vacant
	Default  []byte // and hold this row; empty: the zero value.
	Version  uint32
	Former   []Former // What the store had before it was converted, oldest first.
}

// A Former is what a component was in the same store before. A program whose type is still that one is
// recognized by it as older than the store, and refused as such: see Conversions in package image.
type Former struct {
	Name    string
	Version uint32
	Layout  *layout.Type
}

// NewSchema returns a schema of nothing.
func NewSchema() *Schema { return &Schema{Numbers: make(map[string]int)} }

// SchemaOf returns the schema of all that w saves.
func SchemaOf(w *ecs.World) *Schema {
	s := NewSchema()
	for _, st := range w.Raw().Storages() {
		if st.Persistent() {
			s.Number(st)
		}
	}
	return s
}

// Number returns the number of st, which it adds if need be.
func (s *Schema) Number(st raw.Storage) int {
	if n, ok := s.Numbers[st.Name()]; ok {
		return n
	}
	return s.Add(EntryOf(st))
}

// EntryOf describes a storage or resource as it is registered.
func EntryOf(st raw.Storage) Entry {
	e := Entry{Name: st.Name(), Layout: st.Layout(), Resource: st.IsResource(), Rewinds: st.Rewinds(), Version: st.Version()}
	if e.Indexed = st.IsIndexed(); e.Indexed {
		e.Default = st.AppendDefault(nil)
	}
	return e
}

// Rewinds reports whether st, which is in s, counts in digests. One that was
// stored as not rewinding does not, even if the program does not know it.
func (s *Schema) Rewinds(st raw.Storage) bool { return s.Components[s.Number(st)].Rewinds }

// Add gives e the next number, which it returns.
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

// format returns the oldest format that can hold s, so that programs which know no later
// one can read all that they could have written.
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

// DecodeSchema reads what [Schema.Encode] wrote. Every length is bounded before it
// allocates.
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
			return nil, fmt.Errorf("schema: component name %.40q is empty, too long or there twice", e.Name)
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

// CheckGaps returns what is wrong with what c says of gaps. Only components with rows at
// entity indices have any, and what they hold must be a row of the layout.
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

// Same reports whether ticks and rows under c mean the same under e. What they were
// before a conversion does not matter to that, and gaps are compared by what they hold:
// a default that is the zero value is none.
func (c *Entry) Same(e *Entry) bool {
	return c.Name == e.Name && c.Version == e.Version && c.Resource == e.Resource && c.Rewinds == e.Rewinds &&
		c.Indexed == e.Indexed && c.Layout.Equal(e.Layout) && string(c.Gap()) == string(e.Gap())
}

// Gap returns the row that gaps hold, nil if there are none.
func (c *Entry) Gap() []byte {
	if c.Indexed && len(c.Default) == 0 {
		return c.Layout.AppendZero(nil)
	}
	return c.Default
}

// Differs returns an error unless one of s and t continues the other: numbers are
// only added. Between schemas that differ, the store was converted.
func (s *Schema) Differs(t *Schema) error {
	for n := range min(len(s.Components), len(t.Components)) {
		if c, e := &s.Components[n], &t.Components[n]; !c.Same(e) {
			return fmt.Errorf("component number %d is %s %v here and %s %v before", n, naming.Shown(e.Name), e.Layout, naming.Shown(c.Name), c.Layout)
		}
	}
	return nil
}

// encodeFormer writes what a component was before, oldest first.
func (c *Entry) encodeFormer(e *Encoder) {
	e.array(len(c.Former))
	for _, f := range c.Former {
		e.array(3)
		e.str(f.Name)
		e.Uint(uint64(f.Version))
		e.bin(f.Layout.Append(nil))
	}
}

// former reads what a component was before.
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

// States returns what is in s as storages without rows.
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
