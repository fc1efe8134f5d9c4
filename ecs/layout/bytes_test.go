package layout

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// encode returns the bytes of one row.
func encode[T any](t require.TestingT, row T) []byte {
	return Append(newCodec(t, reflect.TypeFor[T]()), nil, []T{row})
}

// These bytes are in files and digests, so they must never change.
func TestAppend_RowEncodingIsFixed(t *testing.T) {
	type inner struct {
		b bool
		_ uint32
		F float32
	}
	type packed struct {
		A  uint8
		B  int32
		C  [2]inner
		E  id
		Z  complex64
		U  uint
		In struct{}
	}
	fixed := packed{1, -2, [2]inner{{b: true, F: 1}, {F: -2}}, 7<<32 | 9, complex(1, 2), 5, struct{}{}}
	nan := math.Float64frombits(0x7ff8000000000001)
	one := position{1, nan}
	text := strings.Repeat("x", 32)
	type wrap[T any] struct{ V T }
	tests := []struct {
		got  []byte
		want string
	}{
		{encode(t, fixed), "01 feffffff 01 0000803f 00 000000c0 09000000 07000000 0000803f 00000040 0500000000000000"},
		{encode(t, one), "000000000000f03f 010000000000f87f"},
		{append(encode(t, struct{}{}), 1), "01"},
		{encode(t, int(-1)), "ffffffffffffffff"},
		{encode(t, int16(-2)), "feff"},

		{encode(t, ""), "a0"},
		{encode(t, "orc"), "a36f7263"},
		{encode(t, "\xff"), "a1ff"},
		{encode(t, text), "d920" + fmt.Sprintf("%x", text)},
		{encode(t, []byte(nil)), "c0"},
		{encode(t, []byte{}), "c400"},
		{encode(t, blob{1, 2}), "c4020102"},
		{encode(t, make([]byte, 256)), "c50100" + strings.Repeat("00", 256)},
		{encode(t, []int(nil)), "c0"},
		{encode(t, []int{}), "90"},
		{encode(t, make([]nothing, 16)), "dc0010" + strings.Repeat("80", 16)},
		{encode(t, []int64{0, 127, 128, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, math.MaxInt64}),
			"9a 00 7f cc80 ccff cd0100 cdffff ce00010000 ceffffffff cf0000000100000000 cf7fffffffffffffff"},
		{encode(t, []int64{-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64}),
			"9a ff e0 d0df d080 d1ff7f d18000 d2ffff7fff d280000000 d3ffffffff7fffffff d38000000000000000"},
		{encode(t, []uint64{math.MaxUint64}), "91 cfffffffffffffffff"},
		{encode(t, []float32{1, float32(math.Inf(-1))}), "92 ca3f800000 caff800000"},
		{encode(t, []float64{1, math.Copysign(0, -1)}), "92 cb3ff0000000000000 cb8000000000000000"},
		{encode(t, []complex64{complex(1, -1)}), "91 92 ca3f800000 cabf800000"},
		{encode(t, []id{7<<32 | 9, 9}), "92 cf0000000700000009 09"},
		{encode(t, []bool{true, false}), "92 c3 c2"},
		{encode(t, []inner{{b: true}}), "91 82 a162 c3 a146 ca00000000"},
		{encode(t, [2]string{"a", ""}), "92 a161 a0"},
		{encode(t, wrap[string]{"v"}), "81 a156 a176"},
		{encode(t, (*int8)(nil)), "c0"},
		{encode(t, new(int8)), "91 00"},
		{encode(t, new(*int8)), "91 c0"},
		{encode(t, map[string]int(nil)), "c0"},
		{encode(t, map[string]int{}), "80"},
		{encode(t, map[string]int{"bb": 1, "a": 2, "c": 3}), "83 a161 02 a163 03 a26262 01"},
		{encode(t, map[int16]bool{-1: true, 1: false, 300: true}), "83 01 c2 cd012c c3 ff c3"},
	}
	for _, tt := range tests {
		require.Equal(t, unhex(t, tt.want), tt.got)
	}
}

