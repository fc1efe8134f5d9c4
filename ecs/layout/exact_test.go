package layout

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendExact_RoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, typ := range sampleTypes() {
		c, err := NewCodec(typ)
		require.NoError(t, err)
		described := c.Type().AppendJSON(nil)
		again, err := ParseJSON(described)
		require.NoError(t, err, "%s", described)
		require.Equal(t, c.Type().Append(nil), again.Append(nil))
		for range 20 {
			row := c.encodeRows(rowsOf(r, typ, 1))
			v, err := c.Type().Value(row)
			require.NoError(t, err)
			exact := v.AppendExact([]byte("before"))[len("before"):]
			require.True(t, json.Valid(exact), "%v: %s", typ, exact)
			got, err := again.AppendRow([]byte("before"), exact)
			require.NoError(t, err, "%v: %s", typ, exact)
			require.Equal(t, string(row), string(got[len("before"):]), "%v: %s", typ, exact)
			w, err := again.Value(row)
			require.NoError(t, err)
			require.True(t, v.Equal(w))
			if other := c.encodeRows(rowsOf(r, typ, 1)); !bytes.Equal(row, other) {
				o, err := again.Value(other)
				require.NoError(t, err)
				require.False(t, v.Equal(o))
				require.NotEqual(t, string(exact), string(o.AppendExact(nil)))
			}
		}
	}
}

func TestAppendRow_HandWrittenJSON(t *testing.T) {
	type hero struct {
		HP    int8
		Speed float32
		Stock map[int16]string
	}
	c, err := NewCodec(reflect.TypeFor[hero]())
	require.NoError(t, err)
	want := Append(c, nil, []hero{{-3, 1.5, map[int16]string{2: "b", 1: "a"}}})
	for _, src := range []string{
		`{"HP":-3,"Speed":1.5,"Stock":{"1":"a","2":"b"}}`,
		` { "Stock" : {"2":"b","1":{"base64":"YQ=="}}, "Speed":15e-1, "HP":-3 } `,
		`{"Stock":[[2,"b"],[1,"a"]],"HP":-3,"Speed":1.5}`,
	} {
		got, err := c.Type().AppendRow(nil, []byte(src))
		require.NoError(t, err, src)
		require.Equal(t, want, got, src)
	}
}

