package ecs

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSortModel_Checkpoints(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind, listKind}, entities: 3, members: 3}
	explore(t, s, operations(sorts(0, 1)[:4], adds(0, 1), removes(0, 1), writes(1, 1), checkpoints(2)), *depth)
}

func TestSortModel_Ticks(t *testing.T) {
	t.Parallel()
	for _, record := range []int{0, 3} {
		s := modelOptions{kinds: []kind{listKind, extraKind, labelKind}, entities: 3, members: 3, history: record, record: true}
		explore(t, s, operations(sorts(0, 2)[:5], sorts(1)[1:2], removes(0, 1), destroys(1), ticks()[:5]), *depth)
	}
}

func TestSortModel_Groups(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{listKind, plainKind, wordKind}, groups: [][]int{{1, 0}}, entities: 4, members: 3, history: 2, record: true}
	explore(t, s, operations(sorts(0, 1)[1:3], sorts(2, 0)[2:], adds(0, 4)[3:], removes(1, 1), ticks()[:3], checkpoints(1)[:2]), *depth)
}

func TestSortModel_Queries(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, groups: [][]int{{2, 3}}, filler: 62, entities: 4, members: 4, history: 1}
	exploreQueries(t, s, *depth-1, sorts(0, 1)[:3], sorts(2)[1:2], removes(0, 2)[1:], removes(3, 2)[1:], checkpoints(1)[:2])
}

func TestAlignModel_Checkpoints(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind, listKind, hashedKind}, entities: 4, members: 2}
	explore(t, s, operations(aligns(0, 1), aligns(1, 2, 0), adds(0, 4)[2:], adds(1, 4)[3:], adds(2, 4)[2:], removes(0, 1), removes(1, 2)[1:], removes(2, 1), checkpoints(2)), *depth)
}

func TestAlignModel_Ticks(t *testing.T) {
	t.Parallel()
	for _, history := range []int{0, 3} {
		s := modelOptions{kinds: []kind{listKind, extraKind, orderedKind, labelKind}, entities: 4, members: 3, history: history, record: true}
		explore(t, s, operations(aligns(0, 1, 2), aligns(3, 2), sorts(2)[1:2], adds(0, 4)[3:], adds(2, 4)[3:], removes(0, 1), removes(1, 2)[1:], destroys(1), ticks()[:5]), *depth)
	}
}

func TestAlignModel_Groups(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{listKind, plainKind, wordKind, labelKind, paddedKind}, groups: [][]int{{1, 0}, {2, 3}}, entities: 4, members: 3, history: 2, record: true}
	explore(t, s, operations(aligns(0, 4), aligns(4, 2, 1), aligns(3, 0), adds(0, 4)[3:], adds(2, 4)[3:], removes(0, 2), removes(2, 2)[1:], removes(4, 1), ticks()[:3], checkpoints(1)[:2]), *depth)
}

func TestAlignModel_Queries(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, filler: 62, entities: 4, members: 4, history: 1}
	exploreQueries(t, s, *depth-1, aligns(0, 1, 2), aligns(3, 1), removes(0, 2)[1:], removes(1, 3)[2:], removes(3, 2)[1:], adds(1, 4)[3:], checkpoints(1)[:2])
}

// After many changes, Align puts the rows of all storages in the same order again. The order is
// that of the first storage.
func TestAlign_PutsRowsInSameOrder(t *testing.T) {
	w, a, b, entities := members(1000, Options{})
	checkAtEnd(t, w)
	c := MustRegister[word](w)
	r := rand.New(rand.NewPCG(1, 2))
	for _, i := range r.Perm(1000)[:700] {
		c.Set(entities[i], word{})
	}
	for _, i := range r.Perm(1000)[:400] {
		a.Remove(entities[i])
		a.Set(entities[i], plain{X: int32(i)})
	}
	for _, i := range r.Perm(1000)[:100] {
		b.Remove(entities[i])
	}
	q := NewQuery3(Read(a), Read(b), Read(c))
	want := slices.DeleteFunc(slices.Clone(b.Entities()), func(e Entity) bool { return !q.Has(e) })
	before := w.Checkpoint()
	lay := slices.Clone(a.Entities())
	w.Align(b, a, c)
	runs, found := 0, []Entity(nil)
	for run := range q.Runs() {
		found = append(found, run.Entities...)
		runs++
	}
	// The last block has fewer than 64 rows, and may be a run of its own.
	if runs > 2 || !slices.Equal(found, want) || len(want) < 500 {
		t.Errorf("%d runs of %v, want one or two of %v", runs, found, want)
	}
	changes := w.changes
	if w.Align(b, a, c); w.changes != changes {
		t.Error("a second Align counts as a change")
	}
	if w.Restore(before); !slices.Equal(a.Entities(), lay) {
		t.Error("a restore does not restore the order")
	}
}

