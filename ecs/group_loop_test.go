package ecs

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
)

// A groupLoop is a loop over a world with a group. At one visit, the loop body changes the world.
// The entities are x0 to x7. x0, x2 and x4 are members of the group, and the others have only one
// of the two components.
type groupLoop struct {
	w     *World
	a     *Storage[plain]
	b     *Storage[padded]
	group *Group
	in    func(e Entity) bool // Reports whether the query should find e.
	loop  iter.Seq[Entity]

	entities []Entity
	seen     map[Entity]int
	always   map[Entity]bool // Entities that the query finds from start to end of the loop.
	// Entities that the loop body created, and that the query should find since then.
	came map[Entity]bool
	left map[Entity]bool // Entities that left the result of the query after their visit.
}

func newGroupLoop(query string) *groupLoop {
	v := &groupLoop{seen: map[Entity]int{}, always: map[Entity]bool{}, came: map[Entity]bool{}, left: map[Entity]bool{}}
	v.w, v.a, v.b, v.group, v.entities = grouped(3, Options{History: 1})
	for i := range 2 {
		e := v.w.Create()
		v.b.Set(e, padded{B: int64(i)})
		v.entities = append(v.entities, e)
	}
	switch query {
	case "a":
		v.in, v.loop = v.a.Has, entitiesOf(NewQuery1(Write(v.a)).All())
	case "a without b":
		v.in = func(e Entity) bool { return v.a.Has(e) && !v.b.Has(e) }
		v.loop = entitiesOf(NewQuery1(Write(v.a)).Without(v.b).All())
	case "b":
		v.in, v.loop = v.b.Has, entitiesOf(NewQuery1(Read(v.b)).All())
	case "b and a":
		v.in = func(e Entity) bool { return v.a.Has(e) && v.b.Has(e) }
		v.loop = entitiesOf(NewQuery2(Read(v.b), Write(v.a)).All())
	}
	return v
}

var groupLoopQueries = []string{"a", "a without b", "b", "b and a"}

func entitiesOf[V any](all iter.Seq2[Entity, V]) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for e := range all {
			if !yield(e) {
				return
			}
		}
	}
}

// note updates the maps after a change of the world.
func (v *groupLoop) note() {
	for _, e := range v.entities {
		if !v.in(e) {
			v.left[e] = v.left[e] || v.seen[e] > 0
			delete(v.always, e)
			delete(v.came, e)
		}
	}
}

