package layout

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newCodec returns the codec for rt.
func newCodec(t require.TestingT, rt reflect.Type) *Codec {
	c, err := NewCodec(rt)
	require.NoError(t, err)
	return c
}

// checkRows checks all guarantees of the package with n random rows of a type.
func checkRows(t require.TestingT, c *Codec, r *rand.Rand, n int) {
	rows := rowsOf(r, c.gotype, n)
	data := c.encodeRows(rows)
	if again := c.encodeRows(rows); !bytes.Equal(data, again) {
		t.Errorf("%v encodes to %x, then to %x", c.gotype, data, again)
	}
	if width := c.typ.Width(); width != varies && len(data) != n*width {
		t.Errorf("%d rows of %v encode to %d bytes, want %d each", n, c.gotype, len(data), width)
	}
	if err := c.typ.Check(data, n); err != nil {
		t.Errorf("Check(%x, %d) as %v: %v", data, n, c.typ, err)
	}
	decoded, err := c.decodeRows(data, n)
	require.NoError(t, err, "%v of %x", c.gotype, data)
	for i := range n {
		if !same(rows.Index(i), decoded.Index(i)) {
			t.Errorf("row %d of %v is %s, want %s", i, c.gotype, show(decoded.Index(i)), show(rows.Index(i)))
		}
	}
	checkCutting(t, c, rows, data)
	checkDamage(t, c, r, data, n)
}

// checkCutting splits data into rows by Next and reads them without the Go type.
func checkCutting(t require.TestingT, c *Codec, rows reflect.Value, data []byte) {
	typ, err := Parse(c.typ.Append(nil))
	require.NoError(t, err)
	for i := range rows.Len() {
		var row []byte
		row, data, err = typ.Next(data)
		require.NoError(t, err)
		if one := c.encodeRows(rows.Slice(i, i+1)); !bytes.Equal(one, row) {
			t.Errorf("Next returns row %x, want %x", row, one)
		}
		v, err := typ.Value(row)
		require.NoError(t, err)
		if got, want := v.String(), show(rows.Index(i)); got != want {
			t.Errorf("Value(%x) of %v = %s, want %s", row, c.gotype, got, want)
		}
	}
	if len(data) > 0 {
		t.Errorf("%d bytes are left after the last row of %v", len(data), c.gotype)
	}
}

// checkDamage changes a byte of data. Decode and Check must agree whether the result is valid.
// Valid data must encode to the same bytes.
func checkDamage(t require.TestingT, c *Codec, r *rand.Rand, data []byte, n int) {
	damaged := bytes.Clone(data)
	switch r.IntN(4) {
	case 0:
		damaged = append(damaged, byte(r.Uint32()))
	case 1:
		damaged = damaged[:len(damaged)-min(len(damaged), 1+r.IntN(3))]
	default:
		if len(damaged) == 0 {
			return
		}
		damaged[r.IntN(len(damaged))] ^= byte(1 << r.IntN(8))
	}
	checkAccepted(t, c, damaged, n)
}

// checkAccepted decodes arbitrary bytes as n rows. Decode and Check must agree whether the bytes
// are valid. Valid bytes must equal the output of Append.
func checkAccepted(t require.TestingT, c *Codec, data []byte, n int) {
	rows, err := c.decodeRows(data, n)
	checked := c.typ.Check(data, n)
	if strconv.IntSize == 32 && checked == nil && err != nil && strings.Contains(err.Error(), "does not fit") {
		return
	}
	if (err == nil) != (checked == nil) {
		t.Errorf("%v of %x: Decode = %v, Check = %v", c.gotype, data, err, checked)
	}
	if err != nil {
		return
	}
	if again := c.encodeRows(rows); !bytes.Equal(again, data) {
		t.Errorf("%v accepts %x but encodes to %x", c.gotype, data, again)
	}
}

func TestCodec_RoundTripOfSampleTypes(t *testing.T) {
	for _, rt := range sampleTypes() {
		t.Run(rt.String(), func(t *testing.T) {
			c, r := newCodec(t, rt), rand.New(rand.NewPCG(1, 2))
			for range 20 {
				checkRows(t, c, r, r.IntN(5))
			}
			// More rows than one block has.
			checkRows(t, c, r, blockRows+1)
		})
	}
}

// A codec for big-endian machines converts each number separately. It must produce the same bytes.
// Such a codec also works on this machine: it is compiled while littleEndian is false.
func TestCodec_BigEndianMovesSameBytes(t *testing.T) {
	defer func(was bool) { littleEndian = was }(littleEndian)
	for _, rt := range sampleTypes() {
		joined := newCodec(t, rt)
		littleEndian = false
		apart := newCodec(t, rt)
		littleEndian = true
		r := rand.New(rand.NewPCG(3, 4))
		rows := rowsOf(r, rt, 7)
		require.Equal(t, joined.encodeRows(rows), apart.encodeRows(rows), "%v", rt)
		checkRows(t, apart, r, 7)
	}
}

// genType draws Go types. If key is set, the type can be a map key.
func genType(depth int, key bool) *rapid.Generator[reflect.Type] {
	return rapid.Custom(func(t *rapid.T) reflect.Type {
		rt := genKind(t, depth, key)
		if !rt.Comparable() && key {
			t.Fatalf("%v cannot be a key", rt)
		}
		return rt
	})
}

