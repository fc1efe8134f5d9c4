package ecs

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/deep"
)

// An intIndex gives the models access to an index whose keys are ints.
type intIndex struct {
	of    func(key int) []Entity
	len   func(key int) int
	first func(key int) (Entity, bool)
	keys  func() []int
	in    func(*World) intIndex
}

func newIntIndex[T any](x *Index[T, int]) intIndex {
	return intIndex{
		of:    func(key int) []Entity { return slices.Collect(x.Of(key)) },
		len:   x.Len,
		first: x.First,
		keys:  func() []int { return slices.Collect(x.Keys()) },
		in:    func(w *World) intIndex { return newIntIndex(x.In(w)) },
	}
}

// byIndex sorts entities by their indices.
func byIndex(a, b Entity) int { return int(a.Index()) - int(b.Index()) }

// check compares the content of x with entities and their keys. It skips gaps.
func (x intIndex) check(entities []Entity, keys []int) error {
	want := make(map[int][]Entity)
	for i, e := range entities {
		if e != Vacant {
			want[keys[i]] = append(want[keys[i]], e)
		}
	}
	for key, list := range want {
		slices.SortFunc(list, byIndex)
		if got := x.of(key); !slices.Equal(got, list) {
			return fmt.Errorf("Of(%d) = %v, want %v", key, got, list)
		}
		if got := x.len(key); got != len(list) {
			return fmt.Errorf("Len(%d) = %d, want %d", key, got, len(list))
		}
		if e, ok := x.first(key); !ok || e != list[0] {
			return fmt.Errorf("First(%d) = %v, %v, want %v", key, e, ok, list[0])
		}
	}
	sorted := slices.SortedFunc(maps.Keys(want), func(a, b int) int { return byIndex(want[a][0], want[b][0]) })
	if got := x.keys(); !slices.Equal(got, sorted) {
		return fmt.Errorf("Keys() = %v, want %v", got, sorted)
	}
	const none = 1000
	if _, ok := x.first(none); ok || x.len(none) != 0 || x.of(none) != nil {
		return fmt.Errorf("the index finds entities by a key that no entity has")
	}
	return nil
}

// checkIndex compares the index of store i with the oracle. The first call creates an index of each
// store.
func (p *model) checkIndex(i int) bool {
	if p.indexes == nil {
		for _, f := range p.stores {
			p.indexes = append(p.indexes, f.index())
		}
	}
	s := &p.oracle.stores[i]
	var keys []int
	for _, v := range s.values {
		keys = append(keys, v%3)
	}
	if p.kinds[i].tag {
		clear(keys)
	}
	if err := p.indexes[i].check(s.entities, keys); err != nil {
		failf("the index of store %d: %v", i, err)
	}
	return true
}

func (p *model) checkIndexes() {
	for i := range p.stores {
		p.checkIndex(i)
	}
	p.checkRelations()
}

var (
	indexLookup = operation{"look", func(p *model) bool { return p.checkIndex(0) }}
	lastLookup  = func(p *model) bool { return p.checkIndex(0) }
)

// exploreIndex is like explore, but also compares an index, as an additional operation and at the
// end of each sequence.
func exploreIndex(t *testing.T, s modelOptions, all []operation, n int) {
	t.Helper()
	x := explorer{t: t, options: s, operations: append(all, indexLookup), last: lastLookup}
	x.extend(n)
	if x.tried < 100 {
		t.Errorf("only %d sequences were tried", x.tried)
	}
}

func TestIndexModel_Checkpoints(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{
		"plain": plainKind, "large": largeKind, "list": listKind, "tag": labelKind, "indexed": indexedKind, "gaps": gapKind, "hashed": hashedKind, "ordered": orderedKind,
	} {
		t.Run(name, func(t *testing.T) {
			s := modelOptions{kinds: []kind{k}, entities: 3, members: 3}
			exploreIndex(t, s, operations(adds(0, 3), removes(0, 3), writes(0, 3), clearStore(0), checkpoints(2)), *depth+1)
		})
	}
}

func TestIndexModel_Ticks(t *testing.T) {
	t.Parallel()
	all := []modelOptions{{history: 3, record: true}, {history: 2}, {record: true}, {}}
	for _, s := range all[:deep.Or(1, len(all))] {
		s.kinds, s.entities, s.members = []kind{plainKind}, 2, 2
		exploreIndex(t, s, operations(removes(0, 2), writes(0, 2), sets(0, 2), destroys(2), ticks(), checkpoints(1)), *depth+1)
	}
}

