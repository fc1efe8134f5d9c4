package ecs_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

// namedPlace has only fixed-size fields. namedBag has a field of every kind.
type (
	namedScore int32
	namedPlace struct {
		X, Y int8
		At   struct{ Level, Room uint16 }
	}
	namedBag struct {
		On    bool
		I     int
		U     uint64
		F     float32
		D     float64
		C     complex64
		Owner ecs.Entity
		Name  string
		Raw   []byte
		Spots [2]namedPlace
		List  []namedPlace
		By    map[string]int16
		Near  map[[2]int8]string
		Next  *namedPlace
	}
)

func fullBag() namedBag {
	return namedBag{
		On: true, I: -5, U: math.MaxUint64, F: float32(math.Inf(-1)), D: math.NaN(), C: complex(1, -2.5), Owner: 3<<32 | 12,
		Name: "a\xff", Raw: []byte{1, 2}, Spots: [2]namedPlace{{X: 1}, {Y: 2}}, List: []namedPlace{{X: 3}},
		By: map[string]int16{"b": 2, "a": 1}, Near: map[[2]int8]string{{1, 2}: "n"}, Next: &namedPlace{Y: 4},
	}
}

const fullBagJSON = `{"On":true,"I":-5,"U":18446744073709551615,"F":"-Inf","D":"NaN","C":[1,-2.5],"Owner":"12v3",` +
	`"Name":{"base64":"Yf8="},"Raw":"AQI=",` +
	`"Spots":[{"X":1,"Y":0,"At":{"Level":0,"Room":0}},{"X":0,"Y":2,"At":{"Level":0,"Room":0}}],` +
	`"List":[{"X":3,"Y":0,"At":{"Level":0,"Room":0}}],"By":{"a":1,"b":2},"Near":[[[1,2],"n"]],` +
	`"Next":[{"X":0,"Y":4,"At":{"Level":0,"Room":0}}]}`

func byName(t require.TestingT, w *ecs.World, name string) ecs.AnyStorage {
	s, ok := w.Storage(name)
	require.True(t, ok, name)
	return s
}

func TestByName_FindsStorage(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister(w, ecs.Component[namedPlace]{Name: "Place"})
	score := ecs.Must(ecs.RegisterResource(w, namedScore(3), ecs.Component[namedScore]{Name: "Score"}))
	require.Same(t, places, byName(t, w, "Place"))
	require.Same(t, score, byName(t, w, "Score"))
	s, ok := w.Storage("namedPlace")
	require.False(t, ok)
	require.Nil(t, s)
}

func TestByName_JSONRoundTrip(t *testing.T) {
	for _, kind := range []ecs.Kind{ecs.Sparse, ecs.Indexed, ecs.Hashed, ecs.Ordered} {
		w := ecs.NewWorld(ecs.Options{})
		bags := ecs.MustRegister(w, ecs.Component[namedBag]{Kind: kind})
		a, b := w.Create(), w.Create()
		s := byName(t, w, "namedBag")
		_, ok := s.GetJSON(a)
		require.False(t, ok)
		bags.Set(a, fullBag())
		src, ok := s.GetJSON(a)
		require.True(t, ok)
		require.Equal(t, fullBagJSON, string(src))

		require.NoError(t, s.SetJSON(b, src))
		again, _ := s.GetJSON(b)
		require.Equal(t, fullBagJSON, string(again))
		require.NoError(t, s.SetJSON(b, []byte("{}")))
		again, _ = s.GetJSON(b)
		require.Equal(t, fullBagJSON, string(again))

		// The second bag shares no memory with the first.
		x, _ := bags.Get(b)
		x.List[0].X, x.Raw[0], x.By["a"], x.Next.Y = 9, 9, 9, 9
		again, _ = s.GetJSON(a)
		require.Equal(t, fullBagJSON, string(again))
	}
}

func TestByName_SetJSONKeepsOtherFields(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister[namedPlace](w)
	s := byName(t, w, "namedPlace")
	e := w.Create()
	require.NoError(t, s.SetJSON(e, []byte(`{"Y":-3,"At":{"Room":7}}`)))
	v, ok := places.Get(e)
	require.True(t, ok)
	want := namedPlace{Y: -3}
	want.At.Room = 7
	require.Equal(t, want, v)
	require.NoError(t, s.SetJSON(e, []byte(`{"At":{"Level":8},"X":1}`)))
	want.X, want.At.Level = 1, 8
	v, _ = places.Get(e)
	require.Equal(t, want, v)
}

