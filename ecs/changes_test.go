package ecs

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// An oracleDelta is the expected content of a Delta. Components are converted to ints.
type oracleDelta struct{ added, changed, removed []oracleEdit }

type oracleEdit struct {
	e        Entity
	old, new int
}

// An intDelta reads the changes of a storage. It converts components to ints.
type intDelta struct {
	since       func(tick uint64) (oracleDelta, error)
	sinceCommit func() (oracleDelta, error)
	filters     func() [3]*ChangeFilter
	hook        func(added, removed func(Entity, int), set, changed func(Entity, int, int))
}

// newIntDelta returns the changes of s. All of its reads reuse one Delta.
func newIntDelta[T any](s *Storage[T], to func(T) int) intDelta {
	var d *Delta[T]
	read := func(err error) (oracleDelta, error) {
		var n oracleDelta
		for e, v := range d.Added() {
			n.added = append(n.added, oracleEdit{e, 0, to(v)})
		}
		for e, v := range d.Changed() {
			n.changed = append(n.changed, oracleEdit{e, to(v.Old), to(v.New)})
		}
		for e, v := range d.Removed() {
			n.removed = append(n.removed, oracleEdit{e, to(v), 0})
		}
		if d.Empty() != (len(n.added)+len(n.changed)+len(n.removed) == 0) {
			failf("%s: Empty() = %v with %v", s.name, d.Empty(), n)
		}
		return n, err
	}
	return intDelta{
		since: func(tick uint64) (oracleDelta, error) {
			if d == nil {
				made, err := s.Since(tick)
				d = made
				return read(err)
			}
			return read(d.Since(tick))
		},
		sinceCommit: func() (oracleDelta, error) {
			if d == nil {
				made, err := s.SinceCommit()
				d = made
				return read(err)
			}
			return read(d.SinceCommit())
		},
		filters: func() [3]*ChangeFilter { return [3]*ChangeFilter{s.Added(), s.Changed(), s.Removed()} },
		hook: func(added, removed func(Entity, int), set, changed func(Entity, int, int)) {
			s.OnAdd(func(e Entity, v T) { added(e, to(v)) })
			s.OnRemove(func(e Entity, v T) { removed(e, to(v)) })
			s.OnSet(func(e Entity, before, now T) { set(e, to(before), to(now)) })
			if !s.rows.Exempt {
				s.OnChange(func(e Entity, before, now T) { changed(e, to(before), to(now)) })
			}
		},
	}
}

// difference returns the changes of a store from an earlier state to its present state.
func difference(then, now *oracleStore) (d oracleDelta) {
	for k, e := range now.entities {
		switch was := slices.Index(then.entities, e); {
		case e == Vacant:
		case was < 0:
			d.added = append(d.added, oracleEdit{e, 0, now.values[k]})
		case then.values[was] != now.values[k]:
			d.changed = append(d.changed, oracleEdit{e, then.values[was], now.values[k]})
		}
	}
	for k, e := range then.entities {
		if e != Vacant && !slices.Contains(now.entities, e) {
			d.removed = append(d.removed, oracleEdit{e, then.values[k], 0})
		}
	}
	return d
}

// without returns the elements of entities that are not in other.
func without(entities, other []Entity) (rest []Entity) {
	for _, e := range entities {
		if !slices.Contains(other, e) {
			rest = append(rest, e)
		}
	}
	return rest
}

// boundary returns the state at the end of the given tick, or nil if the oracle does not retain it.
func (w *oracle) boundary(tick uint64) *oracleState {
	for i := len(w.frames) - 1; i >= 0; i-- {
		if f := w.frames[i]; f.tick && f.state.tick == tick {
			if f.bare {
				return nil
			}
			return f.state
		}
	}
	return nil
}

// checkChanges compares the changes since every retained tick, and since ticks that are not
// retained.
func (p *model) checkChanges() {
	for tick := range p.oracle.newest() + 2 {
		p.checkSince(tick)
	}
	then := p.oracle.newestBoundary()
	for i, f := range p.stores {
		got, err := f.changes.sinceCommit()
		p.checkDelta(i, then, got, err)
	}
	if err := p.w.check(); err != nil {
		failf("%v", err)
	}
}

