package layout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// An id has the form of an entity of package ecs.
type id uint64

func (e id) Index() uint32      { return uint32(e) }
func (e id) Generation() uint32 { return uint32(e >> 32) }

type (
	position    struct{ X, Y float64 }
	flags       struct{ A, B, C bool }
	nothing     struct{}
	hp          int32
	label       string
	blob        []byte
	colour      uint8
	pair[T any] struct{ First, Second T }

	padded struct {
		Alive bool
		HP    int64
		Kind  uint8
		Team  uint16
		_     [3]byte
		speed float32
		Owner id
	}
	embedded struct {
		position
		hp
		Extra [2]padded
	}
	numbers struct {
		I   int
		I8  int8
		I16 int16
		I32 int32
		I64 int64
		U   uint
		U8  uint8
		U16 uint16
		U32 uint32
		U64 uint64
		P   uintptr
		F32 float32
		F64 float64
		C64 complex64
		C   complex128
	}
	bag struct {
		name  string
		Label label
		Image blob
		Tints []colour
		Items []padded
		Stock map[string]int
		Names map[id]string
		Grid  map[[2]int8][]int
		Next  *padded
		Deep  **string
		Spots [3]*position
		Nums  numbers
		Void  []nothing
		on    bool
		_     func()
	}
	named struct {
		Ptr  pointerTo
		List listOf
		Map  mapOf
	}
	pointerTo *position
	listOf    []flags
	mapOf     map[label]flags
)

// samples has a value of each type to test. Only the types matter.
var samples = []any{
	true, int8(0), int16(0), int32(0), int64(0), int(0), uint8(0), uint16(0), uint32(0), uint64(0), uint(0), uintptr(0),
	float32(0), float64(0), complex64(0), complex128(0), hp(0), id(0),
	position{}, flags{}, nothing{}, padded{}, embedded{}, numbers{},
	[0]int{}, [4]nothing{}, [5]bool{}, [3]padded{}, [100]padded{}, [100][3]flags{}, [40]uint16{}, [9]uint8{},
	struct{ _ int64 }{},
	struct {
		A uint8
		B [33]uint8
		C uint32
	}{},
	struct {
		A [50]complex64
		B bool
		C [2][50]bool
	}{},
	pair[hp]{}, pair[pair[position]]{},
	"", label(""), []byte(nil), blob(nil), []colour(nil), []int(nil), []nothing(nil), []flags(nil), [][]string(nil),
	[2]string{}, [0]string{}, map[string]int(nil), map[int]map[bool]string(nil), map[position2]id(nil), map[nothing]int8(nil),
	(*int)(nil), (**padded)(nil), (*nothing)(nil), (*[]int)(nil), (*map[uint8]*uint8)(nil),
	bag{}, named{}, pair[bag]{}, pair[*string]{}, [2]bag{},
}

type position2 struct {
	X, Y int16
	_    float64
}

// sampleTypes returns the types of the values in samples.
func sampleTypes() []reflect.Type {
	types := make([]reflect.Type, len(samples))
	for i, v := range samples {
		types[i] = reflect.TypeOf(v)
	}
	return types
}

// fill sets v, which must be addressable, to a random value. It often uses special values like NaN.
func fill(r *rand.Rand, v reflect.Value) {
	v = valueAt(v.Type(), addressOf(v))
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 1)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(randomBits(r)))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(randomBits(r))
	case reflect.Float32, reflect.Complex64:
		for i := range v.Type().Size() / 4 {
			store(at(addressOf(v), int(i)*4), randomFloat32(r))
		}
	case reflect.Float64, reflect.Complex128:
		for i := range v.Type().Size() / 8 {
			store(at(addressOf(v), int(i)*8), randomFloat64(r))
		}
	case reflect.String:
		v.SetString(randomString(r))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" {
				fill(r, v.Field(i))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	default:
		fillReference(r, v)
	}
}

// fillReference implements fill() for types that can be nil.
func fillReference(r *rand.Rand, v reflect.Value) {
	if r.IntN(4) == 0 {
		v.SetZero()
		return
	}
	n := r.IntN(5)
	if r.IntN(20) == 0 {
		// In msgpack, the length 17 needs a longer form.
		n = 17
	}
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range n {
			key, elem := newKeyAndValue(v.Type())
			fill(r, key)
			fill(r, elem)
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	}
}

// randomBits returns a number of random magnitude, often close to a power of two.
func randomBits(r *rand.Rand) uint64 {
	x := uint64(1) << r.IntN(64)
	switch r.IntN(4) {
	case 0:
		return x
	case 1:
		return x - 1
	case 2:
		return -x
	}
	return r.Uint64() % x
}

func randomFloat64(r *rand.Rand) uint64 {
	special := []uint64{0, 1 << 63, math.Float64bits(math.Inf(1)), 0x7ff8000000000001, 0xfff0000000000123, math.Float64bits(1.5)}
	if i := r.IntN(2 * len(special)); i < len(special) {
		return special[i]
	}
	return r.Uint64()
}

