package ecs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An intPast gives the models access to a PastStorage whose components are converted to ints.
type intPast struct {
	has    func(Entity) bool
	get    func(Entity) (int, bool)
	len    func() int
	all    func(visit func(e Entity, v int) bool)
	beside func([]Entity) []int
}

func newIntPast[T any](x *PastStorage[T], to func(T) int) intPast {
	return intPast{
		has: x.Has,
		get: func(e Entity) (int, bool) { v, ok := x.Get(e); return to(v), ok },
		len: x.Len,
		all: func(visit func(e Entity, v int) bool) {
			for e, v := range x.All() {
				if !visit(e, to(v)) {
					return
				}
			}
		},
		beside: func(entities []Entity) (ints []int) {
			for _, v := range x.Beside(entities) {
				ints = append(ints, to(v))
			}
			return ints
		},
	}
}

// A modelPast is a Past that a model keeps during other operations, together with the state that it
// must read.
type modelPast struct {
	past  *Past
	state *oracleState
}

// heldStates returns the retained states of the oracle in the order of their ticks.
func (w *oracle) heldStates() (states []*oracleState) {
	for _, f := range w.frames {
		if f.tick && !f.bare {
			states = append(states, f.state)
		}
	}
	for _, s := range slices.Backward(w.forward) {
		states = append(states, s)
	}
	return states
}

// aim calls At of the i-th Past, or creates this Past. The tick may have been evicted.
func (p *model) aim(i int, tick uint64) bool {
	k := slices.IndexFunc(p.oracle.heldStates(), func(s *oracleState) bool { return s.tick == tick })
	if i >= len(p.pasts) {
		past, err := p.w.History().At(tick)
		p.expectHeld("History.At", tick, err, k >= 0)
		if err == nil {
			p.pasts = append(p.pasts, modelPast{past, p.oracle.heldStates()[k]})
		}
		return err == nil
	}
	h := &p.pasts[i]
	err := h.past.At(tick)
	p.expectHeld("Past.At", tick, err, k >= 0)
	if err != nil || h.state == p.oracle.heldStates()[k] {
		return false
	}
	h.state = p.oracle.heldStates()[k]
	return true
}

func (p *model) expectHeld(verb string, tick uint64, err error, held bool) {
	if held != (err == nil) || err != nil && !errors.Is(err, ErrNotHeld) {
		failf("%s(%d) = %v, held: %v", verb, tick, err, held)
	}
}

// readPasts reads all Pasts, which fills their caches.
func (p *model) readPasts() bool {
	p.checkPasts()
	return len(p.pasts) > 0
}

// checkPasts compares all Pasts with the states that they must read.
func (p *model) checkPasts() {
	states := p.oracle.heldStates()
	for _, h := range p.pasts {
		held := slices.Contains(states, h.state)
		if got := h.past.Valid(); got != held || h.past.Tick() != h.state.tick {
			failf("a past at tick %d of %d: Valid() = %v, want %v", h.past.Tick(), h.state.tick, got, held)
		}
		if held {
			p.checkPast(h.past, h.state)
		}
	}
}

// checkRetained reads every retained tick through a new Past.
func (p *model) checkRetained() {
	for i := range p.oracle.heldStates() {
		p.checkRetainedAt(i)
	}
}

// checkRetainedAt reads the i-th retained tick. i is taken modulo the number of retained ticks.
func (p *model) checkRetainedAt(i int) {
	if states := p.oracle.heldStates(); len(states) > 0 {
		past, err := p.w.History().At(states[i%len(states)].tick)
		if err != nil {
			failf("History.At(%d): %v", states[i%len(states)].tick, err)
		}
		p.checkPast(past, states[i%len(states)])
	}
}

