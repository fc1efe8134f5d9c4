package web

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

// Values for people. Any of them may be huge, or deep: a slice of a million, a text of megabytes,
// a list of pointers. So everything here has a bound, and says what it left out.

// Limits of what is shown of a value.
const (
	maxText   = 2048 // Bytes of the text of one field.
	maxParts  = 200  // Elements and fields of one part,
	maxNodes  = 4000 // and in all.
	maxFields = 400  // Of a layout.
	maxDepth  = 32
)

// A nodeDoc is a value as a tree, with texts for people: a number of 64 bits has all its digits,
// which a number in a browser has not.
type nodeDoc struct {
	Name   string    `json:"name"`             // Of a field, [3] of an element, ["gold"] of an entry.
	Path   string    `json:"path"`             // As in Go, from the component on; "": it is all of it.
	Kind   string    `json:"kind"`             // As package layout writes it.
	Text   string    `json:"text,omitempty"`   // Of what has no parts, or too many.
	Entity string    `json:"entity,omitempty"` // If it is one.
	Parts  []nodeDoc `json:"parts,omitempty"`
	More   int       `json:"more,omitempty"` // Parts that are left out.
}

// A treeMaker makes trees of values until it has made enough.
type treeMaker struct{ left int }

func (m *treeMaker) node(name, path string, v layout.Value, depth int) nodeDoc {
	m.left--
	doc := nodeDoc{Name: cut(name, maxText), Path: cut(path, maxText), Kind: v.Kind().String()}
	if v.Kind() == layout.Pointer && !v.IsNil() && depth < maxDepth {
		inner := m.node(name, path, v.Index(0), depth+1)
		inner.Kind = "*" + inner.Kind
		return inner
	}
	if !hasParts(v) || depth == maxDepth {
		doc.Text, doc.Entity = cut(v.String(), maxText), entityText(v)
		return doc
	}
	for i := range v.Len() {
		if i == maxParts || m.left <= 0 {
			doc.More = v.Len() - i
			break
		}
		name := partName(v, i)
		at := path + name
		if v.Kind() == layout.Struct && path != "" {
			at = path + "." + name
		}
		doc.Parts = append(doc.Parts, m.node(name, at, v.Index(i), depth+1))
	}
	return doc
}

// hasParts reports whether v is a struct, an array, a slice or a map that is not empty.
func hasParts(v layout.Value) bool {
	switch v.Kind() {
	case layout.Struct, layout.Array, layout.Slice, layout.Map:
		return v.Len() > 0
	}
	return false
}

func partName(v layout.Value, i int) string {
	switch v.Kind() {
	case layout.Struct:
		return v.Type().Fields[i].Name
	case layout.Map:
		return "[" + cut(v.Key(i).String(), 256) + "]"
	}
	return "[" + strconv.Itoa(i) + "]"
}

func entityText(v layout.Value) string {
	if v.Kind() != layout.Entity || v.Uint() == 0 {
		return ""
	}
	return ecs.Entity(v.Uint()).String()
}

// leaves calls yield with the fields of v that are no structs, until it returns false.
func leaves(path string, v layout.Value, yield func(path string, v layout.Value) bool) bool {
	if v.Kind() != layout.Struct || v.Len() == 0 {
		return yield(path, v)
	}
	for i, f := range v.Type().Fields {
		at := f.Name
		if path != "" {
			at = path + "." + f.Name
		}
		if !leaves(at, v.Index(i), yield) {
			return false
		}
	}
	return true
}

// fieldsOf lists the fields of a layout that are no structs.
func fieldsOf(t *layout.Type) []fieldDoc {
	fields := []fieldDoc{}
	var add func(path string, t *layout.Type, depth int)
	add = func(path string, t *layout.Type, depth int) {
		if len(fields) == maxFields || t.Width() == 0 && len(t.Fields) == 0 && t.Kind == layout.Struct {
			return
		}
		if t.Kind != layout.Struct || depth == maxDepth {
			fields = append(fields, fieldDoc{path, kindOf(t)})
			return
		}
		for _, f := range t.Fields {
			at := f.Name
			if path != "" {
				at = path + "." + f.Name
			}
			add(at, f.Type, depth+1)
		}
	}
	add("", t, 0)
	return fields
}

func kindOf(t *layout.Type) string {
	switch k := t.Kind; {
	case k >= layout.Int8 && k <= layout.Float64:
		return "number"
	case k == layout.Bool:
		return "bool"
	case k == layout.String:
		return "text"
	case k == layout.Entity:
		return "entity"
	}
	return "other"
}

// numberOf returns v as a number that can be drawn.
func numberOf(v layout.Value) (x float64, ok bool) {
	switch k := v.Kind(); {
	case k >= layout.Int8 && k <= layout.Int64:
		x = float64(v.Int())
	case k >= layout.Uint8 && k <= layout.Uint64:
		x = float64(v.Uint())
	case k == layout.Float32 || k == layout.Float64:
		x = v.Float()
	case k == layout.Bool:
		if v.Bool() {
			x = 1
		}
	default:
		return 0, false
	}
	return x, !math.IsNaN(x) && !math.IsInf(x, 0)
}

// cut returns text, or its beginning if it is longer than most bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// labelled returns a component on one line, as ecsdump ls does: Position{X:1 Y:2}, Health=5, Frozen.
func labelled(name string, v layout.Value) string {
	switch {
	case v.Type() != nil && v.Type().Width() == 0:
		return name
	case v.Kind() == layout.Struct:
		return name + cut(v.String(), 256)
	}
	return name + "=" + cut(v.String(), 256)
}

// valueText returns v for people; "" for nothing.
func valueText(v layout.Value) string {
	if v.Kind() == 0 {
		return ""
	}
	return cut(v.String(), maxText)
}

// versus returns two values that differ as texts that do: values are compared by their bytes, so
// some that differ print the same.
func versus(a, b layout.Value) (before, after string) {
	before, after = valueText(a), valueText(b)
	if before == after && a.Kind() != 0 && b.Kind() != 0 {
		return cut(string(a.AppendExact(nil)), maxText), cut(string(b.AppendExact(nil)), maxText)
	}
	return before, after
}

// joinPath returns the path of a field from its component on.
func joinPath(component, field string) string {
	if field == "" || strings.HasPrefix(field, "[") {
		return component + field
	}
	return component + "." + field
}