func TestIndexModel_NoRewind(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{extraKind}, entities: 2, members: 2, history: 2}
	exploreIndex(t, s, operations(create, destroys(3), adds(0, 3), writes(0, 2), removes(0, 1), ticks(), checkpoints(1)), *depth+1)
}

// An indexWorld is a world with an index, whose components are written in every possible way. The
// index is compared with all values after writes.
type indexWorld struct {
	t      *testing.T
	rng    *rand.Rand
	w      *World
	s      *Storage[plain]
	other  *Storage[list]
	index  *Index[plain, int]
	ints   intIndex
	query  *Query2[plain, list]
	looks  int
	trying bool // Set inside Try, where Seek is not allowed.
}

func newIndexWorld(t *testing.T, seed uint64, options Options) *indexWorld {
	l := &indexWorld{t: t, rng: rand.New(rand.NewPCG(seed, 1)), w: NewWorld(options)}
	l.s = MustRegister[plain](l.w)
	l.other = MustRegister(l.w, Component[list]{Clone: cloneList})
	for range 200 {
		e := l.w.Create()
		if l.rng.IntN(4) > 0 {
			l.s.Set(e, plain{X: l.number()})
		}
		if l.rng.IntN(4) > 0 {
			l.other.Set(e, list{[]int{1}})
		}
	}
	if l.rng.IntN(2) == 0 {
		// Scatter the rows that the query finds.
		l.s.SortFunc(func(a, b plain) int { return int(a.X - b.X) })
	}
	l.query = NewQuery2(Write(l.s), Write(l.other))
	l.index = NewIndex(l.s, func(p plain) int { return int(p.X) })
	l.ints = newIntIndex(l.index)
	return l
}

func (l *indexWorld) number() int32 { return int32(l.rng.IntN(12)) }

func (l *indexWorld) entity() Entity {
	all := l.w.Entities()
	if len(all) == 0 {
		return l.w.Create()
	}
	return all[l.rng.IntN(len(all))]
}

// sometimes compares the index with the storage, on average in one of n calls.
func (l *indexWorld) sometimes(n int) {
	if l.rng.IntN(n) > 0 {
		return
	}
	l.looks++
	var keys []int
	for _, p := range l.s.Values() {
		keys = append(keys, int(p.X))
	}
	require.NoError(l.t, l.ints.check(l.s.Entities(), keys))
}

// write writes through p, and sometimes compares the index before and after the write.
func (l *indexWorld) write(p *plain) {
	l.sometimes(3)
	p.X = l.number()
	l.sometimes(3)
	if l.rng.IntN(4) == 0 {
		p.X = l.number()
		l.sometimes(3)
	}
}

// do makes a random action that may write and compare. depth is the number of open loops.
func (l *indexWorld) do(depth int) {
	switch l.rng.IntN(14) {
	case 0:
		l.s.Set(l.entity(), plain{X: l.number()})
	case 1:
		if p := l.s.Mut(l.entity()); p != nil {
			l.write(p)
		}
	case 2:
		if depth > 0 { // MutValues is not allowed in a loop.
			return
		}
		values := l.s.MutValues()
		for range l.rng.IntN(5) {
			if len(values) > 0 {
				l.write(&values[l.rng.IntN(len(values))])
			}
		}
	case 3:
		if e, row, ok := l.query.First(); ok {
			l.write(row.A)
			if row, ok := l.query.Get(e); ok {
				l.write(row.A)
			}
		}
	case 4:
		if row, ok := l.query.Get(l.entity()); ok {
			l.write(row.A)
		}
	case 5:
		var some []Entity
		for range l.rng.IntN(100) {
			some = append(some, l.entity())
		}
		for _, p := range l.s.MutEach(some) {
			if l.rng.IntN(8) == 0 {
				l.write(p)
			}
		}
	case 6:
		if depth > 2 {
			return
		}
		n := l.rng.IntN(300)
		for _, row := range l.query.All() {
			if l.rng.IntN(10) == 0 {
				l.write(row.A)
			}
			if l.rng.IntN(100) == 0 {
				l.still(depth + 1)
				l.write(row.A)
			}
			if n--; n < 0 {
				break
			}
		}
	case 7:
		if depth > 2 {
			return
		}
		for run := range l.query.Runs() {
			for range l.rng.IntN(4) {
				l.write(&run.A[l.rng.IntN(len(run.A))])
			}
			if l.rng.IntN(30) == 0 {
				l.still(depth + 1)
				l.write(&run.A[0])
			}
		}
	default:
		l.change(depth)
	}
}

// still writes random values. It adds and removes no entities or components.
func (l *indexWorld) still(depth int) {
	if p := l.s.Mut(l.entity()); p != nil {
		l.write(p)
	}
	if depth <= 2 {
		for _, row := range l.query.All() {
			if l.rng.IntN(20) == 0 {
				l.write(row.A)
			}
		}
	}
}

