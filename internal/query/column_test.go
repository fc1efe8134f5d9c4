package query

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/layout"
)

// answerOf returns the answer of an expression that is the name of a component, for the given row.
func answerOf(t *layout.Type, row []byte) (Answer, error) {
	v, err := t.Value(row)
	if err != nil {
		return Answer{}, err
	}
	dst := reflect.New(goType(t))
	setGo(dst.Elem(), v)
	return Answer{dereferenced(dst.Interface())}, nil
}

// plainKeys reports whether all maps in t have keys that are valid in JSON objects.
func plainKeys(t *layout.Type) bool {
	if t == nil {
		return true
	}
	for _, f := range t.Fields {
		if !plainKeys(f.Type) {
			return false
		}
	}
	return (t.Key == nil || t.Key.Kind <= layout.String && goKey(t.Key) == goType(t.Key)) && plainKeys(t.Elem)
}

// encodedRow returns the layout and the encoding of a value.
func encodedRow[T any](tb testing.TB, v T) (*layout.Type, []byte) {
	tb.Helper()
	c, err := layout.NewCodec(reflect.TypeFor[T]())
	require.NoError(tb, err)
	return c.Type(), layout.Append(c, nil, []T{v})
}

func TestAnswer_PrintsLikeValue(t *testing.T) {
	type inner struct{ A, B int8 }
	one, row := encodedRow(t, struct {
		F float32
		S []inner
		P *inner
		N *inner
		E []byte
		M map[string]uint64
		B bool
		T string
	}{0.1, []inner{{1, -2}, {}}, &inner{3, 4}, nil, []byte{255, 0}, map[string]uint64{"k": 1 << 63}, true, "q\"\n"})
	v, err := one.Value(row)
	require.NoError(t, err)
	a, err := answerOf(one, row)
	require.NoError(t, err)
	assert.Equal(t, v.String(), a.String())
	for _, v := range []any{0, -7, math.MinInt, 0.1, 1.0, math.Copysign(0, -1), math.MaxFloat64, math.NaN(), math.Inf(-1)} {
		assert.Equal(t, goText(reflect.ValueOf(v), unnamed), Answer{v}.String())
	}
}

// FuzzColumn_JSON loads arbitrary rows of arbitrary layouts. The JSON of each value must equal that
// of package layout.
func FuzzColumn_JSON(f *testing.F) {
	seed := func(t *layout.Type, row []byte) { f.Add(t.Append(nil), row) }
	seed(encodedRow(f, unit{HP: 3, Speed: 0.1}))
	seed(encodedRow(f, bag{Name: "x", Raw: []byte{1}, Items: []item{{N: 1}}, Count: map[string]int{"a": 1}, Next: &item{}}))
	seed(encodedRow(f, dead{}))
	seed(encodedRow(f, map[[2]int8]***int{{1, 2}: nil}))
	seed(encodedRow(f, []struct{ X [3]complex64 }{{}}))
	seed(encodedRow(f, []complex64{complex(0.1, 6.4096906e-10)}))
	seed(encodedRow(f, uint64(1<<63)))
	f.Fuzz(func(t *testing.T, description, row []byte) {
		l, err := layout.Parse(description)
		if err != nil {
			return
		}
		v, err := l.Value(row)
		if err != nil {
			return
		}
		a, err := answerOf(l, row)
		require.NoError(t, err)
		_ = a.String()
		got, err := json.Marshal(a)
		require.NoError(t, err)
		if !plainKeys(l) {
			return
		}
		want, err := json.Marshal(v)
		require.NoError(t, err)
		var g, w any
		require.NoError(t, json.Unmarshal(got, &g))
		require.NoError(t, json.Unmarshal(want, &w))
		require.Equal(t, w, g)
	})
}
