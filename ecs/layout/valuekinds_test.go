package layout

import (
	"reflect"
	"slices"
	"testing"
)

// appliesTo maps each method of Value to the kinds of values for which it does not return zero.
// Methods that are not listed apply to all kinds.
var appliesTo = map[string][]Kind{
	"Bool":    {Bool},
	"Int":     {Int8, Int16, Int32, Int64},
	"Uint":    {Uint8, Uint16, Uint32, Uint64, Entity},
	"Float":   {Float32, Float64},
	"Complex": {Complex64, Complex128},
	"Text":    {String, Bytes},
	"Len":     {Struct, Array, Slice, Map, Pointer},
	"Index":   {Struct, Array, Slice, Map, Pointer},
	"Key":     {Map},
	"Field":   {Struct},
	"Name":    {Struct},
}

// A method returns zero if it does not apply to the kind of a value. Otherwise it does not return
// zero.
func TestValue_MethodsByKind(t *testing.T) {
	seven := int8(7)
	values := map[Kind]Value{0: {}}
	for _, v := range []any{
		true, int8(1), int16(1), int32(1), int64(1), uint8(1), uint16(1), uint32(1), uint64(1), float32(1), 1.0,
		complex64(1), complex128(1), id(1), "1", []byte{1}, struct{ A int8 }{1}, [1]int8{1}, []int8{1}, map[int8]int8{1: 1}, &seven,
	} {
		c, err := NewCodec(reflect.TypeOf(v))
		if err != nil {
			t.Fatal(err)
		}
		rows := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 1, 1)
		rows.Index(0).Set(reflect.ValueOf(v))
		value, err := c.typ.Value(c.encodeRows(rows))
		if err != nil {
			t.Fatal(err)
		}
		values[value.Kind()] = value
	}
	if len(values) != int(endOfKinds) {
		t.Fatalf("%d kinds, want %d", len(values), endOfKinds)
	}
	for kind, value := range values {
		of := reflect.ValueOf(value)
		for m := range of.Type().Methods() {
			args := make([]reflect.Value, 0, 1)
			for k := 1; k < m.Type.NumIn(); k++ {
				arg := reflect.New(m.Type.In(k)).Elem()
				if m.Name == "Field" {
					arg.SetString("A")
				}
				args = append(args, arg)
			}
			kinds, some := appliesTo[m.Name]
			func() {
				defer func() {
					if reason := recover(); reason != nil {
						t.Errorf("%s of a %v panics: %v", m.Name, kind, reason)
					}
				}()
				result := of.MethodByName(m.Name).Call(args)[0]
				if some && result.IsZero() == slices.Contains(kinds, kind) {
					t.Errorf("%s of a %v = %v", m.Name, kind, result)
				}
			}()
		}
	}
}
