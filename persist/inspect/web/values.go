package web

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
)

// This file converts values for display. A value may be huge or deep: a slice of a million
// elements, a text of megabytes, a list of pointers. So every conversion has a limit and reports
// what it omits.

// Limits of a displayed value.
const (
	maxText = 2048 // Maximum length of the text of one field, in bytes.
	// Maximum number of elements or fields of one value.
	maxParts = 200
	// Maximum number of nodes in a document.
	maxNodes = 4000
	// Maximum number of fields of a layout.
	maxFields = 400
	maxDepth  = 32
)

// A nodeDoc is a value as a tree of texts. Numbers are texts, because a number in JavaScript
// cannot represent every 64-bit integer.
type nodeDoc struct {
	// Name is a field name, [3] for an element, or ["gold"] for a map entry.
	Name string `json:"name"`
	// Path is the path in Go's notation, including the component. It is "" for the whole
	// component.
	Path string `json:"path"`
	// Kind is the kind in the notation of package layout.
	Kind string `json:"kind"`
	// Text is the text of a value without parts, or with too many parts.
	Text string `json:"text,omitempty"`
	// Entity is set if the value is an entity.
	Entity string    `json:"entity,omitempty"`
	Parts  []nodeDoc `json:"parts,omitempty"`
	// More is the number of omitted parts.
	More int `json:"more,omitempty"`
}

// A treeMaker builds the trees of one document. left: the number of nodes that it may still add.
type treeMaker struct{ left int }

// node returns v as a tree. A pointer is shown as its target, with a * in its kind. At maxDepth
// every value is text.
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

// hasParts reports whether v is a non-empty struct, array, slice or map.
func hasParts(v layout.Value) bool {
	switch v.Kind() {
	case layout.Struct, layout.Array, layout.Slice, layout.Map:
		return v.Len() > 0
	}
	return false
}

// partName returns the name of part i of v in a path: a field, [3] or ["gold"].
func partName(v layout.Value, i int) string {
	switch v.Kind() {
	case layout.Struct:
		return v.Name(i)
	case layout.Map:
		return "[" + cut(v.Key(i).String(), 256) + "]"
	}
	return "[" + strconv.Itoa(i) + "]"
}

// entityText returns v as text if it is an entity. It returns "" for ecs.None.
func entityText(v layout.Value) string {
	if v.Kind() != layout.Entity || v.Uint() == 0 {
		return ""
	}
	return ecs.Entity(v.Uint()).String()
}

// fieldsOf returns the fields of a layout that are not structs: "To.X" and "To.Y", but not "To".
// A slice or map counts as one field. A tag has no fields.
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

// kindOf returns the kind of a field for the page. The page uses numbers as positions on the map,
// and any kind except "other" as a color.
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

// numberOf returns v as a number that can be drawn. A bool is 1 or 0. NaN and infinities cannot be
// drawn.
func numberOf(v layout.Value) (x float64, ok bool) {
	if x, ok = describe.Number(v); !ok {
		if ok = v.Kind() == layout.Bool; v.Bool() {
			x = 1
		}
	}
	return x, ok && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// cut returns the text if it is not longer than a limit in bytes. Otherwise it returns as much of
// the beginning of the text as the limit permits, and dots. It does not split a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// valueText returns v as text, or "" for the zero Value.
func valueText(v layout.Value) string {
	if v.Kind() == 0 {
		return ""
	}
	return cut(v.String(), maxText)
}

// versus returns different texts for two different values. Two values can have the same short text:
// two NaNs, or long texts that are cut. Then versus returns their exact texts, cut to the same
// length.
func versus(a, b layout.Value) (before, after string) {
	before, after = valueText(a), valueText(b)
	if before == after && a.Kind() != 0 && b.Kind() != 0 {
		return cut(string(a.AppendExact(nil)), maxText), cut(string(b.AppendExact(nil)), maxText)
	}
	return before, after
}

// A fieldDoc is a field that an expression can use.
type fieldDoc struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // number, bool, text, entity or other.
}
