package ecs

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A queryCase is a query of any arity, together with its components, filters and predicate. The
// test compares every result of the query with a direct look-up of each entity. It calls the query
// by reflection, so methods are also tested without inlining.
type queryCase struct {
	name     string
	query    any
	w        *World
	comps    []intStore // The components that the query returns.
	optional int        // Bit i is set if comps[i] is optional.
	writes   bool       // Set if the query writes the first component.
	with     []intStore
	without  []intStore
	or       [][]intStore
	keeps    func(Entity) bool // The predicate. May be nil.
}

func (q queryCase) ands(with ...intStore) queryCase    { q.with = with; return q }
func (q queryCase) ors(or ...intStore) queryCase       { q.or = append(slices.Clone(q.or), or); return q }
func (q queryCase) nots(without ...intStore) queryCase { q.without = without; return q }
func (q queryCase) only(k func(Entity) bool) queryCase { q.keeps = k; return q }
func (q queryCase) set(f intStore) *set                { return f.any().sparseSet() }
func (q queryCase) call(m string) []reflect.Value      { return q.method(m).Call(nil) }
func (q queryCase) method(name string) reflect.Value {
	return reflect.ValueOf(q.query).MethodByName(name)
}

// required returns the components and filters that an entity must have.
func (q queryCase) required() (list []intStore) {
	for i, f := range q.comps {
		if q.optional>>i&1 == 0 {
			list = append(list, f)
		}
	}
	return append(list, q.with...)
}

func has(e Entity) func(intStore) bool { return func(f intStore) bool { return f.has(e) } }

func (q queryCase) finds(e Entity) bool {
	for _, f := range q.required() {
		if !f.has(e) {
			return false
		}
	}
	for _, or := range q.or {
		if !slices.ContainsFunc(or, has(e)) {
			return false
		}
	}
	return !slices.ContainsFunc(q.without, has(e)) && (q.keeps == nil || q.keeps(e))
}

func (q queryCase) answer(e Entity) answer {
	a := answer{e: e}
	for _, f := range q.comps {
		v, ok := f.get(e)
		if !ok {
			v = missingValue
		}
		a.values = append(a.values, v)
	}
	return a
}

const missingValue = -999

// driver returns the driver of the query, and whether the query returns entities in the order of
// their indices.
func (q queryCase) driver() (d intStore, byIndex bool) {
	for i, f := range q.required() {
		if i == 0 || f.any().Raw().Rows() < d.any().Raw().Rows() {
			d = f
		}
	}
	return d, q.set(d).byIndex
}

// expected returns the answers that the query must return, in order.
func (q queryCase) expected() (list []answer) {
	d, byIndex := q.driver()
	for _, e := range d.any().Entities() {
		if q.finds(e) {
			list = append(list, q.answer(e))
		}
	}
	if byIndex {
		slices.SortFunc(list, func(a, b answer) int { return int(a.e.Index()) - int(b.e.Index()) })
	}
	return list
}

// valueOf returns the value of a component as an int. p is a pointer to the component.
func valueOf(p any) int {
	if reflect.ValueOf(p).IsNil() {
		return missingValue
	}
	switch p := p.(type) {
	case *plain:
		return int(p.X)
	case *padded:
		return int(p.B)
	case *word:
		return wordInt(p)
	case *extra:
		return int(p.V)
	case *list:
		return p.Items[0]
	case *label:
		return 0
	}
	panic(fmt.Sprintf("valueOf(%T)", p))
}

// valuesOf returns the values in a row as ints.
func valuesOf(row reflect.Value) (values []int) {
	if row.Kind() == reflect.Pointer {
		return []int{valueOf(row.Interface())}
	}
	for i := range row.NumField() {
		values = append(values, valueOf(row.Field(i).Interface()))
	}
	return values
}

