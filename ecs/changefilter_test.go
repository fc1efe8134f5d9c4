package ecs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestChangeFilter_SinceCommit(t *testing.T) {
	w, a, b, entities := members(200, Options{History: 2})
	added := NewQuery1(Read(a)).With(a.Added())
	changed := NewQuery2(Read(a), Write(b)).With(a.Changed())
	removed := NewQuery1(Read(a)).With(b.Removed())
	look := func(when string, wantAdded, wantChanged, wantRemoved []Entity) {
		t.Helper()
		for i, q := range []AnyQuery{added, changed, removed} {
			want := [][]Entity{wantAdded, wantChanged, wantRemoved}[i]
			if got := q.AppendEntities(nil); !slices.Equal(got, want) || q.Count() != len(want) {
				t.Errorf("%s: query %d finds %v, want %v", when, i, got, want)
			}
		}
	}
	w.Commit()
	look("after a commit", nil, nil, nil)
	cp := w.Checkpoint()
	young := w.Create()
	a.Set(young, plain{1, 1})
	for _, i := range []int{3, 64, 199} {
		a.Mut(entities[i]).X += 7
	}
	a.Mut(entities[5]).X += 0 // The row counts as written, although its value is the same.
	// b now has the fewest rows, so the query iterates over it. Its last row has become row 7.
	b.Remove(entities[7])
	look("in a tick", []Entity{young}, []Entity{entities[3], entities[199], entities[64]}, []Entity{entities[7]})
	for e, row := range changed.All() {
		row.B.B = int64(e.Index())
		a.Mut(entities[9]).X++ // A change in the body does not affect the current loop.
	}
	look("behind a loop", []Entity{young}, []Entity{entities[3], entities[199], entities[9], entities[64]}, []Entity{entities[7]})
	if changed.Has(entities[5]) || !changed.Has(entities[64]) {
		t.Error("Has ignores the filter")
	}
	w.Restore(cp)
	look("after a restore", nil, nil, nil)
	a.Mut(entities[1]).X++
	w.Commit()
	look("after the next commit", nil, nil, nil)
}

func TestChangeFilter_SinceTick(t *testing.T) {
	w, a, _, entities := members(10, Options{History: 2})
	w.Commit()
	since := a.Changed()
	q := NewQuery1(Read(a)).With(since)
	found := func(want ...Entity) {
		t.Helper()
		if got := q.AppendEntities(nil); !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
	}
	for i := range 2 {
		a.Mut(entities[i]).X++
		w.Commit()
	}
	found()
	if err := since.Since(1); err != nil {
		t.Fatal(err)
	}
	found(entities[:2]...)
	if err := since.Since(2); err != nil {
		t.Fatal(err)
	}
	a.Mut(entities[5]).X++
	found(entities[1], entities[5])
	if err := since.Since(99); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Since(99) = %v", err)
	}
	found(entities[1], entities[5])
	w.Commit()
	w.Commit()
	w.Commit()
	mustPanic(t, "tick not held", func() { q.Count() })
	if err := since.Since(w.Tick()); err != nil {
		t.Fatal(err)
	}
	found()
}

