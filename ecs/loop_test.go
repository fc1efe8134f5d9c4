package ecs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A loopWorld is a world with a storage to loop over, and with random changes for the body of the
// loop.
type loopWorld struct {
	w        *World
	s        *Storage[plain]
	other    *Storage[padded]
	entities []Entity
}

// newLoopWorld returns a world with n entities in a storage of the given kind. Some of their
// components were removed again.
func newLoopWorld(kind Kind, grouped bool, n int) loopWorld {
	w := NewWorld(Options{History: 2})
	l := loopWorld{w, MustRegister(w, Component[plain]{Kind: kind}), MustRegister[padded](w), w.CreateN(nil, n)}
	for i, e := range l.entities {
		l.s.Set(e, plain{X: int32(i)})
		if i%3 == 0 {
			l.other.Set(e, padded{})
		}
	}
	for i, e := range l.entities {
		if i%7 == 5 {
			l.s.Remove(e)
		}
	}
	if grouped {
		Must(w.NewGroup(l.s, l.other))
	}
	w.Commit()
	return l
}

func (l loopWorld) clone() loopWorld {
	c := l.w.Clone()
	return loopWorld{c, l.s.In(c), l.other.In(c), l.entities}
}

// act makes a random change while a loop visits e. Some of the changes are not allowed, and panic.
func (l loopWorld) act(rng *rand.Rand, e Entity) {
	some := l.entities[rng.IntN(len(l.entities))]
	switch rng.IntN(40) {
	case 0, 1:
		l.w.Destroy(e)
	case 2, 3:
		l.s.Remove(e)
	case 4, 5:
		l.s.Set(l.w.Create(), plain{X: 99})
	case 6:
		l.other.Set(some, padded{})
	case 7:
		l.other.Remove(e)
	case 8:
		l.w.Release(l.w.Checkpoint())
	case 9:
		l.w.Commit()
	case 10:
		l.s.Set(some, plain{X: 7})
	case 11:
		l.s.Remove(e)
		l.s.Set(e, plain{X: 8})
	case 12:
		if rng.IntN(6) == 0 {
			l.w.Destroy(some)
		}
	case 13:
		if rng.IntN(6) == 0 {
			l.s.SortFunc(func(a, b plain) int { return int(b.X - a.X) })
		}
	}
}

// visited runs a loop whose body makes random changes. It returns a text of the visits and of the
// panic.
func (l loopWorld) visited(seed uint64, loop func(visit func(Entity, plain) bool)) (text string) {
	rng := rand.New(rand.NewPCG(seed, 3))
	end := 1 + rng.IntN(100)
	defer func() {
		if reason := recover(); reason != nil {
			text += strings.Replace(fmt.Sprint(reason), "over Query1(plain)", "over plain", 1)
		}
	}()
	loop(func(e Entity, v plain) bool {
		text += fmt.Sprintf("%v %d\n", e, v.X)
		l.act(rng, e)
		end--
		return end > 0
	})
	return text
}

// A loop over All of a storage visits the same entities as a query over the storage, whatever the
// body changes. Both panic in the same cases.
func TestStorageAll_SameAsQuery(t *testing.T) {
	panicked, went := 0, 0
	for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		for _, grouped := range []bool{false, kind != Indexed} {
			for seed := range uint64(300) {
				l := newLoopWorld(kind, grouped, 60)
				c := l.clone()
				got := l.visited(seed, func(visit func(Entity, plain) bool) { l.s.All()(visit) })
				query := NewQuery1(Read(c.s))
				want := c.visited(seed, func(visit func(Entity, plain) bool) {
					query.All()(func(e Entity, v *plain) bool { return visit(e, *v) })
				})
				if got != want {
					t.Fatalf("%v, grouped %v, seed %d: All visited\n%s\nthe query\n%s", kind, grouped, seed, got, want)
				}
				if l.w.Digest() != c.w.Digest() {
					t.Fatalf("%v, grouped %v, seed %d: the worlds differ", kind, grouped, seed)
				}
				if got[len(got)-1] == '\n' {
					went++
				} else {
					panicked++
				}
			}
		}
	}
	if panicked < 200 || went < 200 {
		t.Errorf("%d loops panicked, %d did not: too few for a meaningful test", panicked, went)
	}
}

