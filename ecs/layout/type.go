package layout

import (
	"strconv"
	"strings"
)

// A Type describes a component type without Go. It is a tree and must not be
// changed while something uses it. [Of] and [Parse] make valid Types; one
// written by hand is checked by [Type.Validate], and the other methods rely on
// that.
type Type struct {
	Kind   Kind
	Name   string  // Go type name without package, for people; may be empty.
	Fields []Field // Struct: in declared order.
	Elem   *Type   // Array, Slice, Map and Pointer: what they hold.
	Key    *Type   // Map: its keys.
	Len    int     // Array: how many elements.

	// Former has, by the names of fields of a struct, those they were stored under
	// before, see [NewConversion]. They are what the program says of the past, and no
	// part of the description's bytes.
	Former map[string][]string
}

// A Field is one field of a struct.
type Field struct {
	Name string
	Type *Type
}

// Width returns how many bytes a packed row takes, or -1 if rows vary in size.
// It walks the whole description.
func (t *Type) Width() int {
	switch t.Kind {
	case Struct:
		return t.fieldsWidth()
	case Array:
		if width := t.Elem.Width(); width != varies {
			return t.Len * width
		}
		return varies
	default:
		return kinds[t.Kind].width
	}
}

// fieldsWidth returns the width of the struct t.
func (t *Type) fieldsWidth() int {
	sum := 0
	for _, f := range t.Fields {
		width := f.Type.Width()
		if width == varies {
			return varies
		}
		sum += width
	}
	return sum
}

// Fixed reports whether all rows have the same width.
func (t *Type) Fixed() bool { return t.Width() != varies }

// Equal reports whether bytes written under t mean the same under u: the same
// kinds, lengths and field names in the same order. Names of types do not count.
func (t *Type) Equal(u *Type) bool {
	if t == nil || u == nil || t == u {
		return t == u
	}
	if t.Kind != u.Kind || t.Len != u.Len || len(t.Fields) != len(u.Fields) {
		return false
	}
	for i, f := range t.Fields {
		if f.Name != u.Fields[i].Name || !f.Type.Equal(u.Fields[i].Type) {
			return false
		}
	}
	return t.Key.Equal(u.Key) && t.Elem.Equal(u.Elem)
}

// String returns the description in Go's notation, with the names of types left
// out: "struct{X float64; Y float64}".
func (t *Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

// write appends the notation of t to b.
func (t *Type) write(b *strings.Builder) {
	switch t.Kind {
	case Struct:
		t.writeFields(b)
		return
	case Array:
		b.WriteString("[" + strconv.Itoa(t.Len) + "]")
	case Slice:
		b.WriteString("[]")
	case Pointer:
		b.WriteString("*")
	case Map:
		b.WriteString("map[")
		t.Key.write(b)
		b.WriteString("]")
	default:
		b.WriteString(t.Kind.String())
		return
	}
	t.Elem.write(b)
}

// writeFields appends the notation of the struct t to b.
func (t *Type) writeFields(b *strings.Builder) {
	b.WriteString("struct{")
	for i, f := range t.Fields {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Name + " ")
		f.Type.write(b)
	}
	b.WriteString("}")
}
