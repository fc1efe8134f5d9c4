package layout

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// changesOf returns the changes from the stored type to the current type, with or without a
// conversion.
func changesOf(t *testing.T, stored, current reflect.Type) []Change {
	t.Helper()
	from, err := Of(stored)
	require.NoError(t, err)
	to, err := Of(current)
	require.NoError(t, err)
	c, err := NewConversion(from, to)
	if refusal, ok := errors.AsType[*ConversionError](err); ok {
		return refusal.Changes
	}
	require.NoError(t, err)
	return c.Changes()
}

type (
	rarity  uint8
	ranking uint8
	small   struct{ A, B int16 }
	large   struct {
		B int64
		A int32
		C string
	}
	lesser struct{ A int16 }
)

// A change suggests the added field if the type of the field can take all stored values. Otherwise,
// it suggests nothing.
func TestChange_RenamedOnlyIfLossless(t *testing.T) {
	for _, tt := range []struct {
		from, to any
		lossless bool
	}{
		{int32(0), int32(0), true},
		{int32(0), int64(0), true},
		{int32(0), 0, true},
		{int8(0), int16(0), true},
		{uint8(0), uint64(0), true},
		{uint8(0), int16(0), true},
		{uint32(0), int64(0), true},
		{int16(0), float32(0), true},
		{uint32(0), float64(0), true},
		{float32(0), float64(0), true},
		{complex64(0), complex128(0), true},
		{rarity(0), rarity(0), true},
		{rarity(0), ranking(0), true},
		{rarity(0), uint8(0), true},
		{rarity(0), int16(0), true},
		{time.Second, int64(0), true},
		{id(0), id(0), true},
		{"", label(""), true},
		{[2]int8{}, [2]int16{}, true},
		{[2]int8{}, [3]int8{}, true},
		{[]int8{}, []int64{}, true},
		{[]byte{}, []int16{}, true},
		{new(int8), new(int16), true},
		{map[int8]float32{}, map[int64]float64{}, true},
		{small{}, large{}, true},
		{[]small{}, []large{}, true},
		{map[small]bool{}, map[struct{ A, B int32 }]bool{}, true},
		{struct{}{}, small{}, true},

		{int64(0), int32(0), false},
		{int8(0), uint8(0), false},
		{int8(0), uint64(0), false},
		{uint64(0), int64(0), false},
		{int32(0), float32(0), false},
		{int64(0), float64(0), false},
		{float64(0), float32(0), false},
		{float32(0), int64(0), false},
		{float64(0), complex128(0), false},
		{complex128(0), complex64(0), false},
		{true, uint8(0), false},
		{uint64(0), id(0), false},
		{id(0), uint64(0), false},
		{"", []byte{}, false},
		{[]byte{}, "", false},
		{[3]int8{}, [2]int8{}, false},
		{[2]int16{}, [2]int8{}, false},
		{[2]int8{}, []int8{}, false},
		{[]int16{}, []byte{}, false},
		{int8(0), new(int8), false},
		{map[int16]bool{}, map[int8]bool{}, false},
		{map[[2]int8]bool{}, map[[1]int8]bool{}, false},
		{small{}, lesser{}, false},
		{[]small{}, []lesser{}, false},
		{small{}, struct{ X, Y int16 }{}, false},
		{small{}, int16(0), false},
	} {
		field := func(name string, v any) reflect.Type {
			return reflect.StructOf([]reflect.StructField{{Name: name, Type: reflect.TypeOf(v)}})
		}
		changes := changesOf(t, field("Old", tt.from), field("New", tt.to))
		c := changes[len(changes)-1]
		require.True(t, c.Dropped, "%v", changes)
		require.Equal(t, tt.lossless, len(c.Renamed) == 1, "%T to %T: %v", tt.from, tt.to, c)
	}
}

// A suggestion is the Go source of the field with the tag to write.
func TestChange_RenamedIsGoSource(t *testing.T) {
	type (
		list   []small
		stored struct{ Old int8 }
	)
	for _, tt := range []struct {
		from, to any
		want     string
	}{
		{stored{}, struct{ Life int }{}, "Life int `stet:\",was=Old\"`"},
		{stored{}, struct{ Life uintptr }{}, ""},
		{stored{}, struct {
			Life int16 `json:"life" stet:"hp"`
		}{}, "Life int16 `stet:\"hp,was=Old\"`"},
		{stored{}, struct {
			Life int16 `stet:"hp,was=A,was=B"`
		}{}, "Life int16 `stet:\"hp,was=A,was=B,was=Old\"`"},
		{struct{ Old small }{}, struct{ large }{}, "large `stet:\",was=Old\"`"},
		{struct{ Old []small }{}, struct{ New []large }{}, "New []large `stet:\",was=Old\"`"},
		{struct{ Old []small }{}, struct{ New list }{}, "New list `stet:\",was=Old\"`"},
		{struct{ Old map[string][]byte }{}, struct{ New map[label][]byte }{}, "New map[label][]byte `stet:\",was=Old\"`"},
		{struct{ Old *small }{}, struct{ New *pair[time.Month] }{}, ""},
		{struct{ Old time.Duration }{}, struct{ New time.Duration }{}, "New time.Duration `stet:\",was=Old\"`"},
		{struct{ Old []time.Month }{}, struct{ New []time.Month }{}, "New []Month `stet:\",was=Old\"`"},
		{struct{ In []stored }{}, struct{ In []struct{ New int16 } }{}, "New int16 `stet:\",was=Old\"`"},
	} {
		changes := changesOf(t, reflect.TypeOf(tt.from), reflect.TypeOf(tt.to))
		require.Equal(t, tt.want, strings.Join(changes[len(changes)-1].Renamed, "|"), "%v", changes)
	}
	parsed, err := Parse(of[stored](t).Append(nil))
	require.NoError(t, err)
	c, err := NewConversion(parsed, &Type{Kind: Struct, Fields: []Field{{"New", &Type{Kind: Int64}}}})
	require.NoError(t, err)
	require.Equal(t, []string{"New int64 `stet:\",was=Old\"`"}, c.Changes()[1].Renamed, "a description has no Go source")
}

