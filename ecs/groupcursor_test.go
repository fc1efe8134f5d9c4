package ecs

import (
	"fmt"
	"iter"
	"strings"
	"testing"
)

// A visit is a loop over a world with a group. The body makes a change once. The entities are x0 …
// x3, of which x0 and x2 are members, and more entities that have one of the components.
type visit struct {
	w     *World
	a     *Storage[plain]
	b     *Storage[padded]
	group *Group
	in    func(e Entity) bool // Reports whether the query should find e.
	loop  iter.Seq[Entity]
	alone []*set // The sets of the query.

	entities []Entity
	seen     map[Entity]int
	always   map[Entity]bool // Found by the query at all times.
	came     map[Entity]bool // Added to all storages of the query, and not removed since.
	left     map[Entity]bool // Not found by the query at some time after the visit.
}

func newVisit(query string) *visit {
	v := &visit{seen: map[Entity]int{}, always: map[Entity]bool{}, came: map[Entity]bool{}, left: map[Entity]bool{}}
	v.w, v.a, v.b, v.group, v.entities = grouped(3, Options{History: 1})
	for i := range 2 {
		e := v.w.Create()
		v.b.Set(e, padded{B: int64(i)})
		v.entities = append(v.entities, e)
	}
	switch query {
	case "a":
		v.in, v.loop, v.alone = v.a.Has, entitiesOf(NewQuery1(Write(v.a)).All()), []*set{&v.a.set}
	case "a without b":
		v.in = func(e Entity) bool { return v.a.Has(e) && !v.b.Has(e) }
		v.loop, v.alone = entitiesOf(NewQuery1(Write(v.a)).Without(v.b).All()), []*set{&v.a.set}
	case "b":
		v.in, v.loop, v.alone = v.b.Has, entitiesOf(NewQuery1(Read(v.b)).All()), []*set{&v.b.set}
	case "b and a":
		v.in = func(e Entity) bool { return v.a.Has(e) && v.b.Has(e) }
		v.loop, v.alone = entitiesOf(NewQuery2(Read(v.b), Write(v.a)).All()), []*set{&v.a.set, &v.b.set}
	}
	return v
}

var visitQueries = []string{"a", "a without b", "b", "b and a"}

func entitiesOf[V any](all iter.Seq2[Entity, V]) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for e := range all {
			if !yield(e) {
				return
			}
		}
	}
}

// note updates the maps after a change.
func (v *visit) note() {
	for _, e := range v.entities {
		if !v.in(e) {
			v.left[e] = v.left[e] || v.seen[e] > 0
			delete(v.always, e)
			delete(v.came, e)
		}
	}
}

func (v *visit) spawn(a, b bool) {
	e := v.w.Create()
	v.entities = append(v.entities, e)
	if a {
		v.a.Set(e, plain{})
	}
	if b {
		v.b.Set(e, padded{})
	}
	if v.in(e) {
		v.came[e] = true
	}
}

// A deed is a change that is made while e is visited.
type deed struct {
	name string
	do   func(v *visit, e Entity)
}

var deeds = func() []deed {
	list := []deed{
		{"nothing", func(*visit, Entity) {}},
		{"spawn a", func(v *visit, _ Entity) { v.spawn(true, false) }},
		{"spawn both", func(v *visit, _ Entity) { v.spawn(true, true) }},
		{"clear b", func(v *visit, _ Entity) { v.b.Clear() }},
		{"commit", func(v *visit, _ Entity) { v.w.Commit() }},
		{"renew e", func(v *visit, e Entity) {
			v.a.Remove(e)
			v.b.Remove(e)
			v.note()
			v.a.Set(e, plain{})
			v.b.Set(e, padded{})
		}},
		{"try", func(v *visit, e Entity) {
			_ = v.w.Try(func() error { v.b.Remove(e); v.b.Set(e, padded{}); return errTried })
		}},
	}
	for i := -1; i < 8; i++ {
		who := func(v *visit, e Entity) Entity {
			if i < 0 {
				return e
			}
			return v.entities[i]
		}
		of := fmt.Sprint(" x", i)
		if i < 0 {
			of = " e"
		}
		list = append(list,
			deed{"set a of" + of, func(v *visit, e Entity) { v.a.Set(who(v, e), plain{}) }},
			deed{"set b of" + of, func(v *visit, e Entity) { v.b.Set(who(v, e), padded{}) }},
			deed{"remove a of" + of, func(v *visit, e Entity) { v.a.Remove(who(v, e)) }},
			deed{"remove b of" + of, func(v *visit, e Entity) { v.b.Remove(who(v, e)) }},
			deed{"destroy" + of, func(v *visit, e Entity) { v.w.Destroy(who(v, e)) }})
	}
	return list
}()

