package layout

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// typeFrom builds a layout from bytes.
func typeFrom(src *[]byte, depth int, key bool) *Type {
	next := func() byte {
		if len(*src) == 0 {
			return 0
		}
		b := (*src)[0]
		*src = (*src)[1:]
		return b
	}
	kind := Kind(next()%21) + 1
	if depth == 0 && kind >= Struct || key && kind != Array && keyFault(&Type{Kind: kind}) != 0 {
		kind = Int16
	}
	t := &Type{Kind: kind}
	switch kind {
	case Struct:
		for i := range int(next() % 4) {
			t.Fields = append(t.Fields, Field{string(rune('A'+i)) + []string{"", "x"}[next()%2], typeFrom(src, depth-1, key)})
		}
	case Array:
		t.Len, t.Elem = int(next()%3), typeFrom(src, depth-1, key)
	case Map:
		t.Key, t.Elem = typeFrom(src, depth-1, true), typeFrom(src, depth-1, false)
	case Slice, Pointer:
		t.Elem = typeFrom(src, depth-1, key)
	}
	return t
}

// shorter returns t with shorter arrays, including arrays in rows of variable size.
func shorter(r *rand.Rand, t *Type) *Type {
	u := *t
	u.Fields = nil
	for _, f := range t.Fields {
		u.Fields = append(u.Fields, Field{f.Name, shorter(r, f.Type)})
	}
	if t.Elem != nil {
		u.Elem = shorter(r, t.Elem)
	}
	if t.Kind == Array {
		u.Len = r.IntN(t.Len + 1)
	}
	return &u
}

// wider returns t with random changes that lose no values.
func wider(r *rand.Rand, t *Type, key bool) *Type {
	u := &Type{Kind: t.Kind, Len: t.Len}
	for _, f := range t.Fields {
		u.Fields = append(u.Fields, Field{f.Name, wider(r, f.Type, key)})
	}
	if n := len(u.Fields); n > 0 && r.IntN(2) == 0 {
		u.Fields = append(u.Fields, Field{"Added", &Type{Kind: Int32}})
		r.Shuffle(n+1, func(i, j int) { u.Fields[i], u.Fields[j] = u.Fields[j], u.Fields[i] })
		k := r.IntN(n + 1)
		if name := u.Fields[k].Name; name != "Added" {
			u.Fields[k].Name = "New" + name
			u.Former = map[string][]string{"New" + name: {"Nothing", name}}
		}
	}
	if t.Kind == Array {
		u.Len += r.IntN(3)
	}
	if t.Elem != nil {
		u.Elem = wider(r, t.Elem, key)
	}
	if t.Key != nil {
		u.Key = wider(r, t.Key, true)
	}
	for k := Kind(1); k < endOfKinds; k++ {
		if widens(t.Kind, k) && r.IntN(3) == 0 && !(key && k >= Float32) {
			u.Kind = k
		}
	}
	return u
}

