package describe

import (
	"iter"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
)

// Labelled returns a component on one line: Position{X:1 Y:2}, Health=5, Frozen.
func Labelled(name string, v layout.Value) string {
	switch {
	case v.Type() != nil && v.Type().Width() == 0:
		return name
	case v.Kind() == layout.Struct:
		return name + v.String()
	}
	return name + "=" + v.String()
}

// Dotted returns the path of a field in a form that can follow a name: ".X" for "X", "[2]" for
// "[2]".
func Dotted(path string) string {
	if path == "" || path[0] == '[' {
		return path
	}
	return "." + path
}

// Inside reports whether path names the given field or a part of it: "A", "A.B" and "A[1]" are
// inside "A".
func Inside(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && (field == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Leaves iterates over the fields of v with their paths, and over the fields of nested structs.
// Arrays, slices and maps are not split, because their number of elements can vary between values.
func Leaves(v layout.Value) iter.Seq2[string, layout.Value] {
	return func(yield func(string, layout.Value) bool) { yieldLeaves("", v, yield) }
}

func yieldLeaves(path string, v layout.Value, yield func(string, layout.Value) bool) bool {
	if v.Kind() != layout.Struct || v.Len() == 0 {
		return yield(path, v)
	}
	if path != "" {
		path += "."
	}
	for i, f := range v.Type().Fields {
		if !yieldLeaves(path+f.Name, v.Index(i), yield) {
			return false
		}
	}
	return true
}

// Number returns v as a float64, and whether v is a number.
func Number(v layout.Value) (x float64, ok bool) {
	switch k := v.Kind(); {
	case k >= layout.Int8 && k <= layout.Int64:
		return float64(v.Int()), true
	case k >= layout.Uint8 && k <= layout.Uint64:
		return float64(v.Uint()), true
	case k == layout.Float32 || k == layout.Float64:
		return v.Float(), true
	}
	return 0, false
}