// change adds, removes or moves entities or components. It does nothing inside a loop.
func (l *indexWorld) change(depth int) {
	if depth > 0 {
		return
	}
	switch l.rng.IntN(9) {
	case 0:
		l.s.Remove(l.entity())
	case 1:
		l.w.Destroy(l.entity())
		l.w.Create()
	case 2:
		e := l.w.Create()
		l.s.Set(e, plain{X: l.number()})
		l.other.Set(e, list{[]int{1}})
	case 3:
		l.w.Commit()
	case 4:
		if l.trying {
			return
		}
		l.trying = true
		defer func() { l.trying = false }()
		_ = l.w.Try(func() error {
			l.do(0)
			l.sometimes(2)
			l.do(0)
			if l.rng.IntN(2) == 0 {
				return assert.AnError
			}
			return nil
		})
	case 5:
		if l.rng.IntN(20) == 0 {
			l.s.Clear()
		}
		l.s.SetAll(l.w.Entities()[:min(l.rng.IntN(30), len(l.w.Entities()))], plain{X: l.number()})
	case 6:
		l.s.SortFunc(func(a, b plain) int { return int(a.Y - b.Y + (a.X%3 - b.X%3)) })
	case 7:
		if l.w.Tick() > 0 && !l.trying {
			// The Seek may fail, because the tick may be evicted.
			_ = l.w.History().Seek(l.w.Tick() - uint64(l.rng.IntN(2)))
		}
	case 8:
		l.w.Shrink()
	}
}

