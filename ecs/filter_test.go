package ecs

import (
	"slices"
	"testing"
)

func TestQuery_OnlyOptionalComponentsPanics(t *testing.T) {
	w, a, b, entities := members(3, Options{})
	_, other, _, _ := members(0, Options{})
	r := Must(RegisterResource(w, extra{}))
	const world, resource = "ecs: a query joins storages of different worlds", "ecs: a query cannot filter by the resource extra"
	mustPanic(t, world, func() { NewQuery1(Read(a)).Or(b, other) })
	mustPanic(t, resource, func() { NewQuery1(Read(a)).Or(r) })
	mustPanic(t, resource, func() { NewQuery1(Read(a)).Without(r) })
	mustPanic(t, "ecs: All of a query with an Optional component", func() {
		for range NewQuery2(Read(a), Optional(Read(b))).All() {
			break
		}
	})
	q := NewQuery2(Optional(Read(a)), Optional(Write(b)))
	const optional = "ecs: every component of a query is Optional"
	for range 2 {
		mustPanic(t, optional, func() { q.Count() })
		mustPanic(t, optional, func() { q.Has(entities[0]) })
		mustPanic(t, optional, func() { q.Get(entities[0]) })
		mustPanic(t, optional, func() { q.First() })
	}
	if got := q.With(a).Count(); got != 3 {
		t.Errorf("Count() = %d, want 3", got)
	}
}

func TestQuery_FiltersAddedLater(t *testing.T) {
	w, a, b, entities := members(300, Options{})
	c := MustRegister[word](w)
	for _, e := range entities[:200] {
		c.Set(e, word{"1"})
	}
	d := MustRegister[label](w)
	for _, e := range entities[:100] {
		d.Set(e, label{})
	}
	q := NewQuery2(Read(a), Read(b))
	steps := []struct {
		add  func()
		want int
	}{
		{func() {}, 300},
		{func() { q.With(c) }, 200},
		{func() { q.Or(a, d) }, 200},
		{func() { q.Without(d) }, 100},
		{func() { q.With(&moduloPredicate{w: w, rests: [6]bool{true}}) }, 17},
		{func() { q.Or(d) }, 0},
	}
	for i, s := range steps {
		s.add()
		if got := q.Count(); got != s.want {
			t.Errorf("Count() = %d after step %d, want %d", got, i, s.want)
		}
	}
}

func TestQuery_MoreThan16StoragesPanics(t *testing.T) {
	_, a, b, _ := members(70, Options{})
	q := NewQuery8(Write(a), Read(b), Read(b), Read(b), Read(b), Read(b), Read(b), Read(b)).With(a, b, a, b, a, b, a, b)
	if got := q.Count(); got != 70 {
		t.Errorf("Count() = %d, want 70", got)
	}
	mustPanic(t, "ecs: a query joins more than 16 storages", func() { q.With(a) })
}

// saves returns the number of saved rows of s. The result opened reports whether s was opened for a
// write in the current span.
func saves[T any](s *Storage[T]) (rows int, opened bool) {
	return s.data.Log.SavedRows(), s.rows.Span == s.w.clock.Span
}

func TestQuery_SavesReturnedRowsOnly(t *testing.T) {
	w, a, b, entities := members(500, Options{})
	b.Clear()
	q := NewQuery2(Read(a), Optional(Write(b)))
	some := NewQuery1(Write(a)).With(&moduloPredicate{w: w, rests: [6]bool{false, true}})
	tests := []struct {
		name   string
		do     func()
		rows   int
		opened bool
		of     func() (int, bool)
	}{
		{"a missing component", func() {
			for range q.AllOptional() {
			}
			q.Get(entities[3])
			q.First()
			q.ParallelRuns(2, func(Run2[plain, padded]) {})
		}, 0, false, func() (int, bool) { return saves(b) }},
		{"Get", func() { NewQuery1(Write(a)).Get(entities[70]) }, 1, true, func() (int, bool) { return saves(a) }},
		{"Get of nothing", func() { NewQuery1(Write(a)).Get(0) }, 0, false, func() (int, bool) { return saves(a) }},
		{"First", func() { NewQuery1(Write(a)).First() }, 1, true, func() (int, bool) { return saves(a) }},
		{"Has", func() { NewQuery1(Write(a)).Has(entities[1]) }, 0, false, func() (int, bool) { return saves(a) }},
		{"Count", func() { NewQuery1(Write(a)).Count() }, 0, false, func() (int, bool) { return saves(a) }},
		{"filtered", func() {
			for range some.All() {
			}
		}, 84, true, func() (int, bool) { return saves(a) }},
		{"filtered Get", func() { some.Get(entities[6]) }, 0, false, func() (int, bool) { return saves(a) }},
	}
	for _, test := range tests {
		cp := w.Checkpoint()
		test.do()
		if rows, opened := test.of(); rows != test.rows || opened != test.opened {
			t.Errorf("%s: %d rows are saved, opened is %v, want %d and %v", test.name, rows, opened, test.rows, test.opened)
		}
		w.Release(cp)
	}
}