func (p *model) checkPast(past *Past, then *oracleState) {
	var entities []Entity
	for e := range past.Entities() {
		entities = append(entities, e)
	}
	if !slices.Equal(entities, then.alive) || past.Len() != len(then.alive) {
		failf("at tick %d: Entities() = %v, Len() = %d, want %v", then.tick, entities, past.Len(), then.alive)
	}
	for _, e := range p.probes() {
		if got, want := past.Alive(e), slices.Contains(then.alive, e); got != want {
			failf("at tick %d: Alive(%v) = %v, want %v", then.tick, e, got, want)
		}
	}
	for i := range p.stores {
		want := &then.stores[i]
		if p.oracle.exempt[i] {
			want = p.oracle.stores[i].rowsOf(then.alive)
		}
		p.checkPastStore(p.stores[i].name, p.stores[i].at(past), then.tick, want, &p.oracle.stores[i])
	}
	for i, r := range p.resources {
		want := then.resources[i]
		if p.oracle.exemptResource[i] {
			want = p.oracle.resources[i]
		}
		if got := r.At(past).Items[0]; got != want {
			failf("at tick %d: resource %d = %d, want %d", then.tick, i, got, want)
		}
	}
}

// rowsOf returns a store that has only the rows of the given entities.
func (s *oracleStore) rowsOf(entities []Entity) *oracleStore {
	some := s.empty()
	for row, e := range s.entities {
		if slices.Contains(entities, e) {
			some.entities, some.values = append(some.entities, e), append(some.values, s.values[row])
		}
	}
	return &some
}

func (p *model) checkPastStore(name string, f intPast, tick uint64, want, now *oracleStore) {
	var entities []Entity
	var values []int
	f.all(func(e Entity, v int) bool {
		entities, values = append(entities, e), append(values, v)
		return true
	})
	members, ints := withoutGaps(want.entities, want.values)
	if !slices.Equal(entities, members) || !slices.Equal(values, ints) || f.len() != len(members) {
		failf("%s at tick %d: All() is %v, %v, Len() = %d, want %v, %v", name, tick, entities, values, f.len(), members, ints)
	}
	value := func(s *oracleStore, e Entity) (int, bool) {
		if k := s.find(e); k >= 0 {
			return s.values[k], true
		}
		return 0, false
	}
	all := p.probes()
	for _, e := range all {
		v, has := value(want, e)
		if got, ok := f.get(e); got != v || ok != has || f.has(e) != has {
			failf("%s at tick %d: Get(%v) = %d, %v, Has = %v, want %d, %v", name, tick, e, got, ok, f.has(e), v, has)
		}
	}
	for _, entities := range [][]Entity{all, now.entities, now.entities[len(now.entities)/2:]} {
		got := f.beside(entities)
		for i, e := range entities {
			v, has := value(want, e)
			if !has {
				v, _ = value(now, e)
			}
			if e != Vacant && (len(got) != len(entities) || got[i] != v) {
				failf("%s at tick %d: Beside(%v) = %v, want %d at %d", name, tick, entities, got, v, i)
			}
		}
	}
}

// pastOperations returns operations on a Past that the model keeps during other operations.
func pastOperations() []operation {
	list := []operation{{"look", (*model).readPasts}}
	for back := range 3 {
		list = append(list, operation{fmt.Sprint("aim at tick -", back), func(p *model) bool {
			return p.oracle.tick >= uint64(back) && p.aim(0, p.oracle.tick-uint64(back))
		}})
	}
	return append(list, operation{"aim at tick +1", func(p *model) bool { return p.aim(0, p.oracle.tick+1) }})
}

// explorePasts is like explore, with a Past that is also read between operations. At the end of
// each sequence, it reads all ticks.
func explorePasts(t *testing.T, s modelOptions, all []operation, n int) {
	t.Helper()
	x := explorer{t: t, options: s, operations: append(all, pastOperations()...), last: func(p *model) bool {
		p.checkRetained()
		return true
	}}
	x.extend(n)
	t.Logf("%d sequences of up to %d operations", x.tried, n)
	if x.tried < 100 {
		t.Errorf("only %d sequences were tried", x.tried)
	}
}

func TestPastModel_Ticks(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"plain": plainKind, "large": largeKind, "list": listKind, "gaps": gapKind, "hashed": hashedKind, "tag": labelKind} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelOptions{kinds: []kind{k}, entities: 2, members: 2, history: 2}
			explorePasts(t, s, operations(adds(0, 2), removes(0, 2), writes(0, 1), clearStore(0), ticks()[:3], ticks()[4:5]), *depth+1)
		})
	}
}