// newestBoundary returns the state at the last commit, or nil if the world retains no values of it.
func (w *oracle) newestBoundary() *oracleState {
	if k := w.newestTick(); k >= 0 && !w.frames[k].bare {
		return w.frames[k].state
	}
	return nil
}

func (p *model) checkSince(tick uint64) {
	then := p.oracle.boundary(tick)
	d, err := p.w.Since(tick)
	checkHeld("World.Since", err, then != nil)
	var created, destroyed []Entity
	if then != nil {
		created, destroyed = without(p.oracle.alive, then.alive), without(then.alive, p.oracle.alive)
	}
	if !slices.Equal(d.Created(), created) || !slices.Equal(d.Destroyed(), destroyed) {
		failf("since tick %d: created %v, destroyed %v, want %v, %v", tick, d.Created(), d.Destroyed(), created, destroyed)
	}
	for i, f := range p.stores {
		got, err := f.changes.since(tick)
		p.checkDelta(i, then, got, err)
	}
	for i, r := range p.resources {
		e, changed, err := r.Since(tick)
		checkHeld("Resource.Since", err, then != nil && !p.oracle.exemptResource[i])
		if err != nil {
			continue
		}
		if e.Old.Items[0] != then.resources[i] || e.New.Items[0] != p.oracle.resources[i] || changed != (then.resources[i] != p.oracle.resources[i]) {
			failf("resource %d since tick %d: %v, %v, want %d, %d", i, tick, e, changed, then.resources[i], p.oracle.resources[i])
		}
	}
}

func (p *model) checkDelta(i int, then *oracleState, got oracleDelta, err error) {
	held := then != nil && !p.oracle.exempt[i]
	checkHeld(p.stores[i].name, err, held)
	var want oracleDelta
	if held {
		want = difference(&then.stores[i], &p.oracle.stores[i])
	}
	if !reflect.DeepEqual(got, want) {
		failf("%s: changes %v, want %v", p.stores[i].name, got, want)
	}
}

func checkHeld(name string, err error, held bool) {
	if held != (err == nil) || err != nil && !errors.Is(err, ErrNotHeld) {
		failf("%s: error %v, tick retained: %v", name, err, held)
	}
}

// exploreChanges is like explore, and checks all changes at the end of every sequence.
func exploreChanges(t *testing.T, s modelOptions, all []operation, n int) {
	t.Helper()
	x := explorer{t: t, options: s, operations: all, last: func(p *model) bool { p.checkChanges(); return true }}
	x.extend(n)
	if x.tried < 100 {
		t.Errorf("only %d sequences were tried", x.tried)
	}
	t.Logf("%d sequences of up to %d operations", x.tried, n)
}

func TestDeltaModel_AddWriteRemoveClear(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"list": listKind, "tag": labelKind} {
		t.Run(name, func(t *testing.T) {
			s := modelOptions{kinds: []kind{k}, entities: 3, members: 2, history: 2, record: true}
			exploreChanges(t, s, operations(adds(0, 3), removes(0, 2), writes(0, 2), clearStore(0), ticks(), checkpoints(2)), max(3, *depth-1))
		})
	}
}

func TestDeltaModel_CreateDestroy(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 2, history: 2, maxGeneration: 3}
	exploreChanges(t, s, operations(create, destroys(4), clearAll, adds(0, 3), ticks(), checkpoints(1)), max(3, *depth-1))
}

func TestDeltaModel_ResourcesAndNoRewind(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{extraKind}, entities: 2, members: 1, resources: 2, history: 2}
	var all []operation
	for i := range 2 {
		all = append(all,
			operation{"set resource", func(p *model) bool { return p.setResource(i) }},
			operation{"write resource", func(p *model) bool { return p.increaseResource(i) }})
	}
	exploreChanges(t, s, operations(all, writes(0, 1), adds(0, 2), ticks(), checkpoints(1)), max(3, *depth-1))
}

// A world without history still retains the values of its last commit if a change filter needs
// them. The test covers worlds with and without a recorder.
func TestDeltaModel_LastCommitWithoutHistory(t *testing.T) {
	t.Parallel()
	for _, record := range []bool{false, true} {
		s := modelOptions{kinds: []kind{listKind}, entities: 2, members: 2, keepTick: true, record: record}
		exploreChanges(t, s, operations(adds(0, 2), removes(0, 2), writes(0, 2), ticks(), checkpoints(2)), max(3, *depth-1))
	}
}

