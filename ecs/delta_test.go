package ecs

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A heldTick is the content of a storage at the end of a retained tick.
type heldTick[T any] struct {
	tick     uint64
	entities []Entity
	values   []T
}

func (s *Storage[T]) heldTick() heldTick[T] {
	return heldTick[T]{s.w.Tick(), slices.Clone(s.Entities()), slices.Clone(s.Values())}
}

// expectDelta compares d with the actual changes of s since an earlier state.
func expectDelta[T comparable](t *testing.T, s *Storage[T], d *Delta[T], then heldTick[T]) {
	t.Helper()
	now := s.heldTick()
	was, is := rowsOf(then.entities), rowsOf(now.entities)
	var added, changed, removed []string
	for row, e := range now.entities {
		old, had := was[e]
		switch {
		case e == Vacant:
		case !had:
			added = append(added, fmt.Sprint(e, now.values[row]))
		case then.values[old] != now.values[row]:
			changed = append(changed, fmt.Sprint(e, then.values[old], now.values[row]))
		}
	}
	for row, e := range then.entities {
		if _, has := is[e]; e != Vacant && !has {
			removed = append(removed, fmt.Sprint(e, then.values[row]))
		}
	}
	var gotAdded, gotChanged, gotRemoved []string
	for e, v := range d.Added() {
		gotAdded = append(gotAdded, fmt.Sprint(e, v))
	}
	for e, v := range d.Changed() {
		gotChanged = append(gotChanged, fmt.Sprint(e, v.Old, v.New))
	}
	for e, v := range d.Removed() {
		gotRemoved = append(gotRemoved, fmt.Sprint(e, v))
	}
	if !slices.Equal(gotAdded, added) || !slices.Equal(gotChanged, changed) || !slices.Equal(gotRemoved, removed) {
		t.Fatalf("%s since tick %d: added %v, changed %v, removed %v, want %v, %v, %v",
			s.name, then.tick, gotAdded, gotChanged, gotRemoved, added, changed, removed)
	}
}

func rowsOf(entities []Entity) map[Entity]int {
	rows := map[Entity]int{}
	for row, e := range entities {
		rows[e] = row
	}
	return rows
}

// A Delta is right after ticks of many kinds. Rows are written in any order, repeatedly, in long
// ranges and one by one. A few entities, many or none are added, removed and moved.
func TestDelta_SameAsComparisonOfStates(t *testing.T) {
	t.Parallel()
	type pair struct{ A, B int64 }
	t.Run("8 bytes", func(t *testing.T) {
		deltasOfTicks(t, Component[plain]{Name: "p8"}, func(n int) plain { return plain{int32(n), 1} })
	})
	t.Run("16 bytes", func(t *testing.T) {
		deltasOfTicks(t, Component[pair]{Name: "p16"}, func(n int) pair { return pair{1, int64(n)} })
	})
	t.Run("20 bytes", func(t *testing.T) {
		deltasOfTicks(t, Component[[5]int32]{Name: "p20"}, func(n int) [5]int32 { return [5]int32{4: int32(n)} })
	})
	t.Run("text", func(t *testing.T) {
		deltasOfTicks(t, Component[string]{Name: "text"}, func(n int) string { return fmt.Sprint("v", n) })
	})
	t.Run("tag", func(t *testing.T) {
		deltasOfTicks(t, Component[struct{}]{Name: "tag"}, func(int) struct{} { return struct{}{} })
	})
	t.Run("indexed", func(t *testing.T) {
		deltasOfTicks(t, Component[pair]{Name: "gaps", Kind: Indexed}, func(n int) pair { return pair{1, int64(n)} })
	})
	t.Run("hashed", func(t *testing.T) {
		deltasOfTicks(t, Component[pair]{Name: "hash", Kind: Hashed}, func(n int) pair { return pair{1, int64(n)} })
	})
}

