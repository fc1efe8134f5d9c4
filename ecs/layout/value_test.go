package layout

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkText checks that v prints as a non-empty text and as valid JSON.
func checkText(t require.TestingT, v Value) {
	if v.String() == "" {
		t.Errorf("Value of %v prints as an empty string", v.Type())
	}
	text, err := json.Marshal(v)
	if err != nil || !json.Valid(text) {
		t.Errorf("%v as JSON: %q, %v", v, text, err)
	}
}

// value encodes row and returns the bytes as a Value.
func value[T any](t require.TestingT, row T) Value {
	v, err := of[T](t).Value(encode(t, row))
	require.NoError(t, err)
	return v
}

func TestValueString_EachKind(t *testing.T) {
	type mixed struct {
		X    int
		Y    float64
		Name string
		Data []byte
		E    id
	}
	long := make([]byte, 110)
	long[1] = 0xab
	seven := int8(7)
	tests := []struct {
		value      Value
		text, json string
	}{
		{Value{}, `nil`, `null`},
		{value(t, true), `true`, `true`},
		{value(t, int8(-5)), `-5`, `-5`},
		{value(t, uint8(200)), `200`, `200`},
		{value(t, int64(math.MinInt64)), `-9223372036854775808`, `-9223372036854775808`},
		{value(t, uint64(math.MaxUint64)), `18446744073709551615`, `18446744073709551615`},
		{value(t, float32(0.1)), `0.1`, `0.1`},
		{value(t, 0.1), `0.1`, `0.1`},
		{value(t, 1e6), `1000000`, `1000000`},
		{value(t, 1e21), `1e+21`, `1e+21`},
		{value(t, 1e-7), `1e-07`, `1e-07`},
		{value(t, math.Copysign(0, -1)), `-0`, `-0`},
		{value(t, math.NaN()), `NaN`, `"NaN"`},
		{value(t, math.Inf(1)), `+Inf`, `"+Inf"`},
		{value(t, float32(math.Inf(-1))), `-Inf`, `"-Inf"`},
		{value(t, complex(1, -2.5)), `(1-2.5i)`, `[1,-2.5]`},
		{value(t, complex64(complex(0, math.Inf(1)))), `(0+Infi)`, `[0,"+Inf"]`},
		{value(t, complex(math.NaN(), math.NaN())), `(NaN+NaNi)`, `["NaN","NaN"]`},
		{value(t, id(3<<32|12)), `12v3`, `"12v3"`},
		{value(t, "a\"<\n\xff"), `"a\"<\n\xff"`, `"a\"<\n\ufffd"`},
		{value(t, []byte(nil)), `nil`, `null`},
		{value(t, []byte{}), `0x`, `""`},
		{value(t, []byte{1, 0xfe}), `0x01fe`, `"Af4="`},
		{value(t, long[:20]), `0x00ab0000000000000000000000000000…(+4 bytes)`, `"AKsAAAAAAAAAAAAAAAAAAAAAAAA="`},
		{value(t, struct{}{}), `{}`, `{}`},
		{value(t, [2]position{{1, 2.5}}), `[{X:1 Y:2.5} {X:0 Y:0}]`, `[{"X":1,"Y":2.5},{"X":0,"Y":0}]`},
		{value(t, [2]nothing{}), `[{} {}]`, `[{},{}]`},
		{
			value(t, mixed{-1, 2.5, "orc", []byte{0xff}, 1 << 32}),
			`{X:-1 Y:2.5 Name:"orc" Data:0xff E:0v1}`,
			`{"X":-1,"Y":2.5,"Name":"orc","Data":"/w==","E":"0v1"}`,
		},
		{value(t, []int(nil)), `nil`, `null`},
		{value(t, []int{}), `[]`, `[]`},
		{value(t, []int{1, 2}), `[1 2]`, `[1,2]`},
		{value(t, (*int8)(nil)), `nil`, `null`},
		{value(t, &seven), `&7`, `7`},
		{value(t, new(*int8)), `&nil`, `null`},
		{value(t, map[string]int(nil)), `nil`, `null`},
		{value(t, map[string]int{}), `map[]`, `{}`},
		{value(t, map[string]int{"b": 2, "a": 1}), `map["a":1 "b":2]`, `{"a":1,"b":2}`},
		{value(t, map[id]bool{1: true}), `map[1v0:true]`, `{"1v0":true}`},
		{value(t, map[int]string{-1: "x", 1: "y"}), `map[1:"y" -1:"x"]`, `{"1":"y","-1":"x"}`},
		{value(t, map[[1]int]bool{{1}: true, {2}: false}), `map[[1]:true [2]:false]`, `[[[1],true],[[2],false]]`},
	}
	for _, tt := range tests {
		require.Equal(t, tt.text, tt.value.String())
		text, err := tt.value.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, tt.json, string(text))
		checkText(t, tt.value)
	}
}

