package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// The methods below run batch operations on the world of a model. The oracle makes the same changes
// one by one.

func (p *model) createN(n int) bool {
	ahead := p.w.entities.nextEntities(n)
	got := p.w.CreateN(p.handles[:0:0], n)
	if !slices.Equal(ahead, got) {
		failf("ahead(%d) = %v, then CreateN = %v", n, ahead, got)
	}
	var want []Entity
	for range n {
		want = append(want, p.oracle.create())
	}
	if !slices.Equal(got, want) {
		failf("CreateN(nil, %d) = %v, want %v", n, got, want)
	}
	for _, e := range got {
		if !slices.Contains(p.handles, e) {
			p.handles = append(p.handles, e)
		}
	}
	return n > 0
}

func (p *model) destroyAll(entities []Entity) bool {
	from := slices.Clone(entities)
	return sameCount("DestroyAll", from, p.w.DestroyAll(entities), p.oracle.destroyAll(from))
}

func (w *oracle) destroyAll(entities []Entity) int {
	before := slices.Clone(w.alive)
	for _, e := range slices.Backward(entities) {
		w.destroy(e)
	}
	ended := among(before, w.alive)
	return len(ended) - len(among(ended, entities))
}

func sameCount(verb string, entities []Entity, got, want int) bool {
	if got != want {
		failf("%s(%v) = %d, want %d", verb, entities, got, want)
	}
	return got > 0
}

func (p *model) setAll(i int, entities []Entity) bool {
	from := slices.Clone(entities)
	p.lastValue++
	v := p.lastValue * 10 % 1000
	if p.kinds[i].tag {
		v = 0
	}
	want := 0
	for _, e := range from {
		if p.oracle.set(i, e, v) {
			want++
		}
	}
	return sameCount("SetAll", from, p.stores[i].setAll(entities, v), want)
}

func (p *model) setEach(i int, entities []Entity) bool {
	from := slices.Clone(entities)
	want := 0
	values := make([]int, len(from))
	for k, e := range from {
		p.lastValue++
		if !p.kinds[i].tag {
			values[k] = p.lastValue * 10 % 1000
		}
		if p.oracle.set(i, e, values[k]) {
			want++
		}
	}
	return sameCount("SetEach", from, p.stores[i].setEach(entities, values), want)
}

func (p *model) removeAll(i int, entities []Entity) bool {
	from := slices.Clone(entities)
	want := 0
	for _, e := range slices.Backward(from) {
		if p.oracle.remove(i, e) {
			want++
		}
	}
	return sameCount("RemoveAll", from, p.stores[i].removeAll(entities), want)
}

// drain runs a loop over Drain of store i. The parameter most is the maximum number of removals. In
// the first visits, the loop body also adds the component to an entity. The parameter others is the
// number of these visits.
func (p *model) drain(i, most, others int) bool {
	at, visits := -1, 0
	p.stores[i].drain(func(e Entity, v int) bool {
		s := &p.oracle.stores[i]
		row := len(s.entities) - 1
		// In an Indexed store, the loop goes from the last row to the first. Rows that the body
		// adds at the end come afterwards: the loop then starts again at the last row.
		if s.indexed {
			below := func(lo, hi int) int {
				for row := hi - 1; row >= lo; row-- {
					if s.entities[row] != Vacant {
						return row
					}
				}
				return -1
			}
			if row = below(0, min(len(s.entities), max(at, 0))); row < 0 {
				row = below(0, len(s.entities))
			}
			at = row
		}
		if row < 0 || s.entities[row] != e || s.values[row] != v || p.stores[i].has(e) {
			failf("Drain visits %v with %d, want row %d of %v with %v", e, v, row, s.entities, s.values)
		}
		p.oracle.remove(i, e)
		if visits++; visits <= others {
			p.set(i, p.handle((visits*5+most)%(len(p.handles)+1)))
		}
		return visits < most
	})
	if left := p.oracle.stores[i].members(); visits < most && left > 0 {
		failf("Drain leaves %d entities", left)
	}
	return visits > 0
}

