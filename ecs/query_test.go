package ecs

import (
	"fmt"
	"slices"
	"testing"
)

// A queryModel is a query of a model, together with its components and filters.
type queryModel struct {
	name string
	// The stores that an entity must have: first the components, then the filters of With.
	include []int
	without []int
	write   int // The store that the query writes, or -1.

	count func() int
	// Calls visit for each row. The third argument of visit is a function that writes the row.
	all  func(visit func(Entity, []int, func()))
	runs func() []answer
}

// An answer is an entity and the values that a query returned for the entity.
type answer struct {
	e      Entity
	values []int
}

func (a answer) String() string { return fmt.Sprint(a.e, a.values) }

// queryKinds are the components of the queries, in the order of the constants below.
var queryKinds = []kind{plainKind, paddedKind, wordKind, labelKind}

const (
	storePlain = iota
	storePadded
	storeWord
	storeLabel
	// Only models with programKinds have the stores from here on.
	storeList
	storeExtra
	storeIndexed
	storeGap
	storeHashed
	storeOrdered
	storeMarked
)

// queryModels returns queries of every arity. Programs keep the queries during other operations.
func queryModels(p *model) []queryModel {
	a := p.stores[storePlain].any().(*Storage[plain])
	b := p.stores[storePadded].any().(*Storage[padded])
	c := p.stores[storeWord].any().(*Storage[word])
	d := p.stores[storeLabel].any().(*Storage[label])
	return []queryModel{
		newQueryModel1("plain", NewQuery1(Write(a)), storePlain),
		newQueryModel1("plain with label without word", NewQuery1(Read(a)).With(d).Without(c), -1).filter([]int{storeLabel}, storeWord),
		newQueryModel2("plain, padded", NewQuery2(Write(a), Read(b)), storePlain, storePadded, storePlain),
		newQueryModel2("padded, plain", NewQuery2(Read(b), Read(a)), storePadded, storePlain, -1),
		newQueryModel2("padded, plain without label", NewQuery2(Read(b), Read(a)).Without(d), storePadded, storePlain, -1).filter(nil, storeLabel),
		newQueryModel2("plain, padded with word", NewQuery2(Read(a), Read(b)).With(c), storePlain, storePadded, -1).filter([]int{storeWord}),
		newQueryModel3("plain, word, padded", NewQuery3(Read(a), Read(c), Read(b))),
		newQueryModel4("label, plain, padded, word", NewQuery4(Read(d), Read(a), Read(b), Read(c))),
	}
}

// filter adds filters to a query.
func (q queryModel) filter(with []int, without ...int) queryModel {
	q.include, q.without = append(q.include, with...), without
	return q
}

func newQueryModel1(name string, q *Query1[plain], write int) queryModel {
	return queryModel{name: name, include: []int{storePlain}, write: write, count: q.Count,
		all: func(visit func(Entity, []int, func())) {
			for e, v := range q.All() {
				visit(e, []int{int(v.X)}, func() { v.X++; v.Y-- })
			}
		},
		runs: func() (found []answer) {
			for r := range q.Runs() {
				checkRun(len(r.Entities), len(r.A))
				for i, e := range r.Entities {
					found = append(found, answer{e, []int{int(r.A[i].X)}})
				}
			}
			return found
		}}
}

type component interface{ plain | padded }

func intOf[T component](v *T) int {
	switch v := any(v).(type) {
	case *plain:
		return int(v.X)
	case *padded:
		return int(v.B)
	}
	return 0
}

func newQueryModel2[A, B component](name string, q *Query2[A, B], first, second, write int) queryModel {
	return queryModel{name: name, include: []int{first, second}, write: write, count: q.Count,
		all: func(visit func(Entity, []int, func())) {
			for e, r := range q.All() {
				visit(e, []int{intOf(r.A), intOf(r.B)}, func() {
					p := any(r.A).(*plain)
					p.X++
					p.Y--
				})
			}
		},
		runs: func() (found []answer) {
			for r := range q.Runs() {
				checkRun(len(r.Entities), len(r.A), len(r.B))
				for i, e := range r.Entities {
					found = append(found, answer{e, []int{intOf(&r.A[i]), intOf(&r.B[i])}})
				}
			}
			return found
		}}
}