// sample appends a random row of t. It encodes the row without using the package.
func sample(r *rand.Rand, dst []byte, t *Type, packed bool) []byte {
	n := r.IntN(3)
	write := conversion{toPacked: packed}
	switch t.Kind {
	case Struct, Array:
		if t.Kind == Array && !packed {
			dst = appendLength(dst, &arrayForm, t.Len)
		}
		for range t.Len {
			dst = sample(r, dst, t.Elem, packed)
		}
		if t.Kind == Struct && !packed {
			dst = appendLength(dst, &mapForm, len(t.Fields))
		}
		for _, f := range t.Fields {
			if !packed {
				dst = appendString(dst, f.Name)
			}
			dst = sample(r, dst, f.Type, packed)
		}
		return dst
	case String:
		return appendString(dst, "text"[:n])
	}
	if n == 0 && t.Kind >= Bytes {
		return append(dst, codeNil)
	}
	switch t.Kind {
	case Bytes:
		return append(appendLength(dst, &binForm, n), []byte{1, 255}[:n]...)
	case Slice:
		dst = appendLength(dst, &arrayForm, n)
		for range n {
			dst = sample(r, dst, t.Elem, false)
		}
		return dst
	case Pointer:
		return sample(r, appendLength(dst, &arrayForm, 1), t.Elem, false)
	case Map:
		var entries []entry
		start := 0
		var body []byte
		for range n {
			e := entry{key: len(body)}
			body = sample(r, body, t.Key, false)
			e.value = len(body)
			body = sample(r, body, t.Elem, false)
			e.end = len(body)
			entries = append(entries, e)
		}
		if len(entries) == 2 && string(body[entries[0].key:entries[0].value]) == string(body[entries[1].key:entries[1].value]) {
			entries, body = entries[:1], body[:entries[0].end]
		}
		return append(appendLength(dst, &mapForm, len(entries)), sortEntries(body, start, entries)...)
	}
	bits := r.Uint64() >> r.IntN(64)
	if t.Kind == Bool {
		bits &= 1
	}
	im := r.Uint64()
	if width := t.Kind.bits(); t.Kind.signed() {
		bits = uint64(int64(bits<<(64-width)) >> (64 - width))
	} else if t.Kind.unsigned() && width < 64 {
		bits &= 1<<width - 1
	}
	return write.write(dst, t.Kind, bits, im)
}

// sameValue returns an error unless the new value is the converted old value. It implements the
// table in the comment of NewConversion directly.
func sameValue(old, now Value, path string) error {
	wrong := fmt.Errorf("%s: %v became %v", path, old, now)
	number := func(v Value) float64 {
		switch {
		case v.Kind().signed():
			return float64(v.Int())
		case v.Kind().unsigned():
			return float64(v.Uint())
		}
		return v.Float()
	}
	switch {
	case old.Kind() == Bytes && now.Kind() == Slice:
		if old.IsNil() != now.IsNil() || len(old.Text()) != now.Len() {
			return wrong
		}
		for i, b := range []byte(old.Text()) {
			if number(now.Index(i)) != float64(b) {
				return wrong
			}
		}
		return nil
	case old.Kind() == Complex64 && now.Kind() == Complex128:
		if fmt.Sprint(old.Complex()) != fmt.Sprint(now.Complex()) {
			return wrong
		}
		return nil
	case old.Kind() != now.Kind():
		if a, b := number(old), number(now); a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
			return wrong
		}
		return nil
	case old.IsNil() != now.IsNil() || old.Kind() != Array && old.Kind() != Struct && old.Len() != now.Len():
		return wrong
	case old.Kind() == Struct:
		for i, f := range old.Type().Fields {
			field, ok := now.Field(f.Name)
			if !ok {
				field, ok = now.Field("New" + f.Name)
			}
			if !ok {
				continue
			}
			if err := sameValue(old.Index(i), field, path+"."+f.Name); err != nil {
				return err
			}
		}
		if added, ok := now.Field("Added"); ok && added.Int() != 0 {
			return wrong
		}
		return nil
	case old.Kind() == Map:
		found := 0
		for i := range old.Len() { // The conversion can change the order of the entries.
			for j := range now.Len() {
				if sameValue(old.Key(i), now.Key(j), path) == nil {
					found++
					if err := sameValue(old.Index(i), now.Index(j), path+"[value]"); err != nil {
						return err
					}
				}
			}
		}
		if found != old.Len() {
			return wrong
		}
		return nil
	case old.Kind() < Struct:
		if old.String() != now.String() {
			return wrong
		}
	}
	for i := range old.Len() {
		// The remaining elements of the old array are dropped.
		if old.Kind() == Array && i == now.Len() {
			return nil
		}
		if err := sameValue(old.Index(i), now.Index(i), path+"[]"); err != nil {
			return err
		}
	}
	return nil
}

