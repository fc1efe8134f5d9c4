package layout

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// unhex decodes hexadecimal digits and skips spaces.
func unhex(t testing.TB, digits string) []byte {
	data, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(digits), []byte(" "), nil)))
	require.NoError(t, err)
	return data
}

// These bytes are in files, so Parse must always be able to read them.
func TestType_DescriptionBytesAreFixed(t *testing.T) {
	tests := []struct {
		typ  *Type
		want string
	}{
		{of[bool](t), "92 01 a0"},
		{of[hp](t), "92 04 a26870"},
		{of[position](t), "96 11 a8706f736974696f6e a158 92 0b a0 a159 92 0b a0"},
		{of[nothing](t), "92 11 a76e6f7468696e67"},
		{of[[300]id](t), "94 12 a0 92 0e a26964 cd012c"},
		{of[[]string](t), "93 13 a0 92 0f a0"},
		{of[map[int8]blob](t), "94 14 a0 92 10 a4626c6f62 92 02 a0"},
		{of[*uint8](t), "93 15 a0 92 06 a0"},
	}
	for _, tt := range tests {
		got := tt.typ.Append(nil)
		require.Equal(t, unhex(t, tt.want), got, "%v", tt.typ)
		again, err := Parse(got)
		require.NoError(t, err)
		require.Equal(t, tt.typ, again)
	}
}

func TestParse_InvalidDescriptions(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"nothing", "", "cut short"},
		{"nil", "c0", "want a value of kind array, found nil"},
		{"too few", "91 01", "cut short"},
		{"too many", "93 01 a0 a0", "bool described by 3 elements, want 2"},
		{"rest", "92 01 a0 00", "1 bytes are left over"},
		{"kind 0", "92 00 a0", "kind(0) does not exist"},
		{"kind in a longer form", "92 cc01 a0", "integer is not in its shortest form"},
		{"kind too large", "92 cd0101 a0", "257 does not fit into 8 bits"},
		{"name in a longer form", "92 01 d90141", "length is not in its shortest form"},
		{"terminal escape as name", "92 01 a11b", "bad type name"},
		{"name that is no UTF-8", "92 01 a1ff", "bad type name"},
		{"struct with a lone field name", "93 11 a0 a158", "struct described by 3 elements"},
		{"field named _", "94 11 a0 a15f 92 01 a0", `bad field name "_"`},
		{"field named twice", "96 11 a0 a158 92 01 a0 a158 92 01 a0", `bad field name "X"`},
		{"empty field name", "94 11 a0 a0 92 01 a0", `bad field name ""`},
		{"field of nothing", "94 11 a0 a158 c0", "X: want a value of kind array, found nil"},
		{"slice of uint8", "93 13 a0 92 06 a0", "a slice of uint8 is of kind bytes"},
		{"float as map key", "94 14 a0 92 01 a0 92 0b a0", "[key]: float64 cannot be part of a map key"},
		{"length of claimed gigabytes", "dd ffffffff", "length 4294967295, but 0 bytes are left"},
		{"name of claimed gigabytes", "92 01 db ffffffff", "length 4294967295, but 0 bytes are left"},
		{"array too wide", "94 12 a0 92 0b a0 ce3fffffff", "rows are wider than 1073741824 bytes"},
		{"array of nothing", "94 12 a0 92 11 a0 ce3fffffff", "has too many values without size"},
		{"array of arrays of nothing", "94 12 a0 94 12 a0 92 11 a0 cdffff cdffff", "has too many values without size"},
		{"array longer than any", "94 12 a0 92 0b a0 ce7fffffff", "length 2147483647 is out of bounds"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			typ, err := Parse(unhex(t, tt.src))
			require.EqualError(t, err, "layout: invalid data: "+tt.want)
			require.ErrorIs(t, err, ErrInvalid)
			require.Nil(t, typ)
		})
	}
	_, err := Parse(unhex(t, "94 11 a0 a158 92 16 a0"))
	require.EqualError(t, err, "layout: written by a newer version: X: kind(22) is unknown to this version")
	require.ErrorIs(t, err, ErrNewer)
}

func TestParse_DeepNesting(t *testing.T) {
	nest := func(n int) []byte {
		src := bytes.Repeat([]byte{0x93, byte(Pointer), 0xa0}, n-1)
		return append(src, 0x92, byte(Bool), 0xa0)
	}
	typ, err := Parse(nest(maxDepth))
	require.NoError(t, err)
	require.Equal(t, nest(maxDepth), typ.Append(nil))
	_, err = Parse(nest(maxDepth + 1))
	require.ErrorContains(t, err, "nested more than 64 deep")
	// The reader must check the depth before it reads the nested descriptions.
	src := nest(maxDescription / 4)
	require.Less(t, allocated(func() { _, err = Parse(src) }), uint64(64<<10))
	require.ErrorContains(t, err, "nested more than 64 deep")
	_, err = Parse(make([]byte, maxDescription+1))
	require.ErrorContains(t, err, "description is larger than 1048576 bytes")
}