func TestDecodeAndCheck_Errors(t *testing.T) {
	type item struct {
		Name string
		Ok   bool
	}
	tests := []struct {
		codec *Codec
		src   string
		rows  int
		want  string
	}{
		{newCodec(t, reflect.TypeFor[position]()), "00", 1, "position: 1 bytes, want 1 rows of 16"},
		{newCodec(t, reflect.TypeFor[flags]()), "000001 000201", 2, "row 1: flags.B: bool is 2"},
		{newCodec(t, reflect.TypeFor[[3]flags]()), "000001 000001 ff0001", 1, "row 0: [2].A: bool is 255"},
		{newCodec(t, reflect.TypeFor[nothing]()), "00", 1, "nothing: 1 bytes, want 1 rows of 0"},
		{newCodec(t, reflect.TypeFor[item]()), "", 1, "row 0: item: cut short"},
		{newCodec(t, reflect.TypeFor[item]()), "00", 0, "item: 1 bytes are left over"},
		{newCodec(t, reflect.TypeFor[item]()), "81a44e616d65a0", 1, "row 0: item: map of length 1, want 2"},
		{newCodec(t, reflect.TypeFor[[]item]()), "9182a44e616d65a0a24f6bc4", 1, "row 0: [0].Ok: want a bool, found bytes"},
		{newCodec(t, reflect.TypeFor[[]item]()), "9182a44e616d6500a24f6bc3", 1, "row 0: [0].Name: want a value of kind string, found an unsigned integer"},
		{newCodec(t, reflect.TypeFor[[]int8]()), "91cc80", 1, "row 0: [0]: 128 does not fit into 8 bits"},
		{newCodec(t, reflect.TypeFor[[]int8]()), "91d1ff7f", 1, "row 0: [0]: -129 does not fit into 8 bits"},
		{newCodec(t, reflect.TypeFor[[]int64]()), "91cf8000000000000000", 1, "row 0: [0]: integer is out of range"},
		{newCodec(t, reflect.TypeFor[[]uint8]()), "91", 1, "row 0: want a value of kind bytes, found an array"},
		{newCodec(t, reflect.TypeFor[[]uint16]()), "91ff", 1, "row 0: [0]: want an unsigned integer, found a negative integer"},
		{newCodec(t, reflect.TypeFor[[]uint16]()), "91cd", 1, "row 0: [0]: cut short"},
		{newCodec(t, reflect.TypeFor[[]uint16]()), "91cd00ff", 1, "row 0: [0]: integer is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[[]uint16]()), "91cc7f", 1, "row 0: [0]: integer is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[[]int16]()), "91d0e0", 1, "row 0: [0]: integer is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[[]int16]()), "91d07f", 1, "row 0: [0]: integer is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[[]int64]()), "91d3ffffffff80000000", 1, "row 0: [0]: integer is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[[]float32]()), "91cb3ff0000000000000", 1, "row 0: [0]: want a float of 32 bits, found a float of 64 bits"},
		{newCodec(t, reflect.TypeFor[string]()), "d90141", 1, "row 0: length is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[string]()), "da002041", 1, "row 0: length is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[string]()), "a341", 1, "row 0: length 3, but 1 bytes are left"},
		{newCodec(t, reflect.TypeFor[[]string]()), "dc000100", 1, "row 0: length is not in its shortest form"},
		{newCodec(t, reflect.TypeFor[[2]string]()), "91a0", 1, "row 0: array of length 1, want 2"},
		{newCodec(t, reflect.TypeFor[*string]()), "92a0a0", 1, "row 0: array of length 2, want 1"},
		{newCodec(t, reflect.TypeFor[map[string]int]()), "82a16101a16102", 1, "row 0: [key 1]: map has a key twice"},
		{newCodec(t, reflect.TypeFor[map[string]int]()), "82a16201a16102", 1, "row 0: [key 1]: map keys are out of order"},
		{newCodec(t, reflect.TypeFor[map[string]int]()), "82a16101a162c0", 1, "row 0: [value 1]: want an integer, found nil"},
	}
	for _, tt := range tests {
		src := unhex(t, tt.src)
		_, err := tt.codec.decodeRows(src, tt.rows)
		require.ErrorIs(t, err, ErrInvalid)
		var dataError *DataError
		require.ErrorAs(t, err, &dataError)
		require.EqualError(t, dataError.of(tt.codec.typ), "layout: invalid data: "+tt.want)
		require.EqualError(t, tt.codec.typ.Check(src, tt.rows), "layout: invalid data: "+tt.want)
	}
}

func TestDecode_FieldNameMissing(t *testing.T) {
	c := newCodec(t, reflect.TypeFor[struct{ Name string }]())
	src := unhex(t, "81 a44e414d45 a0")
	require.EqualError(t, Decode(c, src, make([]struct{ Name string }, 1)), "layout: invalid data: row 0: Name: field name is missing")
	require.EqualError(t, c.typ.Check(src, 1), `layout: invalid data: row 0: Name: field is named "NAME"`)
}

