package web

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
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

// A treeMaker makes trees of values until it has made enough. One makes all those of a document, so
// that left bounds that.
type treeMaker struct{ left int }

// node returns v as a tree. A pointer is what it leads to, with a * in its kind. At maxDepth
// everything is text.
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

// partName returns the name of part i of v as a path has it: a field, [3] or ["gold"].
func partName(v layout.Value, i int) string {
	switch v.Kind() {
	case layout.Struct:
		return v.Type().Fields[i].Name
	case layout.Map:
		return "[" + cut(v.Key(i).String(), 256) + "]"
	}
	return "[" + strconv.Itoa(i) + "]"
}

// entityText returns v if it is an entity; "" for nobody.
func entityText(v layout.Value) string {
	if v.Kind() != layout.Entity || v.Uint() == 0 {
		return ""
	}
	return ecs.Entity(v.Uint()).String()
}

// fieldsOf lists the fields of a layout that are no structs: "To.X" and "To.Y", but not "To". A slice
// or a map is one field, whatever it holds. A tag has none.
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

// kindOf returns what the page needs to know of a field: its map looks for two numbers to place
// entities by, and for any but other to color them by.
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

// numberOf returns v as a number that can be drawn: a truth is 1 or 0; NaN and infinities cannot.
func numberOf(v layout.Value) (x float64, ok bool) {
	if x, ok = describe.Number(v); !ok {
		if ok = v.Kind() == layout.Bool; v.Bool() {
			x = 1
		}
	}
	return x, ok && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// cut returns text, or its beginning if it is longer than most bytes: whole characters, and dots.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// valueText returns v for people; "" for nothing.
func valueText(v layout.Value) string {
	if v.Kind() == 0 {
		return ""
	}
	return cut(v.String(), maxText)
}

// versus returns two values that differ as texts that do: values are compared by their bytes, so
// some that differ print the same, as two NaNs or what lies behind a cut. Exact texts tell them apart,
// where they are short enough.
func versus(a, b layout.Value) (before, after string) {
	before, after = valueText(a), valueText(b)
	if before == after && a.Kind() != 0 && b.Kind() != 0 {
		return cut(string(a.AppendExact(nil)), maxText), cut(string(b.AppendExact(nil)), maxText)
	}
	return before, after
}