// run makes both changes at the at-th visit. It returns the text of the panic, or "".
func (v *visit) run(at int, first, second deed) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = r.(string)
		}
	}()
	for _, e := range v.entities {
		if v.in(e) {
			v.always[e] = true
		}
	}
	n := 0
	for e := range v.loop {
		v.seen[e]++
		if n == at {
			first.do(v, e)
			v.note()
			second.do(v, e)
			v.note()
		}
		n++
		if n > 30 {
			return "endless"
		}
	}
	return ""
}

// check returns the first wrong visit of a loop that did not panic, or nil.
func (v *visit) check() error {
	for _, e := range v.entities {
		most := 1
		if v.left[e] {
			most = 2 // It was added again.
		}
		if n := v.seen[e]; n > most || n == 0 && (v.always[e] || v.came[e]) {
			return fmt.Errorf("%v was visited %d times", e, n)
		}
	}
	return v.w.check()
}

func TestAGroupThatChangesUnderALoopSkipsNobody(t *testing.T) {
	t.Parallel()
	tried, panicked := 0, 0
	for _, query := range visitQueries {
		for at := range 6 {
			for i, first := range deeds {
				for k, second := range deeds {
					if *depth < 5 && k > 0 && (i+k+at)%6 > 0 {
						continue // Part of the pairs is enough for a normal run.
					}
					v := newVisit(query)
					text := v.run(at, first, second)
					tried++
					err := v.check()
					if text != "" {
						panicked++
						err = v.w.check()
						if !strings.HasPrefix(text, "ecs: ") {
							err = fmt.Errorf("panic with %q", text)
						}
					}
					if err != nil {
						t.Fatalf("%s, at visit %d: %s, %s: %v", query, at, first.name, second.name, err)
					}
				}
			}
		}
	}
	t.Logf("%d loops, %d of them panicked", tried, panicked)
}

// The documentation allows these changes, so they must not panic.
func TestWhatAGroupAllowsUnderALoop(t *testing.T) {
	allowed := map[string][]string{
		"set a of e":    visitQueries,
		"set b of e":    visitQueries,
		"destroy e":     visitQueries,
		"remove a of e": {"a", "a without b", "b and a"},
		"remove b of e": {"a without b", "b", "b and a"},
		"spawn a":       visitQueries,
		"spawn both":    {"b and a"},
		"set b of x1":   {"b and a"},
		"set a of x7":   {"b and a"},
		"clear b":       {"a", "a without b"},
		"commit":        visitQueries,
		"renew e":       {"b and a"},
	}
	for _, d := range deeds {
		for _, query := range allowed[d.name] {
			for at := range 6 {
				v := newVisit(query)
				if text := v.run(at, d, deeds[0]); text != "" {
					t.Errorf("%s, at visit %d: %s panics with %q", query, at, d.name, text)
				}
			}
		}
	}
}

func TestRowsThatAGroupMovesAcrossALoopAreDetected(t *testing.T) {
	const across = "ecs: a group moved rows across a query that was iterating at "
	for _, c := range []struct {
		query string
		at    int
		do    string
	}{
		{"a", 0, "remove b of e"}, // The entity would be visited again.
		{"b", 1, "remove a of e"}, // The same for b.
		// The entity was visited, and moves to a row that is not visited yet.
		{"a", 1, "remove b of x0"},
		{"a", 0, "remove b of x4"},
		{"a", 3, "set b of x5"}, // The other direction.
		{"a", 4, "spawn both"},
		{"a without b", 0, "spawn both"},
	} {
		t.Run(fmt.Sprint(c.query, c.at, c.do), func(t *testing.T) {
			for _, d := range deeds {
				if d.name == c.do {
					v := newVisit(c.query)
					mustPanic(t, across, func() {
						if text := v.run(c.at, d, deeds[0]); text != "" {
							panic(text)
						}
					})
				}
			}
		})
	}
}