func TestDecode_WrongRowCount(t *testing.T) {
	for _, typ := range []*Type{of[position](t), of[nothing](t), of[string](t)} {
		require.ErrorIs(t, typ.Check(nil, -1), ErrInvalid)
		require.NoError(t, typ.Check(nil, 0))
	}
	require.NoError(t, of[nothing](t).Check(nil, math.MaxInt))
	require.Error(t, of[position](t).Check(make([]byte, 16), math.MaxInt/16+2))
	require.Error(t, of[string](t).Check(nil, math.MaxInt))
	_, _, err := of[position](t).Next(make([]byte, 15))
	require.EqualError(t, err, "layout: invalid data: position: 15 bytes, want 16")
	_, err = of[position](t).Value(make([]byte, 17))
	require.EqualError(t, err, "layout: invalid data: position: 1 bytes are left over")
}

// Lengths that exceed the input must not lead to large allocations.
func TestDecode_HostileLengths(t *testing.T) {
	type deep = [][][][][][][][]string
	many := bytes.Repeat([]byte{0xdc, 0x27, 0x10}, 8)
	many = append(many, make([]byte, 10_000)...)
	tests := []struct {
		name string
		rt   reflect.Type
		src  []byte
	}{
		{"string", reflect.TypeFor[string](), unhex(t, "db ffffffff")},
		{"bytes", reflect.TypeFor[[]byte](), unhex(t, "c6 ffffffff")},
		{"slice", reflect.TypeFor[[]int](), unhex(t, "dd ffffffff")},
		{"map", reflect.TypeFor[map[int]int](), unhex(t, "df ffffffff")},
		{"large elements", reflect.TypeFor[[][1 << 20]int](), append(unhex(t, "dd 000fffff"), make([]byte, 1<<20)...)},
		{"pointer to much", reflect.TypeFor[*[1 << 20]int](), unhex(t, "91 00 00")},
		{"every level claims everything", reflect.TypeFor[deep](), many},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCodec(t, tt.rt)
			rows := reflect.MakeSlice(reflect.SliceOf(tt.rt), 1, 1)
			most := uint64(100*len(tt.src) + 16<<10)
			require.Less(t, allocated(func() {
				require.NotNil(t, c.decode(tt.src, rows.UnsafePointer(), 1))
			}), most)
			require.Less(t, allocated(func() {
				_, err := c.typ.Value(tt.src)
				require.Error(t, err)
			}), most)
		})
	}
}

func FuzzDecode(f *testing.F) {
	c := newCodec(f, reflect.TypeFor[bag]())
	zero := encode(f, bag{})
	f.Add(zero, 1)
	f.Add(append(zero, zero...), 2)
	name := "deep"
	next := &name
	f.Add(encode(f, bag{
		name: "x", Image: blob{}, Tints: []colour{1}, Items: make([]padded, 2), Deep: &next,
		Stock: map[string]int{"a": -1, "b": 300}, Names: map[id]string{1: "", 1 << 33: "y"},
		Grid: map[[2]int8][]int{{1, -1}: nil, {2}: {5}}, Void: make([]nothing, 20), Next: &padded{},
		Spots: [3]*position{1: {1, 2}},
	}), 1)
	f.Fuzz(func(t *testing.T, src []byte, n int) {
		n = min(max(n, 0), 4)
		rows := make([]bag, n)
		bound := uint64(100*len(src) + 64<<10)
		if got := allocated(func() { _ = Decode(c, src, rows) }); got > bound {
			t.Errorf("Decode of %d bytes allocates %d, want at most %d", len(src), got, bound)
		}
		checkAccepted(t, c, src, n)
	})
}

// FuzzTypeDescription parses fuzzed descriptions and reads rows of these types without Go types.
func FuzzTypeDescription(f *testing.F) {
	for _, rt := range sampleTypes() {
		c := newCodec(f, rt)
		row := c.encodeRows(reflect.MakeSlice(reflect.SliceOf(rt), 1, 1))
		f.Add(c.typ.Append(nil), row)
	}
	f.Fuzz(func(t *testing.T, description, src []byte) {
		typ, err := Parse(description)
		if err != nil {
			return
		}
		var v Value
		most := uint64(200*len(src)+maxValuesPerByte*100*len(src)) + maxValues*100 + 64<<10
		if got := allocated(func() { v, err = typ.Value(src) }); got > most {
			t.Errorf("Value of %d bytes allocates %d, want at most %d", len(src), got, most)
		}
		if checked := typ.Check(src, 1); (checked == nil) != (err == nil) {
			t.Errorf("%v of %x: Value = %v, Check = %v", typ, src, err, checked)
		}
		row, rest, cut := typ.Next(src)
		if (cut == nil && len(rest) == 0) != (err == nil) {
			t.Errorf("%v of %x: Value = %v, Next = %v with %x left", typ, src, err, cut, rest)
		}
		if cut == nil && !bytes.Equal(append(bytes.Clone(row), rest...), src) {
			t.Errorf("Next(%x) = %x, %x", src, row, rest)
		}
		if err == nil {
			checkText(t, v)
		}
	})
}