// checkConversion converts random rows between two layouts and compares the values. If must is set,
// the conversion must be possible.
func checkConversion(t *testing.T, r *rand.Rand, from, to *Type, must bool) {
	c, err := NewConversion(from, to)
	if err != nil {
		require.False(t, must, "%v to %v: %v", from, to, err)
		require.ErrorIs(t, err, ErrConversion)
		require.False(t, from.Equal(to))
		return
	}
	const n = 70 // More than blockRows.
	var src []byte
	for range n {
		src = sample(r, src, from, from.Fixed())
	}
	require.NoError(t, from.Check(src, n))
	// The spare capacity of dst holds other bytes, so Append must overwrite them all.
	dirty := bytes.Repeat([]byte{0xff}, 1<<14)
	out, err := c.Append(append(dirty[:0], "before"...), src, n)
	require.NoError(t, err, "%v to %v", from, to)
	out = out[len("before"):]
	require.NoError(t, to.Check(out, n), "%v to %v", from, to)
	if from.Width() == 0 || to.Width() == 0 {
		return
	}
	for range n {
		var a, b []byte
		a, src, err = from.Next(src)
		require.NoError(t, err)
		b, out, err = to.Next(out)
		require.NoError(t, err)
		old, err := from.Value(a)
		require.NoError(t, err)
		now, err := to.Value(b)
		require.NoError(t, err)
		require.NoError(t, sameValue(old, now, ""), "%v to %v", from, to)
	}
	back, err := NewConversion(to, from)
	if err != nil {
		return // A wider number does not convert back.
	}
	require.NotNil(t, back)
}

func TestConversion_WidensValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		description := make([]byte, 1+r.IntN(24))
		for i := range description {
			description[i] = byte(r.Uint32())
		}
		from := typeFrom(&description, 3, false)
		to := wider(r, from, false)
		if from.Validate() == nil && to.Validate() == nil {
			checkConversion(t, r, from, to, true)
			checkConversion(t, r, from, shorter(r, to), true)
		}
	}
}