// Fields of the same type come first, then similar names, then nearby positions. All dropped fields
// get all suggestions.
func TestChange_RenamedOrder(t *testing.T) {
	type (
		stored struct {
			HP    int16
			Suit  rarity
			Speed float32
		}
		current struct {
			Far    int32
			MaxHP  int32
			Life   int16
			Colour uint8
			Kind   rarity
			Pace   float64
			Speeed float64
		}
	)
	var got []string
	for _, c := range changesOf(t, reflect.TypeFor[stored](), reflect.TypeFor[current]()) {
		if c.Dropped {
			names := []string{c.Path}
			for _, r := range c.Renamed {
				name, _, _ := strings.Cut(r, " ")
				names = append(names, name)
			}
			got = append(got, strings.Join(names, " "))
		}
	}
	require.Equal(t, []string{
		"current.HP Life MaxHP Far Pace Speeed",
		"current.Suit Kind Colour MaxHP Far Life Pace Speeed",
		"current.Speed Speeed Pace",
	}, got)
}

// The field Heir has the former name B already. So nothing is suggested for the stored field B. A
// second field with the former name B is an error.
func TestChange_RenamedEmptyIfNameIsTaken(t *testing.T) {
	type (
		stored  struct{ A, B int8 }
		current struct {
			Heir int8 `stet:",was=A,was=B"`
			New  int8
		}
		both struct {
			Heir int8 `stet:",was=A,was=B"`
			New  int8 `stet:",was=B"`
		}
	)
	changes := changesOf(t, reflect.TypeFor[stored](), reflect.TypeFor[current]())
	last := changes[len(changes)-1]
	require.Equal(t, "current.B: dropped, was int8", last.String())
	_, err := Of(reflect.TypeFor[both]())
	require.ErrorContains(t, err, "its former name B also belongs to another field")
}

// A field cannot be dropped from a key of a map. But it can be renamed.
func TestChange_RenamedInKey(t *testing.T) {
	type (
		stored  map[struct{ X, Y int8 }]int8
		current map[struct {
			X int8
			Z int16
		}]int8
		tagged map[struct {
			X int8
			Z int16 `stet:",was=Y"`
		}]int8
	)
	changes := changesOf(t, reflect.TypeFor[stored](), reflect.TypeFor[current]())
	last := changes[len(changes)-1]
	require.True(t, last.Refused && !last.Dropped)
	require.Equal(t, "current[key].Y: stored int8, program has none; if it was renamed: Z int16 `stet:\",was=Y\"`", last.String())
	for _, c := range changesOf(t, reflect.TypeFor[stored](), reflect.TypeFor[tagged]()) {
		require.False(t, c.Refused, c)
	}
}

// The text of a change shows eight suggestions. Renamed has all of them.
func TestChange_RenamedTextIsBounded(t *testing.T) {
	var fields []reflect.StructField
	for i := range 11 {
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[int8]()})
	}
	changes := changesOf(t, reflect.TypeFor[struct{ Old int8 }](), reflect.StructOf(fields))
	c := changes[len(changes)-1]
	require.Len(t, c.Renamed, 11)
	require.Equal(t, 8, strings.Count(c.String(), "stet:"))
	require.True(t, strings.HasSuffix(c.String(), "F7 int8 `stet:\",was=Old\"`, or 3 more"), c)
}

// A ConversionError lists all fields that cannot be converted, in the order of the program's
// fields. Its text shows 20 of them.
func TestConversionError_ListsAllFields(t *testing.T) {
	type (
		in     struct{ X, Y int64 }
		inNow  struct{ Y, X int32 }
		stored struct {
			A  string
			B  int64
			In []in
			Of map[in]string
		}
		current struct {
			Of map[inNow][]byte
			In []inNow
			A  string
			B  int32
		}
	)
	from, to := of[stored](t), of[current](t)
	_, err := NewConversion(from, to)
	require.EqualError(t, err, "layout: rows cannot be converted: current.Of[key].Y: stored int64, program has int32; "+
		"current.Of[key].X: stored int64, program has int32; current.Of[value]: stored string, program has bytes; "+
		"current.In[].Y: stored int64, program has int32; current.In[].X: stored int64, program has int32; "+
		"current.B: stored int64, program has int32")

	var before, after []reflect.StructField
	for i := range 25 {
		name := fmt.Sprint("F", i)
		before = append(before, reflect.StructField{Name: name, Type: reflect.TypeFor[int16]()})
		after = append(after, reflect.StructField{Name: name, Type: reflect.TypeFor[int8]()})
	}
	changes := changesOf(t, reflect.StructOf(before), reflect.StructOf(after))
	require.Len(t, changes, 25)
	require.False(t, slices.ContainsFunc(changes, func(c Change) bool { return !c.Refused }))
	text := (&ConversionError{changes}).Error()
	require.Equal(t, 20, strings.Count(text, "stored"))
	require.True(t, strings.HasSuffix(text, "F19: stored int16, program has int8; and 5 more"), text)
}