// keepOnly calls KeepOnly for e. It keeps the components of the stores whose bits are set, and of
// all storages that the oracle does not model.
func (p *model) keepOnly(e Entity, bits int) bool {
	keep := slices.Clone(p.w.storages)
	for _, f := range p.stores {
		keep = slices.DeleteFunc(keep, func(s AnyStorage) bool { return s == f.any() })
	}
	want := 0
	for i, f := range p.stores {
		if bits>>i&1 != 0 {
			keep = append(keep, f.any())
		} else if p.oracle.remove(i, e) {
			want++
		}
	}
	return sameCount("KeepOnly", []Entity{e}, p.w.KeepOnly(e, keep...), want)
}

func (p *model) increaseEach(i int, entities []Entity) bool {
	want, by := 0, 1
	if p.kinds[i].tag {
		by = 0
	}
	for _, e := range entities {
		if p.oracle.increase(i, e, by) {
			want++
		}
	}
	return sameCount("MutEach", entities, p.stores[i].increaseEach(entities), want)
}

// some returns several handles in an order that arg chooses: ascending, descending, shuffled, or
// with repetitions. The entities of some handles were never created.
func (p *model) some(arg int) []Entity {
	list := slices.Clone(p.handles)
	switch arg % 5 {
	case 1:
		slices.Reverse(list)
	case 2:
		for i := range list {
			list[i] = p.handle(i * 7 % (len(list) + 1))
		}
	case 3:
		list = append(list, p.probes()...)
	case 4:
		list = append(list[len(list)/2:], list...)
	}
	if arg /= 5; len(list) > 0 {
		list = list[arg%len(list):]
	}
	return list[:min(len(list), 1+arg)]
}

// batchSteps are steps that random programs can run in addition to other steps.
var batchSteps = []func(r *programRunner, arg int){
	func(r *programRunner, arg int) { r.createN(arg % 70) },
	func(r *programRunner, arg int) { r.setAll(arg%len(r.stores), r.some(arg)) },
	func(r *programRunner, arg int) { r.setAll(arg%len(r.stores), r.some(arg/3)) },
	func(r *programRunner, arg int) { r.setEach(arg%len(r.stores), r.some(arg)) },
	func(r *programRunner, arg int) {
		r.setEach(arg%len(r.stores), r.stores[arg/2%len(r.stores)].any().Entities())
	},
	func(r *programRunner, arg int) { r.increaseEach(arg%len(r.stores), r.some(arg)) },
	func(r *programRunner, arg int) { r.increaseEach(arg%len(r.stores), slices.Clone(r.w.Entities())) },
	func(r *programRunner, arg int) { r.removeAll(arg%len(r.stores), r.some(arg)) },
	func(r *programRunner, arg int) {
		r.removeAll(arg%len(r.stores), r.stores[arg/2%len(r.stores)].any().Entities())
	},
	func(r *programRunner, arg int) { r.destroyAll(r.some(arg)) },
	func(r *programRunner, arg int) {
		all := r.stores[arg%len(r.stores)].any().Entities()
		r.destroyAll(all[:arg%(len(all)+1)])
	},
	func(r *programRunner, arg int) { r.destroyAll(r.w.Entities()[:arg%(r.w.Len()+1)]) },
	func(r *programRunner, arg int) { r.destroyFound(r.foundQueries()[arg%4]) },
}

func init() { steps = append(append(steps, batchSteps...), (*programRunner).tryBatch) }

// tryBatch runs a batch step inside Try.
func (r *programRunner) tryBatch(arg int) {
	if r.checkpointAt(2) < 0 && len(r.rest) >= 2 {
		r.try(func() { batchSteps[int(r.rest[0])%len(batchSteps)](r, int(r.rest[1])) }, outcome(arg%3))
	}
}

// A foundQuery is a query together with the entities that it must find.
type foundQuery struct {
	queryModel
	query AnyQuery
}

func (p *model) foundQueries() []foundQuery {
	a := p.stores[storePlain].any().(*Storage[plain])
	b := p.stores[storePadded].any().(*Storage[padded])
	c := p.stores[storeWord].any().(*Storage[word])
	d := p.stores[storeLabel].any().(*Storage[label])
	of := func(q AnyQuery, without []int, include ...int) foundQuery {
		return foundQuery{queryModel{include: include, without: without}, q}
	}
	return []foundQuery{
		of(NewQuery1(Read(a)).Without(c), []int{storeWord}, storePlain),
		of(NewQuery2(Read(b), Write(a)).With(d), nil, storePadded, storePlain, storeLabel),
		of(NewQuery3(Read(a), Read(c), Read(b)), nil, storePlain, storeWord, storePadded),
		of(NewQuery4(Read(d), Read(a), Read(b), Read(c)), nil, storeLabel, storePlain, storePadded, storeWord),
	}
}