// answersOf returns the answers in a run.
func answersOf(run reflect.Value) (list []answer) {
	entities := run.Field(0).Interface().([]Entity)
	if len(entities) == 0 || len(entities) > maxRun {
		failf("a run of %d entities", len(entities))
	}
	for i, e := range entities {
		a := answer{e: e}
		for k := 1; k < run.NumField(); k++ {
			column := run.Field(k)
			switch {
			case column.IsNil():
				a.values = append(a.values, missingValue)
			case column.Len() != len(entities):
				failf("a run of %d entities has %d components", len(entities), column.Len())
			default:
				a.values = append(a.values, valueOf(column.Index(i).Addr().Interface()))
			}
		}
		list = append(list, a)
	}
	return list
}

// iterate calls visit for all rows that All or AllOptional returns.
func (q queryCase) iterate(visit func(e Entity, row reflect.Value) bool) {
	name := "All"
	if q.optional != 0 {
		name = "AllOptional"
	}
	for e, row := range q.call(name)[0].Seq2() {
		if !visit(e.Interface().(Entity), row) {
			return
		}
	}
}

// check compares every result of q with a direct look-up of all entities.
func (q queryCase) check(handles []Entity) {
	want := q.expected()
	var all, runs, parts []answer
	q.iterate(func(e Entity, row reflect.Value) bool {
		all = append(all, answer{e, valuesOf(row)})
		return true
	})
	q.same("All()", all, want)
	for run := range q.call("Runs")[0].Seq() {
		runs = append(runs, answersOf(run)...)
	}
	q.same("Runs()", runs, want)
	if got := int(q.call("Count")[0].Int()); got != len(want) {
		failf("query %s: Count() = %d, want %d", q.name, got, len(want))
	}
	var lock sync.Mutex
	body := reflect.MakeFunc(q.method("ParallelRuns").Type().In(1), func(args []reflect.Value) []reflect.Value {
		found := answersOf(args[0])
		lock.Lock()
		defer lock.Unlock()
		parts = append(parts, found...)
		return nil
	})
	q.method("ParallelRuns").Call([]reflect.Value{reflect.ValueOf(2), body})
	byEntity := func(a, b answer) int { return int(a.e.Index()) - int(b.e.Index()) }
	slices.SortFunc(parts, byEntity)
	q.checkFirst(want)
	slices.SortFunc(want, byEntity)
	q.same("ParallelRuns()", parts, want)
	for _, e := range append(handles, 0, ^Entity(0)) {
		q.checkEntity(e)
	}
}

func (q queryCase) same(what string, got, want []answer) {
	if !slices.EqualFunc(got, want, equalAnswers) {
		failf("query %s: %s = %v, want %v", q.name, what, got, want)
	}
}

func (q queryCase) checkFirst(want []answer) {
	first := q.call("First")
	if got := first[2].Bool(); got != (len(want) > 0) {
		failf("query %s: First() finds one is %v", q.name, got)
	}
	if len(want) > 0 {
		q.same("First()", []answer{{first[0].Interface().(Entity), valuesOf(first[1])}}, want[:1])
	}
}

func (q queryCase) checkEntity(e Entity) {
	want := q.finds(e)
	args := []reflect.Value{reflect.ValueOf(e)}
	if got := q.method("Has").Call(args)[0].Bool(); got != want {
		failf("query %s: Has(%v) = %v, want %v", q.name, e, got, want)
	}
	got := q.method("Get").Call(args)
	if got[1].Bool() != want {
		failf("query %s: Get(%v) finds it is %v, want %v", q.name, e, got[1], want)
	}
	if want {
		q.same("Get()", []answer{{e, valuesOf(got[0])}}, []answer{q.answer(e)})
	}
}

// A moduloPredicate keeps the entities whose index modulo 6 has a true element in rests. It panics
// if the query calls keeps() without an earlier call of begin().
type moduloPredicate struct {
	w     *World
	rests [6]bool
	ready bool
	found []Entity
}

func (b *moduloPredicate) uses() []raw.Use   { return nil }
func (b *moduloPredicate) narrow(q narrowed) { q.filter(b) }
func (b *moduloPredicate) begin()            { b.ready = true }