// Without history, every Delta returns an error. A recorder does not change this, because its
// frames record only which rows were written.
func TestDeltaModel_ErrorsWithoutHistory(t *testing.T) {
	t.Parallel()
	for _, record := range []bool{false, true} {
		s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 2, record: record}
		exploreChanges(t, s, operations(adds(0, 2), removes(0, 2), writes(0, 2), ticks(), checkpoints(2)), max(3, *depth-1))
	}
}

func TestChangeFilter_SameAsModel(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 1, keepTick: true, maxGeneration: 4}
	var filters [3]*ChangeFilter
	var of *model
	x := explorer{t: t, options: s, last: func(p *model) bool {
		if p.w.anyCheckpoint() {
			return false
		}
		if of != p {
			filters, of = p.stores[0].changes.filters(), p
		}
		p.checkFilters(filters)
		return true
	}}
	// A filter that is used again after further changes must update its result.
	look := operation{"look", func(p *model) bool { return x.last(p) }}
	x.operations = operations(create, destroys(3), adds(0, 3), removes(0, 2), writes(0, 1), ticks(), look)
	x.extend(max(3, *depth-1))
	t.Logf("%d sequences", x.tried)
}

func (p *model) checkFilters(filters [3]*ChangeFilter) {
	d := difference(&p.oracle.newestBoundary().stores[0], &p.oracle.stores[0])
	for i, want := range [3][]oracleEdit{d.added, d.changed, d.removed} {
		var f predicate = filters[i]
		f.begin()
		for _, e := range p.probes() {
			kept := slices.ContainsFunc(want, func(n oracleEdit) bool { return n.e == e })
			if got := f.keeps(e); got != kept {
				failf("filter %d: keeps(%v) = %v, want %v", i, e, got, kept)
			}
		}
	}
}

func TestChangeFilter_UsedInLoop(t *testing.T) {
	w, a, b, entities := members(200, Options{})
	checkAtEnd(t, w)
	f := a.Changed()
	w.Commit()
	for _, i := range []int{3, 70, 199} {
		a.Mut(entities[i]).X++
	}
	a.Mut(entities[5]).X += 0
	var got []Entity
	f.begin()
	for e := range NewQuery2(Write(a), Read(b)).All() {
		if f.keeps(e) {
			got = append(got, e)
		}
	}
	if want := []Entity{entities[3], entities[70], entities[199]}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// The next tests are about which values count as equal.

type odd struct {
	A int8
	F float64
	S string
}

func TestDelta_IgnoresWritesOfEqualBytes(t *testing.T) {
	type gappy struct {
		A int8
		F float64
	}
	w := NewWorld(Options{History: 1})
	checkAtEnd(t, w)
	e := w.Create()
	floats := MustRegister(w, Component[float64]{Name: "float"})
	gaps := MustRegister[gappy](w)
	odds := MustRegister[odd](w)
	anys := MustRegister(w, Component[struct{ V any }]{Name: "any", NoPersist: true, Clone: func(v struct{ V any }) struct{ V any } { return v }})
	lists := MustRegister(w, Component[list]{Clone: cloneList})
	floats.Set(e, math.NaN())
	gaps.Set(e, gappy{1, math.NaN()})
	odds.Set(e, odd{1, math.NaN(), "x"})
	anys.Set(e, struct{ V any }{[]int{1}})
	lists.Set(e, list{[]int{1, 2}})
	w.Commit()

	floats.Set(e, math.NaN())
	*gaps.Mut(e) = gappy{1, math.NaN()}
	odds.Set(e, odd{1, math.NaN(), strings.Clone("x")})
	anys.Set(e, struct{ V any }{[]int{1}})
	lists.Set(e, list{[]int{1, 2}})
	expectChanges(t, "the same values", floats, 0)
	expectChanges(t, "the same values", gaps, 0)
	expectChanges(t, "the same values", odds, 0)
	expectChanges(t, "the same values", anys, 0)
	expectChanges(t, "the same values", lists, 0)

	floats.Set(e, math.Float64frombits(math.Float64bits(math.NaN())^1))
	gaps.Mut(e).A = 2
	odds.Mut(e).S = "y"
	anys.Set(e, struct{ V any }{[]int{2}})
	lists.Mut(e).Items[1]++
	expectChanges(t, "other values", floats, 1)
	expectChanges(t, "other values", gaps, 1)
	expectChanges(t, "other values", odds, 1)
	expectChanges(t, "other values", anys, 1)
	expectChanges(t, "other values", lists, 1)

	floats.Set(e, 0)
	w.Commit()
	floats.Set(e, math.Copysign(0, -1))
	expectChanges(t, "-0 for 0", floats, 1)
}

func expectChanges[T any](t *testing.T, what string, s *Storage[T], want int) {
	t.Helper()
	d, err := s.SinceCommit()
	if err != nil || len(d.changed.entities) != want || len(d.added.entities)+len(d.removed.entities) != 0 {
		t.Errorf("%s: %s: changed %v, want %d (%v)", what, s.Name(), d.changed, want, err)
	}
}

// spoilPadding changes a byte of padding between the fields A and B of p.
func spoilPadding(p *padded) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))
	b[unsafe.Offsetof(p.A)+1]++
}