func TestByName_GetReturnsCopies(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	bags := ecs.MustRegister[namedBag](w)
	kept := ecs.Must(ecs.RegisterResource(w, fullBag(), ecs.Component[namedBag]{Name: "Kept"}))
	e := w.Create()
	for _, s := range []ecs.AnyStorage{bags, kept} {
		mine := fullBag()
		require.NoError(t, s.SetAny(e, &mine))
		mine.List[0].X = 9
		mine.By["a"] = 9
		got, ok := s.GetAny(e)
		require.True(t, ok)
		got.(namedBag).Raw[0] = 9
		got.(namedBag).Next.Y = 9
		src, _ := s.GetJSON(e)
		require.Equal(t, fullBagJSON, string(src))
		require.NoError(t, s.SetAny(e, mine))
		src, _ = s.GetJSON(e)
		require.NotEqual(t, fullBagJSON, string(src))
	}
	_, ok := bags.GetAny(w.Create())
	require.False(t, ok)
}

func TestByName_WritesCallHooksAndRestore(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister[namedPlace](w)
	score := ecs.Must(ecs.RegisterResource(w, namedScore(1)))
	var came []ecs.Entity
	places.OnAdd(func(e ecs.Entity, _ namedPlace) { came = append(came, e) })
	a, b := w.Create(), w.Create()
	before := w.Digest()
	cp := w.Checkpoint()
	require.NoError(t, places.SetAny(a, namedPlace{X: 1}))
	require.NoError(t, places.SetAny(a, namedPlace{X: 2}))
	require.NoError(t, places.SetJSON(b, []byte(`{"X":3}`)))
	require.NoError(t, score.SetAny(ecs.Vacant, namedScore(5)))
	require.NoError(t, byName(t, w, "namedScore").SetJSON(0, []byte(`6`)))
	require.Equal(t, []ecs.Entity{a, b}, came)
	require.Equal(t, namedScore(6), score.Get())
	require.NotEqual(t, before, w.Digest())
	w.Restore(cp)
	require.Equal(t, before, w.Digest())
	require.Equal(t, namedScore(1), score.Get())
	require.False(t, places.Has(a))
}

func TestByName_Errors(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(w, ecs.Component[namedBag]{Name: "Bag"})
	ecs.MustRegister(w, ecs.Component[struct{ X int8 }]{Name: "Bare"})
	ecs.MustRegister(w, ecs.Component[func()]{Name: "Act", NoPersist: true, Clone: func(f func()) func() { return f }})
	ecs.Must(ecs.RegisterResource(w, namedScore(1), ecs.Component[namedScore]{Name: "Score"}))
	e, dead := w.Create(), w.Create()
	require.NoError(t, byName(t, w, "Bag").SetAny(e, fullBag()))
	w.Destroy(dead)
	before := w.Digest()
	var text strings.Builder
	for _, test := range []struct {
		name string
		e    ecs.Entity
		v    any // The value to set; a []byte is JSON.
	}{
		{"Bag", dead, []byte("{}")},
		{"Bag", dead, namedBag{}},
		{"Bag", 0, fullBag()},
		{"Bag", e, "text"},
		{"Bag", e, nil},
		{"Bag", e, (*namedBag)(nil)},
		{"Bag", e, []byte(`{"Spots":[{"X":1},{"X":300}]}`)},
		{"Bag", e, []byte(`{"On":false,"I":1.5}`)},
		{"Bag", e, []byte(`{"On":false,"Owner":"12"}`)},
		{"Bag", e, []byte(`{"On":false,"Hue":1}`)},
		{"Bag", e, []byte(`{"On":false`)},
		{"Bag", e, []byte(`[]`)},
		{"Bag", e, []byte(`{"By":{"k":40000}}`)},
		{"Bare", e, []byte(`{"X":300}`)},
		{"Act", e, []byte(`null`)},
		{"Score", e, []byte(`1e3`)},
		{"Score", e, []byte(`-2147483649`)},
		{"Score", e, 3},
	} {
		s := byName(t, w, test.name)
		var err error
		if src, ok := test.v.([]byte); ok {
			err = s.SetJSON(test.e, src)
		} else {
			err = s.SetAny(test.e, test.v)
		}
		require.Error(t, err, "%v", test)
		fmt.Fprintln(&text, err)
		require.Equal(t, before, w.Digest(), "%v", err)
	}
	require.Equal(t, errorsByName, text.String())
	_, ok := byName(t, w, "Act").GetJSON(e)
	require.False(t, ok)
	require.NoError(t, byName(t, w, "Act").SetAny(e, func() {}))
	_, ok = byName(t, w, "Act").GetJSON(e)
	require.False(t, ok)
	err := byName(t, w, "Bag").SetJSON(e, []byte(`{"I":"x"}`))
	require.ErrorIs(t, err, layout.ErrInvalid)
}