// Align moves the entities that are in all storages to the front. It swaps them with the entities
// that are there now. No other entity moves.
func TestAlign_MovesFewRows(t *testing.T) {
	w, a, b, entities := members(100, Options{})
	checkAtEnd(t, w)
	b.Remove(entities[99])
	b.Remove(entities[98])
	// In storage a, entity 99 is now in row 97, and entity 98 is still in row 98.
	a.Remove(entities[97])
	w.Checkpoint()
	w.Align(b, a)
	if rows := saved(a); rows != [3]int{} || saved(b) != [3]int{} {
		t.Errorf("%v and %v rows are saved of storages that differ only after their common rows", rows, saved(b))
	}
	b.Set(entities[98], padded{})
	b.Set(entities[99], padded{})
	w.Checkpoint()
	w.Align(a, b)
	if rows := saved(b); rows != [3]int{2, 2, 2} || saved(a) != [3]int{} {
		t.Errorf("%v and %v rows are saved of an exchange in the second storage", rows, saved(a))
	}
}

func TestAlign_Misuse(t *testing.T) {
	w, a, b, entities := members(3, Options{})
	_, _, far, _ := members(3, Options{})
	checkAtEnd(t, w)
	fixed := MustRegister(w, Component[indexed]{Kind: Indexed})
	r := Must(RegisterResource(w, label{}))
	b.Remove(entities[0])
	before := slices.Clone(a.Entities())
	mustPanic(t, "Align with label", func() { w.Align(b, a, r) })
	mustPanic(t, "Align with padded", func() { w.Align(b, a, far) })
	mustPanic(t, "Align with a nil storage", func() { w.Align(b, a, nil) })
	mustPanic(t, "indexed, which is Indexed", func() { w.Align(b, a, fixed) })
	if !slices.Equal(a.Entities(), before) {
		t.Error("a refused call moved rows")
	}
	mustPanic(t, "ecs: the rows of plain were sorted", func() {
		for range NewQuery1(Read(a)).All() {
			w.Align(b, a)
		}
	})
	if slices.Equal(a.Entities(), before) {
		t.Error("the last of these moves no row")
	}
	w.Align()
	w.Align(a)
}

func TestSortLike_QueryYieldsOneRun(t *testing.T) {
	w, a, b, entities := members(1000, Options{})
	checkAtEnd(t, w)
	r := rand.New(rand.NewPCG(1, 2))
	for _, i := range r.Perm(1000)[:400] {
		a.Remove(entities[i])
		a.Set(entities[i], plain{X: int32(i)})
	}
	for _, i := range r.Perm(1000)[:100] {
		b.Remove(entities[i])
	}
	a.SortLike(b)
	q := NewQuery2(Read(a), Read(b))
	runs := 0
	for range q.Runs() {
		runs++
	}
	if runs != 1 || q.Count() != 900 || !slices.Equal(a.Entities()[:900], b.Entities()) {
		t.Errorf("%d runs of %d rows, want 1 of 900", runs, q.Count())
	}
	a.SortFunc(func(x, y plain) int { return cmp.Compare(x.X, y.X) })
	if !slices.Equal(a.Entities(), entities) {
		t.Errorf("sorted by value: %v", a.Entities())
	}
}

func TestSort_SavesMovedRowsOnly(t *testing.T) {
	w, a, b, entities := members(100, Options{})
	checkAtEnd(t, w)
	ascending := func(x, y plain) int { return cmp.Compare(x.X, y.X) }
	w.Checkpoint()
	a.SortFunc(ascending)
	a.SortLike(b)
	a.SortEntities(func(x, y Entity) int { return cmp.Compare(x, y) })
	if !a.rows.Untouched() || w.Raw().Dirty() {
		t.Error("a sort of sorted rows counts as a change")
	}
	a.Mut(entities[40]).X = 42
	// Row 40 now has the value 42, like row 42. The sort moves row 40 after row 41 and before the
	// equal row.
	a.SortFunc(ascending)
	if rows := saved(a); rows[0] != 2 || rows[1] != 2 || rows[2] != 2 {
		t.Errorf("%v rows are saved, want 2 each", rows)
	}
	if want := []Entity{entities[39], entities[41], entities[40], entities[42]}; !slices.Equal(a.Entities()[39:43], want) {
		t.Errorf("rows 39 to 42 are of %v, want %v", a.Entities()[39:43], want)
	}
}