// destroyFound destroys the entities that a query finds.
func (p *model) destroyFound(s foundQuery) bool {
	var want []Entity
	for _, a := range s.answers(p.oracle) {
		want = append(want, a.e)
	}
	if got := s.query.AppendEntities([]Entity{1}); !slices.Equal(got[1:], want) || got[0] != 1 {
		failf("AppendEntities(1) = %v, want 1 and %v", got, want)
	}
	return sameCount("DestroyFound", want, p.w.DestroyFound(s.query), p.oracle.destroyAll(want))
}

func batches(stores, entities int) []operation {
	list := []operation{
		{"create 2", func(p *model) bool { return p.createN(2) }},
		{"destroy first two", func(p *model) bool { return p.destroyAll(p.handles[:2]) }},
		{"destroy last two", func(p *model) bool { return p.destroyAll(p.handles[len(p.handles)-2:]) }},
		{"destroy all but the last", func(p *model) bool { return p.destroyAll(p.w.Entities()[:max(0, p.w.Len()-1)]) }},
	}
	for i := range stores {
		list = append(list, []operation{
			{fmt.Sprint("set all of ", i), func(p *model) bool { return p.setAll(i, p.handles) }},
			{fmt.Sprint("set 2 0 2 1 of ", i), func(p *model) bool {
				return p.setEach(i, []Entity{p.handle(2), p.handle(0), p.handle(2), p.handle(1)})
			}},
			{fmt.Sprint("remove 1 0 from ", i), func(p *model) bool { return p.removeAll(i, []Entity{p.handle(1), p.handle(0)}) }},
			{fmt.Sprint("remove members but one from ", i), func(p *model) bool {
				members := p.stores[i].any().Entities()
				return p.removeAll(i, members[:max(0, len(members)-1)])
			}},
		}...)
	}
	return append(list, adds(0, entities)...)
}

func TestBatchModel_Checkpoints(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"plain": plainKind, "list": listKind, "tag": labelKind} {
		t.Run(name, func(t *testing.T) {
			s := modelOptions{kinds: []kind{k}, entities: 3, members: 2}
			explore(t, s, operations(batches(1, 1), removes(0, 2), destroys(1), clearStore(0), checkpoints(2)), *depth-1)
		})
	}
}

func TestBatchModel_Ticks(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{listKind, extraKind}, entities: 3, members: 2, history: 2, record: true, maxGeneration: 2}
	explore(t, s, operations(batches(2, 0), writes(0, 2), destroys(1), clearAll, ticks(), checkpoints(1)), *depth-1)
	// Without history, a recorder needs only the numbers of the written rows. So the frames are
	// bare: they save no old values.
	s = modelOptions{kinds: []kind{plainKind}, entities: 3, members: 2, record: true}
	explore(t, s, operations(batches(1, 1), removes(0, 1), ticks(), checkpoints(1)), *depth-1)
}

func TestBatchModel_GenerationsUsedUp(t *testing.T) {
	t.Parallel()
	var creates []operation
	for n := 1; n < 5; n++ {
		creates = append(creates, operation{fmt.Sprint("create ", n), func(p *model) bool { return p.createN(n) }})
	}
	for _, limit := range []uint32{1, 2, 3} {
		s := modelOptions{entities: 3, maxGeneration: limit, history: 1}
		explore(t, s, operations(creates, destroys(4), clearAll, ticks()[:3], checkpoints(1)), *depth-1)
	}
}

// A worldPair has two worlds. The first world gets batches, and the second world gets loops that
// have the same effect.
type worldPair struct {
	random  *rand.Rand
	worlds  [2]*World
	plains  [2]*Storage[plain]
	lists   [2]*Storage[list]
	handles []Entity
}

