package ecs

import (
	"slices"
	"strings"
	"testing"
)

// members returns a world with n entities. Entity i has the value plain{i, -i} in storage a, and a
// value in storage b.
func members(n int, o Options) (w *World, a *Storage[plain], b *Storage[padded], entities []Entity) {
	w = NewWorld(o)
	a, b = MustRegister[plain](w), MustRegister[padded](w)
	for i := range n {
		e := w.Create()
		a.Set(e, plain{int32(i), int32(-i)})
		b.Set(e, padded{B: int64(i)})
		entities = append(entities, e)
	}
	return w, a, b, entities
}

// eachIteration calls f with a loop over each of several queries. Each query finds all entities
// that have a plain. The queries have one to four components. One of them finds runs of a single
// row, and the others find long runs.
func eachIteration(t *testing.T, n int, f func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(visit func(Entity, *plain)))) {
	t.Helper()
	t.Run("Query1", func(t *testing.T) {
		w, a, _, entities := members(n, Options{})
		q := NewQuery1(Write(a))
		f(t, w, a, entities, func(visit func(Entity, *plain)) {
			for e, p := range q.All() {
				visit(e, p)
			}
		})
	})
	t.Run("Query2", func(t *testing.T) {
		w, a, b, entities := members(n, Options{})
		q := NewQuery2(Write(a), Read(b))
		f(t, w, a, entities, func(visit func(Entity, *plain)) {
			for e, r := range q.All() {
				visit(e, r.A)
			}
		})
	})
	t.Run("Query3", func(t *testing.T) {
		w, a, b, entities := members(n, Options{})
		none := MustRegister[label](w)
		q := NewQuery3(Write(a), Read(b), Read(b)).With(b).Without(none)
		f(t, w, a, entities, func(visit func(Entity, *plain)) {
			for e, r := range q.All() {
				visit(e, r.A)
			}
		})
	})
	t.Run("Query4", func(t *testing.T) {
		w, a, b, entities := members(n, Options{})
		none := MustRegister[label](w)
		q := NewQuery4(Write(a), Read(b), Read(b), Read(b)).With(b).Without(none)
		f(t, w, a, entities, func(visit func(Entity, *plain)) {
			for e, r := range q.All() {
				visit(e, r.A)
			}
		})
	})
	t.Run("Query2 out of order", func(t *testing.T) {
		w, a, b, entities := members(n, Options{})
		b.Clear()
		for _, e := range slices.Backward(entities) {
			b.Set(e, padded{})
		}
		q := NewQuery2(Write(a), Read(b))
		f(t, w, a, entities, func(visit func(Entity, *plain)) {
			for e, r := range q.All() {
				visit(e, r.A)
			}
		})
	})
}

func mustPanic(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		got, _ := recover().(string)
		if !strings.Contains(got, text) {
			t.Errorf("panic with %q, want %q", got, text)
		}
	}()
	f()
}

func TestLoop_EntityAddedInBody(t *testing.T) {
	eachIteration(t, 100, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		b := w.Storages()[1].(*Storage[padded])
		want := slices.Clone(entities)
		var got []Entity
		loop(func(e Entity, _ *plain) {
			got = append(got, e)
			if len(got)%10 == 1 && len(want) < 150 {
				young := w.Create()
				a.Set(young, plain{})
				b.Set(young, padded{})
				want = append(want, young)
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("visited %v, want %v", got, want)
		}
	})
}

func TestLoop_VisitedEntityRemoved(t *testing.T) {
	eachIteration(t, 200, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		seen := map[Entity]int{}
		loop(func(e Entity, _ *plain) {
			seen[e]++
			switch e.Index() % 3 {
			case 0:
				a.Remove(e)
			case 1:
				w.Destroy(e)
			}
		})
		for _, e := range entities {
			if seen[e] != 1 {
				t.Errorf("%v was visited %d times, want once", e, seen[e])
			}
		}
		if want := 66; a.Len() != want {
			t.Errorf("Len() = %d, want %d", a.Len(), want)
		}
	})
}

// If the body removes the visited entity, the last entity gets its row. The loop visits it next.
func TestLoop_LastRowMovesToVisitedRow(t *testing.T) {
	eachIteration(t, 5, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		var got []Entity
		loop(func(e Entity, _ *plain) {
			if got = append(got, e); e == entities[1] {
				a.Remove(e)
			}
		})
		if want := []Entity{entities[0], entities[1], entities[4], entities[2], entities[3]}; !slices.Equal(got, want) {
			t.Errorf("visited %v, want %v", got, want)
		}
	})
}