// Equal rows keep their order. Small components move during the sort, and large components move
// only at its end.
func TestSort_KeepsOrderOfEqualRows(t *testing.T) {
	type small struct{ Key, N int }
	type large struct {
		small
		More [4]int
	}
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 150 {
		w := NewWorld(Options{})
		a, b := MustRegister[small](w), MustRegister[large](w)
		keys := 1 + r.IntN(20)
		for i := range n {
			e, v := w.Create(), small{r.IntN(keys), i}
			a.Set(e, v)
			b.Set(e, large{small: v, More: [4]int{3: i}})
		}
		want := slices.Clone(a.Values())
		slices.SortStableFunc(want, func(x, y small) int { return cmp.Compare(x.Key, y.Key) })

		a.SortFunc(func(x, y small) int { return cmp.Compare(x.Key, y.Key) })
		if !slices.Equal(a.Values(), want) {
			t.Fatalf("%d small rows of %d keys are sorted to %v, want %v", n, keys, a.Values(), want)
		}
		b.SortFunc(func(x, y large) int { return cmp.Compare(x.Key, y.Key) })
		for i, v := range b.Values() {
			if v.small != want[i] || v.More[3] != v.N {
				t.Fatalf("%d large rows of %d keys: row %d is %v, want %v", n, keys, i, v, want[i])
			}
		}
		if b.SortLike(a); !slices.Equal(b.Entities(), a.Entities()) {
			t.Fatalf("%d rows: the order of entities differs", n)
		}
		byEntity := slices.Clone(a.Entities())
		slices.SortStableFunc(byEntity, func(x, y Entity) int { return cmp.Compare(x.Index()%7, y.Index()%7) })
		a.SortEntities(func(x, y Entity) int { return cmp.Compare(x.Index()%7, y.Index()%7) })
		if !slices.Equal(a.Entities(), byEntity) {
			t.Fatalf("%d rows are sorted by entity to %v, want %v", n, a.Entities(), byEntity)
		}
	}
}

func TestSortLike_Misuse(t *testing.T) {
	w, a, _, _ := members(3, Options{})
	_, _, far, _ := members(3, Options{})
	r := Must(RegisterResource(w, label{}))
	mustPanic(t, "SortLike with label", func() { a.SortLike(r) })
	mustPanic(t, "SortLike with padded", func() { a.SortLike(far) })
}

// Storage a is in a group, and storage c is not. SortLike puts the members of the group into the
// order of c. Then it does the same with the other rows of a.
func TestSortLike_StorageOutsideGroup(t *testing.T) {
	w, a, b, g, entities := grouped(4, Options{})
	checkAtEnd(t, w)
	c := MustRegister[word](w)
	for _, i := range []int{7, 6, 1, 0, 5} {
		c.Set(entities[i], word{})
	}
	a.SortLike(c)
	var got []uint32
	for _, e := range a.Entities() {
		got = append(got, e.Index())
	}
	if want := []uint32{6, 0, 2, 4, 7, 1, 5, 3}; !slices.Equal(got, want) || !slices.Equal(b.Entities(), g.Entities()) {
		t.Errorf("%v after sorting, want %v", got, want)
	}
}

func TestSort_CompareChangesWorldPanics(t *testing.T) {
	w, a, b, entities := members(3, Options{})
	checkAtEnd(t, w)
	before := slices.Clone(a.Entities())
	mustPanic(t, "the comparison function of a sort changed the world", func() {
		a.SortFunc(func(x, y plain) int {
			b.SortEntities(byIndexBackwards)
			return cmp.Compare(y.X, x.X)
		})
	})
	mustPanic(t, "the comparison function of a sort changed the world", func() {
		a.SortEntities(func(x, y Entity) int { a.Remove(entities[2]); return -1 })
	})
	if !slices.Equal(a.Entities(), before[:2]) {
		t.Errorf("%v are left, want %v", a.Entities(), before[:2])
	}
	mustPanic(t, "no order", func() { a.SortFunc(func(plain, plain) int { panic("no order") }) })
	// The failed sort has lost its scratch space. The next sort must still work.
	a.SortEntities(byIndexBackwards)
	if want := []Entity{before[1], before[0]}; !slices.Equal(a.Entities(), want) {
		t.Errorf("%v after sorting, want %v", a.Entities(), want)
	}
}

// The comparison function may read other storages. It may also sort a storage that is already
// sorted.
func TestSort_CompareReadsOtherStorages(t *testing.T) {
	w, a, b, entities := members(50, Options{})
	checkAtEnd(t, w)
	for i, e := range entities {
		b.Mut(e).B = int64(i * 7 % 50)
	}
	b.SortLike(b)
	a.SortEntities(func(x, y Entity) int {
		b.SortLike(b)
		v, _ := b.Get(x)
		u, _ := b.Get(y)
		return cmp.Compare(v.B, u.B)
	})
	for i, e := range a.Entities() {
		if v, _ := b.Get(e); v.B != int64(i) {
			t.Fatalf("row %d holds %v", i, v)
		}
	}
}