func FuzzConversion(f *testing.F) {
	f.Add([]byte{16, 2, 0, 1, 0, 2}, []byte{16, 2, 0, 2, 0, 3}, []byte{1}, uint64(1))
	f.Add([]byte{19, 16, 2, 0, 6, 0, 1, 2}, []byte{19, 16, 2, 1, 6, 0, 2, 3}, []byte{0x81, 1, 2}, uint64(2))
	f.Add([]byte{19, 17, 2, 3, 3}, []byte{19, 17, 2, 3, 3}, []byte{0x81, 0x92, 1, 2, 3}, uint64(3))
	f.Fuzz(func(t *testing.T, a, b, rows []byte, seed uint64) {
		from, to := typeFrom(&a, 3, false), typeFrom(&b, 3, false)
		if from.Validate() != nil || to.Validate() != nil {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		checkConversion(t, r, from, to, false)
		if u := wider(r, from, false); u.Validate() == nil {
			checkConversion(t, r, from, u, true)
		}
		if c, err := NewConversion(from, to); err == nil {
			n := len(rows) % 5
			out, err := c.Append(nil, rows, n)
			require.Equal(t, from.Check(rows, n) == nil, err == nil, "Check and Append differ on %v", from)
			if err == nil {
				require.NoError(t, to.Check(out, n))
			}
		}
	})
}

func TestNewConversion_RefusedTypes(t *testing.T) {
	type (
		wide   struct{ In struct{ HP int64 } }
		narrow struct{ In struct{ HP int32 } }
		text   struct{ In struct{ HP string } }
		two    struct{ Of map[struct{ X, Y int8 }]int8 }
		one    struct{ Of map[struct{ X int8 }]int8 }
	)
	for _, tt := range []struct {
		from, to any
		want     string
	}{
		{wide{}, narrow{}, "narrow.In.HP: stored int64, program has int32"},
		{wide{}, text{}, "text.In.HP: stored int64, program has string"},
		{map[[3]int8]int{}, map[[2]int8]int{}, "[key]: stored [3]int8, program has [2]int8"},
		{two{}, one{}, "one.Of[key].Y: stored int8, program has none"},
		{int64(0), float64(0), "stored int64, program has float64"},
		{int32(0), float32(0), "stored int32, program has float32"},
		{int8(0), uint16(0), "stored int8, program has uint16"},
		{uint32(0), int32(0), "stored uint32, program has int32"},
		{uint64(0), id(0), "id: stored uint64, program has entity"},
		{"", []byte{}, "stored string, program has bytes"},
		{[]uint16{}, []byte{}, "stored []uint16, program has bytes"},
	} {
		from, err := Of(reflect.TypeOf(tt.from))
		require.NoError(t, err)
		to, err := Of(reflect.TypeOf(tt.to))
		require.NoError(t, err)
		_, err = NewConversion(from, to)
		require.EqualError(t, err, "layout: rows cannot be converted: "+tt.want)
	}
}

func TestOf_FieldTags(t *testing.T) {
	type tagged struct {
		A int8 `stet:"a"`
		B int8 `stet:",was=C,was=D" json:"x"`
	}
	typ, err := Of(reflect.TypeFor[tagged]())
	require.NoError(t, err)
	require.Equal(t, "struct{a int8; B int8}", typ.String())
	require.Equal(t, map[string][]string{"B": {"C", "D"}}, typ.Former)
	parsed, err := Parse(typ.Append(nil))
	require.NoError(t, err)
	require.Nil(t, parsed.Former)
	varying := encode(t, struct {
		A string `stet:"a"`
	}{"x"})
	require.Equal(t, unhex(t, "81 a161 a178"), varying)

	for _, tt := range []struct {
		value any
		want  string
	}{
		{struct {
			A int `stet:"-"`
		}{}, `tag "-": "-" is not a field name`},
		{struct {
			A int `stet:"a,b"`
		}{}, `tag "a,b": "b" is not of the form was=Name`},
		{struct {
			A int `stet:",was="`
		}{}, `tag ",was=": "" is not a field name`},
		{struct {
			A, B int `stet:"b"`
		}{}, `bad field name "b"`},
		{struct {
			A int
			B int `stet:",was=A"`
		}{}, "field B: its former name A also belongs to another field"},
		{struct {
			A int `stet:",was=C"`
			B int `stet:",was=C"`
		}{}, "field B: its former name C also belongs to another field"},
	} {
		_, err := Of(reflect.TypeOf(tt.value))
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, tt.want)
	}
}

func BenchmarkConversion(b *testing.B) {
	b.Run("3 of 6 fields wider", func(b *testing.B) {
		benchmarkConversion[struct {
			A    int16
			B    int32
			C, D float32
			E    id
			F    bool
		}, struct {
			A    int32
			B    int32
			C, D float64
			E    id
			F    bool
		}](b)
	})
	b.Run("reordered", func(b *testing.B) {
		benchmarkConversion[struct{ X, Y, Z float64 }, struct{ Z, Y, X float64 }](b)
	})
	b.Run("strings, field added", func(b *testing.B) {
		benchmarkConversion[struct {
			Name string
			X    float64
		}, struct {
			Name string
			X, Y float64
		}](b)
	})
}

func benchmarkConversion[From, To any](b *testing.B) {
	from := newCodec(b, reflect.TypeFor[From]())
	to := newCodec(b, reflect.TypeFor[To]())
	data := from.encodeRows(rowsOf(rand.New(rand.NewPCG(1, 1)), from.gotype, benchRows))
	c, err := NewConversion(from.typ, to.typ)
	require.NoError(b, err)
	var out []byte
	for b.Loop() {
		if out, err = c.Append(out[:0], data, benchRows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func TestConversion_KeepsNaNBits(t *testing.T) {
	require.Equal(t, uint64(0xfff4000020000000), widenFloat(0xffa00001))
	require.Equal(t, math.Float64bits(math.Inf(-1)), widenFloat(math.Float32bits(float32(math.Inf(-1)))))
}