func TestDelta_IgnoresPadding(t *testing.T) {
	w := NewWorld(Options{History: 1})
	s := MustRegister[padded](w)
	e := w.Create()
	s.Set(e, padded{1, 2, true})
	w.Commit()
	p := s.Mut(e)
	spoilPadding(p)
	expectChanges(t, "padding", s, 0)
}

func TestDelta_IgnoresRestoredRows(t *testing.T) {
	w, a, _, entities := members(100, Options{History: 2})
	checkAtEnd(t, w)
	w.Commit()
	cp := w.Checkpoint()
	for run := range NewQuery1(Write(a)).Runs() {
		for i := range run.A {
			run.A[i].X = -1
		}
	}
	a.Remove(entities[0])
	w.Restore(cp)
	a.Mut(entities[7]).X = -1
	w.Release(cp)
	d, err := a.SinceCommit()
	if err != nil || !slices.Equal(d.changed.entities, entities[7:8]) || len(d.added.entities)+len(d.removed.entities) > 0 {
		t.Errorf("changed %v (%v), want %v", d.changed, err, entities[7:8])
	}
}

// A Delta is right if many scattered rows changed in several frames and removals moved other rows.
func TestDelta_ScatteredRows(t *testing.T) {
	w, a, _, entities := members(3000, Options{History: 5})
	checkAtEnd(t, w)
	then := map[Entity]plain{}
	for e, v := range a.All() {
		then[e] = v
	}
	w.Commit()
	base := w.Tick()
	for round := range 4 {
		for i := round * 11; i < len(entities); i += 37 + round {
			switch e := entities[i]; i % 3 {
			case 0:
				a.Set(e, plain{int32(i % 2 * 5), 0})
			case 1:
				a.Remove(e)
			case 2:
				w.Destroy(e)
				a.Set(w.Create(), plain{int32(i), 1})
			}
		}
		w.Commit()
	}
	d, err := a.Since(base)
	if err != nil {
		t.Fatal(err)
	}
	added, changed, removed := 0, 0, 0
	for e, v := range a.All() {
		if old, had := then[e]; !had {
			added++
		} else if old != v {
			changed++
		}
	}
	for e := range then {
		if !a.Has(e) {
			removed++
		}
	}
	for e, v := range d.Added() {
		if now, ok := a.Get(e); !ok || now != v || then[e] != (plain{}) {
			t.Fatalf("added %v %v", e, v)
		}
	}
	row := -1
	for e, v := range d.Changed() {
		if now, _ := a.Get(e); now != v.New || then[e] != v.Old || v.Old == v.New || a.row(e) <= row {
			t.Fatalf("changed %v %v", e, v)
		}
		row = a.row(e)
	}
	for e, v := range d.Removed() {
		if _, had := then[e]; !had || then[e] != v || a.Has(e) {
			t.Fatalf("removed %v %v", e, v)
		}
	}
	if len(d.added.entities) != added || len(d.changed.entities) != changed || len(d.removed.entities) != removed || removed == 0 || added == 0 || changed == 0 {
		t.Errorf("%d added, %d changed, %d removed, want %d, %d, %d",
			len(d.added.entities), len(d.changed.entities), len(d.removed.entities), added, changed, removed)
	}
}