func newWorldPair(seed uint64, o Options) *worldPair {
	w := &worldPair{random: rand.New(rand.NewPCG(seed, 0))}
	for i := range w.worlds {
		w.worlds[i] = NewWorld(o)
		w.plains[i] = MustRegister[plain](w.worlds[i])
		w.lists[i] = MustRegister(w.worlds[i], Component[list]{Clone: cloneList})
	}
	return w
}

// pick returns up to 6000 consecutive handles, in one of several orders.
func (w *worldPair) pick() []Entity {
	if len(w.handles) == 0 {
		return nil
	}
	lo := w.random.IntN(len(w.handles))
	list := slices.Clone(w.handles[lo:min(len(w.handles), lo+w.random.IntN(6000))])
	switch w.random.IntN(4) {
	case 0:
		slices.Reverse(list)
	case 1:
		w.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

func (w *worldPair) step(v int) {
	picked := w.pick()
	a, b := w.worlds[0], w.worlds[1]
	switch w.random.IntN(7) {
	case 0:
		n := w.random.IntN(4000)
		w.handles = a.CreateN(w.handles, n)
		for range n {
			b.Create()
		}
	case 1:
		a.DestroyAll(picked)
		for _, e := range slices.Backward(picked) {
			b.Destroy(e)
		}
	case 2:
		w.plains[0].SetAll(picked, plain{int32(v), 0})
		for _, e := range picked {
			w.plains[1].Set(e, plain{int32(v), 0})
		}
	case 3:
		values := make([]list, len(picked))
		for i, e := range picked {
			values[i] = list{[]int{v, i}}
			w.lists[1].Set(e, list{[]int{v, i}})
		}
		w.lists[0].SetEach(picked, values)
	case 5:
		for i, p := range w.plains[0].MutEach(picked) {
			p.Y += int32(i + v)
		}
		for i, e := range picked {
			if p := w.plains[1].Mut(e); p != nil {
				p.Y += int32(i + v)
			}
		}
	case 6: // The loop body changes the world and sets checkpoints.
		var held []Checkpoint
		meet := func(s *Storage[plain], i int, e Entity) {
			switch other := picked[i*7%len(picked)]; (i + v) % 150 {
			case 1:
				s.Remove(other)
			case 2:
				s.Set(other, plain{int32(i), 1})
			case 3:
				s.w.Destroy(e)
			case 4:
				held = append(held, s.w.Checkpoint())
			}
		}
		back := func(w *World) {
			for i, cp := range slices.Backward(held) {
				if i%2 == v%2 {
					w.Restore(cp)
				}
				w.Release(cp)
			}
			held = nil
		}
		for i, p := range w.plains[0].MutEach(picked) {
			p.Y += int32(i + v)
			meet(w.plains[0], i, picked[i])
		}
		back(a)
		for i, e := range picked {
			if p := w.plains[1].Mut(e); p != nil {
				p.Y += int32(i + v)
				meet(w.plains[1], i, e)
			}
		}
		back(b)
	case 4:
		w.plains[0].RemoveAll(picked)
		w.lists[0].RemoveAll(picked)
		for _, e := range slices.Backward(picked) {
			w.plains[1].Remove(e)
			w.lists[1].Remove(e)
		}
	}
}

func (w *worldPair) same(t *testing.T, when string) {
	t.Helper()
	if got, want := w.worlds[0].Digest(), w.worlds[1].Digest(); got != want {
		t.Fatalf("%s: the digest is %v, want %v", when, got, want)
	}
	if err := w.worlds[0].check(); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

func TestBatch_SameAsLoops(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		w := newWorldPair(seed, Options{History: int(seed) % 3})
		var before, held Digest
		var cp Checkpoint
		for round := range 40 {
			when := fmt.Sprintf("seed %d, round %d", seed, round)
			w.step(round)
			w.same(t, when)
			switch w.random.IntN(6) {
			case 0:
				for _, each := range w.worlds {
					each.Commit()
				}
				before = w.worlds[0].Digest()
			case 1:
				if err := w.worlds[0].History().Rewind(0); err == nil {
					_ = w.worlds[1].History().Rewind(0)
					if w.worlds[0].Digest() != before && before != 0 {
						t.Fatalf("%s: Rewind(0) is not exact", when)
					}
				}
			case 2:
				if !cp.Valid() {
					cp, held = w.worlds[0].Checkpoint(), w.worlds[0].Digest()
				}
			}
			if cp.Valid() && round%8 == 7 {
				back := w.worlds[0].Clone()
				w.worlds[0].Restore(cp)
				if w.worlds[0].Digest() != held {
					t.Fatalf("%s: Restore is not exact", when)
				}
				w.worlds[0].Release(cp)
				w.worlds[0], w.plains[0], w.lists[0] = back, w.plains[0].In(back), w.lists[0].In(back)
				w.worlds[1] = w.worlds[1].Clone()
				w.plains[1], w.lists[1] = w.plains[1].In(w.worlds[1]), w.lists[1].In(w.worlds[1])
				before = 0
			}
		}
	}
}

// A hookRecorder logs the calls of a hook.
type hookRecorder struct {
	s          *set
	calls      []string
	onAdded    func(e Entity) // Called after e got the component.
	onRemoving func(e Entity) // Called while the component of e is removed.
}

func (o *hookRecorder) added(e Entity, row int) {
	o.calls = append(o.calls, fmt.Sprint("added ", e, " in ", row, " of ", o.s.rows.N))
	if o.onAdded != nil {
		o.onAdded(e)
	}
}

func (o *hookRecorder) removing(e Entity, row int) {
	o.calls = append(o.calls, fmt.Sprint("removing ", e, " from ", row, " of ", o.s.rows.N))
	if o.onRemoving != nil {
		o.onRemoving(e)
	}
}

// listen adds hooks to a storage that log their calls.
func (o *hookRecorder) listen(a *Storage[plain]) {
	a.OnAdd(func(e Entity, _ plain) { o.added(e, a.row(e)) })
	a.OnRemove(func(e Entity, _ plain) { o.removing(e, a.row(e)) })
}

func TestBatch_CallsHooksPerEntity(t *testing.T) {
	w, a, _, entities := members(5, Options{})
	checkAtEnd(t, w)
	o := &hookRecorder{s: &a.set}
	o.listen(a)
	a.RemoveAll(a.Entities())
	a.SetAll(entities[1:3], plain{})
	a.SetEach(entities[2:4], make([]plain, 2))
	w.DestroyAll(w.Entities()[2:])
	want := []string{"removing 4v1 from 4 of 5", "removing 3v1 from 3 of 4", "removing 2v1 from 2 of 3", "removing 1v1 from 1 of 2",
		"removing 0v1 from 0 of 1", "added 1v1 in 0 of 1", "added 2v1 in 1 of 2", "added 3v1 in 2 of 3",
		"removing 3v1 from 2 of 3", "removing 2v1 from 1 of 2"}
	if !slices.Equal(o.calls, want) {
		t.Errorf("the hook calls are\n%q, want\n%q", o.calls, want)
	}
}

// A hook that a batch calls may start another batch.
func TestBatch_HookDestroysLaterEntities(t *testing.T) {
	w, a, _, entities := members(0, Options{})
	checkAtEnd(t, w)
	entities = w.CreateN(entities, 6)
	(&hookRecorder{s: &a.set, onAdded: func(e Entity) {
		if e == entities[1] {
			w.DestroyAll(entities[2:4])
			w.CreateN(nil, 1)
		}
	}}).listen(a)
	if n := a.SetAll(entities, plain{X: 7}); n != 4 || a.Len() != 4 {
		t.Errorf("SetAll = %d with %v, want 4", n, a.Entities())
	}
	if n := w.DestroyAll(entities); n != 4 || w.Len() != 1 {
		t.Errorf("DestroyAll = %d, %v alive, want 4 and one entity", n, w.Entities())
	}
}

func TestBatch_RecordedOperations(t *testing.T) {
	var got []string
	w, a, _, entities := members(0, Options{})
	record := func(c *raw.Change) uint64 {
		got = nil
		for _, op := range c.Ops {
			got = append(got, fmt.Sprint(op.Kind, " ", Entity(op.Entity)))
		}
		return c.Tick
	}
	if err := w.Raw().Attach(recorderFunc(record), 0); err != nil {
		t.Fatal(err)
	}
	entities = w.CreateN(entities, 3)
	a.SetAll(entities[:2], plain{})
	a.SetAll(entities, plain{})
	a.RemoveAll(entities[:2])
	w.DestroyAll(entities)
	w.Commit()
	want := []string{
		"create 0v1", "create 1v1", "create 2v1", "add 0v1", "add 1v1", "add 2v1",
		"remove 1v1", "remove 0v1", "destroy 2v1", "destroy 1v1", "destroy 0v1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("operations %q, want %q", got, want)
	}
}

func TestBatch_Allocations(t *testing.T) {
	for _, history := range []int{0, 2} {
		w, a, b, _ := members(100, Options{History: history})
		q := NewQuery2(Write(a), Read(b)).With(a)
		var entities []Entity
		values := make([]padded, 1000)
		tick := func() {
			entities = w.CreateN(entities[:0], 1000)
			a.SetAll(entities, plain{1, 1})
			b.SetEach(entities, values)
			a.SetAll(entities[:200], plain{2, 2})
			b.RemoveAll(entities[100:200])
			w.Commit()
			w.DestroyAll(entities[:150])
			w.DestroyFound(q)
			w.DestroyAll(entities)
			w.Commit()
		}
		// Undo logs reuse their chunks. The list of runs in a chunk can still grow when the chunk
		// is reused. Run enough ticks that no list grows any more.
		for range 40 {
			tick()
		}
		if n := allocations(t, 5, tick); n > 0 {
			t.Errorf("history %d: %v allocations", history, n)
		}
	}
}

func TestSetAll_ClonesValuePerEntity(t *testing.T) {
	w := NewWorld(Options{})
	lists := MustRegister(w, Component[list]{Clone: cloneList})
	entities := w.CreateN(nil, 3)
	lists.Set(entities[1], list{[]int{5}})
	v := list{[]int{1}}
	lists.SetAll(entities, v)
	lists.Mut(entities[0]).Items[0]++
	lists.Mut(entities[1]).Items[0] += 2
	if got := fmt.Sprint(lists.Values(), v); got != "[{[3]} {[2]} {[1]}] {[1]}" {
		t.Errorf("Values() and the argument of SetAll are %v", got)
	}
}

func TestBatch_Misuse(t *testing.T) {
	w, a, _, entities := members(3, Options{})
	other, b, _, _ := members(3, Options{})
	mustPanic(t, "one value for each entity", func() { a.SetEach(entities, nil) })
	mustPanic(t, "query of another world", func() { w.DestroyFound(NewQuery1(Read(b))) })
	if w.Len() != 3 || other.Len() != 3 {
		t.Error("a refused batch destroyed entities")
	}
	if got := w.CreateN(nil, -1); got != nil || w.Len() != 3 {
		t.Errorf("CreateN(nil, -1) = %v", got)
	}
}

// A batch that finds no entities changes nothing, so the undone ticks can still be redone.
func TestBatch_WithoutEntitiesKeepsRedo(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 2})
	w.Destroy(entities[0])
	w.Commit()
	w.Destroy(entities[1])
	w.Commit()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	a.SetAll(entities[:1], plain{})
	a.SetAll(nil, plain{})
	a.RemoveAll(entities[:1])
	w.DestroyAll(entities[:1])
	w.CreateN(nil, 0)
	if w.Raw().Dirty() || w.History().Newest() != 2 {
		t.Error("a batch without entities counts as a change")
	}
}