func TestAppendRow_InvalidJSON(t *testing.T) {
	type inner struct {
		E id
		C complex64
	}
	type row struct {
		B  bool
		I  int8
		U  uint16
		F  float32
		S  string
		R  []byte
		In inner
		A  [2]int8
		L  []bool
		M  map[int8]bool
		P  *int8
		K  map[[1]int8]int8
	}
	c, err := NewCodec(reflect.TypeFor[row]())
	require.NoError(t, err)
	good := `{"B":true,"I":1,"U":2,"F":3,"S":"s","R":"AQ==","In":{"E":"1v2","C":[1,2]},"A":[1,2],"L":[true],"M":{"1":true},"P":[1],"K":[[[1],1]]}`
	_, err = c.Type().AppendRow(nil, []byte(good))
	require.NoError(t, err)
	for _, test := range []struct{ old, replacement, want string }{
		{`"B":true`, `"B":1`, "row.B: want bool, found 1"},
		{`"B":true`, `"B":null`, "row.B: want bool, found null"},
		{`"I":1`, `"I":128`, "row.I: 128 does not fit into int8"},
		{`"I":1`, `"I":1.0`, "row.I: want int8, found 1.0"},
		{`"I":1`, `"I":"1"`, `row.I: want int8, found "1"`},
		{`"U":2`, `"U":-2`, "row.U: -2 does not fit into uint16"},
		{`"F":3`, `"F":1e39`, "row.F: 1e39 does not fit into float32"},
		{`"F":3`, `"F":"3"`, `row.F: want float32, found "3"`},
		{`"F":3`, `"F":"NaN:7f800000"`, `row.F: want float32, found "NaN:7f800000"`},
		{`"F":3`, `"F":"NaN:7fc1"`, `row.F: want float32`},
		{`"F":3`, `"F":"inf"`, `row.F: want float32`},
		{`"S":"s"`, `"S":{"hex":"00"}`, `row.S: want "base64", found "hex"`},
		{`"S":"s"`, `"S":{"base64":"AQ==","x":1}`, "row.S: want the end"},
		{`"R":"AQ=="`, `"R":"AQ="`, "row.R: want bytes in base64"},
		{`"R":"AQ=="`, `"R":"AR=="`, "row.R: want bytes in base64"},
		{`"E":"1v2"`, `"E":"1"`, `row.In.E: want entity, found "1"`},
		{`"E":"1v2"`, `"E":"4294967296v2"`, `row.In.E: want entity`},
		{`"C":[1,2]`, `"C":[1]`, "row.In.C: want float32, found the end"},
		{`"C":[1,2]`, `"C":[1,2,3]`, "row.In.C: want the end, found 3"},
		{`"C":[1,2]`, `"C":1`, "row.In.C: want [real, imaginary], found 1"},
		{`"A":[1,2]`, `"A":[1]`, "row.A: want 2 elements"},
		{`"A":[1,2]`, `"A":[1,2,3]`, "row.A: want 2 elements"},
		{`"A":[1,2]`, `"A":[1,true]`, "row.A[1]: want int8, found true"},
		{`"A":[1,2]`, `"A":null`, "row.A: want an array, found null"},
		{`"L":[true]`, `"L":[true,0]`, "row.L[1]: want bool, found 0"},
		{`"M":{"1":true}`, `"M":{"1":true,"01":true}`, "row.M: map has a key twice"},
		{`"M":{"1":true}`, `"M":{"x":true}`, "row.M[key 0]: want int8"},
		{`"M":{"1":true}`, `"M":[[1,true],[1,false]]`, "row.M: map has a key twice"},
		{`"M":{"1":true}`, `"M":[1]`, "row.M[key 0]: want [key, value], found 1"},
		{`"M":{"1":true}`, `"M":[[1,true,2]]`, "row.M[value 0]: want the end, found 2"},
		{`"P":[1]`, `"P":[]`, "row.P: want 1 elements"},
		{`"P":[1]`, `"P":1`, "row.P: want an array, found 1"},
		{`"K":[[[1],1]]`, `"K":{"1":1}`, "row.K[key 0]: want an array of [key, value], found an object"},
		{`"B":true,`, ``, "row.B: member is missing"},
		{`"B":true,`, `"B":true,"B":true,`, "row.B: member occurs twice"},
		{`"B":true,`, `"B":true,"Bee":true,`, `row: no field "Bee"`},
		{good, good + good, "row: more than one JSON value"},
		{good, good[:30], "JSON: unexpected EOF"},
		{good, ``, "JSON: unexpected EOF"},
		{good, `[]`, "row: want an object, found an array"},
		{`"S":"s"`, "\"S\":\"\xff\"", "JSON is not UTF-8"},
	} {
		src := strings.Replace(good, test.old, test.replacement, 1)
		got, err := c.Type().AppendRow([]byte("x"), []byte(src))
		require.ErrorIs(t, err, ErrInvalid, src)
		require.ErrorContains(t, err, test.want, src)
		require.Equal(t, "x", string(got))
	}
}

func TestParseJSON_InvalidTypes(t *testing.T) {
	for src, want := range map[string]string{
		``:                         "JSON",
		`null`:                     "type is missing",
		`{"kind":"int7"}`:          `kind "int7" is unknown`,
		`{"kind":"slice"}`:         "type is missing",
		`{"kind":"bool","size":3}`: "unknown field",
		`{"kind":"bool"}{}`:        "more than one",
		`{"kind":"array","len":-1,"elem":{"kind":"bool"}}`:                               "out of bounds",
		`{"kind":"struct","fields":[{"name":"A","type":{"kind":"map"}}]}`:                "A",
		`{"kind":"struct","fields":[{"name":"a b","type":{"kind":"bool"}}]}`:             "bad field name",
		strings.Repeat(`{"kind":"slice","elem":`, 99) + `null` + strings.Repeat(`}`, 99): "nested more than 64 deep",
	} {
		_, err := ParseJSON([]byte(src))
		require.ErrorContains(t, err, want, src)
		require.True(t, strings.Contains(err.Error(), "layout: "), src)
	}
}