func randomFloat32(r *rand.Rand) uint32 {
	special := []uint32{0, 1 << 31, math.Float32bits(float32(math.Inf(-1))), 0x7fc00001, 0xff800123, math.Float32bits(0.1)}
	if i := r.IntN(2 * len(special)); i < len(special) {
		return special[i]
	}
	return r.Uint32()
}

func randomString(r *rand.Rand) string {
	n := r.IntN(6)
	if r.IntN(10) == 0 {
		n = r.IntN(400)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return string(b)
}

// same reports whether a and b are equal bit for bit, except for fields named _.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		size := int(a.Type().Size())
		return slices.Equal(view(addressOf(a), size), view(addressOf(b), size))
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).Name != "_" && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.IsNil() != b.IsNil() {
			return false
		}
		fallthrough
	case reflect.Array:
		return a.Len() == b.Len() && allSame(a, b)
	case reflect.Map:
		return sameMap(a, b)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return same(a.Elem(), b.Elem())
	}
	return a.Equal(b)
}

func allSame(a, b reflect.Value) bool {
	for i := range a.Len() {
		if !same(a.Index(i), b.Index(i)) {
			return false
		}
	}
	return true
}

func sameMap(a, b reflect.Value) bool {
	if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
		return false
	}
	a, b = valueAt(a.Type(), addressOf(a)), valueAt(b.Type(), addressOf(b))
	for _, key := range a.MapKeys() {
		got := b.MapIndex(key)
		if !got.IsValid() || !same(addressable(a.MapIndex(key)), addressable(got)) {
			return false
		}
	}
	return true
}

// addressable returns an addressable copy of v.
func addressable(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// show prints v, which must be addressable, in the form of Value.String. It follows the
// documentation and uses only reflection.
func show(v reflect.Value) string {
	v = valueAt(v.Type(), addressOf(v))
	if e, ok := v.Interface().(interface {
		Index() uint32
		Generation() uint32
	}); ok && v.Kind() == reflect.Uint64 {
		return fmt.Sprintf("%dv%d", e.Index(), e.Generation())
	}
	switch v.Kind() {
	case reflect.Float32:
		return showFloat(v.Float(), 32)
	case reflect.Float64:
		return showFloat(v.Float(), 64)
	case reflect.Complex64, reflect.Complex128:
		c, size := v.Complex(), int(v.Type().Size())*4
		imaginary := showFloat(imag(c), size)
		if !strings.ContainsAny(imaginary[:1], "+-") {
			imaginary = "+" + imaginary
		}
		return "(" + showFloat(real(c), size) + imaginary + "i)"
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "_" {
				parts = append(parts, name+":"+show(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice, reflect.Array:
		return showList(v)
	case reflect.Map:
		return showMap(v)
	case reflect.Pointer:
		if v.IsNil() {
			return "nil"
		}
		return "&" + show(v.Elem())
	}
	return fmt.Sprint(v.Interface())
}

func showFloat(x float64, size int) string {
	if math.IsNaN(x) {
		return "NaN"
	}
	if abs := math.Abs(x); abs != 0 && abs < 1e-6 || abs >= 1e21 {
		return strconv.FormatFloat(x, 'e', -1, size)
	}
	return strconv.FormatFloat(x, 'f', -1, size)
}

func showList(v reflect.Value) string {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return "nil"
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		if b := v.Bytes(); len(b) > 16 {
			return fmt.Sprintf("0x%x…(+%d bytes)", b[:16], len(b)-16)
		}
		return fmt.Sprintf("0x%x", v.Bytes())
	}
	var parts []string
	for i := range v.Len() {
		parts = append(parts, show(v.Index(i)))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func showMap(v reflect.Value) string {
	if v.IsNil() {
		return "nil"
	}
	entries := map[string]string{}
	var keys []string
	encode := compile(v.Type().Key()).encode
	for _, k := range v.MapKeys() {
		key := string(encode(nil, addressOf(addressable(k))))
		entries[key] = show(addressable(k)) + ":" + show(addressable(v.MapIndex(k)))
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, k := range keys {
		keys[i] = entries[k]
	}
	return "map[" + strings.Join(keys, " ") + "]"
}

// rowsOf returns n random rows of type t, as a slice.
func rowsOf(r *rand.Rand, t reflect.Type, n int) reflect.Value {
	rows := reflect.MakeSlice(reflect.SliceOf(t), n, n)
	for i := range n {
		fill(r, rows.Index(i))
	}
	return rows
}

// encodeRows is like Append, for a slice of any type.
func (c *Codec) encodeRows(rows reflect.Value) []byte {
	return c.append(nil, unsafe.Pointer(rows.Pointer()), rows.Len())
}

// decodeRows is like Decode, for n rows of any type.
func (c *Codec) decodeRows(src []byte, n int) (reflect.Value, error) {
	rows := reflect.MakeSlice(reflect.SliceOf(c.gotype), n, n)
	if err := c.decode(src, rows.UnsafePointer(), n); err != nil {
		return rows, err
	}
	return rows, nil
}