// Queries cache runs of rows. They must detect that a batch has put other entities into these rows.
func TestQuery_SeesRowsReusedByBatch(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	checkAtEnd(t, w)
	q := NewQuery2(Read(a), Read(b))
	for round := range 3 {
		if n := q.Count(); n != 10-2*round {
			t.Fatalf("Count() = %d, want %d", n, 10-2*round)
		}
		last := len(entities) - 2*round
		a.RemoveAll(entities[last-2 : last])
		a.SetAll(w.CreateN(nil, 2), plain{}) // Without the second component.
		if got := len(q.AppendEntities(nil)); got != 8-2*round {
			t.Fatalf("AppendEntities finds %d, want %d", got, 8-2*round)
		}
		a.RemoveAll(a.Entities()[8-2*round:])
	}
}

func TestQuery_RowsAddedByBatch(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	q := NewQuery2(Read(a), Read(b))
	a.RemoveAll(entities[5:])
	q.Count()
	a.SetAll(entities[5:], plain{})
	if got := q.AppendEntities(nil); !slices.Equal(got, entities) {
		t.Errorf("AppendEntities finds %v of %v", got, w.Entities())
	}
}

// A hook may change the storage or destroy other entities. The batch must skip the entities that
// move into its rows.
func TestBatch_HookMovesRows(t *testing.T) {
	w, a, _, entities := members(8, Options{})
	checkAtEnd(t, w)
	w.DestroyAll(w.CreateN(nil, 20)) // Allocates scratch space of batches.
	o := &hookRecorder{s: &a.set}
	o.listen(a)
	o.onRemoving = func(e Entity) {
		if e == entities[1] {
			a.Remove(entities[0])
		}
	}
	if n := a.RemoveAll(a.Entities()[:2]); n != 2 || a.Len() != 6 || a.Has(entities[0]) || a.Has(entities[1]) {
		t.Errorf("RemoveAll = %d, %v are left", n, a.Entities())
	}
	o.onRemoving = func(e Entity) {
		if e == entities[7] {
			w.DestroyAll(entities[2:4])
		}
	}
	if n := w.DestroyAll(entities[4:]); n != 4 || !slices.Equal(w.Entities(), entities[:2]) {
		t.Errorf("DestroyAll = %d, %v are left", n, w.Entities())
	}
}