// Rows that move, for example in a sort, are not changes of an entity.
func TestDelta_IgnoresMovedRows(t *testing.T) {
	w, a, _, entities := members(300, Options{History: 1})
	checkAtEnd(t, w)
	w.Commit()
	for _, e := range entities[:200] {
		v, _ := a.Get(e)
		a.Remove(e)
		a.Set(e, v)
	}
	if d, err := a.SinceCommit(); err != nil || !d.Empty() {
		t.Errorf("changes %+v (%v), want none", d, err)
	}
}

// Rows 1 and 2 lost their entities in an earlier tick. An older tick of the history needs their
// values, so new writes save these rows. A Delta since the last commit must not report their old
// entities as removed.
func TestDelta_IgnoresRowsRemovedEarlier(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 3})
	checkAtEnd(t, w)
	w.Commit()
	a.Remove(entities[2])
	a.Remove(entities[1])
	w.Commit()
	a.Remove(entities[0])
	// The log saves rows 0 and 1 as one run. Only row 0 was in use at the last commit.
	for range 2 {
		a.Set(w.Create(), plain{})
	}
	d, err := a.SinceCommit()
	if err != nil || !slices.Equal(d.removed.entities, entities[:1]) || len(d.added.entities) != 2 {
		t.Errorf("removed %v, added %v (%v)", d.removed.entities, d.added.entities, err)
	}
}

// The body of a loop over a Delta may change the storage whose changes the Delta has.
func TestDelta_WorldChangedInLoop(t *testing.T) {
	w, a, _, entities := members(100, Options{History: 1})
	checkAtEnd(t, w)
	w.Commit()
	for _, e := range entities {
		a.Mut(e).X += 1000
	}
	d, _ := a.SinceCommit()
	n := 0
	for e, v := range d.Changed() {
		if v.New.X-v.Old.X != 1000 {
			t.Fatalf("%v: %v", e, v)
		}
		a.Remove(e)
		w.Destroy(entities[99-n])
		w.Commit()
		n++
	}
	if n != 100 {
		t.Errorf("%d changes were read, want 100", n)
	}
}

func TestDelta_LoopBreak(t *testing.T) {
	w, a, _, entities := members(10, Options{History: 1})
	w.Commit()
	a.Remove(entities[0])
	a.Remove(entities[1])
	a.Mut(entities[5]).X = -7
	a.Mut(entities[6]).X = -7
	for range 2 {
		e := w.Create()
		a.Set(e, plain{})
	}
	d, _ := a.SinceCommit()
	n := 0
	for range d.Added() {
		n++
		break
	}
	for range d.Changed() {
		n++
		break
	}
	for range d.Removed() {
		n++
		break
	}
	if n != 3 {
		t.Errorf("%d steps, want 3", n)
	}
}

func TestDelta_TickNotHeld(t *testing.T) {
	w := NewWorld(Options{History: 3})
	a := MustRegister[plain](w)
	x := MustRegister(w, Component[extra]{NoRewind: true})
	e := w.Create()
	for range 6 {
		a.Set(e, plain{int32(w.Tick()), 0})
		w.Commit()
	}
	cp := w.Checkpoint()
	w.Commit()
	w.Commit()
	w.Commit()
	w.Commit()
	w.Commit()
	for _, test := range []struct {
		err  error
		want string
	}{
		{second(a.Since(2)), "ecs: tick not held: changes of plain since tick 2; retained ticks: 6, 9 to 11"},
		{second(a.Since(12)), "ecs: tick not held: changes of plain since tick 12; retained ticks: 6, 9 to 11"},
		{second(w.Since(7)), "ecs: tick not held: changes of the registry since tick 7; retained ticks: 6, 9 to 11"},
		{second(x.SinceCommit()), "ecs: tick not held: changes of extra since tick 11; it is NoRewind, so the history has no values of it"},
		{second(MustRegister[plain](NewWorld(Options{})).SinceCommit()), "ecs: tick not held: changes of plain since tick 0; " + noHistory},
	} {
		if test.err == nil || test.err.Error() != test.want || !errors.Is(test.err, ErrNotHeld) {
			t.Errorf("error %v, want %s", test.err, test.want)
		}
	}
	w.Release(cp)
}

func second[A any](_ A, err error) error { return err }