// A query with a change filter finds the entities of the delta, in the order of the query. The
// cases have different orders of rows, different drivers, and few or many changes.
func TestChangeFilter_SameAsDelta(t *testing.T) {
	t.Parallel()
	sizes := []int{70, 5_000, 20_000}
	if debug {
		// A debug build checks all rows at each change, so it is too slow for the larger sizes.
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		for seed := range uint64(12) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			w := NewWorld(Options{History: 1})
			a := MustRegister(w, Component[plain]{Kind: []Kind{Sparse, Ordered, Indexed}[seed%3]})
			b := MustRegister(w, Component[padded]{Kind: []Kind{Sparse, Sparse, Ordered, Hashed}[seed%4]})
			all := w.CreateN(nil, n)
			share := []int{1, 2, 9, 40}[rng.IntN(4)]
			shuffled := slices.Clone(all)
			if rng.IntN(3) > 0 {
				rng.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			}
			for i, e := range shuffled {
				if i%share == 0 {
					b.Set(e, padded{})
				}
			}
			for _, e := range all {
				a.Set(e, plain{})
			}
			filters := []*ChangeFilter{a.Changed(), b.Changed(), a.Added(), b.Removed()}
			some := &somePredicate{w: w, every: 2}
			d, _ := a.SinceCommit()
			e, _ := b.SinceCommit()
			for tick := range 6 {
				w.Commit()
				lo := rng.IntN(n)
				for range rng.IntN(1 + n/[]int{1, 10, 300, n}[tick%4]) {
					at := all[rng.IntN(n)]
					if tick%2 == 0 {
						at = all[lo] // In every second tick, change consecutive entities.
						lo = (lo + 1) % n
					}
					switch rng.IntN(20) {
					case 0:
						b.Remove(at)
					case 1:
						a.Remove(at)
					case 2, 3:
						a.Set(at, plain{X: int32(tick)})
					case 4, 5, 6:
						b.Set(at, padded{B: int64(tick)})
					default:
						if v := a.Mut(at); v != nil {
							v.X++
						}
						if v := b.Mut(at); v != nil && rng.IntN(2) == 0 {
							v.B++
						}
					}
				}
				_, _ = d.SinceCommit(), e.SinceCommit()
				of := [][]Entity{d.changed.entities, e.changed.entities, d.added.entities, e.removed.entities}
				for k, list := range of {
					kept := map[Entity]bool{}
					for _, e := range list {
						kept[e] = true
					}
					for name, q := range map[string][2]AnyQuery{
						"a":          {NewQuery1(Read(a)), NewQuery1(Read(a)).With(filters[k])},
						"a, b":       {NewQuery2(Read(a), Read(b)), NewQuery2(Read(a), Read(b)).With(filters[k])},
						"a, maybe b": {NewQuery2(Read(a), Optional(Read(b))), NewQuery2(Read(a), Optional(Read(b))).With(filters[k])},
						"some a":     {NewQuery1(Read(a)).With(b, some), NewQuery1(Read(a)).With(filters[k], b, some)},
					} {
						want := slices.DeleteFunc(q[0].AppendEntities(nil), func(e Entity) bool { return !kept[e] })
						if q, ok := q[1].(*Query2[plain, padded]); ok {
							var got []Entity
							for run := range q.Runs() {
								got = append(got, run.Entities...)
								// A checkpoint in the body makes the loop search for its remaining
								// rows again.
								w.Release(w.Checkpoint())
							}
							if !slices.Equal(got, want) {
								t.Fatalf("%d rows, seed %d, tick %d: runs of %s with filter %d are %v, want %v", n, seed, tick, name, k, got, want)
							}
						}
						for range 2 {
							if got := q[1].AppendEntities(nil); !slices.Equal(got, want) || q[1].Count() != len(want) {
								t.Fatalf("%d rows, seed %d, tick %d: a query of %s with filter %d finds %v, want %v", n, seed, tick, name, k, got, want)
							}
						}
					}
				}
			}
		}
	}
}

func ExampleStorage_Changed() {
	type Health struct{ Points int }
	w := NewWorld(Options{})
	health := MustRegister[Health](w)
	hurt := NewQuery1(Read(health)).With(health.Changed())
	a, b := w.Create(), w.Create()
	health.Set(a, Health{10})
	health.Set(b, Health{10})
	w.Commit()
	health.Mut(b).Points--
	for e, h := range hurt.All() {
		fmt.Println(e, *h)
	}
	// Output: 1v1 {9}
}

// Get and Has also evaluate the predicates of the query.
func TestQuery_GetAndHasUsePredicates(t *testing.T) {
	w := NewWorld(Options{History: 4})
	a, b := MustRegister[plain](w), MustRegister[extra](w)
	e := w.CreateN(nil, 4)
	a.SetAll(e[:3], plain{X: 1})
	b.SetAll(e, extra{})
	w.Commit()
	w.Commit()
	q := NewQuery2(Read(a), Write(b)).With(a.Changed(), b.Changed())
	for range q.All() {
	}
	check := func(when string, want ...Entity) {
		t.Helper()
		for _, e := range e {
			_, got := q.Get(e)
			if in := slices.Contains(want, e); q.Has(e) != in || got != in {
				t.Errorf("%s: %v is found by Has: %v, by Get: %v, want %v", when, e, q.Has(e), got, in)
			}
		}
		if got := q.AppendEntities(nil); !slices.Equal(got, want) {
			t.Errorf("%s: the query finds %v, want %v", when, got, want)
		}
	}
	check("before any change")
	a.Set(e[0], plain{X: 2})
	a.Set(e[1], plain{X: 2})
	check("a alone changed")
	b.Set(e[1], extra{V: 3})
	b.Set(e[2], extra{V: 3})
	check("both changed of one", e[1])
	b.Set(e[0], extra{V: 4})
	check("both changed of two", e[0], e[1])
}
