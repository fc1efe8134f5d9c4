package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Schemas are compared by names, as a program that opens a store compares its types with what is stored:
// a component or field that has another name is one that is gone and one that is new. What is said is
// text for people; nothing is decided by it but whether there is a difference.

// A SchemaDiff is something that the schemas of two states say differently.
type SchemaDiff struct {
	Component string
	Field     string // Path of a field whose type is meant, as in a [FieldDiff]; "": the component.
	Old, New  string // For people; "": it is not there.
}

// diffSchemas compares two schemas by name. Names of Go types and what components
// were before conversions do not count: no value depends on them.
func diffSchemas(a, b *format.Schema) (diffs []SchemaDiff) {
	for o, n := range pairs(pointers(a.Components), pointers(b.Components), func(e *format.Entry) string { return e.Name }) {
		if o != nil && n != nil {
			diffs = diffEntries(diffs, o, n)
		} else {
			diffs = append(diffs, SchemaDiff{Component: cmp.Or(o, n).Name, Old: describeEntry(o), New: describeEntry(n)})
		}
	}
	return diffs
}

// pointers returns pointers to the elements of list, as pairs takes them.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// describeEntry returns what c is for people; "" for nil.
func describeEntry(c *format.Entry) string {
	if c == nil {
		return ""
	}
	return traits(c) + " " + c.Layout.String()
}

// traits returns what c is apart from its layout.
func traits(c *format.Entry) string {
	text := "component"
	if c.Resource {
		text = "resource"
	}
	if c.Indexed {
		text += " indexed"
	}
	if !c.Rewinds {
		text += " that does not rewind"
	}
	if c.Version > 0 {
		text += fmt.Sprintf(" version %d", c.Version)
	}
	return text
}

// diffEntries appends how two entries of one name differ.
func diffEntries(diffs []SchemaDiff, a, b *format.Entry) []SchemaDiff {
	// One difference apart from types is told: the traits if they differ, else what gaps hold.
	if traits(a) != traits(b) {
		diffs = append(diffs, SchemaDiff{Component: a.Name, Old: traits(a), New: traits(b)})
	} else if string(a.Default) != string(b.Default) {
		diffs = append(diffs, SchemaDiff{Component: a.Name, Old: gapText(a), New: gapText(b)})
	}
	return diffTypes(diffs, a.Name, "", a.Layout, b.Layout)
}

// gapText returns what a gap of an indexed component holds.
func gapText(c *format.Entry) string {
	v, err := c.Layout.Value(c.Default)
	if len(c.Default) == 0 || err != nil { // Of no bytes: it is the zero value.
		return "default zero"
	}
	return "default " + v.String()
}

// diffTypes appends how two types at path differ: fields by their names, struct in struct. What
// is no struct in both is told as a whole.
func diffTypes(diffs []SchemaDiff, component, path string, a, b *layout.Type) []SchemaDiff {
	switch {
	case a.Equal(b):
		return diffs
	case a.Kind != layout.Struct || b.Kind != layout.Struct:
		return append(diffs, SchemaDiff{component, path, a.String(), b.String()})
	}
	if path != "" {
		path += "."
	}
	before := len(diffs)
	for o, n := range pairs(pointers(a.Fields), pointers(b.Fields), func(f *layout.Field) string { return f.Name }) {
		switch {
		case o == nil:
			diffs = append(diffs, SchemaDiff{component, path + n.Name, "", n.Type.String()})
		case n == nil:
			diffs = append(diffs, SchemaDiff{component, path + o.Name, o.Type.String(), ""})
		default:
			diffs = diffTypes(diffs, component, path+o.Name, o.Type, n.Type)
		}
	}
	if len(diffs) == before { // Their order differs.
		diffs = append(diffs, SchemaDiff{component, strings.TrimSuffix(path, "."), a.String(), b.String()})
	}
	return diffs
}