func TestPastModel_CreateDestroy(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 1, history: 2, maxGeneration: 2}
	explorePasts(t, s, operations(create, destroys(3), clearAll, adds(0, 2), ticks()[:3], ticks()[4:5]), *depth+1)
}

func TestPastModel_Checkpoints(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{listKind, extraKind}, resources: 2, entities: 2, members: 1, history: 2, record: true}
	more := []operation{{"write resource 0", func(p *model) bool { return p.increaseResource(0) }}}
	explorePasts(t, s, operations(adds(0, 2), removes(0, 1), writes(0, 1), adds(1, 2), more, destroys(1), ticks()[:3], checkpoints(1)), *depth)
}

// The test tries sequences of undo and redo, with reads of a Past in between. The Past must always
// read the same values as after a single undo.
func TestPastModel_Seeks(t *testing.T) {
	const ticks = 4
	tried := 0
	var try func(sequence []int, n int)
	try = func(sequence []int, n int) {
		for op := range 2 * ticks {
			longer := append(slices.Clip(sequence), op)
			w, a, _, entities := members(2, Options{History: ticks})
			r := Must(RegisterResource(w, large{}))
			first, _ := a.Get(entities[0])
			start := first.X
			var past *Past
			for tick := range uint64(ticks) {
				w.Commit()
				if past == nil {
					past, _ = w.History().At(w.Tick())
				}
				if tick < ticks-1 {
					a.Mut(entities[tick%2]).X += 10
					r.Mut().V++
				}
			}
			for _, op := range longer {
				tick := uint64(op%ticks) + 1
				if op >= ticks {
					require.NoError(t, w.History().Seek(tick))
					continue
				}
				require.NoError(t, past.At(tick))
				was, _ := a.At(past).Get(entities[0])
				require.Equal(t, int(tick-1), r.At(past).V, "%v, tick %d", longer, tick)
				require.Equal(t, start+int32(tick/2)*10, was.X, "%v, tick %d", longer, tick)
			}
			tried++
			if n > 1 {
				try(longer, n-1)
			}
		}
	}
	try(nil, 4)
	t.Logf("%d sequences", tried)
}

func TestPast_TickNotHeld(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 2})
	r := Must(RegisterResource(w, list{[]int{1}}))
	w.Commit()
	past, err := w.History().At(w.Tick())
	if err != nil {
		t.Fatal(err)
	}
	was := a.At(past)
	for range 3 {
		a.Mut(entities[0]).X++
		w.Commit()
	}
	if past.Valid() {
		t.Error("a Past of an evicted tick is valid")
	}
	const gone = "which is no longer retained or was replaced by another branch: the oldest retained tick is"
	for _, read := range []func(){
		func() { past.Alive(entities[0]) }, func() { past.Len() }, func() { was.Get(entities[0]) }, func() { was.Len() }, func() { was.Beside(entities) }, func() { r.At(past) },
		func() {
			for range was.All() {
				t.Error("an invalid Past returns a row")
			}
		},
	} {
		mustPanic(t, gone, read)
	}
	if err := past.At(0); !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), "ecs: the past at tick 0:") {
		t.Errorf("At(0) = %v", err)
	}
	if err := past.At(w.Tick()); err != nil || !past.Valid() || was.Len() != 3 {
		t.Errorf("At the present tick: %v, valid: %v, %d rows", err, past.Valid(), was.Len())
	}
	other := NewWorld(Options{History: 1})
	mustPanic(t, "with a past of another world", func() { MustRegister[plain](other).At(past) })
	mustPanic(t, "with a past of another world", func() { Must(RegisterResource(other, list{})).At(past) })
}

// A tickReader reads ticks of a storage in two ways. It has one Past per tick, and a single Past
// that moves from tick to tick.
type tickReader[T comparable] struct {
	t       *testing.T
	s       *Storage[T]
	held    []heldTick[T]
	perTick map[uint64]*Past
	aimed   *Past
}