func (b *moduloPredicate) kept() []Entity {
	// The predicate may also return entities that are not alive. The query must skip them.
	b.found = append(b.found[:0], 0, NewEntity(7, 1000))
	for _, e := range slices.Backward(b.w.Entities()) {
		if b.keeps(e) {
			b.found = append(b.found, e)
		}
	}
	return b.found
}

func (b *moduloPredicate) keeps(e Entity) bool {
	if !b.ready {
		failf("the predicate was called before the iteration began")
	}
	return b.rest(e)
}

// queryCases returns queries with all combinations of components, filters and predicates. f has the
// stores plain, padded, word and label.
func queryCases(w *World, f []intStore) []queryCase {
	a := f[0].any().(*Storage[plain])
	b := f[1].any().(*Storage[padded])
	c := f[2].any().(*Storage[word])
	d := f[3].any().(*Storage[label])
	some := &moduloPredicate{w: w, rests: [6]bool{true, true, false, true, false, false}}
	other := &moduloPredicate{w: w, rests: [6]bool{true, false, true, true, true, false}}
	of := func(name string, q any, optional int, comps ...intStore) queryCase {
		return queryCase{name: name, query: q, w: w, comps: comps, optional: optional}
	}
	writing := func(q queryCase) queryCase { q.writes = true; return q }
	return []queryCase{
		writing(of("plain, maybe padded", NewQuery2(Write(a), Optional(Read(b))), 2, f[0], f[1])),
		writing(of("maybe plain, padded", NewQuery2(Optional(Write(a)), Read(b)), 1, f[0], f[1])),
		of("maybe word with label", NewQuery1(Optional(Write(c))).With(d), 1, f[2]).ands(f[3]),
		of("plain, maybe padded, maybe word without label", NewQuery3(Read(a), Optional(Read(b)), Optional(Read(c))).Without(d), 6, f[0], f[1], f[2]).nots(f[3]),
		of("plain or", NewQuery1(Read(a)).Or(b, c), 0, f[0]).ors(f[1], f[2]),
		of("plain, padded or or", NewQuery2(Read(a), Read(b)).Or(a, c).Or(c, d), 0, f[0], f[1]).ors(f[0], f[2]).ors(f[2], f[3]),
		of("plain or none", NewQuery1(Read(a)).Or(), 0, f[0]).ors(),
		writing(of("some plain", NewQuery1(Write(a)).With(some), 0, f[0]).only(some.rest)),
		writing(of("some plain, padded", NewQuery2(Write(a), Read(b)).With(some, other), 0, f[0], f[1]).only(func(e Entity) bool { return some.rest(e) && other.rest(e) })),
		of("some plain, maybe padded or", NewQuery2(Read(a), Optional(Write(b))).With(other).Or(c, b), 2, f[0], f[1]).ors(f[2], f[1]).only(other.rest),
		of("some padded, maybe plain", NewQuery2(Read(b), Optional(Read(a))).With(some), 2, f[1], f[0]).only(some.rest),
		of("word, plain without padded", NewQuery2(Read(c), Read(a)).Without(b), 0, f[2], f[0]).nots(f[1]),
		of("plain alone", NewQuery1(Read(a)), 0, f[0]),
		of("five", NewQuery5(Read(a), Read(b), Read(c), Read(d), Read(a)), 0, f[0], f[1], f[2], f[3], f[0]),
		of("six", NewQuery6(Read(a), Optional(Read(d)), Read(c), Optional(Read(b)), Read(a), Optional(Read(c))), 2+8+32, f[0], f[3], f[2], f[1], f[0], f[2]),
	}
}

func (b *moduloPredicate) rest(e Entity) bool { return b.rests[e.Index()%6] }

// mask gives a mask to the storage of f.
func mask(f intStore, byIndex bool) { f.any().sparseSet().giveMask(byIndex) }