func (v *groupLoop) spawn(a, b bool) {
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

// A loopAction is a change of the world in a loop body. The function do makes the change during the
// visit of e.
type loopAction struct {
	name string
	do   func(v *groupLoop, e Entity)
}

var loopActions = func() []loopAction {
	list := []loopAction{
		{"nothing", func(*groupLoop, Entity) {}},
		{"spawn a", func(v *groupLoop, _ Entity) { v.spawn(true, false) }},
		{"spawn both", func(v *groupLoop, _ Entity) { v.spawn(true, true) }},
		{"clear b", func(v *groupLoop, _ Entity) { v.b.Clear() }},
		{"commit", func(v *groupLoop, _ Entity) { v.w.Commit() }},
		{"renew e", func(v *groupLoop, e Entity) {
			v.a.Remove(e)
			v.b.Remove(e)
			v.note()
			v.a.Set(e, plain{})
			v.b.Set(e, padded{})
		}},
		{"try", func(v *groupLoop, e Entity) {
			_ = v.w.Try(func() error { v.b.Remove(e); v.b.Set(e, padded{}); return errTried })
		}},
	}
	for i := -1; i < 8; i++ {
		who := func(v *groupLoop, e Entity) Entity {
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
			loopAction{"set a of" + of, func(v *groupLoop, e Entity) { v.a.Set(who(v, e), plain{}) }},
			loopAction{"set b of" + of, func(v *groupLoop, e Entity) { v.b.Set(who(v, e), padded{}) }},
			loopAction{"remove a of" + of, func(v *groupLoop, e Entity) { v.a.Remove(who(v, e)) }},
			loopAction{"remove b of" + of, func(v *groupLoop, e Entity) { v.b.Remove(who(v, e)) }},
			loopAction{"destroy" + of, func(v *groupLoop, e Entity) { v.w.Destroy(who(v, e)) }})
	}
	return list
}()

// run iterates over the world. In the loop body of one visit, it makes two changes, one after the
// other. The parameter at is the number of this visit, from 0. run returns the text of the panic,
// or "".
func (v *groupLoop) run(at int, first, second loopAction) (text string) {
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

// check returns an error for the first entity that the loop visited too often or not at all. An
// entity may be visited once, or twice if it was added again after its visit. The loop must not
// have panicked.
func (v *groupLoop) check() error {
	for _, e := range v.entities {
		most := 1
		if v.left[e] {
			most = 2 // The entity may have been added again after its visit.
		}
		if n := v.seen[e]; n > most || n == 0 && (v.always[e] || v.came[e]) {
			return fmt.Errorf("%v was visited %d times", e, n)
		}
	}
	return v.w.check()
}

func TestGroupInLoop_EveryChange(t *testing.T) {
	t.Parallel()
	tried, panicked := 0, 0
	for _, query := range groupLoopQueries {
		for at := range 6 {
			for i, first := range loopActions {
				for k, second := range loopActions {
					if *depth < 5 && k > 0 && (i+k+at)%6 > 0 {
						continue // With a depth below 5, try only some of the pairs.
					}
					v := newGroupLoop(query)
					text := v.run(at, first, second)
					tried++
					err := v.check()
					if text != "" {
						panicked++
						err = v.w.check()
						if !strings.HasPrefix(text, "ecs: the rows of ") || first.name != "try" && second.name != "try" {
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

// The documentation of loops allows each of these changes in the body, so none of them may panic.
func TestGroupInLoop_AllowedChanges(t *testing.T) {
	allowed := map[string][]string{
		"set a of e":    groupLoopQueries,
		"set b of e":    groupLoopQueries,
		"destroy e":     groupLoopQueries,
		"remove a of e": {"a", "a without b", "b and a"},
		"remove b of e": {"a without b", "b", "b and a"},
		"spawn a":       groupLoopQueries,
		"spawn both":    {"b and a"},
		"set b of x1":   {"b and a"},
		"set a of x7":   {"b and a"},
		"clear b":       {"a", "a without b"},
		"commit":        groupLoopQueries,
		"renew e":       {"b and a"},
	}
	for _, d := range loopActions {
		for _, query := range allowed[d.name] {
			for at := range 6 {
				v := newGroupLoop(query)
				if text := v.run(at, d, loopActions[0]); text != "" {
					t.Errorf("%s, at visit %d: %s panics with %q", query, at, d.name, text)
				}
			}
		}
	}
}

// A change in the body makes the group move an entity across the current row of the loop, in either
// direction. The loop still visits each entity once.
func TestGroupInLoop_MoveAcrossPosition(t *testing.T) {
	for _, c := range []struct {
		query string
		at    int
		do    string
	}{
		{"a", 0, "remove b of e"}, // The visited entity moves ahead of the loop.
		{"b", 1, "remove a of e"}, // The visited entity moves ahead of the loop.
		// The loop has already visited x0. Now x0 moves to a row that the loop has not reached.
		{"a", 1, "remove b of x0"},
		{"a", 0, "remove b of x4"},
		{"a", 3, "set b of x5"}, // The entity moves behind the loop.
		{"a", 4, "spawn both"},
		{"a without b", 0, "spawn both"},
	} {
		t.Run(fmt.Sprint(c.query, c.at, c.do), func(t *testing.T) {
			for _, d := range loopActions {
				if d.name != c.do {
					continue
				}
				v := newGroupLoop(c.query)
				if text := v.run(c.at, d, loopActions[0]); text != "" {
					t.Errorf("panic with %q", text)
				}
				if err := v.check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// At each visit of a loop, some random changes move rows of a group. The loop visits each entity
// once.
func TestGroupInLoop_RandomChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		query := groupLoopQueries[seed%4]
		v := newGroupLoop(query)
		for range 12 {
			v.spawn(rng.IntN(4) > 0, rng.IntN(4) > 0)
		}
		for _, e := range v.entities {
			v.always[e] = v.in(e)
		}
		clear(v.came)
		visits := 0
		for e := range v.loop {
			v.seen[e]++
			if visits++; visits > 200 {
				break
			}
			for range rng.IntN(3) {
				some := v.entities[rng.IntN(len(v.entities))]
				switch k := rng.IntN(20); {
				case k == 0:
					v.spawn(true, rng.IntN(2) == 0)
				case k < 5:
					v.a.Set(some, plain{})
				case k < 9:
					v.b.Set(some, padded{})
				case k < 13:
					v.a.Remove(some)
				case k < 18:
					v.b.Remove(some)
				default:
					v.w.Destroy(some)
				}
				v.note()
			}
		}
		err := v.w.check()
		for _, e := range v.entities {
			n := v.seen[e]
			if n > 1 && !v.left[e] || n == 0 && (v.always[e] || v.came[e]) && visits <= 200 {
				err = fmt.Errorf("%v was visited %d times", e, n)
			}
		}
		if err != nil {
			t.Fatalf("%s, seed %d: %v", query, seed, err)
		}
	}
}

// A restore takes an entity out of the packed rows of a group. The loop iterates over storage a,
// which the restore does not change. It must still visit each entity once.
func TestGroupInLoop_RestoreReducesPackedRows(t *testing.T) {
	w, a, b, g, entities := grouped(3, Options{})
	checkAtEnd(t, w)
	b.Remove(entities[4]) // Entity 4 is in the last packed row.
	cp := w.Checkpoint()
	b.Set(entities[4], padded{})
	if !a.rows.Untouched() || g.Len() != 3 {
		t.Fatalf("%d members, or a row moved", g.Len())
	}
	n, seen := 0, map[Entity]int{}
	for e := range NewQuery1(Read(a)).All() {
		if n++; n == 4 {
			w.Restore(cp)
			b.Set(entities[5], padded{})
		}
		seen[e]++
	}
	for _, e := range entities {
		if seen[e] != 1 {
			t.Errorf("%v was visited %d times, want once", e, seen[e])
		}
	}
}

// NewGroup discards the ticks that a rewind has undone. These ticks have no data of the group, so
// they cannot be redone.
func TestNewGroup_DiscardsUndoneTicks(t *testing.T) {
	w, a, b, entities := members(4, Options{History: 2})
	checkAtEnd(t, w)
	// Restart the history. Then only the tick below, which is undone, has records of changes.
	w.restart(seqs{})
	b.Remove(entities[0])
	a.Remove(entities[1])
	w.Commit()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	g := Must(w.NewGroup(a, b))
	if w.History().Newest() != 0 || g.Len() != 4 {
		t.Errorf("Newest() = %d with %d members, want 0, 4", w.History().Newest(), g.Len())
	}
}

func TestGroupInLoop_AllEntitiesJoinOrLeave(t *testing.T) {
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

func TestGroupInLoop_OtherStorageDrivesQuery(t *testing.T) {
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

func TestLoop_PackOrSortInBodyPanics(t *testing.T) {
	build := func() (w *World, a *Storage[plain], b *Storage[padded], q *Query1[plain]) {
		w, a, b, entities := members(10, Options{})
		b.Remove(entities[0])
		return w, a, b, NewQuery1(Read(a))
	}
	for name, do := range map[string]func(w *World, a *Storage[plain], b *Storage[padded]){
		"NewGroup": func(w *World, a *Storage[plain], b *Storage[padded]) { Must(w.NewGroup(a, b)) },
		"SortFunc": func(_ *World, a *Storage[plain], _ *Storage[padded]) {
			a.SortFunc(func(x, y plain) int { return int(y.X - x.X) })
		},
		"SortEntities": func(_ *World, a *Storage[plain], _ *Storage[padded]) { a.SortEntities(byIndexBackwards) },
		"SortLike":     func(_ *World, a *Storage[plain], b *Storage[padded]) { a.SortLike(b) },
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b, q := build()
			text := "ecs: the rows of plain were sorted"
			if name == "NewGroup" {
				text = "ecs: the rows of plain were packed"
			}
			mustPanic(t, text, func() {
				for range q.All() {
					do(w, a, b)
				}
			})
		})
	}
	w, a, b, q := build()
	checkAtEnd(t, w)
	// A sort that moves no row is allowed.
	for range q.All() {
		a.SortFunc(func(x, y plain) int { return int(x.X - y.X) })
		b.SortEntities(byIndexBackwards)
	}
}