// A complete loop over a query saves all of its rows. If nothing changes afterwards, the second
// loop need not save them again. Otherwise it must.
func TestQuery_SecondLoopSavesUnsavedRows(t *testing.T) {
	for _, between := range []func(w *World, a *Storage[plain]){
		func(*World, *Storage[plain]) {},
		func(w *World, _ *Storage[plain]) { w.Commit() },
		func(w *World, _ *Storage[plain]) { w.Release(w.Checkpoint()) },
		func(w *World, a *Storage[plain]) { a.Remove(a.Entities()[0]) },
		func(w *World, a *Storage[plain]) { a.Set(w.Create(), plain{}) },
	} {
		// n is the number of rows that the first loop visits.
		for _, n := range []int{1, 2, 199, 200} {
			w, a, _, _ := members(200, Options{History: 2})
			w.Commit()
			q := NewQuery1(Write(a))
			cp := w.Checkpoint()
			i := 0
			for range q.All() {
				if i++; i == n {
					break
				}
			}
			between(w, a)
			inner := w.Checkpoint()
			before := w.Digest()
			for range 2 {
				for _, p := range q.All() {
					p.X += 9
				}
			}
			w.Restore(inner)
			if w.Digest() != before {
				t.Error("the world differs after restoring")
			}
			for _, p := range q.All() {
				p.X++
			}
			w.Restore(inner)
			if w.Digest() != before {
				t.Error("the world differs after restoring again")
			}
			_ = cp
		}
	}
}

func TestQuery_CheckpointInSecondLoop(t *testing.T) {
	w, a, b, entities := members(200, Options{})
	// Now the query finds two runs in the second block of 64 rows.
	b.Remove(entities[70])
	q := NewQuery2(Write(a), Read(b))
	w.Checkpoint()
	for range q.Runs() {
	}
	var cp Checkpoint
	for run := range q.Runs() {
		if !cp.Valid() {
			cp = w.Checkpoint()
			continue
		}
		for i := range run.A {
			run.A[i].X = -5
		}
	}
	w.Restore(cp)
	for e, v := range a.All() {
		if v.X != int32(e.Index()) {
			t.Fatalf("%v is %v after restoring", e, v)
		}
	}
}

// vacate makes the row of e a gap, as in an Indexed storage, whose rows do not move.
func vacate[T any](s *Storage[T], e Entity) {
	row := s.row(e)
	s.dense.Live[row] = Vacant
	s.rows.Extra++
	// A normal removal tells queries which entity has changed. There was none, so make them rebuild
	// their cached matches.
	s.dropNotes()
	s.recordMove(e)
}

func TestQuery_SkipsGaps(t *testing.T) {
	w, a, b, entities := members(300, Options{})
	c := MustRegister[word](w)
	for _, e := range entities[:150] {
		c.Set(e, word{"0"})
	}
	one, two, wide := NewQuery1(Write(a)), NewQuery2(Read(a), Read(b)), NewQuery2(Read(a), Optional(Read(b)))
	rare := NewQuery2(Read(c), Read(a))
	rounds := []int{0, 1, 3, 64, 65, 199, 200, 299}
	for _, i := range append(rounds, -1) {
		var got, runs, walked, optional []Entity
		for e := range one.All() {
			got = append(got, e)
		}
		for run := range one.Runs() {
			runs = append(runs, run.Entities...)
		}
		for e, row := range two.All() {
			if walked = append(walked, e); int64(row.A.X) != row.B.B {
				t.Fatalf("%v has %v and %v", e, row.A, row.B)
			}
		}
		for e := range wide.AllOptional() {
			optional = append(optional, e)
		}
		want := slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return !a.Has(e) })
		for _, list := range [][]Entity{got, runs, walked, optional} {
			if !slices.Equal(list, want) {
				t.Fatalf("found %v, want %v", list, want)
			}
		}
		if n := one.Count(); n != len(want) {
			t.Errorf("Count() = %d, want %d", n, len(want))
		}
		if _, _, ok := rare.First(); !ok {
			t.Error("First finds nothing")
		}
		if i >= 0 {
			vacate(a, entities[i])
		}
	}
	for _, e := range entities[:200] {
		if a.Has(e) {
			vacate(a, e)
		}
	}
	if a.rows.N <= c.rows.N {
		t.Fatal("the storage with gaps has more rows")
	}
	if one.join.validate(); one.Count() != 98 {
		t.Errorf("Count() = %d, want 98", one.Count())
	}
	rare.Count()
	if rare.join.driver != 0 {
		t.Error("the choice of the driver does not count gaps as rows")
	}
}

func TestQuery_IndexedRowRemovedInLoop(t *testing.T) {
	_, a, _, entities := members(130, Options{})
	var got []Entity
	for e := range NewQuery1(Read(a)).All() {
		if got = append(got, e); len(got) == 2 {
			for _, i := range []int{2, 3, 100, 129} {
				vacate(a, entities[i])
			}
		}
	}
	want := slices.DeleteFunc(slices.Clone(entities), func(e Entity) bool { return !a.Has(e) })
	if !slices.Equal(got, want) {
		t.Errorf("visited %v, want %v", got, want)
	}
}