func deltasOfTicks[T comparable](t *testing.T, c Component[T], value func(n int) T) {
	t.Parallel()
	const n = 1500
	w := NewWorld(Options{History: 4})
	checkAtEnd(t, w)
	s := MustRegister(w, c)
	all := w.CreateN(nil, n)
	for i, e := range all {
		s.Set(e, value(i))
	}
	random := rand.New(rand.NewPCG(3, 4))
	some := func(part int, f func(i int, e Entity)) {
		for i := range n / part {
			f(i, all[random.IntN(n)])
		}
	}
	works := map[string]func(){
		"random rows":    func() { some(10, func(i int, e Entity) { rewrite(s, e, value(random.IntN(9))) }) },
		"a few rows":     func() { some(200, func(i int, e Entity) { rewrite(s, e, value(random.IntN(9))) }) },
		"ascending rows": func() { writeAscending(s, random.IntN(7)+1, value(random.IntN(9))) },
		"all rows":       func() { writeAll(s, value(random.IntN(9))) },
		"removed":        func() { some(300, func(i int, e Entity) { s.Remove(e) }) },
		"many removed":   func() { some(3, func(i int, e Entity) { s.Remove(e) }) },
		"added":          func() { some(3, func(i int, e Entity) { s.Set(e, value(i)) }) },
		"replaced": func() {
			for range 20 {
				i := random.IntN(n)
				w.Destroy(all[i])
				all[i] = w.Create()
				s.Set(all[i], value(i))
			}
		},
		"moved": func() {
			some(50, func(i int, e Entity) {
				if v, ok := s.Get(e); ok {
					s.Remove(e)
					s.Set(e, v)
				}
			})
		},
		"sorted": func() {
			if s.Kind() != Indexed {
				s.SortEntities(func(a, b Entity) int { return cmp.Compare(a*2654435761, b*2654435761) })
			}
		},
		"taken back": func() {
			cp := w.Checkpoint()
			writeAll(s, value(-1))
			some(5, func(i int, e Entity) { s.Remove(e) })
			w.Restore(cp)
			w.Release(cp)
		},
		// Save rows in two frames. Release then merges the two frames.
		"merged": func() {
			some(2, func(i int, e Entity) { rewrite(s, e, value(random.IntN(9))) })
			cp := w.Checkpoint()
			some(20, func(i int, e Entity) { rewrite(s, e, value(random.IntN(9))) })
			w.Release(cp)
			some(20, func(i int, e Entity) { rewrite(s, e, value(random.IntN(9))) })
		},
		"cleared": func() { s.Clear() },
	}
	names := slices.Sorted(maps.Keys(works))
	var held []heldTick[T]
	d, looks := &Delta[T]{s: s}, newTickReader(t, s)
	w.Commit()
	for round := range 120 {
		held = append(held, s.heldTick())
		held = held[max(0, len(held)-3):]
		looks.keep(held)
		for range 1 + random.IntN(3) {
			name := names[random.IntN(len(names))]
			if name == "cleared" && round%4 > 0 {
				continue
			}
			works[name]()
			looks.expect()
		}
		for _, then := range held {
			if err := d.Since(then.tick); err != nil {
				t.Fatal(err)
			}
			expectDelta(t, s, d, then)
		}
		w.Commit()
		if random.IntN(4) == 0 {
			looks.expectFrom(random.IntN(4))
		}
	}
}

// rewrite sets the component of e to v, if e has the component.
func rewrite[T any](s *Storage[T], e Entity, v T) {
	if p := s.Mut(e); p != nil {
		*p = v
	}
}

// writeAscending writes every step-th row, in ascending order.
func writeAscending[T any](s *Storage[T], step int, v T) {
	for row := 0; row < s.rows.N; row += step {
		if e := s.Entities()[row]; e != Vacant {
			rewrite(s, e, v)
		}
	}
}

// writeAll sets all rows to v by one call.
func writeAll[T any](s *Storage[T], v T) { fill(s.MutValues(), v) }