func TestValueString_RandomValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, rt := range sampleTypes() {
		c := newCodec(t, rt)
		v, err := c.typ.Value(c.encodeRows(rowsOf(r, rt, 1)))
		require.NoError(t, err)
		checkText(t, v)
		require.Same(t, c.typ, v.Type())
	}
}

func TestValue_Accessors(t *testing.T) {
	v := value(t, struct {
		I int16
		U uint8
		B bool
		F float32
		Z complex64
		E id
		S string
		A [2]int
		M map[string]int
		P *hp
		N []int
	}{I: -3, U: 200, B: true, F: 0.5, Z: 1 + 2i, E: 5<<32 | 6, S: "s", A: [2]int{7, 8}, M: map[string]int{"k": 9}, P: new(hp)})
	field := func(name string) Value {
		f, ok := v.Field(name)
		require.True(t, ok, name)
		return f
	}
	require.Equal(t, 11, v.Len())
	require.Equal(t, Struct, v.Kind())
	require.Equal(t, int64(-3), field("I").Int())
	require.Equal(t, uint64(200), field("U").Uint())
	require.True(t, field("B").Bool())
	require.Equal(t, 0.5, field("F").Float())
	require.Equal(t, 1+2i, field("Z").Complex())
	require.Equal(t, uint64(5<<32|6), field("E").Uint())
	require.Equal(t, "s", field("S").Text())
	require.Equal(t, int64(8), field("A").Index(1).Int())
	require.Equal(t, 1, field("M").Len())
	require.Equal(t, "k", field("M").Key(0).Text())
	require.Equal(t, int64(9), field("M").Index(0).Int())
	require.Equal(t, int64(0), field("P").Index(0).Int())
	require.True(t, field("N").IsNil())
	require.False(t, field("P").IsNil())

	// A method that does not apply to the kind of the value returns zero.
	require.Zero(t, field("U").Int())
	require.Zero(t, field("I").Uint())
	require.Zero(t, field("I").Float())
	require.Zero(t, field("F").Complex())
	require.False(t, field("I").Bool())
	_, ok := v.Field("None")
	require.False(t, ok)
	_, ok = field("I").Field("X")
	require.False(t, ok)
	require.Equal(t, Value{}, v.Key(0))
	require.Zero(t, Value{}.Kind())
	require.Nil(t, Value{}.Type())
}

// A hand-written description reads the same values as a description of a Go type.
func TestValue_HandWrittenType(t *testing.T) {
	scalar := func(k Kind) *Type { return &Type{Kind: k} }
	point := &Type{Kind: Struct, Name: "point", Fields: []Field{{"X", scalar(Float32)}, {"Y", scalar(Float32)}}}
	byHand := &Type{Kind: Struct, Fields: []Field{
		{"Name", scalar(String)},
		{"On", scalar(Bool)},
		{"At", point},
		{"Path", &Type{Kind: Slice, Elem: point}},
		{"Raw", scalar(Bytes)},
		{"Of", &Type{Kind: Map, Key: scalar(Entity), Elem: scalar(Int64)}},
		{"Two", &Type{Kind: Array, Len: 2, Elem: &Type{Kind: Pointer, Elem: scalar(Uint16)}}},
	}}
	require.NoError(t, byHand.Validate())

	type point2 struct{ X, Y float32 }
	row := struct {
		Name label
		On   bool
		At   point2
		Path []point2
		Raw  blob
		Of   map[id]int
		Two  [2]*uint16
	}{"n", true, point2{1, 2}, []point2{{3, 4}}, blob{5}, map[id]int{6: 7}, [2]*uint16{new(uint16), nil}}
	c := newCodec(t, reflect.TypeOf(row))
	require.True(t, byHand.Equal(c.typ))
	data := encode(t, row)
	v, err := byHand.Value(data)
	require.NoError(t, err)
	require.Equal(t, value(t, row).String(), v.String())
	require.Equal(t, `{Name:"n" On:true At:{X:1 Y:2} Path:[{X:3 Y:4}] Raw:0x05 Of:map[6v0:7] Two:[&0 nil]}`, v.String())

	fixed, err := point.Value(unhex(t, "0000803f 00000040"))
	require.NoError(t, err)
	require.Equal(t, "{X:1 Y:2}", fixed.String())
}
