package layout

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unique"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// of returns the description of T.
func of[T any](t require.TestingT) *Type {
	typ, err := Of(reflect.TypeFor[T]())
	require.NoError(t, err)
	return typ
}

func TestOf_SupportedTypes(t *testing.T) {
	tests := []struct {
		value any
		name  string
		text  string
		width int
	}{
		{value: true, text: "bool", width: 1},
		{value: 0, text: "int64", width: 8},
		{value: uint(0), text: "uint64", width: 8},
		{value: uintptr(0), text: "uint64", width: 8},
		{value: complex64(0), text: "complex64", width: 8},
		{value: complex128(0), text: "complex128", width: 16},
		{value: hp(0), name: "hp", text: "int32", width: 4},
		{value: time.Second, name: "time.Duration", text: "int64", width: 8},
		{value: id(0), name: "id", text: "entity", width: 8},
		{value: [3]id{}, text: "[3]entity", width: 24},
		{value: nothing{}, name: "nothing", text: "struct{}", width: 0},
		{value: [1000]nothing{}, text: "[1000]struct{}", width: 0},
		{value: position{}, name: "position", text: "struct{X float64; Y float64}", width: 16},
		{value: embedded{}.position, name: "position", text: "struct{X float64; Y float64}", width: 16},
		{
			value: padded{}, name: "padded", width: 24,
			text: "struct{Alive bool; HP int64; Kind uint8; Team uint16; speed float32; Owner entity}",
		},
		{
			value: struct {
				position
				hp
			}{},
			text: "struct{position struct{X float64; Y float64}; hp int32}", width: 20,
		},
		{value: pair[time.Month]{}, name: "pair[Month]", text: "struct{First int64; Second int64}", width: 16},
		{value: pair[pair[string]]{}, name: "pair[pair[string]]", width: -1,
			text: "struct{First struct{First string; Second string}; Second struct{First string; Second string}}"},
		{value: label(""), name: "label", text: "string", width: -1},
		{value: blob(nil), name: "blob", text: "bytes", width: -1},
		{value: []colour(nil), text: "bytes", width: -1},
		{value: [2]colour{}, text: "[2]uint8", width: 2},
		{value: [0]string{}, text: "[0]string", width: -1},
		{value: map[id][]*bool(nil), text: "map[entity][]*bool", width: -1},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%T", tt.value), func(t *testing.T) {
			typ, err := Of(reflect.TypeOf(tt.value))
			require.NoError(t, err)
			require.Equal(t, tt.text, typ.String())
			require.Equal(t, tt.name, typ.Name)
			require.Equal(t, tt.width, typ.Width())
			require.Equal(t, tt.width >= 0, typ.Fixed())
			require.NoError(t, typ.Validate())
		})
	}
}

type (
	sprite struct {
		At    position
		Image any
	}
	node struct {
		Value int
		Next  *node
	}
	forest    struct{ Trees []forest }
	deepField struct {
		Items map[string][]struct{ Hit [2]func() }
	}
	pointerAsEntity struct{ x uint64 }
	halfEntity      uint64
)

func (*pointerAsEntity) Index() uint32 { return 0 }

func (halfEntity) Index() uint32 { return 0 }

func TestOf_UnsupportedTypes(t *testing.T) {
	tests := []struct {
		// The type to describe, not a value: one value of the widest type would make the test
		// binary a gigabyte larger.
		rt   reflect.Type
		want string
	}{
		{reflect.TypeFor[sprite](), "sprite.Image: interface values cannot be stored"},
		{reflect.TypeFor[node](), "node.Next: recursive types cannot be stored"},
		{reflect.TypeFor[forest](), "forest.Trees[]: recursive types cannot be stored"},
		{reflect.TypeFor[deepField](), "deepField.Items[value][].Hit[]: func values cannot be stored"},
		{reflect.TypeFor[struct{ C chan int }](), "struct { C chan int }.C: chan values cannot be stored"},
		{reflect.TypeFor[struct{ P unsafe.Pointer }](), "struct { P unsafe.Pointer }.P: unsafe.Pointer values cannot be stored"},
		{reflect.TypeFor[struct{ At time.Time }](), "struct { At time.Time }.At: a time.Time points to a time zone and cannot be stored; keep UnixNano (of years from 1678 to 2261) or UnixMilli in an int64"},
		{reflect.TypeFor[*time.Location](), "*time.Location: a time.Location cannot be stored; keep its name"},
		{reflect.TypeFor[*struct{ sync.Mutex }](), "*struct { sync.Mutex }.Mutex: locks and other values of package sync cannot be stored"},
		{reflect.TypeFor[unique.Handle[string]](), "Handle[string]: values of package unique cannot be stored; keep what they stand for"},
		{reflect.TypeFor[map[float64]int](), "[key]: float64 cannot be part of a map key"},
		{reflect.TypeFor[pair[map[pair[complex64]]int]](), "pair[map[pair[complex64]]int].First[key]: complex64 cannot be part of a map key"},
		{reflect.TypeFor[map[[2]*int]int](), "[key]: pointer cannot be part of a map key"},
		{reflect.TypeFor[[maxRow/8 + 1]int](), "[134217729]int: rows are wider than 1073741824 bytes"},
		{reflect.TypeFor[[1 << 17]nothing](), "[131072]layout.nothing: has too many values without size"},
	}
	for _, tt := range tests {
		_, err := Of(tt.rt)
		require.EqualError(t, err, "layout: "+tt.want)
		require.ErrorIs(t, err, ErrUnsupported)
		var typeError *TypeError
		require.ErrorAs(t, err, &typeError)
		require.Equal(t, tt.rt, typeError.Type)
		_, codecErr := NewCodec(tt.rt)
		require.Equal(t, err, codecErr)
	}
	_, err := Of(reflect.TypeFor[error]())
	require.EqualError(t, err, "layout: error: interface values cannot be stored")
	_, err = Of(nil)
	require.EqualError(t, err, "layout: nil: interface values cannot be stored")
}