// giveMask does the same as Masked and Ordered do at registration.
func (s *set) giveMask(byIndex bool) {
	s.mask, s.byIndex = newMask(s.w, s.rows.Exempt), byIndex
	s.heavy = true
	s.mask.fill(s.Entities())
	s.w.updateObserved()
}

// exploreQueryCases tries every order of the operations. It checks the queries at the end of each
// sequence, and between any two operations.
func exploreQueryCases(t *testing.T, s modelOptions, n int, others ...any) {
	t.Helper()
	var last *model
	var list []queryCase
	ask := operation{"ask", func(p *model) bool {
		if p != last {
			last, list = p, queryCases(p.w, p.stores)
		}
		// The check writes rows through the queries, and the oracle does not get these writes. So
		// restore the world after the check.
		cp := p.w.Checkpoint()
		for _, q := range list {
			q.check(p.handles)
		}
		p.w.Restore(cp)
		p.w.Release(cp)
		return true
	}}
	x := explorer{t: t, options: s, operations: operations(append(others, ask)...), last: ask.do}
	x.extend(n)
	t.Logf("%d sequences of up to %d operations", x.tried, n)
}

func TestQueryModel_FiltersAndOptional(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, entities: 3, members: 2}
	exploreQueryCases(t, s, min(3, *depth-1), adds(0, 2), removes(0, 2), adds(1, 2), removes(1, 1), removes(2, 1), removes(3, 1), destroys(1), checkpoints(1))
}

func TestQueryModel_Masks(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, entities: 3, members: 2}
	s.kinds = slices.Clone(queryKinds)
	for i := range 2 {
		add := s.kinds[i].add
		s.kinds[i].add = func(w *World) intStore {
			f := add(w)
			mask(f, i == 0)
			return f
		}
	}
	exploreQueryCases(t, s, min(3, *depth-1), adds(0, 3), removes(0, 2), removes(1, 1), destroys(1), checkpoints(1))
}

// A randomModel is a larger world that random operations change.
type randomModel struct {
	*model
	rng     *rand.Rand
	queries []queryCase
}

func newRandomModel(seed uint64, entities int) *randomModel {
	l := &randomModel{rng: rand.New(rand.NewPCG(seed, 1)), model: &model{w: NewWorld(Options{History: 3})}}
	for _, k := range queryKinds {
		l.stores = append(l.stores, k.add(l.w))
	}
	for range entities {
		l.create()
	}
	if seed%2 == 0 {
		for i, f := range l.stores {
			mask(f, i == 2)
		}
	}
	l.queries = queryCases(l.w, l.stores)
	return l
}

// create creates an entity with some components. The probability of each component changes every
// 200 entities.
func (l *randomModel) create() {
	e := l.w.Create()
	l.handles = append(l.handles, e)
	odds := []int{1, 2, 7, 3}
	if len(l.handles)/200%2 == 1 {
		odds = []int{2, 40, 3, 1}
	}
	for i, f := range l.stores {
		if l.rng.IntN(odds[i]) == 0 {
			l.setNext(f, e)
		}
	}
}

func (l *randomModel) setNext(f intStore, e Entity) {
	l.lastValue++
	f.set(e, l.lastValue%1000)
}

func (l *randomModel) pickEntity() Entity { return l.handles[l.rng.IntN(len(l.handles))] }

func (l *randomModel) pickStore() intStore { return l.stores[l.rng.IntN(len(l.stores))] }

// step makes one random change.
func (l *randomModel) step() {
	switch l.rng.IntN(12) {
	case 0, 1:
		l.create()
	case 2, 3, 4:
		l.setNext(l.pickStore(), l.pickEntity())
	case 5, 6, 7:
		l.pickStore().remove(l.pickEntity())
	case 8:
		l.w.Destroy(l.pickEntity())
	case 9:
		l.w.Commit()
	case 10:
		if l.w.Tick() > 0 {
			_ = l.w.History().Rewind(1)
		}
	case 11:
		if l.rng.IntN(20) == 0 {
			l.pickStore().clear()
		}
	}
}

