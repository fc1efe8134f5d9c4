package dump

import (
	"bytes"
	"encoding/json"
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
	Kind  string       `json:"kind"` // Either component or tag.
	Row   int          `json:"row"`  // Row in the dense and data arrays.
	Value layout.Value `json:"value"`
}

// A fieldDiffDoc is a part of a value that differs between two states.
type fieldDiffDoc struct {
	Path string `json:"path"` // In Go syntax: X, Slots[1], Counts["gold"]; "" for the whole value.
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// joined joins the non-empty parts with sep.
func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// valueDocOf returns the document of a component of an entity.
func valueDocOf(c inspect.EntityComponent) valueDoc {
	return valueDoc{c.Name, describe.Kind(c.Layout, false), c.Row, c.Value}
}

// leafText returns the text of a value without fields.
func leafText(v layout.Value) string {
	if v.Kind() == layout.Struct {
		return "" // An empty struct needs no text.
	}
	return v.String()
}

// differingTexts returns different texts for two values with different bytes. The printed forms may
// be equal: those of two NaNs, or of long byte slices, which are shortened. The first case that
// applies decides:
//
//	printed forms differ   the printed forms
//	kinds differ           the printed forms, each followed by its kind: 1 int8, 1 int16
//	both are bytes         the printed forms, with the first byte that differs
//	otherwise              the exact JSON: NaN:7ff8000000000123
func differingTexts(a, b layout.Value) (before, after string) {
	before, after = a.String(), b.String()
	if before != after {
		return before, after
	}
	if a.Kind() != b.Kind() {
		return before + " " + a.Kind().String(), after + " " + b.Kind().String()
	}
	if a.Kind() == layout.Bytes {
		return differingBytes(before, a.Text(), b.Text())
	}
	return string(a.AppendExact(nil)), string(b.AppendExact(nil))
}

// differingBytes returns texts for two byte values whose printed forms both equal shown.
func differingBytes(shown, a, b string) (before, after string) {
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

// fieldDiffDocs returns the documents of diffs.
func fieldDiffDocs(fields []inspect.FieldDiff) (docs []fieldDiffDoc) {
	for _, f := range fields {
		before, after := differingJSON(f.Old, f.New)
		docs = append(docs, fieldDiffDoc{f.Path, before, after})
	}
	return docs
}

// differingJSON returns the JSON of two values, or nil for a missing value. If the JSON of both is
// equal, it uses a longer form that shows the difference. For example, two different NaNs have the
// same JSON.
func differingJSON(a, b layout.Value) (before, after any) {
	if a.Kind() != 0 {
		before = a
	}
	if b.Kind() != 0 {
		after = b
	}
	if before == nil || after == nil {
		return before, after
	}
	plainA, _ := a.MarshalJSON() // Marshaling a value never fails.
	plainB, _ := b.MarshalJSON()
	if bytes.Equal(plainA, plainB) {
		return json.RawMessage(a.AppendExact(nil)), json.RawMessage(b.AppendExact(nil))
	}
	return before, after
}