func TestOf_DepthAndSizeLimits(t *testing.T) {
	deep := reflect.TypeFor[int]()
	for range maxDepth - 1 {
		deep = reflect.PointerTo(deep)
	}
	c := newCodec(t, deep)
	zero := reflect.New(deep).Elem()
	require.Equal(t, []byte{codeNil}, c.append(nil, addressOf(zero), 1))
	_, err := Of(reflect.PointerTo(deep))
	require.ErrorContains(t, err, "nested more than 64 deep")

	// The type has 24 nested levels, and each level doubles the number of fields.
	type four[T any] = pair[pair[pair[pair[T]]]]
	wide := reflect.TypeFor[four[four[four[four[four[four[nothing]]]]]]]()
	_, err = Of(wide)
	require.ErrorContains(t, err, "more than 65536 fields")
	require.False(t, HasPointers(wide))
}

func TestOf_TypesSimilarToEntity(t *testing.T) {
	require.Equal(t, Entity, of[id](t).Kind)
	require.Equal(t, Uint64, of[halfEntity](t).Kind)
	require.Equal(t, Struct, of[pointerAsEntity](t).Kind)
	require.Equal(t, Pointer, of[*id](t).Kind)
}

func TestHasPointers_EachKindOfType(t *testing.T) {
	for _, tt := range []struct {
		value any
		has   bool
	}{
		{0, false}, {embedded{}, false}, {[4][5]position{}, false}, {"", true}, {struct{ Name [2]label }{}, true},
		{[0]*int{}, false}, {struct{ _ [0]func() }{}, false}, {sprite{}, true}, {node{}, true}, {forest{}, true},
		{struct{ A [2]struct{ B []int } }{}, true}, {listOf{}, true}, {[]int{}, true}, {map[int]int{}, true},
		{new(int), true}, {func() {}, true}, {make(chan int), true}, {unsafe.Pointer(nil), true}, {time.Time{}, true},
	} {
		rt := reflect.TypeOf(tt.value)
		require.Equal(t, tt.has, HasPointers(rt), "HasPointers(%v)", rt)
	}
}

// The numbers are in files, so they must never change.
func TestKind_NumbersAreFixed(t *testing.T) {
	want := "1 bool, 2 int8, 3 int16, 4 int32, 5 int64, 6 uint8, 7 uint16, 8 uint32, 9 uint64, " +
		"10 float32, 11 float64, 12 complex64, 13 complex128, 14 entity, 15 string, 16 bytes, " +
		"17 struct, 18 array, 19 slice, 20 map, 21 pointer"
	constants := []Kind{
		Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64, Complex64, Complex128,
		Entity, String, Bytes, Struct, Array, Slice, Map, Pointer,
	}
	var got []string
	for _, k := range constants {
		got = append(got, fmt.Sprintf("%d %v", uint8(k), k))
	}
	require.Equal(t, want, strings.Join(got, ", "))
	require.Equal(t, "kind(22)", Kind(22).String())
	require.Equal(t, "kind(0)", Kind(0).String())
}

func TestDataError_Text(t *testing.T) {
	err := error(&DataError{Row: 3, Path: "Sprite.Visible", Reason: "bool is 2", Err: ErrInvalid})
	require.EqualError(t, err, "layout: invalid data: row 3: Sprite.Visible: bool is 2")
	require.True(t, errors.Is(err, ErrInvalid))
}