// appendRows, the fast path for new entities, has the same effect as SetAll.
func TestAppendRows_SameAsSetAll(t *testing.T) {
	w := newWorldPair(1, Options{History: 2})
	for round := range 5 {
		cp := w.worlds[0].Checkpoint()
		for i := range w.worlds {
			entities := w.worlds[i].CreateN(nil, 3000)
			if i == 0 {
				w.plains[0].appendRows(entities, plain{1, 1})
				w.plains[0].appendRows(nil, plain{})
				w.lists[0].appendRows(entities, list{[]int{round}})
			} else {
				w.plains[1].SetAll(entities, plain{1, 1})
				w.lists[1].SetAll(entities, list{[]int{round}})
			}
			w.plains[i].RemoveAll(entities[500:900])
			w.lists[i].RemoveAll(entities[2000:])
			w.worlds[i].DestroyAll(entities[:100])
		}
		w.same(t, fmt.Sprint("round ", round))
		before := w.worlds[0].Digest()
		inner := w.worlds[0].Checkpoint()
		w.lists[0].RemoveAll(w.lists[0].Entities()[100:])
		w.plains[0].RemoveAll(w.plains[0].Entities()[100:])
		entities := w.worlds[0].CreateN(nil, 2000)
		w.lists[0].appendRows(entities, list{[]int{7}})
		w.plains[0].appendRows(entities, plain{})
		w.worlds[0].Restore(inner)
		if w.worlds[0].Digest() != before {
			t.Fatal("Restore is not exact")
		}
		w.worlds[0].Release(inner)
		w.worlds[0].Release(cp)
	}
}