func newTickReader[T comparable](t *testing.T, s *Storage[T]) *tickReader[T] {
	aimed, err := s.w.History().At(s.w.Tick())
	if err != nil {
		t.Fatal(err)
	}
	return &tickReader[T]{t: t, s: s, perTick: map[uint64]*Past{}, aimed: aimed}
}

func (l *tickReader[T]) keep(held []heldTick[T]) {
	l.held = held
	past, err := l.s.w.History().At(held[len(held)-1].tick)
	if err != nil {
		l.t.Fatal(err)
	}
	l.perTick[past.Tick()] = past
}

func (l *tickReader[T]) expect() {
	l.t.Helper()
	for _, then := range l.held {
		if err := l.aimed.At(then.tick); err != nil {
			l.t.Fatal(err)
		}
		l.expectTick(l.s.At(l.aimed), then)
		l.expectTick(l.s.At(l.perTick[then.tick]), then)
	}
}

// expectFrom rewinds by the given number of ticks and reads all retained ticks, including undone
// ticks. It then seeks forward and reads all ticks again.
func (l *tickReader[T]) expectFrom(back int) {
	l.t.Helper()
	h, tick := l.s.w.History(), l.s.w.Tick()
	if err := h.Rewind(back); err != nil {
		l.t.Fatal(err)
	}
	l.expect()
	if err := h.Seek(tick); err != nil {
		l.t.Fatal(err)
	}
	l.expect()
}

func (l *tickReader[T]) expectTick(x *PastStorage[T], then heldTick[T]) {
	l.t.Helper()
	var entities []Entity
	var values []T
	for e, v := range x.All() {
		entities, values = append(entities, e), append(values, v)
	}
	members, want := withoutGaps(then.entities, then.values)
	if !slices.Equal(entities, members) || !slices.Equal(values, want) || x.Len() != len(members) {
		l.t.Fatalf("%s at tick %d from %d: %d rows, want %d:\n%v\n%v\n%v\n%v", l.s.name, then.tick, l.s.w.Tick(), x.Len(), len(members), entities, members, values, want)
	}
	now := slices.Clone(l.s.members())
	beside, was := slices.Clone(x.Beside(now)), rowsOf(then.entities)
	for i, e := range now {
		row, had := was[e]
		if e == Vacant {
			continue
		}
		v, ok := x.Get(e)
		want := l.s.data.Live[i]
		if had {
			want = then.values[row]
		}
		if ok != had || ok && v != want || beside[i] != want {
			l.t.Fatalf("%s at tick %d from %d: Get(%v) = %v, %v, Beside has %v, want %v, %v", l.s.name, then.tick, l.s.w.Tick(), e, v, ok, beside[i], want, had)
		}
	}
	for _, e := range members {
		if !x.Has(e) {
			l.t.Fatalf("%s at tick %d from %d: Has(%v) is false", l.s.name, then.tick, l.s.w.Tick(), e)
		}
	}
}

func TestPast_RowMovedBetweenTicks(t *testing.T) {
	w, a, _, entities := members(4, Options{History: 4})
	w.Commit()
	a.Remove(entities[0]) // From now on, the last entity is in the row of entity 0.
	w.Commit()
	a.Clear()
	past, err := w.History().At(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tick := range []uint64{1, 2, 1, 2} {
		if err := past.At(tick); err != nil {
			t.Fatal(err)
		}
		for i, e := range entities {
			if got, want := a.At(past).Has(e), i > 0 || tick == 1; got != want {
				t.Errorf("at tick %d: Has(%v) = %v, want %v", tick, e, got, want)
			}
		}
		// Change the sparse entry of entity 3. The Past must still find the old row.
		a.Set(entities[3], plain{})
		a.Clear()
	}
}

// After a restore, a value that was saved in a log is the live value again. Later writes change it
// in place. A Past must not see these writes.
func TestPast_WritesToRestoredRows(t *testing.T) {
	w := NewWorld(Options{History: 4})
	s := MustRegister(w, Component[list]{Clone: cloneList})
	e := w.Create()
	s.Set(e, list{[]int{1}})
	w.Commit()
	past, err := w.History().At(1)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string) {
		t.Helper()
		if v, _ := s.At(past).Get(e); v.Items[0] != 1 {
			t.Errorf("%s: %v, want 1", when, v)
		}
	}
	for range 3 {
		cp := w.Checkpoint()
		s.Mut(e).Items[0]++
		expect("written")
		w.Restore(cp)
		s.Mut(e).Items[0]++
		expect("put back and written")
		w.Release(cp)
		w.Commit()
		if err := w.History().Rewind(1); err != nil {
			t.Fatal(err)
		}
		expect("rewound")
		s.Mut(e).Items[0] += 5
		expect("rewound and written")
		w.Commit()
	}
}