const errorsByName = `ecs: Bag of 1v1: the entity is not alive
ecs: Bag of 1v1: the entity is not alive
ecs: Bag of 0v0: the entity is not alive
ecs: Bag of 0v1: a value of type string, where ecs_test.namedBag is wanted
ecs: Bag of 0v1: nil, where ecs_test.namedBag is wanted
ecs: Bag of 0v1: a nil pointer, where ecs_test.namedBag is wanted
ecs: Bag.Spots[1].X of 0v1: 300 does not fit into int8
ecs: Bag.I of 0v1: want int64, found 1.5
ecs: Bag.Owner of 0v1: want entity, found "12"
ecs: Bag of 0v1: no field "Hue"; the fields are On, I, U, F, D, C, Owner, Name and 6 more
ecs: Bag of 0v1: JSON: unexpected EOF
ecs: Bag of 0v1: want an object, found an array
ecs: Bag.By[value 0] of 0v1: 40000 does not fit into int16
ecs: Bare.X of 0v1: 300 does not fit into int8
ecs: Act of 0v1: it has no JSON: func(): func values cannot be stored
ecs: Score: want int32, found 1e3
ecs: Score: -2147483649 does not fit into int32
ecs: Score: a value of type int, where ecs_test.namedScore is wanted
`

// The test reads a random bag as JSON, overwrites the bag, and sets the JSON again. The world must
// then have its first digest.
func TestByName_RandomJSONRoundTrip(t *testing.T) {
	parts := rapid.Custom(func(t *rapid.T) any {
		return complex(rapid.Float32().Draw(t, "re"), rapid.Float32().Draw(t, "im"))
	})
	random := rapid.MakeCustom[namedBag](rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{reflect.TypeFor[complex64](): parts}})
	rapid.Check(t, func(t *rapid.T) {
		w := ecs.NewWorld(ecs.Options{})
		bags := ecs.MustRegister[namedBag](w)
		e := w.Create()
		bag := random.Draw(t, "bag")
		bags.Set(e, bag)
		src, ok := bags.GetJSON(e)
		require.True(t, ok)
		before := w.Digest()
		bags.Set(e, random.Draw(t, "other"))
		require.NoError(t, bags.SetJSON(e, src))
		require.Equal(t, before, w.Digest())
		again, _ := bags.GetJSON(e)
		require.Equal(t, string(src), string(again))
	})
}

func FuzzByName_SetJSON(f *testing.F) {
	f.Add([]byte(fullBagJSON))
	f.Add([]byte(`{"Spots":[{"X":1},{}],"At":{}}`))
	f.Add([]byte(`{"Near":[[[1,2],{"base64":"/w=="}]],"D":"NaN:7ff8000000000123"}`))
	f.Add([]byte(`{"X":300,"At":{"Room":1}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		w := ecs.NewWorld(ecs.Options{})
		all := []ecs.AnyStorage{
			ecs.MustRegister[namedPlace](w), ecs.MustRegister[namedBag](w),
			ecs.Must(ecs.RegisterResource(w, fullBag(), ecs.Component[namedBag]{Name: "Kept"})),
		}
		held, bare := w.Create(), w.Create()
		require.NoError(t, all[0].SetAny(held, namedPlace{X: 1}))
		require.NoError(t, all[1].SetAny(held, fullBag()))
		for _, s := range all {
			for _, e := range []ecs.Entity{held, bare} {
				before := w.Digest()
				if err := s.SetJSON(e, bytes.Clone(src)); err != nil {
					require.Equal(t, before, w.Digest())
					continue
				}
				text, ok := s.GetJSON(e)
				require.True(t, ok)
				after := w.Digest()
				require.NoError(t, s.SetJSON(e, text))
				require.Equal(t, after, w.Digest())
			}
		}
	})
}