func TestNextEntities_PredictsCreateN(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	w := NewWorld(Options{})
	w.entities.maxGeneration = 3
	for round := range 300 {
		n := random.IntN(6)
		ahead := w.entities.nextEntities(n)
		if random.IntN(2) == 0 {
			if got := w.CreateN(nil, n); !slices.Equal(got, ahead) {
				t.Fatalf("round %d: ahead(%d) = %v, then CreateN = %v", round, n, ahead, got)
			}
		}
		for range random.IntN(min(6, w.Len()+1)) {
			w.Destroy(w.Entities()[random.IntN(w.Len())])
		}
	}
}

// MutEach writes nothing if no entity has the component. So the undone ticks can still be redone.
func TestMutEach_WithoutMembersKeepsRedo(t *testing.T) {
	w, a, b, entities := members(3, Options{History: 4})
	w.Commit()
	a.Mut(entities[0]).X = 7
	b.Remove(entities[1])
	w.Commit()
	b.Remove(entities[2])
	w.Commit()
	if err := w.History().Rewind(1); err != nil {
		t.Fatal(err)
	}
	for range b.MutEach([]Entity{entities[1], 0, NewEntity(900, 1)}) {
		t.Error("it has none")
	}
	if err := w.History().Seek(3); err != nil || b.Len() != 1 || w.Raw().Dirty() {
		t.Errorf("forward again: %v, %d members", err, b.Len())
	}
	checkAtEnd(t, w)
}