func newQueryModel3(name string, q *Query3[plain, word, padded]) queryModel {
	values := func(a *plain, b *word, c *padded) []int {
		return []int{int(a.X), wordInt(b), int(c.B)}
	}
	return queryModel{name: name, include: []int{storePlain, storeWord, storePadded}, write: -1, count: q.Count,
		all: func(visit func(Entity, []int, func())) {
			for e, r := range q.All() {
				visit(e, values(r.A, r.B, r.C), nil)
			}
		},
		runs: func() (found []answer) {
			for r := range q.Runs() {
				checkRun(len(r.Entities), len(r.A), len(r.B), len(r.C))
				for i, e := range r.Entities {
					found = append(found, answer{e, values(&r.A[i], &r.B[i], &r.C[i])})
				}
			}
			return found
		}}
}

func newQueryModel4(name string, q *Query4[label, plain, padded, word]) queryModel {
	values := func(b *plain, c *padded, d *word) []int {
		return []int{0, int(b.X), int(c.B), wordInt(d)}
	}
	return queryModel{name: name, include: []int{storeLabel, storePlain, storePadded, storeWord}, write: -1, count: q.Count,
		all: func(visit func(Entity, []int, func())) {
			for e, r := range q.All() {
				visit(e, values(r.B, r.C, r.D), nil)
			}
		},
		runs: func() (found []answer) {
			for r := range q.Runs() {
				checkRun(len(r.Entities), len(r.A), len(r.B), len(r.C), len(r.D))
				for i, e := range r.Entities {
					found = append(found, answer{e, values(&r.B[i], &r.C[i], &r.D[i])})
				}
			}
			return found
		}}
}

func checkRun(n int, columns ...int) {
	if n == 0 || n > maxRun {
		failf("a run of %d entities", n)
	}
	for _, c := range columns {
		if c != n {
			failf("a run of %d entities has %d components", n, c)
		}
	}
}

// answers returns what q must find, computed from the oracle. The order is the order of the store
// with the fewest rows. If several stores have equally few rows, the first of them counts.
func (q *queryModel) answers(n *oracle) (found []answer) {
	driver := q.include[0]
	for _, i := range q.include {
		if len(n.stores[i].entities) < len(n.stores[driver].entities) {
			driver = i
		}
	}
next:
	for _, e := range n.stores[driver].entities {
		a := answer{e: e}
		for k, i := range q.include {
			row := slices.Index(n.stores[i].entities, e)
			if row < 0 {
				continue next
			}
			if k < q.components() {
				a.values = append(a.values, n.stores[i].values[row])
			}
		}
		for _, i := range q.without {
			if slices.Contains(n.stores[i].entities, e) {
				continue next
			}
		}
		found = append(found, a)
	}
	return found
}

// components returns the number of components in a row of q.
func (q *queryModel) components() int {
	n := 1
	for _, r := range q.name {
		if r == ',' {
			n++
		}
	}
	return n
}

// checkQuery compares the answers of q with the expected answers.
func (p *model) checkQuery(q *queryModel) {
	want := q.answers(p.oracle)
	if q.write >= 0 && len(want) > 0 {
		// The query returns rows for writing, so all of them count as written.
		p.oracle.markWritten(q.write)
	}
	if got := q.count(); got != len(want) {
		failf("query %s: Count() = %d, want %d", q.name, got, len(want))
	}
	var got []answer
	q.all(func(e Entity, values []int, _ func()) { got = append(got, answer{e, values}) })
	if !slices.EqualFunc(got, want, equalAnswers) {
		failf("query %s: All() = %v, want %v", q.name, got, want)
	}
	if got = q.runs(); !slices.EqualFunc(got, want, equalAnswers) {
		failf("query %s: Runs() = %v, want %v", q.name, got, want)
	}
}

func equalAnswers(a, b answer) bool { return a.e == b.e && slices.Equal(a.values, b.values) }

// writeAll writes every row that q finds.
func (p *model) writeAll(q *queryModel) bool {
	want := q.answers(p.oracle)
	for _, a := range want {
		p.oracle.increase(q.write, a.e, 1)
	}
	q.all(func(_ Entity, _ []int, write func()) { write() })
	return len(want) > 0
}

// writeLists writes every list in place, by a loop over a query.
func (p *model) writeLists(store int) {
	for e, l := range NewQuery1(Write(p.stores[store].any().(*Storage[list]))).All() {
		l.Items[0]++
		p.oracle.increase(store, e, 1)
	}
}