func TestValidate_InvalidTypes(t *testing.T) {
	b := &Type{Kind: Bool}
	self := &Type{Kind: Slice}
	self.Elem = self
	double := b
	for range 40 {
		double = &Type{Kind: Struct, Fields: []Field{{"A", double}, {"B", double}}}
	}
	tests := []struct {
		name string
		typ  *Type
		want string
	}{
		{"none", nil, "type is missing"},
		{"zero", &Type{}, "kind(0) does not exist"},
		{"slice of none", &Type{Kind: Slice}, "[]: type is missing"},
		{"map without key", &Type{Kind: Map, Name: "M", Elem: b}, "M[key]: type is missing"},
		{"pointer to none", &Type{Kind: Pointer, Name: "P"}, "P: type is missing"},
		{"field of no type", &Type{Kind: Struct, Name: "S", Fields: []Field{{Name: "X"}}}, "S.X: type is missing"},
		{"itself", self, "nested more than 64 deep"},
		{"doubled", double, "more than 65536 fields"},
		{"bool with fields", &Type{Kind: Bool, Fields: []Field{{"A", b}}}, "bool with fields"},
		{"bool with elements", &Type{Kind: Bool, Elem: b}, "bool with elements"},
		{"struct with elements", &Type{Kind: Struct, Elem: b}, "struct with elements"},
		{"slice with keys", &Type{Kind: Slice, Elem: b, Key: b}, "slice with keys"},
		{"slice with a length", &Type{Kind: Slice, Elem: b, Len: 1}, "slice with a length"},
		{"array of negative length", &Type{Kind: Array, Elem: b, Len: -1}, "length -1 is out of bounds"},
		{"field name of two words", &Type{Kind: Struct, Fields: []Field{{"a b", b}}}, `bad field name "a b"`},
		{"field name that is a number", &Type{Kind: Struct, Fields: []Field{{"1", b}}}, `bad field name "1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.ErrorContains(t, tt.typ.Validate(), tt.want)
		})
	}
}

func TestDiff_NamesFirstDifference(t *testing.T) {
	type X struct{ X float64 }
	type XY struct{ X, Y float64 }
	type YX struct{ Y, X float64 }
	type XInt struct{ X int64 }
	type Inner[T any] struct{ In []T }
	type Bag[K comparable, V any] struct{ M map[K]V }
	tests := []struct {
		stored, current *Type
		want            string
	}{
		{of[X](t), of[X](t), ""},
		{of[XY](t), of[position](t), ""},
		{of[XY](t), of[X](t), "X.Y: stored float64, program has none"},
		{of[X](t), of[XY](t), "XY.Y: stored none, program has float64"},
		{of[X](t), of[XInt](t), "XInt.X: stored float64, program has int64"},
		{of[XY](t), of[YX](t), "YX: stored fields in order X, Y, program has Y, X"},
		{of[hp](t), of[int64](t), "hp: stored int32, program has int64"},
		{of[int32](t), of[int64](t), "stored int32, program has int64"},
		{of[id](t), of[uint64](t), "id: stored entity, program has uint64"},
		{of[[2]hp](t), of[[3]hp](t), "stored [2]int32, program has [3]int32"},
		{of[[]X](t), of[[]XInt](t), "[].X: stored float64, program has int64"},
		{of[struct{ A struct{ B []X } }](t), of[struct{ A struct{ B []XInt } }](t), "A.B[].X: stored float64, program has int64"},
		{of[Inner[*X]](t), of[Inner[*XInt]](t), "Inner[*XInt].In[].X: stored float64, program has int64"},
		{of[Bag[int8, X]](t), of[Bag[int8, XInt]](t), "Bag[int8,XInt].M[value].X: stored float64, program has int64"},
		{of[Bag[int8, X]](t), of[Bag[int16, X]](t), "Bag[int16,X].M[key]: stored int8, program has int16"},
		{of[bag](t), of[int64](t), "bag: stored struct of 14 fields, program has int64"},
	}
	for _, tt := range tests {
		got := Diff(tt.stored, tt.current)
		require.Equal(t, tt.want, got)
		require.Equal(t, got == "", tt.stored.Equal(tt.current))
		require.Equal(t, Diff(tt.current, tt.stored) == "", tt.current.Equal(tt.stored))
	}
}

func TestEqual_AgreesWithDiff(t *testing.T) {
	types := sampleTypes()
	for _, a := range types {
		for _, b := range types {
			s, c := newCodec(t, a).typ, newCodec(t, b).typ
			require.Equal(t, s.Equal(c), Diff(s, c) == "", "%v and %v", s, c)
		}
	}
	require.False(t, of[int](t).Equal(nil))
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzParse(f *testing.F) {
	for _, rt := range sampleTypes() {
		f.Add(newCodec(f, rt).typ.Append(nil))
	}
	f.Add(unhex(f, "dd ffffffff"))
	f.Add(bytes.Repeat([]byte{0x93, byte(Slice), 0xa0}, 100))
	f.Fuzz(func(t *testing.T, src []byte) {
		var typ *Type
		var err error
		if got, most := allocated(func() { typ, err = Parse(src) }), uint64(200*len(src)+64<<10); got > most {
			t.Errorf("Parse of %d bytes allocates %d, want at most %d", len(src), got, most)
		}
		if err != nil {
			return
		}
		if again := typ.Append(nil); !bytes.Equal(again, src) {
			t.Errorf("Parse accepts %x, which encodes to %x", src, again)
		}
		if err := typ.Validate(); err != nil {
			t.Errorf("Parse(%x) is invalid: %v", src, err)
		}
		if d := Diff(typ, typ); d != "" || !typ.Equal(typ) || len(typ.String()) == 0 {
			t.Errorf("%v differs from itself: %s", typ, d)
		}
	})
}

func TestParse_DamagedDescriptions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rt := range sampleTypes() {
		src := newCodec(t, rt).typ.Append(nil)
		for range 200 {
			damaged := bytes.Clone(src)
			damaged[r.IntN(len(damaged))] ^= byte(1 << r.IntN(8))
			if typ, err := Parse(damaged); err == nil {
				require.Equal(t, damaged, typ.Append(nil))
			}
		}
	}
}