// A loop visits the same entities whether its body removes entities by a batch or one by one.
func TestLoop_BatchSameAsSingleRemovals(t *testing.T) {
	for seed := range uint64(300) {
		l := newLoopWorld([]Kind{Sparse, Indexed, Hashed, Ordered}[seed%4], seed%8 >= 4 && seed%4 != 1, 80)
		c := l.clone()
		visited := func(l loopWorld, batch bool, rng *rand.Rand) (list []Entity) {
			for e := range NewQuery1(Read(l.s)).All() {
				list = append(list, e)
				lo := rng.IntN(len(l.entities))
				some := slices.Clone(l.entities[lo:min(len(l.entities), lo+rng.IntN(12))])
				// Half of the time, use the last rows.
				if rows := l.s.Entities(); rng.IntN(2) == 0 {
					some = slices.Clone(rows[max(0, len(rows)-rng.IntN(8)):])
				}
				if rng.IntN(3) > 0 {
					continue
				}
				if batch {
					l.w.DestroyAll(some)
					continue
				}
				for _, e := range slices.Backward(some) {
					l.w.Destroy(e)
				}
			}
			return list
		}
		got := visited(l, true, rand.New(rand.NewPCG(seed, 6)))
		want := visited(c, false, rand.New(rand.NewPCG(seed, 6)))
		if !slices.Equal(got, want) || l.w.Digest() != c.w.Digest() {
			t.Fatalf("seed %d: visited %v with batches, %v without", seed, got, want)
		}
	}
}

// A somePredicate keeps the entities that exist when the iteration begins and whose index is a
// multiple of the field every.
type somePredicate struct {
	w     *World
	every uint32
	found map[Entity]bool
}

func (s *somePredicate) uses() []raw.Use     { return nil }
func (s *somePredicate) narrow(q narrowed)   { q.filter(s) }
func (s *somePredicate) keeps(e Entity) bool { return s.found[e] }
func (s *somePredicate) kept() []Entity      { return slices.Collect(maps.Keys(s.found)) }

func (s *somePredicate) begin() {
	s.found = map[Entity]bool{}
	for _, e := range s.w.Entities() {
		if e.Index()%s.every == 0 {
			s.found[e] = true
		}
	}
}

// A loop over a query with a predicate visits the same entities as a loop whose body checks each
// entity.
func TestLoop_PredicateSameAsCheck(t *testing.T) {
	panicked, went := 0, 0
	for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		for _, grouped := range []bool{false, kind != Indexed} {
			for seed := range uint64(200) {
				n := []int{60, 300}[seed/4%2]
				if seed%20 < 2 {
					n = 9000
				}
				l := newLoopWorld(kind, grouped, n)
				c := l.clone()
				of := func(l loopWorld, filtered bool) func(visit func(Entity, plain) bool) {
					some := &somePredicate{w: l.w, every: uint32(1 + seed%uint64(n/20))}
					some.begin()
					ask := func(e Entity) bool { return filtered || some.keeps(e) }
					q1, q2 := NewQuery1(Read(l.s)), NewQuery2(Write(l.s), Optional(Read(l.other)))
					if filtered {
						q1.With(some)
						q2.With(some)
					}
					if seed%4 == 1 {
						q2.With(l.other)
					}
					return func(visit func(Entity, plain) bool) {
						if seed%2 == 0 {
							q1.All()(func(e Entity, v *plain) bool { return !ask(e) || visit(e, *v) })
						} else {
							q2.AllOptional()(func(e Entity, row Row2[plain, padded]) bool { return !ask(e) || visit(e, *row.A) })
						}
					}
				}
				got, want := l.visited(seed, of(l, true)), c.visited(seed, of(c, false))
				if got != want {
					t.Fatalf("%v, grouped %v, seed %d: a loop with a filter visited\n%s\na loop that checks each entity visited\n%s", kind, grouped, seed, got, want)
				}
				if l.w.Digest() != c.w.Digest() {
					t.Fatalf("%v, grouped %v, seed %d: the worlds differ", kind, grouped, seed)
				}
				if got == "" || got[len(got)-1] == '\n' {
					went++
				} else {
					panicked++
				}
			}
		}
	}
	if panicked < 100 || went < 100 {
		t.Errorf("%d loops panicked, %d did not: too few for a meaningful test", panicked, went)
	}
}