func TestPast_ComponentRegisteredLater(t *testing.T) {
	w, _, _, entities := members(3, Options{History: 4})
	w.Commit()
	late := MustRegister[extra](w)
	score := Must(RegisterResource(w, word{"first"}))
	late.Set(entities[0], extra{1})
	score.Set(word{"second"})
	w.Commit()
	past, err := w.History().At(1)
	if err != nil {
		t.Fatal(err)
	}
	if late.At(past).Len() != 0 || late.At(past).Has(entities[0]) || score.At(past).S != "first" {
		t.Errorf("%d rows, %q", late.At(past).Len(), score.At(past).S)
	}
	if first, second := late.At(past), late.At(past); first != second {
		t.Error("a second reader of the same storage")
	}
}

func TestPast_WorldChangedInLoop(t *testing.T) {
	w, a, _, entities := members(200, Options{History: 2})
	w.Commit()
	past, err := w.History().At(1)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Collect(past.Entities())
	var visited, alive []Entity
	for e := range a.At(past).All() {
		visited = append(visited, e)
		w.Destroy(entities[len(visited)*7%200])
		a.Set(w.Create(), plain{1, 1})
	}
	for e := range past.Entities() {
		alive = append(alive, e)
		w.Destroy(e)
	}
	if !slices.Equal(visited, want) || !slices.Equal(alive, want) {
		t.Errorf("visited %v and %v, want %v", visited, alive, want)
	}
}

func TestPast_ReadInParallelRuns(t *testing.T) {
	w, a, b, entities := members(5000, Options{History: 2})
	w.Commit()
	past, err := w.History().At(1)
	if err != nil {
		t.Fatal(err)
	}
	was := b.At(past)
	b.Mut(entities[0]).B = 9
	b.Remove(entities[10]) // The last entity moves to the row of entities[10].
	before, _ := was.Get(entities[0])
	NewQuery1(Write(a)).ParallelRuns(4, func(run Run1[plain]) {
		for _, e := range run.Entities {
			if v, ok := was.Get(e); !ok || e == entities[0] && v != before {
				panic(fmt.Sprint(e, " had ", v, ok))
			}
		}
	})
	mustPanic(t, "a Past is read in ParallelRuns after the world changed", func() {
		NewQuery1(Write(a)).ParallelRuns(2, func(run Run1[plain]) { a.At(past).Get(run.Entities[0]) })
	})
}

func TestPast_Allocations(t *testing.T) {
	if debug {
		t.Skip("a debug build allocates")
	}
	w, a, _, entities := members(1000, Options{History: 4})
	past, err := w.History().At(w.Tick())
	if err != nil {
		t.Fatal(err)
	}
	sum, i := 0, 0
	look := func() {
		a.Mut(entities[i*37%500]).X++
		w.Destroy(entities[500+i*31%500])
		w.Commit()
		i++
		if err := past.At(w.Tick() - min(w.Tick(), 3)); err != nil {
			t.Fatal(err)
		}
		was := a.At(past)
		for _, e := range entities[:50] {
			v, _ := was.Get(e)
			sum += int(v.X)
		}
		sum += len(was.Beside(a.members()))
	}
	for range 200 {
		look()
	}
	if n := testing.AllocsPerRun(100, look); n > 0.5 {
		t.Errorf("%v allocations", n)
	}
}
