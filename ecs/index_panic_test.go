package ecs

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// If the key function panics during a look-up, the next look-up finds all entities again.
func TestIndex_KeyFunctionPanics(t *testing.T) {
	seed := rand.Uint64()
	for k := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, k))
		w := NewWorld(Options{History: 2})
		a := MustRegister[plain](w)
		// calls is the number of calls before the key function panics. A negative number means no
		// panic.
		calls := -1
		x := NewIndex(a, func(p plain) int32 {
			if calls--; calls == 0 {
				panic(errTried)
			}
			return p.Y
		})
		entities := w.CreateN(nil, 100)
		for range 12 {
			for range r.IntN(40) {
				switch e := entities[r.IntN(100)]; r.IntN(4) {
				case 0:
					a.Remove(e)
				case 1:
					if p := a.Mut(e); p != nil {
						p.Y = r.Int32N(3)
					}
				default:
					a.Set(e, plain{Y: r.Int32N(3)})
				}
			}
			if r.IntN(3) == 0 {
				w.Commit()
			}
			calls = r.IntN(60)
			func() {
				defer func() { _ = recover() }()
				x.Len(0)
			}()
			calls = -1
			for key := range int32(3) {
				var want []Entity
				for i, e := range a.Entities() {
					if a.Values()[i].Y == key {
						want = append(want, e)
					}
				}
				slices.Sort(want)
				got := slices.Sorted(x.Of(key))
				if !slices.Equal(got, want) {
					t.Fatalf("rand.NewPCG(%d, %d): key %d finds %v, want %v", seed, k, key, got, want)
				}
			}
		}
	}
}
