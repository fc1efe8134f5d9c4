package ecs

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/deep"
)

// In an index that is written only by Set and Replace, each key has at most one entity, as in a
// map.
func TestIndexSet_SameAsMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(20, 200)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := NewWorld(Options{History: 3})
		s := MustRegister[word](w)
		byName := NewIndex(s, func(v word) string { return v.S })
		names, then := map[string]Entity{}, map[uint64]map[string]Entity{0: {}}
		nameOf := func(e Entity) (string, bool) {
			for name, who := range names {
				if who == e {
					return name, true
				}
			}
			return "", false
		}
		all := w.CreateN(nil, 8)
		w.Commit()
		then[1] = map[string]Entity{}
		for range 300 {
			e, v := all[rng.IntN(len(all))], word{string(rune('a' + rng.IntN(6)))}
			old, had := nameOf(e)
			switch rng.IntN(8) {
			case 0, 1, 2:
				err := byName.Set(e, v)
				if other, taken := names[v.S]; taken && other != e {
					require.ErrorIs(t, err, ErrTaken, "seed %d", seed)
					continue
				}
				require.NoError(t, err, "seed %d", seed)
			case 3, 4:
				require.True(t, byName.Replace(e, v))
			case 5:
				s.Remove(e)
				v.S = ""
			case 6:
				w.Commit()
				then[w.Tick()] = maps.Clone(names)
				continue
			case 7:
				tick := w.Tick() - uint64(rng.IntN(2))
				if tick > 0 && w.History().Seek(tick) == nil {
					names = maps.Clone(then[tick])
				}
				continue
			}
			if delete(names, old); !had {
				delete(names, "")
			}
			if v.S != "" {
				names[v.S] = e
			}
			for _, name := range slices.Collect(maps.Keys(names)) {
				got, ok := byName.First(name)
				require.True(t, ok && got == names[name] && byName.Len(name) == 1, "seed %d: %q", seed, name)
			}
			require.Equal(t, len(names), s.Len(), "seed %d", seed)
		}
	}
}

func TestIndexSet_Errors(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[word](w)
	byName := NewIndex(s, func(v word) string { return v.S })
	a, b, dead := w.Create(), w.Create(), w.Create()
	w.Destroy(dead)
	require.NoError(t, byName.Set(a, word{"x"}))
	require.NoError(t, byName.Set(a, word{"x"}))
	before := w.Digest()
	assert.EqualError(t, byName.Set(b, word{"x"}), "ecs: word of 1v1: the key is taken: 0v1 has it")
	assert.EqualError(t, byName.Set(dead, word{"y"}), "ecs: word of 2v1: the entity is not alive")
	assert.False(t, byName.Replace(dead, word{"x"}))
	assert.Equal(t, before, w.Digest())
	// Storage.Set does not check the key, so two entities now have it. Replace then removes both.
	s.Set(b, word{"x"})
	c := w.Create()
	assert.ErrorIs(t, byName.Set(a, word{"x"}), ErrTaken)
	assert.True(t, byName.Replace(c, word{"x"}))
	assert.Equal(t, []Entity{c}, slices.Collect(byName.Of("x")))
	assert.Equal(t, 1, s.Len())
}

// A key that differs from itself never counts as taken.
func TestIndexSet_NaNKeyIsNeverTaken(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister(w, Component[float64]{Name: "heat"})
	byHeat := NewIndex(s, func(v float64) float64 { return v })
	a, b := w.Create(), w.Create()
	require.NoError(t, byHeat.Set(a, math.NaN()))
	require.NoError(t, byHeat.Set(b, math.NaN()))
	require.True(t, byHeat.Replace(b, math.NaN()))
	assert.Equal(t, 2, s.Len())
}

// An OnRemove hook may drain the storage. It is still called once for each component.
func TestDrain_CalledInOnRemoveHook(t *testing.T) {
	for _, kind := range []Kind{Sparse, Indexed} {
		w := NewWorld(Options{})
		s := MustRegister(w, Component[plain]{Kind: kind})
		all := w.CreateN(nil, 4)
		s.SetAll(all, plain{})
		var removed, drained []Entity
		s.OnRemove(func(e Entity, _ plain) {
			removed = append(removed, e)
			for e := range s.Drain() {
				drained = append(drained, e)
			}
		})
		s.Remove(all[3])
		assert.Equal(t, []Entity{all[3], all[2], all[1], all[0]}, removed)
		assert.ElementsMatch(t, all[:3], drained)
		assert.Zero(t, s.Len())
	}
}

// A loop over Drain gets copies of the components.
func TestDrain_YieldsCopies(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister(w, Component[list]{Clone: cloneList})
	s.Set(w.Create(), list{[]int{1, 2}})
	cp, before := w.Checkpoint(), w.Digest()
	for _, v := range s.Drain() {
		v.Items[0] = 9
	}
	w.Restore(cp)
	assert.Equal(t, before, w.Digest())
}

func TestKeepOnly_Errors(t *testing.T) {
	w, other := NewWorld(Options{}), NewWorld(Options{})
	s := MustRegister[plain](w)
	e := w.Create()
	s.Set(e, plain{})
	for name, as := range map[string]AnyStorage{"word": MustRegister[word](other), "list": Must(RegisterResource(w, list{}))} {
		assert.PanicsWithValue(t, "ecs: KeepOnly with "+name+", which is no component of this world; give it another storage of it",
			func() { w.KeepOnly(e, as) })
	}
	assert.True(t, s.Has(e))
	assert.Equal(t, 1, w.KeepOnly(e))
	assert.Zero(t, w.KeepOnly(e))
}