func FuzzAppendRow(f *testing.F) {
	for i, typ := range sampleTypes() {
		c, err := NewCodec(typ)
		require.NoError(f, err)
		v, err := c.Type().Value(c.Type().AppendZero(nil))
		require.NoError(f, err)
		f.Add(c.Type().AppendJSON(nil), v.AppendExact(nil))
		if i > 40 {
			f.Add(c.Type().AppendJSON(nil), []byte(`[[1,{"a":"NaN:7ff8000000000003"}]]`))
		}
	}
	f.Fuzz(func(t *testing.T, described, src []byte) {
		typ, err := ParseJSON(described)
		if err != nil {
			return
		}
		row, err := typ.AppendRow(nil, src)
		if err != nil {
			return
		}
		v, err := typ.Value(row)
		require.NoError(t, err)
		again, err := typ.AppendRow(nil, v.AppendExact(nil))
		require.NoError(t, err)
		require.Equal(t, string(row), string(again))
	})
}

func TestAppendPatched_SingleFields(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, typ := range sampleTypes() {
		c, err := NewCodec(typ)
		require.NoError(t, err)
		described := c.Type()
		row, other := c.encodeRows(rowsOf(r, typ, 1)), c.encodeRows(rowsOf(r, typ, 1))
		v, err := described.Value(row)
		require.NoError(t, err)
		got, err := described.AppendPatched([]byte("x"), other, v.AppendExact(nil))
		require.NoError(t, err)
		require.Equal(t, "x"+string(row), string(got), "%v: all of it", typ)
		if described.Kind != Struct {
			continue
		}
		got, err = described.AppendPatched(nil, row, []byte("{}"))
		require.NoError(t, err)
		require.Equal(t, string(row), string(got), "%v: nothing", typ)
		got, err = described.AppendPatched(nil, nil, []byte("{}"))
		require.NoError(t, err)
		require.Equal(t, string(described.AppendZero(nil)), string(got), "%v: nothing of nothing", typ)
		o, err := described.Value(other)
		require.NoError(t, err)
		for i, f := range described.Fields {
			src := append(o.Index(i).AppendExact([]byte(`{"`+f.Name+`":`)), '}')
			got, err := described.AppendPatched(nil, row, src)
			require.NoError(t, err)
			p, err := described.Value(got)
			require.NoError(t, err)
			for j := range described.Fields {
				want := v
				if i == j {
					want = o
				}
				require.True(t, want.Index(j).Equal(p.Index(j)), "%v: field %d after a patch of field %d", typ, j, i)
			}
		}
	}
}

func TestAppendPatched_NestedFields(t *testing.T) {
	type at struct{ X, Y int8 }
	type fixed struct {
		At   at
		Path [2]at
	}
	type varying struct {
		Name string
		At   at
		Path []at
		Next *at
		By   map[string]at
	}
	f, err := NewCodec(reflect.TypeFor[fixed]())
	require.NoError(t, err)
	got, err := f.Type().AppendPatched(nil, Append(f, nil, []fixed{{at{1, 2}, [2]at{{3, 4}, {5, 6}}}}), []byte(`{"Path":[{"Y":7},{}],"At":{"Y":9}}`))
	require.NoError(t, err)
	require.Equal(t, Append(f, nil, []fixed{{at{1, 9}, [2]at{{0, 7}, {}}}}), got)

	c, err := NewCodec(reflect.TypeFor[varying]())
	require.NoError(t, err)
	row := Append(c, nil, []varying{{"a", at{1, 2}, []at{{3, 4}}, &at{5, 6}, map[string]at{"k": {7, 8}}}})
	got, err = c.Type().AppendPatched(nil, row, []byte(`{"At":{"X":9},"Path":[{"X":1},{"Y":2}],"Next":[{"X":3}],"By":{"l":{}}}`))
	require.NoError(t, err)
	require.Equal(t, Append(c, nil, []varying{{"a", at{9, 2}, []at{{1, 0}, {0, 2}}, &at{3, 0}, map[string]at{"l": {}}}}), got)

	for src, want := range map[string]string{
		`{"At":{"X":300}}`: "varying.At.X: 300 does not fit into int8",
		`{"At":{"Z":3}}`:   `varying.At: no field "Z"; did you mean X or Y?`,
		`{"Speed":3}`:      `varying: no field "Speed"; the fields are Name, At, Path, Next, By`,
		`{"At":null}`:      "varying.At: want an object, found null",
		`{} {}`:            "varying: more than one JSON value",
	} {
		got, err := c.Type().AppendPatched([]byte("x"), row, []byte(src))
		require.EqualError(t, err, "layout: invalid data: "+want)
		require.Equal(t, "x", string(got))
	}
	_, err = c.Type().AppendPatched(nil, row[:len(row)-1], []byte(`{}`))
	require.ErrorIs(t, err, ErrInvalid)
}
