package dump

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A valueDoc is a component of an entity.
type valueDoc struct {
	Name  string       `json:"name"`
	Kind  string       `json:"kind"` // component or tag.
	Row   int          `json:"row"`  // In the dense and data arrays.
	Value layout.Value `json:"value"`
}

// A fieldDiffDoc is a part of a value that differs.
type fieldDiffDoc struct {
	Path string `json:"path"` // As in Go: X, Slots[1], Counts["gold"]; "": all of it.
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// joined returns those of parts that are not empty, with sep between.
func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// valueDocOf describes a component of an entity, as it was looked up.
func valueDocOf(c inspect.EntityComponent) valueDoc {
	return valueDoc{c.Name, describe.Kind(c.Layout, false), c.Row, c.Value}
}

// fields iterates over the fields of v with their paths and values.
func fields(path string, v layout.Value) iter.Seq2[string, string] {
	return func(yield func(field, text string) bool) {
		for field, leaf := range describe.Leaves(path, v) {
			if !yield(field, leafText(leaf)) {
				return
			}
		}
	}
}

// leafText returns a value without fields for people.
func leafText(v layout.Value) string {
	if v.Kind() == layout.Struct {
		return "" // Braces would say no more.
	}
	return v.String()
}

// versus returns two values that differ as texts that do. Values are compared by their bytes, so
// some that differ print the same: NaNs with other bits, and long bytes, of which only the
// beginning is shown.
//
//	differ as printed        as they print
//	another kind             with the kind behind them: 1 int8, 1 int16
//	bytes                    with the first byte that differs
//	else                     exactly, as JSON: NaN:7ff8000000000123
func versus(a, b layout.Value) (before, after string) {
	before, after = a.String(), b.String()
	if before != after {
		return before, after
	}
	if a.Kind() != b.Kind() {
		return before + " " + a.Kind().String(), after + " " + b.Kind().String()
	}
	if a.Kind() == layout.Bytes {
		return versusBytes(before, a.Text(), b.Text())
	}
	return string(a.AppendExact(nil)), string(b.AppendExact(nil))
}

// versusBytes tells apart long bytes that begin with the same, which is shown.
func versusBytes(shown, a, b string) (before, after string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	show := func(s string) string {
		if at == len(s) {
			return shown + " that end there"
		}
		return "0x" + strconv.FormatUint(uint64(s[at]), 16)
	}
	return shown + " with byte " + strconv.Itoa(at) + " " + show(a), show(b)
}

// fieldDiffDocs describes fields that differ.
func fieldDiffDocs(fields []inspect.FieldDiff) (docs []fieldDiffDoc) {
	for _, f := range fields {
		before, after := versusJSON(f.Old, f.New)
		docs = append(docs, fieldDiffDoc{f.Path, before, after})
	}
	return docs
}

// versusJSON returns two values as they are marshaled, or nil for one that is not
// there; exactly, if that would be the same.
func versusJSON(a, b layout.Value) (before, after any) {
	if a.Kind() != 0 {
		before = a
	}
	if b.Kind() != 0 {
		after = b
	}
	if before == nil || after == nil {
		return before, after
	}
	plainA, _ := a.MarshalJSON() // A value always marshals.
	plainB, _ := b.MarshalJSON()
	if bytes.Equal(plainA, plainB) {
		return json.RawMessage(a.AppendExact(nil)), json.RawMessage(b.AppendExact(nil))
	}
	return before, after
}