// If a Delta is reused and the call fails, the Delta is empty.
func TestDelta_EmptyAfterError(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 1})
	w.Commit()
	a.Remove(entities[0])
	w.Destroy(entities[1])
	w.Create()
	d, _ := a.SinceCommit()
	lives, _ := w.SinceCommit()
	if d.Empty() || len(lives.Created()) == 0 || len(lives.Destroyed()) == 0 {
		t.Fatal("nothing changed")
	}
	if err := d.Since(99); err == nil || !d.Empty() {
		t.Errorf("Since(99) = %v, left %+v", err, d)
	}
	if err := lives.Since(99); err == nil || len(lives.Created())+len(lives.Destroyed()) > 0 {
		t.Errorf("Since(99) = %v, left %v, %v", err, lives.Created(), lives.Destroyed())
	}
}

// A Delta that is used again no longer refers to the values of its earlier result.
func TestDelta_ReuseDropsOldValues(t *testing.T) {
	w := NewWorld(Options{History: 1})
	l := MustRegister(w, Component[list]{Clone: cloneList})
	e := w.Create()
	l.Set(e, list{[]int{1}})
	w.Commit()
	l.Set(e, list{[]int{2}})
	d, _ := l.SinceCommit()
	w.Commit()
	if err := d.SinceCommit(); err != nil {
		t.Fatal(err)
	}
	if v := d.changed.values[:1][0]; v.Old.Items != nil || v.New.Items != nil {
		t.Errorf("the Delta still refers to %v", v)
	}
}

func TestDelta_ComparesOnlyWrittenRows(t *testing.T) {
	w, a, _, entities := members(5000, Options{History: 1})
	w.Commit()
	a.Mut(entities[4000]).X = -1
	a.Remove(entities[17])
	d, err := a.SinceCommit()
	if n := len(d.rows) + cap(d.old); err != nil || n > 5 {
		t.Errorf("%d rows were compared, want at most 5 (%v)", n, err)
	}
}

func TestDelta_Allocations(t *testing.T) {
	if debug {
		t.Skip("a debug build allocates")
	}
	w, a, _, entities := members(2000, Options{History: 2})
	gaps := MustRegister(w, Component[padded]{Name: "gaps"})
	res := Must(RegisterResource(w, padded{}, Component[padded]{Name: "resource"}))
	for _, e := range entities {
		gaps.Set(e, padded{})
	}
	added, changed, removed := a.Added(), a.Changed(), a.Removed()
	d, err := a.SinceCommit()
	dg, _ := gaps.SinceCommit()
	lives, _ := w.SinceCommit()
	if err != nil {
		t.Fatal(err)
	}
	n, sum := 0, 0
	tick := func() {
		n++
		for i := 0; i < len(entities); i += 7 {
			a.Mut(entities[i]).X = int32(n)
			gaps.Mut(entities[i]).B = int64(n)
		}
		a.Remove(entities[n%2000])
		a.Set(entities[n%2000], plain{})
		w.Destroy(w.Create())
		res.Mut().B++
		for _, f := range []predicate{added, changed, removed} {
			f.begin()
		}
		_ = d.SinceCommit()
		_ = dg.SinceCommit()
		_ = lives.SinceCommit()
		_, _, _ = res.SinceCommit()
		for _, v := range d.Changed() {
			sum += int(v.New.X)
		}
		w.Commit()
	}
	for range 200 {
		tick()
	}
	if n := testing.AllocsPerRun(50, tick); n > 0 {
		t.Errorf("%v allocations a tick, want none", n)
	}
}

// After an error, the resource is not reported as changed.
func TestResourceSince_TickNotHeld(t *testing.T) {
	w := NewWorld(Options{History: 2})
	r := Must(RegisterResource(w, plain{X: 1}))
	for range 4 {
		w.Commit()
		r.Set(plain{X: r.Get().X + 1})
	}
	if e, changed, err := r.Since(0); !errors.Is(err, ErrNotHeld) || changed || e != (Edit[plain]{}) {
		t.Errorf("Since a tick that is not retained = %v, %v, %v", e, changed, err)
	}
	if e, changed, err := r.Since(3); err != nil || !changed || e.Old != (plain{X: 3}) || e.New != (plain{X: 5}) {
		t.Errorf("Since = %v, %v, %v, want 3 and 5", e, changed, err)
	}
}