// Restore need not change the storage that drives the query. The number of packed rows falls.
func TestAGroupThatIsRestoredUnderALoopMovesNothingAcrossIt(t *testing.T) {
	w, a, b, g, entities := grouped(3, Options{})
	checkAtEnd(t, w)
	b.Remove(entities[4]) // In the last packed row.
	cp := w.Checkpoint()
	b.Set(entities[4], padded{})
	if !a.rows.Untouched() || g.Len() != 3 {
		t.Fatalf("%d members, or a row moved", g.Len())
	}
	mustPanic(t, "ecs: a group moved rows across", func() {
		n := 0
		for range NewQuery1(Read(a)).All() {
			if n++; n == 4 {
				w.Restore(cp)
				b.Set(entities[5], padded{})
			}
		}
	})
}

// A group that is made after a rewind discards the forward ticks, because they have no record of
// the group.
func TestAGroupEndsTheFutureThatDidNotKeepIt(t *testing.T) {
	w, a, b, entities := members(4, Options{History: 2})
	checkAtEnd(t, w)
	w.restart(seqs{}) // Only the forward ticks have records of changes.
	b.Remove(entities[0])
	a.Remove(entities[1])
	w.Commit()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	g := w.MustNewGroup(a, b)
	if w.History().Newest() != 0 || g.Len() != 4 {
		t.Errorf("Newest() = %d with %d members, want 0, 4", w.History().Newest(), g.Len())
	}
}

func TestALoopMayFillAndEmptyItsGroup(t *testing.T) {
	for _, n := range []int{1, 3, 64, 200} {
		w, a, b, g, _ := grouped(n, Options{History: 1})
		checkAtEnd(t, w)
		without, both := NewQuery1(Write(a)).Without(b), NewQuery2(Read(b), Write(a))
		seen := 0
		for e := range without.All() {
			seen++
			b.Set(e, padded{})
		}
		if seen != n || g.Len() != 2*n {
			t.Errorf("%d of %d visited, %d members", seen, n, g.Len())
		}
		seen = 0
		for e := range both.All() {
			if seen++; seen%2 == 0 {
				b.Remove(e)
			} else {
				a.Remove(e)
			}
		}
		if seen != 2*n || g.Len() != 0 {
			t.Errorf("%d of %d visited, %d members left", seen, 2*n, g.Len())
		}
	}
}

func TestALoopWithoutTheGroupsStorageDrivingIsFree(t *testing.T) {
	w, a, b, _, entities := grouped(10, Options{})
	checkAtEnd(t, w)
	c := MustRegister[word](w)
	for _, e := range entities[:15] {
		c.Set(e, word{})
	}
	seen := 0
	for e := range NewQuery2(Read(c), Write(a)).All() {
		seen++
		if !b.Remove(e) {
			b.Set(e, padded{})
		}
		b.Remove(entities[seen])
	}
	if seen != 15 {
		t.Errorf("%d visited, want 15", seen)
	}
}

func TestPackingAndSortingUnderALoopAreDetected(t *testing.T) {
	const text = "rows of it were sorted or packed"
	build := func() (w *World, a *Storage[plain], b *Storage[padded], q *Query1[plain]) {
		w, a, b, entities := members(10, Options{})
		b.Remove(entities[0])
		return w, a, b, NewQuery1(Read(a))
	}
	for name, do := range map[string]func(w *World, a *Storage[plain], b *Storage[padded]){
		"NewGroup": func(w *World, a *Storage[plain], b *Storage[padded]) { w.MustNewGroup(a, b) },
		"SortFunc": func(_ *World, a *Storage[plain], _ *Storage[padded]) {
			a.SortFunc(func(x, y plain) int { return int(y.X - x.X) })
		},
		"SortEntities": func(_ *World, a *Storage[plain], _ *Storage[padded]) { a.SortEntities(byIndexBackwards) },
		"SortLike":     func(_ *World, a *Storage[plain], b *Storage[padded]) { a.SortLike(b) },
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b, q := build()
			mustPanic(t, text, func() {
				for range q.All() {
					do(w, a, b)
				}
			})
		})
	}
	w, a, b, q := build()
	checkAtEnd(t, w)
	// A sort that moves no row is harmless.
	for range q.All() {
		a.SortFunc(func(x, y plain) int { return int(x.X - y.X) })
		b.SortEntities(byIndexBackwards)
	}
}
