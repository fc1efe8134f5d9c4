package dump

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// This file derives the JSON Schema of a document from its Go type. Values of a world have no
// schema, because only the store knows their types.

// documentSchema returns the JSON Schema of a document: its members, its format, and the list
// left_out.
func documentSchema(doc any) map[string]any {
	t := reflect.TypeOf(doc)
	s := structSchema(t)
	properties := s["properties"].(map[string]any)
	properties["format"] = map[string]any{"const": formatOf(t.Name())}
	properties[leftOutMember] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "what was left out, and how to ask for it"}
	s["required"] = append([]string{"format"}, s["required"].([]string)...)
	return s
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	timeType  = reflect.TypeFor[time.Time]()
	bytesType = reflect.TypeFor[[]byte]()
)

// typeSchema returns the schema of a member's type. It accepts any JSON for a type with its own
// MarshalJSON, because such a type holds a value of a world. A pointer has the schema of its
// element, or is null.
//
// The order of the cases matters. A time also has a MarshalJSON, and bytes are also a slice.
func typeSchema(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t == bytesType:
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	case t.Kind() == reflect.Pointer:
		s := typeSchema(t.Elem())
		if kind, ok := s["type"]; ok {
			s["type"] = []any{kind, "null"}
		}
		return s
	case t.Implements(marshaler):
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Struct:
		return structSchema(t)
	case reflect.Interface, reflect.Map:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

// structSchema returns the schema of a struct. A member is optional if its tag has omitempty, or if
// it belongs to an embedded pointer, which may be nil. Unknown members are valid, because a later
// version may add members.
func structSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" { // An embedded struct, or a field that is not written.
			continue
		}
		properties[name] = typeSchema(f.Type)
		if !strings.Contains(options, "omitempty") && !behindPointer(t, f.Index) {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// behindPointer reports whether a field of t belongs to a struct that is embedded as a pointer.
func behindPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}