// queryOperations returns two operations. One compares all queries of a model with the oracle, and
// the other writes through one of the queries. The map keep caches the queries of a model.
func queryOperations(keep map[*model][]queryModel) (ask, write operation) {
	of := func(p *model) []queryModel {
		if keep[p] == nil {
			clear(keep) // Drop the queries of the previous model.
			keep[p] = queryModels(p)
		}
		return keep[p]
	}
	ask = operation{"ask", func(p *model) bool {
		for i := range of(p) {
			p.checkQuery(&of(p)[i])
		}
		return true
	}}
	write = operation{"write through a query", func(p *model) bool { return p.writeAll(&of(p)[2]) }}
	return ask, write
}

func exploreQueries(t *testing.T, s modelOptions, n int, others ...any) {
	t.Helper()
	ask, write := queryOperations(map[*model][]queryModel{})
	x := explorer{t: t, options: s, operations: operations(append(others, ask, write)...), last: ask.do}
	x.extend(n)
	t.Logf("%d sequences of up to %d operations", x.tried, n)
}

func TestQueryModel_MembersAddedAndRemoved(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, entities: 3, members: 3, history: 2}
	exploreQueries(t, s, *depth, adds(0, 3), removes(0, 3), adds(1, 3), removes(1, 3), clearStore(0), checkpoints(1), ticks()[:4])
}

func TestQueryModel_Filters(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, entities: 2, members: 1, history: 2}
	exploreQueries(t, s, *depth, adds(0, 2), adds(1, 2), adds(2, 2), removes(2, 2), adds(3, 2), removes(3, 2), destroys(2), clearAll, checkpoints(1))
}

// The entities are on both sides of the border between two blocks of 64 rows.
func TestQueryModel_EntitiesInTwoBlocks(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds[:4], filler: 62, entities: 4, members: 4, history: 1}
	exploreQueries(t, s, *depth-1, adds(0, 4), removes(0, 4), removes(1, 4), adds(1, 4), removes(3, 1), checkpoints(1), ticks()[:4])
}

// A restore can remove an entity from a storage by overwriting its row, without a change of the
// number of rows. A query that found the entity must detect the restore.
func TestQuery_RestoreOverwritesRow(t *testing.T) {
	w, a, b, entities := members(3, Options{History: 4})
	checkAtEnd(t, w)
	x := w.Create()
	a.Set(x, plain{})
	// Storage b gets more rows than storage a, so the query iterates over the rows of a.
	for range 3 {
		b.Set(w.Create(), padded{})
	}
	w.Commit()
	q := NewQuery2(Read(a), Read(b))
	take := func() {
		b.Remove(entities[0]) // The last entity moves to the row of entity 0.
		b.Set(x, padded{})    // The entity x gets the last row.
	}
	expect := func(when string, want ...Entity) {
		t.Helper()
		got := q.AppendEntities(nil)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s the query finds %v, want %v", when, got, want)
		}
	}
	with, without := []Entity{entities[1], entities[2], x}, entities
	expect("at first", without...)
	cp := w.Checkpoint()
	take()
	expect("after a change", with...)
	w.Restore(cp)
	expect("after a restore", without...)
	w.Release(cp)
	take()
	w.Commit()
	expect("after a tick", with...)
	for range 2 {
		if err := w.History().Seek(1); err != nil {
			t.Fatal(err)
		}
		expect("after going back", without...)
		if err := w.History().Seek(2); err != nil {
			t.Fatal(err)
		}
		expect("after going on", with...)
	}
}

// A storage keeps the entities of recent changes in a ring. When the ring grows, its old content is
// lost. If a query has not yet processed this content, it must rebuild its cache.
func TestQuery_ManyChangesSinceLastLoop(t *testing.T) {
	w, a, b, _ := members(500, Options{})
	checkAtEnd(t, w)
	late, other := NewQuery2(Read(a), Read(b)), NewQuery2(Read(a), Read(b))
	late.Count()
	kept := len(a.ring)
	// The old ring is too small for these changes, and the new ring is large enough.
	for range 100 {
		e := w.Create()
		a.Set(e, plain{})
		b.Set(e, padded{})
	}
	other.Count()
	if now := len(a.ring); kept >= 100 || now <= 100 {
		t.Fatalf("%d notes are kept, then %d; the test wants fewer than 100, then more", kept, now)
	}
	if n := late.Count(); n != 600 {
		t.Errorf("Count() = %d, want 600", n)
	}
}