// If the body removes the visited entity and adds it again, the entity gets the last row. So the
// loop visits it again.
func TestLoop_VisitedEntityAddedAgain(t *testing.T) {
	eachIteration(t, 5, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		var got []Entity
		loop(func(e Entity, _ *plain) {
			if got = append(got, e); e == entities[1] && len(got) == 2 {
				a.Remove(e)
				a.Set(e, plain{})
			}
		})
		if want := []Entity{entities[0], entities[1], entities[4], entities[2], entities[3], entities[1]}; !slices.Equal(got, want) {
			t.Errorf("visited %v, want %v", got, want)
		}
	})
}

// The loop visits each entity once, unless the body removes it before the visit. If an entity moves
// to a row that the loop has passed, the loop visits the entity at the end.
func TestLoop_OtherEntitiesRemoved(t *testing.T) {
	cases := map[string]struct {
		// remove runs during the visit of x[3]. The entities are x[0] to x[9].
		remove func(w *World, a *Storage[plain], x []Entity)
		later  []int // The entities that the loop must visit after x[3].
	}{
		"behind":                 {func(_ *World, a *Storage[plain], x []Entity) { a.Remove(x[1]) }, []int{4, 5, 6, 7, 8, 9}},
		"ahead":                  {func(w *World, _ *Storage[plain], x []Entity) { w.Destroy(x[6]) }, []int{4, 5, 9, 7, 8}},
		"last":                   {func(w *World, _ *Storage[plain], x []Entity) { w.Destroy(x[9]) }, []int{4, 5, 6, 7, 8}},
		"two behind":             {func(w *World, _ *Storage[plain], x []Entity) { w.Destroy(x[0]); w.Destroy(x[2]) }, []int{4, 5, 6, 7, 9, 8}},
		"behind and visited":     {func(_ *World, a *Storage[plain], x []Entity) { a.Remove(x[1]); a.Remove(x[3]) }, []int{8, 4, 5, 6, 7, 9}},
		"visited and before":     {func(_ *World, a *Storage[plain], x []Entity) { a.Remove(x[3]); a.Remove(x[2]) }, []int{8, 9, 4, 5, 6, 7}},
		"behind, then its mover": {func(_ *World, a *Storage[plain], x []Entity) { a.Remove(x[1]); a.Remove(x[9]) }, []int{4, 5, 6, 7, 8}},
		"mover added again": {func(_ *World, a *Storage[plain], x []Entity) {
			a.Remove(x[1])
			a.Remove(x[9])
			a.Set(x[9], plain{})
		}, []int{4, 5, 6, 7, 9, 8}},
		"batch":     {func(w *World, _ *Storage[plain], x []Entity) { w.DestroyAll(x[2:8]) }, []int{8, 9}},
		"rest":      {func(_ *World, a *Storage[plain], x []Entity) { a.RemoveAll(x[3:]) }, nil},
		"clear":     {func(_ *World, a *Storage[plain], _ []Entity) { a.Clear() }, nil},
		"clear all": {func(w *World, _ *Storage[plain], _ []Entity) { w.Clear() }, nil},
		"clear, then one": {func(_ *World, a *Storage[plain], x []Entity) {
			a.Remove(x[0])
			a.Clear()
			a.Set(x[2], plain{})
		}, []int{2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			eachIteration(t, 10, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
				want := slices.Clone(entities[:4])
				for _, i := range c.later {
					want = append(want, entities[i])
				}
				var got []Entity
				loop(func(e Entity, _ *plain) {
					if got = append(got, e); len(got) == 4 {
						c.remove(w, a, entities)
					}
				})
				if !slices.Equal(got, want) {
					t.Errorf("visited %v, want %v", got, want)
				}
				if a.log.loops != 0 || len(a.log.moves) > 0 {
					t.Errorf("after the loop, %d loops and %d moves are left", a.log.loops, len(a.log.moves))
				}
			})
		})
	}
}

// The body destroys entities that have component a and lack component b. The query does not visit
// such entities.
func TestLoop_DestroyOutsideQuery(t *testing.T) {
	w, a, b, entities := members(20, Options{})
	for _, e := range entities[10:] {
		b.Remove(e)
	}
	var got []Entity
	for e := range NewQuery2(Read(a), Write(b)).All() {
		got = append(got, e)
		w.Destroy(entities[10+len(got)-1])
	}
	if !slices.Equal(got, entities[:10]) || w.Len() != 10 {
		t.Errorf("visited %v, want %v; %d are left", got, entities[:10], w.Len())
	}
}