func genKind(t *rapid.T, depth int, key bool) reflect.Type {
	scalars := []any{true, int8(0), int16(0), int32(0), int(0), uint8(0), uint16(0), uint32(0), uint64(0), id(0), "", hp(0)}
	if !key {
		scalars = append(scalars, float32(0), float64(0), complex64(0), complex128(0), []byte(nil))
	}
	if depth == 0 || rapid.Bool().Draw(t, "scalar") {
		return reflect.TypeOf(rapid.SampledFrom(scalars).Draw(t, "type"))
	}
	most := 4
	if key {
		most = 1
	}
	elem := func() reflect.Type { return genType(depth-1, key).Draw(t, "elem") }
	switch rapid.IntRange(0, most).Draw(t, "shape") {
	case 0:
		var fields []reflect.StructField
		for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
			fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: elem()})
		}
		return reflect.StructOf(fields)
	case 1:
		return reflect.ArrayOf(rapid.IntRange(0, 40).Draw(t, "len"), elem())
	case 2:
		return reflect.SliceOf(elem())
	case 3:
		return reflect.MapOf(genType(depth-1, true).Draw(t, "key"), elem())
	}
	return reflect.PointerTo(elem())
}

func TestCodec_RoundTripOfAnyType(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCodec(t, genType(3, false).Draw(t, "type"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		checkRows(t, c, r, r.IntN(4))
	})
}

func TestAppend_SortsMapKeys(t *testing.T) {
	c := newCodec(t, reflect.TypeFor[map[string]int]())
	r := rand.New(rand.NewPCG(5, 6))
	keys := []string{"b", "a", "", "ccc", "aa", "a much longer key than the others, in its own form", "z", "\x00", "\xff"}
	var want []byte
	for range 50 {
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		m := map[string]int{"gone": 1}
		for _, k := range keys {
			m[k] = len(k)
		}
		delete(m, "gone")
		got := Append(c, nil, []map[string]int{m})
		if want == nil {
			want = got
		}
		require.Equal(t, want, got)
	}
}

func TestDecode_ReplacesOldValues(t *testing.T) {
	for _, rt := range sampleTypes() {
		c, r := newCodec(t, rt), rand.New(rand.NewPCG(7, 8))
		data := c.encodeRows(rowsOf(r, rt, 5))
		rows := rowsOf(r, rt, 5)
		if err := c.decode(data, rows.UnsafePointer(), 5); err != nil {
			t.Fatal(err)
		}
		require.Equal(t, data, c.encodeRows(rows), "%v", rt)
	}
}

func TestDecode_SharesNoMemory(t *testing.T) {
	c := newCodec(t, reflect.TypeFor[bag]())
	data := c.encodeRows(rowsOf(rand.New(rand.NewPCG(9, 10)), c.gotype, 20))
	rows, err := c.decodeRows(data, 20)
	require.NoError(t, err)
	want := bytes.Clone(data)
	clear(data)
	require.Equal(t, want, c.encodeRows(rows))
}

func TestAppend_KeepsDstContent(t *testing.T) {
	for _, rt := range sampleTypes() {
		c := newCodec(t, rt)
		rows := rowsOf(rand.New(rand.NewPCG(11, 12)), rt, 3)
		got := c.append([]byte("kept"), rows.UnsafePointer(), 3)
		require.Equal(t, append([]byte("kept"), c.encodeRows(rows)...), got, "%v", rt)
	}
}

func TestCodec_Allocations(t *testing.T) {
	plain, moved := newCodec(t, reflect.TypeFor[position]()), newCodec(t, reflect.TypeFor[[2]padded]())
	require.True(t, plain.Plain())
	require.False(t, moved.Plain())
	positions, pairs := make([]position, 100), make([][2]padded, 100)
	dst := make([]byte, 0, 1<<16)
	allocs := testing.AllocsPerRun(10, func() {
		_ = Decode(plain, Append(plain, dst, positions), positions)
		_ = Decode(moved, Append(moved, dst, pairs), pairs)
	})
	require.Zero(t, allocs)

	variable := newCodec(t, reflect.TypeFor[bag]())
	data := variable.encodeRows(rowsOf(rand.New(rand.NewPCG(13, 14)), variable.gotype, 10))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_ = variable.typ.Check(data, 10)
		_ = moved.typ.Check(dst[:100*moved.width], 100)
	}))
}

func TestView_EqualsAppend(t *testing.T) {
	c := newCodec(t, reflect.TypeFor[position]())
	rows := []position{{1, 2}, {3, 4}}
	encoded, ok := View(c, rows)
	require.True(t, ok)
	require.Equal(t, Append(c, nil, rows), encoded)
	rows[1].Y = 5
	require.Equal(t, Append(c, nil, rows), encoded)
	encoded, ok = View[position](c, nil)
	require.True(t, ok)
	require.Empty(t, encoded)

	_, ok = View(newCodec(t, reflect.TypeFor[padded]()), []padded{{}})
	require.False(t, ok)
	_, ok = View(newCodec(t, reflect.TypeFor[string]()), []string{""})
	require.False(t, ok)
	require.Panics(t, func() { View(c, []flags{}) })
}

func TestCodec_WrongType(t *testing.T) {
	c := newCodec(t, reflect.TypeFor[position]())
	require.PanicsWithValue(t,
		"layout: codec for layout.position used with rows of layout.flags; make one with NewCodec",
		func() { Append(c, nil, []flags{{}}) })
	require.Panics(t, func() { _ = Decode(c, nil, []flags{}) })
}
