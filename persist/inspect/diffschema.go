package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Schemas are compared by name, just as a program compares its types with a store when opening
// it. A renamed component or field counts as one removed and one added. The texts are for people:
// code only checks whether there is a difference.

// A SchemaDiff is one difference between the schemas of two states.
type SchemaDiff struct {
	Component string
	// Field is the path of the field whose type differs, as in a [FieldDiff]; "" for the whole
	// component.
	Field    string
	Old, New string // Descriptions for people; "" if the state lacks the component or field.
}

// diffSchemas compares two schemas by name. It ignores names of Go types and the former schemas,
// since no value depends on them.
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

// pointers returns pointers to the elements of list, for use with pairs.
func pointers[T any](list []T) []*T {
	all := make([]*T, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

// describeEntry describes c for people. It returns "" for nil.
func describeEntry(c *format.Entry) string {
	if c == nil {
		return ""
	}
	return traits(c) + " " + c.Layout.String()
}

// traits describes c for people. It leaves out the layout.
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

// diffEntries appends the differences between two entries of the same name.
func diffEntries(diffs []SchemaDiff, a, b *format.Entry) []SchemaDiff {
	// If the traits differ, a different default value is not reported. A different type is always
	// reported.
	if traits(a) != traits(b) {
		diffs = append(diffs, SchemaDiff{Component: a.Name, Old: traits(a), New: traits(b)})
	} else if string(a.Default) != string(b.Default) {
		diffs = append(diffs, SchemaDiff{Component: a.Name, Old: gapText(a), New: gapText(b)})
	}
	return diffTypes(diffs, a.Name, "", a.Layout, b.Layout)
}

// gapText describes the default value of the gaps of an indexed component.
func gapText(c *format.Entry) string {
	v, err := c.Layout.Value(c.Default)
	// An empty Default means the zero value.
	if len(c.Default) == 0 || err != nil {
		return "default zero"
	}
	return "default " + v.String()
}

// diffTypes appends the differences between two types at path. It compares structs field by
// field, recursively. Other types are compared as a whole.
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
	if len(diffs) == before { // Only the order of the fields differs.
		diffs = append(diffs, SchemaDiff{component, strings.TrimSuffix(path, "."), a.String(), b.String()})
	}
	return diffs
}