func TestLoop_ExcludedComponentRemoved(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	c := MustRegister[word](w)
	c.Set(entities[7], word{"x"})
	n := 0
	for range NewQuery2(Read(a), Read(b)).Without(c).All() {
		if n++; n == 3 {
			c.Remove(entities[7])
		}
	}
	// The query excludes entity 7 at first, because the entity has component c. The body removes
	// this component before the loop reaches the entity.
	if n != 10 {
		t.Errorf("%d entities visited, want 10", n)
	}
}

func TestLoop_CheckpointInBody(t *testing.T) {
	boundaries := map[string]func(w *World) Checkpoint{
		"checkpoint": (*World).Checkpoint,
		"commit": func(w *World) Checkpoint {
			cp := w.Checkpoint()
			w.Commit()
			return cp
		},
		"release": func(w *World) Checkpoint {
			cp := w.Checkpoint()
			w.Release(w.Checkpoint())
			return cp
		},
	}
	for name, boundary := range boundaries {
		t.Run(name, func(t *testing.T) {
			eachIteration(t, 200, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
				var cp Checkpoint
				n := 0
				loop(func(_ Entity, p *plain) {
					p.X += 1000
					if n++; n == 70 {
						cp = boundary(w)
					}
				})
				w.Restore(cp)
				for i, e := range entities {
					want := int32(i)
					if i < 70 {
						want += 1000
					}
					if got, _ := a.Get(e); got.X != want {
						t.Fatalf("row %d is %d after restoring, want %d", i, got.X, want)
					}
				}
				if err := w.check(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestLoop_RestoreInBodyPanics(t *testing.T) {
	const text = "ecs: the rows of plain were restored"
	eachIteration(t, 10, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		cp := w.Checkpoint()
		a.Remove(entities[0])
		mustPanic(t, text, func() {
			loop(func(Entity, *plain) { w.Restore(cp) })
		})
	})
	w, a, _, _ := members(10, Options{History: 2})
	w.Commit()
	mustPanic(t, text, func() {
		for range NewQuery1(Write(a)).All() {
			if err := w.History().Rewind(1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestLoop_BreakEndsLoop(t *testing.T) {
	_, a, b, entities := members(200, Options{})
	count := map[string]int{}
	for range NewQuery1(Read(a)).Runs() {
		count["1"]++
		break
	}
	for range NewQuery2(Read(a), Read(b)).Runs() {
		count["2"]++
		break
	}
	for range NewQuery3(Read(a), Read(b), Read(a)).Runs() {
		count["3"]++
		break
	}
	for range NewQuery4(Read(a), Read(b), Read(a), Read(b)).Runs() {
		count["4"]++
		break
	}
	for e := range NewQuery2(Read(a), Read(b)).All() {
		if count["all"]++; e == entities[99] {
			break
		}
	}
	for range a.All() {
		count["storage"]++
		break
	}
	for what, want := range map[string]int{"1": 1, "2": 1, "3": 1, "4": 1, "all": 100, "storage": 1} {
		if count[what] != want {
			t.Errorf("%s: %d steps, want %d", what, count[what], want)
		}
	}
}

func TestLoop_BreakAfterChange(t *testing.T) {
	eachIteration(t, 10, func(t *testing.T, w *World, a *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		for e := range NewQuery1(Read(a)).All() {
			if e == entities[2] {
				w.Clear()
				break
			}
		}
		loop(func(e Entity, _ *plain) { t.Errorf("%v was visited", e) })
	})
}

func TestLoop_NestedInItself(t *testing.T) {
	eachIteration(t, 150, func(t *testing.T, _ *World, _ *Storage[plain], entities []Entity, loop func(func(Entity, *plain))) {
		var outer []Entity
		inner := 0
		loop(func(e Entity, _ *plain) {
			outer = append(outer, e)
			if len(outer)%50 == 1 {
				loop(func(Entity, *plain) { inner++ })
			}
		})
		if !slices.Equal(outer, entities) || inner != 450 {
			t.Errorf("visited %d entities outside and %d inside, want 150 and 450", len(outer), inner)
		}
	})
}

// A run has at most maxRun rows, even if it begins inside a block of 64 rows.
func TestRuns_MaxLength(t *testing.T) {
	for _, first := range []int{0, 1, 63, 64} {
		w, a, b, entities := members(10_000, Options{})
		for _, e := range entities[:first] {
			b.Remove(e)
		}
		b.Clear()
		for i, e := range entities[first:] {
			b.Set(e, padded{B: int64(first + i)})
		}
		// Storage b gets more rows than storage a, so the query iterates over the rows of a.
		for range 100 {
			b.Set(w.Create(), padded{})
		}
		n := 0
		for run := range NewQuery2(Read(a), Write(b)).Runs() {
			if len(run.Entities) > maxRun || len(run.A) != len(run.Entities) || len(run.B) != len(run.Entities) {
				t.Fatalf("a run of %d entities, %d and %d components", len(run.Entities), len(run.A), len(run.B))
			}
			for i, e := range run.Entities {
				if e != entities[first+n] || int64(run.A[i].X) != run.B[i].B {
					t.Fatalf("row %d is %v with %v and %v", n, e, run.A[i], run.B[i])
				}
				n++
			}
		}
		if want := 10_000 - first; n != want {
			t.Errorf("%d rows in runs, want %d", n, want)
		}
	}
}

func TestQuery_Misuse(t *testing.T) {
	w, a, b, _ := members(0, Options{})
	_, other, _, _ := members(0, Options{})
	r := Must(RegisterResource(w, extra{}))
	mustPanic(t, "ecs: a query joins storages of different worlds", func() { NewQuery2(Read(other), Read(b)) })
	mustPanic(t, "ecs: a query joins storages of different worlds", func() { NewQuery1(Read(a)).With(other) })
	mustPanic(t, "ecs: a query joins storages of different worlds", func() { NewQuery1(Read(a)).Without(other) })
	mustPanic(t, "ecs: a query cannot filter by the resource extra", func() { NewQuery1(Read(a)).With(r) })
	mustPanic(t, "ecs: a query joins more than 16 storages", func() { NewQuery1(Read(a)).With(a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a) })
}

// Runs returns entities in the same order as All, whatever the order of rows in the other storages.
func TestRuns_SameOrderAsAll(t *testing.T) {
	for i, kind := range []Kind{Sparse, Hashed, Ordered, Sparse, Ordered} {
		// If blocks is set, b has the entities in blocks of 64, and the last block comes first.
		// Within a block, the order is that of a.
		blocks := i > 2
		w := NewWorld(Options{})
		a := MustRegister[plain](w)
		b := MustRegister(w, Component[extra]{Kind: kind})
		added := NewQuery2(Read(a), Read(b)).With(b.Added())
		w.Commit()
		all := w.CreateN(nil, 512)
		for i, e := range all {
			a.Set(e, plain{X: int32(i)})
		}
		for i := range all {
			e := all[i*7%len(all)]
			if blocks {
				e = all[(7-i>>6)<<6|i&63]
			}
			if blocks || i%5 > 0 || i > 250 {
				b.Set(e, extra{V: int64(e.Index())})
			}
		}
		check := func(name string, q *Query2[plain, extra]) {
			var want, got []Entity
			for e := range q.All() {
				want = append(want, e)
			}
			runs := 0
			for run := range q.Runs() {
				runs++
				for i, e := range run.Entities {
					if got = append(got, e); int64(run.A[i].X) != run.B[i].V || run.A[i].X != int32(e.Index()) {
						t.Errorf("%v, %s: %v has %v and %v", kind, name, e, run.A[i], run.B[i])
					}
				}
			}
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%v, %s: Runs visits %v in %d runs, All %v", kind, name, got, runs, want)
			}
			if list := q.AppendEntities(nil); !slices.Equal(list, want) {
				t.Errorf("%v, %s: AppendEntities returns %v, All %v", kind, name, list, want)
			}
		}
		q := NewQuery2(Read(a), Read(b))
		check("scattered", q)
		// Storage a gets more rows than storage b. So the next query iterates over b, although it
		// does not read the components of b.
		a.Set(w.Create(), plain{X: int32(len(all))})
		for run := range NewQuery1(Read(a)).With(b).Runs() {
			for i, e := range run.Entities {
				if run.A[i].X != int32(e.Index()) {
					t.Errorf("%v: %v has %v", kind, e, run.A[i])
				}
			}
		}
		w.Align(a, b)
		check("aligned", q)
		for i, e := range all {
			if i%3 == 0 {
				b.Remove(e)
			}
		}
		check("after removals", q)
		check("with Added", added)
	}
}

// If some entities lack an optional component, a run has at most 64 rows.
func TestRuns_OptionalMissing(t *testing.T) {
	w := NewWorld(Options{})
	a, b := MustRegister[plain](w), MustRegister[extra](w)
	all := w.CreateN(nil, 200)
	a.SetAll(all, plain{})
	b.Set(all[0], extra{})
	runs, without := 0, 0
	for run := range NewQuery2(Read(a), Optional(Read(b))).Runs() {
		if runs++; run.B == nil {
			without += len(run.Entities)
		}
	}
	if without != 199 || runs > 4 {
		t.Errorf("%d runs, in which %d entities lack the component, want at most 4 and 199", runs, without)
	}
}