// eachRandomModel runs f on models of several seeds and sizes.
func eachRandomModel(t *testing.T, f func(l *randomModel)) {
	t.Helper()
	for seed := range uint64(6) {
		var err error
		func() {
			defer catch(&err)
			f(newRandomModel(seed, 100+int(seed)*120))
		}()
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestQueryModel_RandomChanges(t *testing.T) {
	t.Parallel()
	eachRandomModel(t, func(l *randomModel) {
		for round := range 12 {
			for range round * round {
				l.step()
			}
			for _, q := range l.queries {
				q.check(l.handles[:min(50, len(l.handles))])
			}
			if err := l.w.check(); err != nil {
				failf("%v", err)
			}
		}
	})
}

// Each world has several chunks. A query updates its cache after few changes, and rebuilds the
// cache after many changes.
func TestQueryModel_LargeWorlds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		l := newRandomModel(seed, 12_000)
		for _, steps := range []int{0, 1, 7, 300, 2, 6000, 5} {
			for range steps {
				l.step()
			}
			for _, q := range l.queries {
				if err := errorOf(func() { q.check(l.handles[:min(50, len(l.handles))]) }); err != nil {
					t.Fatalf("seed %d, after %d steps: %.200s", seed, steps, err)
				}
			}
		}
	}
}

func errorOf(f func()) (err error) {
	defer catch(&err)
	f()
	return nil
}

func TestQueryModel_RestoreUndoesWrites(t *testing.T) {
	t.Parallel()
	eachRandomModel(t, func(l *randomModel) {
		for range 30 {
			l.step()
			before := l.w.Digest()
			cp := l.w.Checkpoint()
			q := l.queries[l.rng.IntN(len(l.queries))]
			l.write(q)
			l.write(q)
			l.w.Restore(cp)
			if got := l.w.Digest(); got != before {
				failf("query %s: the digest is %v after restoring, want %v", q.name, got, before)
			}
			if l.rng.IntN(3) == 0 {
				l.write(q)
				l.write(q)
				l.w.Restore(cp)
				if got := l.w.Digest(); got != before {
					failf("query %s: the digest is %v after restoring again, want %v", q.name, got, before)
				}
			}
			l.w.Release(cp)
		}
	})
}

// write writes all found rows by one of the query's methods.
func (l *randomModel) write(q queryCase) {
	if !q.writes {
		return
	}
	increase := func(p *plain) {
		if p != nil {
			p.X += 5000
		}
	}
	pointer := func(row reflect.Value) *plain {
		if row.Kind() == reflect.Struct {
			row = row.Field(0)
		}
		return row.Interface().(*plain)
	}
	slice := func(run reflect.Value) {
		for i := range run.Field(1).Len() {
			increase(run.Field(1).Index(i).Addr().Interface().(*plain))
		}
	}
	switch l.rng.IntN(6) {
	case 0:
		q.iterate(func(_ Entity, row reflect.Value) bool { increase(pointer(row)); return true })
	case 1:
		for run := range q.call("Runs")[0].Seq() {
			slice(run)
		}
	case 2:
		q.method("ParallelRuns").Call([]reflect.Value{reflect.ValueOf(3), reflect.MakeFunc(
			q.method("ParallelRuns").Type().In(1), func(args []reflect.Value) []reflect.Value { slice(args[0]); return nil })})
	case 3:
		if got := q.call("First"); got[2].Bool() {
			increase(pointer(got[1]))
		}
	case 4:
		for range 10 {
			if got := q.method("Get").Call([]reflect.Value{reflect.ValueOf(l.pickEntity())}); got[1].Bool() {
				increase(pointer(got[0]))
			}
		}
	case 5: // Writes some of the rows, and sets a checkpoint halfway.
		n := 0
		q.iterate(func(_ Entity, row reflect.Value) bool {
			if n++; n == 7 {
				cp := l.w.Checkpoint()
				if l.rng.IntN(2) == 0 {
					l.w.Release(cp)
				}
				return true
			}
			increase(pointer(row))
			return n < 90
		})
	}
}
