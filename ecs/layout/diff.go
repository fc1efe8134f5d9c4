package layout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Diff returns the first difference between the stored and the current type as text, or "" if the
// two types are equal. An example is "Position.Z: stored float64, program has none". Fields are
// compared by name, in stored order. Diff reports a different order of fields only if there is no
// other difference.
func Diff(stored, current *Type) string {
	path, text := diff(stored, current)
	if text == "" {
		return ""
	}
	if path = join(cmp.Or(current.Name, stored.Name), path); path == "" {
		return text
	}
	return path + ": " + text
}

// diff returns the path and description of the first difference. Both are "" if the types are
// equal.
func diff(stored, current *Type) (path, text string) {
	if stored.Kind != current.Kind || stored.Len != current.Len {
		return "", differs(stored, current)
	}
	switch stored.Kind {
	case Struct:
		return diffFields(stored, current)
	case Map:
		if path, text = diff(stored.Key, current.Key); text != "" {
			return "[key]" + path, text
		}
	}
	if stored.Elem == nil {
		return "", ""
	}
	path, text = diff(stored.Elem, current.Elem)
	return elemPart(stored.Kind) + path, text
}

// diffFields implements diff for two structs.
func diffFields(stored, current *Type) (path, text string) {
	for _, f := range stored.Fields {
		g := current.field(f.Name)
		if g == nil {
			return "." + f.Name, differs(f.Type, nil)
		}
		if path, text = diff(f.Type, g); text != "" {
			return "." + f.Name + path, text
		}
	}
	for _, g := range current.Fields {
		if stored.field(g.Name) == nil {
			return "." + g.Name, differs(nil, g.Type)
		}
	}
	if was, is := stored.fieldNames(), current.fieldNames(); !slices.Equal(was, is) {
		return "", fmt.Sprintf("stored fields in order %s, program has %s", strings.Join(was, ", "), strings.Join(is, ", "))
	}
	return "", ""
}

// field returns the type of the field with this name, or nil.
func (t *Type) field(name string) *Type {
	if i := t.fieldIndex(name); i >= 0 {
		return t.Fields[i].Type
	}
	return nil
}

// differs describes the difference between two types. nil stands for a missing type.
func differs(stored, current *Type) string {
	return "stored " + brief(stored) + ", program has " + brief(current)
}

// brief returns a short text for t.
func brief(t *Type) string {
	const most = 80
	if t == nil {
		return "none"
	}
	text := t.String()
	if len(text) <= most {
		return text
	}
	if t.Kind == Struct {
		return fmt.Sprintf("struct of %d fields", len(t.Fields))
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