func TestIndex_RandomLookups(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(8, 120)) {
		options := Options{History: int(seed % 4)}
		l := newIndexWorld(t, seed, options)
		for range 150 {
			l.do(0)
			l.sometimes(4)
		}
		require.NotZero(t, l.looks)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Look-ups inside ParallelRuns find values that were written before the loop. Look-ups after the
// loop find values that its runs have written.
func TestIndex_WritesAroundParallelRuns(t *testing.T) {
	l := newIndexWorld(t, 3, Options{})
	l.index.Len(0)
	for want := range 3 {
		e := l.s.Entities()[want]
		l.s.Set(e, plain{X: 99}) // No look-up happens between this Set and the loop.
		l.query.ParallelRuns(2, func(run Run2[plain, list]) { assert.Equal(t, want+1, l.index.Len(99)) })
	}
}

// In the body of ParallelRuns, an index does not see the writes of the loop. This must still hold
// after an inner ParallelRuns has ended in the body.
func TestIndex_UnchangedAfterInnerParallelRuns(t *testing.T) {
	l := newIndexWorld(t, 4, Options{})
	inner := NewQuery1(Read(l.other))
	before := slices.Collect(l.index.Of(3))
	n := 0
	l.query.ParallelRuns(1, func(run Run2[plain, list]) {
		inner.ParallelRuns(1, func(Run1[list]) { n++ })
		for i := range run.A {
			run.A[i].X = 3
		}
		assert.Equal(t, before, slices.Collect(l.index.Of(3)))
	})
	assert.NotZero(t, n)
	assert.Greater(t, l.index.Len(3), 100)
}

func TestIndex_NaNKeyIsNeverFound(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[plain](w)
	x := NewIndex(s, func(p plain) float64 {
		if p.X == 0 {
			return math.NaN()
		}
		return float64(p.X)
	})
	e := w.Create()
	for i := range int32(6) {
		s.Set(e, plain{X: i % 2})
		assert.Equal(t, int(i%2), x.Len(1))
		assert.Zero(t, x.Len(math.NaN()))
		assert.Len(t, slices.Collect(x.Keys()), int(i%2))
	}
}

// A loop over Of visits an entity if the entity has the key when the loop reaches it.
func TestIndexOf_KeyChangedInLoop(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[plain](w)
	all := w.CreateN(nil, 600) // The entities are in several chunks of the index.
	s.SetAll(all, plain{X: 1})
	s.SetAll(all[590:], plain{X: 2})
	x := NewIndex(s, func(p plain) int32 { return p.X })
	var visited []Entity
	for e := range x.Of(1) {
		visited = append(visited, e)
		switch e {
		case all[3]:
			s.Set(all[2], plain{X: 2}) // The loop has already visited this entity.
			s.Set(all[4], plain{X: 2}) // The loop has not yet visited this entity.
			w.Destroy(all[6])
		case all[5]:
			s.Mut(all[595]).X = 1
			s.Mut(e).X = 3
		case all[8]:
			for _, e := range all[300:580] {
				s.Remove(e)
			}
		}
	}
	want := slices.Concat(all[:4], all[5:6], all[7:300], all[580:590], all[595:596])
	assert.Equal(t, want, visited)
	for e := range x.Of(1) {
		s.Set(e, plain{X: 4})
	}
	assert.Zero(t, x.Len(1))
	assert.Equal(t, len(want)-2, x.Len(4), "all but all[2] and all[5]")
}

func TestIndex_LookupsInParallelRuns(t *testing.T) {
	l := newIndexWorld(t, 1, Options{History: 2})
	l.w.Commit()
	before := slices.Collect(l.index.Of(3))
	for range 3 {
		l.query.ParallelRuns(4, func(run Run2[plain, list]) {
			for i := range run.A {
				assert.Equal(t, before, slices.Collect(l.index.Of(3)))
				run.A[i].X = 3
			}
		})
		n := 0
		for _, v := range l.s.All() {
			if v.X == 3 {
				n++
			}
		}
		before = slices.Collect(l.index.Of(3))
		assert.Len(t, before, n)
		assert.Greater(t, n, 100)
	}
}

// Two indexes of one storage have the same types and different keys. In a clone of the world, they
// stay separate.
func TestIndexIn_TwoIndexesOfOneType(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[plain](w)
	byX := NewIndex(s, func(p plain) int32 { return p.X })
	byY := NewIndex(s, func(p plain) int32 { return p.Y })
	e := w.Create()
	s.Set(e, plain{X: 1, Y: 2})
	c := w.Clone()
	xThere, yThere := byX.In(c), byY.In(c)
	for _, x := range []struct {
		name  string
		index *Index[plain, int32]
		key   int32
	}{{"byX", byX, 1}, {"byY", byY, 2}, {"byX of the clone", xThere, 1}, {"byY of the clone", yThere, 2}} {
		if x.index.Len(x.key) != 1 || x.index.Len(3-x.key) != 0 {
			t.Errorf("%s finds %d by %d and %d by %d, want 1 and 0", x.name, x.index.Len(x.key), x.key, x.index.Len(3-x.key), 3-x.key)
		}
	}
	if byX.In(c) != xThere || byY.In(c) != yThere || byX.In(w) != byX || byY.In(w) != byY {
		t.Error("In creates a second index")
	}
	s.In(c).Set(e, plain{X: 5, Y: 6})
	if xThere.Len(5) != 1 || yThere.Len(6) != 1 || byX.Len(1) != 1 || byY.Len(2) != 1 {
		t.Error("an index changes with the other world")
	}
}

// If Replace is called for an entity that already has the key, the entity keeps its row. No
// component is removed.
func TestIndexReplace_SameKey(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[plain](w)
	x := NewIndex(s, func(p plain) int32 { return p.X })
	e := w.CreateN(nil, 3)
	for i, e := range e {
		s.Set(e, plain{X: int32(i)})
	}
	var removed []Entity
	s.OnRemove(func(e Entity, _ plain) { removed = append(removed, e) })
	if !x.Replace(e[0], plain{X: 0, Y: 7}) {
		t.Error("Replace = false for an alive entity")
	}
	if removed != nil || !slices.Equal(s.Entities(), e) {
		t.Errorf("Replace by the same key removes %v and leaves the order %v, want none and %v", removed, s.Entities(), e)
	}
	if v, _ := s.Get(e[0]); v != (plain{0, 7}) {
		t.Errorf("the component is %v", v)
	}
	x.Replace(e[1], plain{X: 2})
	if !slices.Equal(removed, e[2:]) || s.Has(e[2]) || x.Len(2) != 1 || x.Len(1) != 0 {
		t.Errorf("Replace by the key of %v removes %v", e[2], removed)
	}
}

// The loop visits the entities that have a certain key. In its body, all of them lose the key, so
// the loop ends. If some get the key again, the loop continues with those after the current entity.
func TestIndexOf_KeyClearedInLoop(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := NewWorld(Options{})
		s := MustRegister[plain](w)
		x := NewIndex(s, func(p plain) int32 { return p.X })
		all := w.CreateN(nil, 200)
		s.SetAll(all, plain{X: 1})
		var visited, want []Entity
		for e := range x.Of(1) {
			if visited = append(visited, e); e == all[3] {
				s.Clear()
				if again {
					s.SetAll(all[2:9], plain{X: 1})
				}
			}
		}
		if want = all[:4]; again {
			want = all[:9]
		}
		if !slices.Equal(visited, want) {
			t.Errorf("set again: %v: visited %v, want %v", again, visited, want)
		}
	}
}