func TestLoop_RemovalsInMaskedStorage(t *testing.T) {
	w, a, _, entities := members(100, Options{})
	a.giveMask(true)
	q := NewQuery1(Write(a))
	cp := w.Checkpoint()
	var visited []Entity
	for e := range q.All() {
		if visited = append(visited, e); e == entities[3] {
			a.Remove(entities[50])
			a.Remove(entities[2])
		}
	}
	if want := slices.Delete(slices.Clone(entities), 50, 51); !slices.Equal(visited, want) {
		t.Errorf("visited %v, want %v", visited, want)
	}
	mustPanic(t, "ecs: the rows of plain were restored", func() {
		for range q.All() {
			w.Restore(cp)
		}
	})
}

func TestQuery_Allocations(t *testing.T) {
	w, a, b, entities := members(3000, Options{})
	c := MustRegister[word](w)
	for i, e := range entities {
		if i%100 == 0 {
			c.Set(e, word{"0"})
		}
		if i%64 > 50 {
			b.Remove(e)
		}
	}
	masked := MustRegister[extra](w)
	for _, e := range entities[:50] {
		masked.Set(e, extra{})
	}
	masked.giveMask(true)
	plainOnes := NewQuery1(Write(a))
	maybe := NewQuery2(Write(a), Optional(Write(b)))
	some := NewQuery2(Read(a), Write(b)).Or(c, a).With(&moduloPredicate{w: w, rests: [6]bool{true, true, false}}).Without(c)
	words := NewQuery2(Write(masked), Read(a))
	eight := NewQuery8(Write(a), Read(b), Read(b), Read(b), Read(b), Read(b), Read(b), Read(b))
	body := func(run Run2[plain, padded]) { run.A[0].X++ }
	e := entities[0]
	works := map[string]func(){
		"All": func() {
			for _, p := range plainOnes.All() {
				p.X++
			}
		},
		"AllOptional": func() {
			for _, row := range maybe.AllOptional() {
				row.A.X++
			}
		},
		"filters": func() {
			for _, row := range some.All() {
				row.B.B++
			}
		},
		"masks": func() {
			for _, row := range words.All() {
				row.A.V++
			}
		},
		"eight":    func() { eight.Count(); eight.First() },
		"Runs":     func() { run, _ := eight.Get(e); run.A.X++ },
		"Parallel": func() { maybe.ParallelRuns(2, body) },
		"Get, Has": func() { plainOnes.Get(e); some.Has(e) },
		"after moves": func() {
			a.Remove(e)
			a.Set(e, plain{})
			some.Count()
			words.Count()
			maybe.Count()
			eight.Count()
		},
	}
	for name, work := range works {
		tick := func() {
			cp := w.Checkpoint()
			work()
			w.Restore(cp)
			work()
			w.Release(cp)
		}
		for range 5 {
			tick()
		}
		if n := allocations(t, 20, tick); n != 0 {
			t.Errorf("%s: %v allocations a tick, want none", name, n)
		}
	}
}

// A query remembers which entities of a block it has found. If an entity of the block gets the
// missing component later, the query must search the block again.
func TestQuery_ComponentAddedAfterCount(t *testing.T) {
	for _, masks := range []bool{false, true} {
		w, a, b, entities := members(100, Options{})
		b.Remove(entities[3])
		// Now both storages have 100 rows, so the query iterates over the first storage, a. It
		// skips entities[3], which is not in b.
		b.Set(w.Create(), padded{})
		if masks {
			a.giveMask(true)
		}
		q := NewQuery2(Read(a), Read(b))
		if got := q.Count(); got != 99 {
			t.Errorf("Count() = %d, want 99", got)
		}
		b.Set(entities[3], padded{})
		if got := q.Count(); got != 100 {
			t.Errorf("Count() = %d after another entity got both components, want 100 (masks: %v)", got, masks)
		}
	}
}

func TestQuery_RowMovedInSecondStorage(t *testing.T) {
	_, a, b, entities := members(10, Options{})
	a.giveMask(true)
	q := NewQuery2(Read(a), Read(b))
	q.Count()
	b.Remove(entities[2])
	b.Set(entities[2], padded{B: 2})
	for e, row := range q.All() {
		if int64(row.A.X) != row.B.B {
			t.Errorf("%v has %v and %v", e, row.A, row.B)
		}
	}
}

func TestQuery_FilterAddedAfterFirstLoop(t *testing.T) {
	for _, masks := range []bool{false, true} {
		_, a, b, entities := members(100, Options{})
		for _, e := range entities[:60] {
			b.Remove(e)
		}
		if masks {
			a.giveMask(true)
			b.giveMask(true)
		}
		q := NewQuery1(Write(a))
		for range q.All() {
		}
		if got := q.Without(b).Count(); got != 60 {
			t.Errorf("Count() = %d, want 60 (masks: %v)", got, masks)
		}
	}
}