func TestStorageAll_Allocations(t *testing.T) {
	for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		l := newLoopWorld(kind, false, 60)
		sum := int32(0)
		if n := testing.AllocsPerRun(10, func() {
			for _, v := range l.s.All() {
				sum += v.X
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", kind, n)
		}
	}
}

func TestEntities_RemovedInBackwardLoop(t *testing.T) {
	for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		l := newLoopWorld(kind, false, 60)
		kept := 0
		for i, e := range slices.Backward(l.s.Entities()) {
			if e == Vacant {
				continue
			}
			if i%4 == 0 {
				kept++
			} else if !l.s.Remove(e) {
				t.Errorf("%v: %v was removed before", kind, e)
			}
		}
		if l.s.Len() != kept {
			t.Errorf("%v: %d are left, want %d", kind, l.s.Len(), kept)
		}
		for _, e := range slices.Backward(l.w.Entities()) {
			if !l.w.Destroy(e) {
				t.Errorf("%v: %v was destroyed before", kind, e)
			}
		}
		if l.w.Len() != 0 {
			t.Errorf("%v: %d entities are left", kind, l.w.Len())
		}
	}
}

func TestRuns_StructuralChangePanics(t *testing.T) {
	changes := map[string]func(w *World, a *Storage[plain], entities []Entity){
		"remove":  func(_ *World, a *Storage[plain], entities []Entity) { a.Remove(entities[1]) },
		"destroy": func(w *World, _ *Storage[plain], entities []Entity) { w.Destroy(entities[1]) },
		"add":     func(w *World, a *Storage[plain], _ []Entity) { a.Set(w.Create(), plain{}) },
		"clear":   func(w *World, _ *Storage[plain], _ []Entity) { w.Clear() },
	}
	texts := map[string]string{
		"remove":  "1v1 was removed from plain",
		"destroy": "1v1 was removed from plain",
		"add":     "5000v1 was added to plain or moved there",
		"clear":   "the last entity was removed from plain",
	}
	queries := []string{"Query1(plain)", "Query2(plain, padded)"}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w, a, b, entities := members(5000, Options{})
			for i, q := range []interface{ loop(f func()) }{
				runsOf(func(f func()) {
					for range NewQuery1(Read(a)).Runs() {
						f()
					}
				}),
				runsOf(func(f func()) {
					for range NewQuery2(Write(a), Read(b)).Runs() {
						f()
					}
				}),
			} {
				cp := w.Checkpoint()
				text := fmt.Sprintf("%s in a loop over Runs of %s; collect", texts[name], queries[i])
				if debug {
					text = " in a loop over Runs of " + queries[i] + "; collect"
					mustPanic(t, "ecs: "+texts[name]+" (by loop_test.go:", func() { q.loop(func() { change(w, a, entities) }) })
					w.Restore(cp)
				}
				mustPanic(t, text, func() { q.loop(func() { change(w, a, entities) }) })
				w.Restore(cp)
				q.loop(func() {
					w.Create() // This changes no storage of the query.
					w.Release(w.Checkpoint())
				})
				w.Restore(cp)
				w.Release(cp)
			}
		})
	}
}

type runsOf func(f func())

func (r runsOf) loop(f func()) { r(f) }

// A loop visits each entity that its body adds to the driving storage, so only a break ends it.
func TestLoop_EndlessWithNewEntities(t *testing.T) {
	for _, kind := range []Kind{Sparse, Indexed, Ordered} {
		w := NewWorld(Options{})
		s := MustRegister(w, Component[plain]{Kind: kind})
		s.Set(w.Create(), plain{})
		visits := 0
		for range NewQuery1(Write(s)).All() {
			if visits++; visits == 10_000 {
				break
			}
			s.Set(w.Create(), plain{})
		}
		if visits != 10_000 {
			t.Errorf("%v: the loop ended after %d visits", kind, visits)
		}
	}
}
