package ecs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// The components of the models. padded has padding, so its memory differs from its encoding.
type (
	plain struct{ X, Y int32 }
	// The type has more than 256 bytes, so its undo logs store pieces of rows.
	large struct {
		V     int
		Cells [40]int
	}
	padded struct {
		A int8
		B int64
		C bool
	}
	word  struct{ S string }
	list  struct{ Items []int }
	label struct{}
	extra struct{ V int64 }

	indexed struct{ V, One int16 }
	gaps    struct{ Items []int }
	hashed  struct{ V int }
	ordered struct{ V int }
)

func wordInt(w *word) int { v, _ := strconv.Atoi(w.S); return v }

func cloneList(l list) list { return list{slices.Clone(l.Items)} }

// An intStore gives the models access to a storage whose components are converted to ints.
type intStore struct {
	name     string
	any      func() AnyStorage
	set      func(Entity, int) bool
	increase func(Entity) bool // Writes in place, through Mut.
	get      func(Entity) (int, bool)
	has      func(Entity) bool
	remove   func(Entity) bool
	clear    func()
	sort     func(cmp func(a, b int) int)
	values   func() []int
	in       func(*World) intStore
	changes  intDelta
	index    func() intIndex     // See index_test.go.
	at       func(*Past) intPast // See past_test.go.

	setAll    func([]Entity, int) int // See batch_test.go.
	setEach   func([]Entity, []int) int
	removeAll func([]Entity) int
	drain     func(visit func(e Entity, v int) bool)
	row       func(Entity) (int, bool)
	relation  func(Policy) intRelation

	increaseEach func([]Entity) int // Writes in place, through MutEach.
}

// A kind registers a component of one Go type.
type kind struct {
	exempt  bool
	tag     bool
	indexed bool
	gap     int // The default value in the gaps of an Indexed storage.
	add     func(w *World) intStore
}

// newKind returns a kind for components of type T. The two functions convert an int to a component
// and back. newKind computes the spec of T only once, because that is slow.
func newKind[T any](from func(int) T, to func(T) int, increase func(*T), c ...Component[T]) kind {
	spec, err := newSpec(NewWorld(Options{}), optional(c))
	if err != nil {
		panic(err)
	}
	var faceOf func(s *Storage[T]) intStore
	faceOf = func(s *Storage[T]) intStore {
		return intStore{
			name: s.name,
			any:  func() AnyStorage { return s },
			set:  func(e Entity, v int) bool { return s.Set(e, from(v)) },
			increase: func(e Entity) bool {
				p := s.Mut(e)
				if p != nil {
					increase(p)
				}
				return p != nil
			},
			get:    func(e Entity) (int, bool) { v, ok := s.Get(e); return to(v), ok },
			has:    s.Has,
			remove: s.Remove,
			clear:  s.Clear,
			sort:   func(cmp func(a, b int) int) { s.SortFunc(func(a, b T) int { return cmp(to(a), to(b)) }) },
			values: func() []int {
				ints := make([]int, 0, 8)
				for _, v := range s.Values() {
					ints = append(ints, to(v))
				}
				return ints
			},
			in:      func(w *World) intStore { return faceOf(s.In(w)) },
			changes: newIntDelta(s, to),
			at:      func(p *Past) intPast { return newIntPast(s.At(p), to) },
			index:   func() intIndex { return newIntIndex(NewIndex(s, func(v T) int { return to(v) % 3 })) },

			setAll: func(entities []Entity, v int) int { return s.SetAll(entities, from(v)) },
			setEach: func(entities []Entity, ints []int) int {
				values := make([]T, len(ints))
				for i, v := range ints {
					values[i] = from(v)
				}
				return s.SetEach(entities, values)
			},
			removeAll: s.RemoveAll,
			row:       s.Row,
			relation: func(policy Policy) intRelation {
				return newIntRelation(NewRelation(s, func(v T) Entity { return targetOf(to(v)) }, RelationOptions{Policy: policy}))
			},
			drain: func(visit func(e Entity, v int) bool) {
				for e, v := range s.Drain() {
					if !visit(e, to(v)) {
						return
					}
				}
			},
			increaseEach: func(entities []Entity) (n int) {
				for _, p := range s.MutEach(entities) {
					increase(p)
					n++
				}
				return n
			},
		}
	}
	k := kind{exempt: spec.noRewind, tag: spec.tag, indexed: spec.kind == Indexed}
	if spec.gap != nil {
		k.gap = to(*spec.gap)
	}
	k.add = func(w *World) intStore {
		s := newStorage(w, spec)
		w.adopt(s)
		if spec.noRewind {
			w.noRewind = append(w.noRewind, s)
		}
		return faceOf(s)
	}
	return k
}

var (
	plainKind = newKind(
		func(v int) plain { return plain{int32(v), int32(-v)} },
		func(p plain) int { return int(p.X) },
		func(p *plain) { p.X++; p.Y-- })
	paddedKind = newKind(
		func(v int) padded { return padded{int8(v), int64(v), v&1 == 0} },
		func(p padded) int { return int(p.B) },
		func(p *padded) { *p = padded{int8(p.B + 1), p.B + 1, !p.C} })
	largeKind = newKind(
		func(v int) large {
			x := large{V: v}
			x.Cells[uint(v)%40] = v
			return x
		},
		func(x large) int {
			if x.Cells[uint(x.V)%40] != x.V {
				return -1
			}
			return x.V
		},
		func(x *large) {
			x.Cells[uint(x.V)%40] = 0
			x.V++
			x.Cells[uint(x.V)%40] = x.V
		})
	wordKind = newKind(
		func(v int) word { return word{strconv.Itoa(v)} },
		func(w word) int { return wordInt(&w) },
		func(w *word) { w.S = strconv.Itoa(wordInt(w) + 1) })
	listKind = newKind(
		func(v int) list { return list{[]int{v}} },
		func(l list) int {
			if l.Items == nil {
				return 0
			}
			return l.Items[0]
		},
		// Writes an element of the slice. A shallow copy would share this element.
		func(l *list) { l.Items[0]++ },
		Component[list]{Clone: cloneList})
	indexedKind = newKind(
		func(v int) indexed { return indexed{int16(v), 1} },
		func(x indexed) int { return int(x.V) },
		func(x *indexed) { x.V++ },
		Component[indexed]{Kind: Indexed})
	gapKind = newKind(
		func(v int) gaps { return gaps{[]int{v}} },
		func(g gaps) int {
			if g.Items == nil {
				return 0
			}
			return g.Items[0]
		},
		func(g *gaps) { g.Items[0]++ },
		Component[gaps]{
			Clone: func(g gaps) gaps { return gaps{slices.Clone(g.Items)} },
			Kind:  Indexed, Masked: true, Default: gaps{[]int{7}},
		})
	hashedKind = newKind(
		func(v int) hashed { return hashed{v} },
		func(x hashed) int { return x.V },
		func(x *hashed) { x.V++ },
		Component[hashed]{Kind: Hashed, Masked: true})
	orderedKind = newKind(
		func(v int) ordered { return ordered{v} },
		func(x ordered) int { return x.V },
		func(x *ordered) { x.V++ },
		Component[ordered]{Kind: Ordered})
	labelKind = newKind(
		func(int) label { return label{} },
		func(label) int { return 0 },
		func(*label) {})
	extraKind = newKind(
		func(v int) extra { return extra{int64(v)} },
		func(x extra) int { return int(x.V) },
		func(x *extra) { x.V++ },
		Component[extra]{NoRewind: true})
)

// modelOptions describe the world of a model.
type modelOptions struct {
	kinds  []kind
	groups [][]int // For each group, the positions of its stores.
	// Number of resources. If there are two or more, the last resource is NoRewind.
	resources     int
	events        bool
	relations     bool
	history       int
	historyBytes  int64
	historyDense  int
	record        bool
	keepTick      bool
	maxGeneration uint32
	// Number of entities with every component and without handles.
	filler   int
	entities int // Number of further entities, which have handles.
	members  int // How many of the further entities get every component.
}

// A model is a world and its oracle. Every operation changes both. A difference between them panics
// with a failure.
type model struct {
	w         *World
	oracle    *oracle
	stores    []intStore
	kinds     []kind
	resources []*Resource[list]

	events *Events[list] // nil if the model has no events.
	reader *EventReader[list]

	indexes []intIndex // The index of each store. The first call of checkIndex creates them.
	pasts   []modelPast

	relations        []intRelation // The relations of the oracle.
	handles          []Entity      // All entities ever created, by handle.
	cps              []Checkpoint
	lastValue        int // A counter from which each Set derives its value.
	recorder, second *recorderModel
	// Set if check() also compares the digest with the digest of a newly built world.
	digest bool
}

// A failure is the value with which a model panics.
type failure string

func failf(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func newModel(s modelOptions) *model { return newModelOn(s, nil) }

// newModelOn returns a model whose sets start with the given empty pages.
func newModelOn(s modelOptions, pages []*track.Page) *model {
	p := &model{w: NewWorld(Options{History: s.history, HistoryBytes: s.historyBytes, HistoryDense: s.historyDense}), kinds: s.kinds}
	p.oracle = &oracle{oracleState: &oracleState{stores: make([]oracleStore, len(s.kinds))}, history: s.history, dense: s.historyDense,
		maxGeneration: math.MaxUint32, overBudget: p.w.overBudget}
	if s.maxGeneration > 0 {
		p.w.entities.maxGeneration, p.oracle.maxGeneration = s.maxGeneration, s.maxGeneration
	}
	for _, k := range s.kinds {
		p.stores = append(p.stores, k.add(p.w))
		p.oracle.exempt = append(p.oracle.exempt, k.exempt)
		st := &p.oracle.stores[len(p.stores)-1]
		st.indexed, st.gap = k.indexed, k.gap
	}
	if s.keepTick {
		p.w.mustKeepTick(&p.w.entities.rows, "keep", "the world")
	}
	p.oracle.keepTick = p.w.hooks.keepsTick
	for i, page := range pages {
		if page != nil {
			p.w.sets[i].sparse.Pages = []*track.Page{page}
		}
	}
	for i := range s.resources {
		exempt := i > 0 && i == s.resources-1
		r := newResource(p.w, resourceSpec(exempt), list{[]int{0}})
		r.name = "resource" + strconv.Itoa(i)
		p.w.names[r.name], p.w.resources = r, append(p.w.resources, r)
		p.resources = append(p.resources, r)
		p.oracle.resources = append(p.oracle.resources, 0)
		p.oracle.exemptResource = append(p.oracle.exemptResource, exempt)
	}
	if s.events {
		p.addEvents()
	}
	for _, stores := range s.groups {
		p.group(stores...)
	}
	if s.relations {
		p.addRelations()
	}
	p.populate(s.filler, s.filler)
	p.handles = nil
	p.populate(s.entities, s.members)
	recorders := 0
	if s.record {
		recorders = 1
	}
	p.restart(recorders)
	return p
}

// populate creates entities, and gives every component to the first of them. The parameters are the
// number of all entities and the number of those with components.
func (p *model) populate(entities, members int) {
	for range entities {
		p.create()
	}
	for i := range p.stores {
		for _, e := range p.handles[:members] {
			p.set(i, e)
		}
	}
}

var resourceSpecs = func() (specs [2]typedSpec[list]) {
	for i, exempt := range [2]bool{false, true} {
		s, err := newSpec(NewWorld(Options{}), Component[list]{Name: "resource", Clone: cloneList, NoRewind: exempt})
		if err != nil {
			panic(err)
		}
		specs[i] = s
	}
	return specs
}()

func resourceSpec(exempt bool) typedSpec[list] {
	if exempt {
		return resourceSpecs[1]
	}
	return resourceSpecs[0]
}

// restart discards the history and starts a new history, with zero to two recorders. If recorders
// is 3, there is one recorder that defers ticks.
func (p *model) restart(recorders int) {
	must := func(err error) {
		if err != nil {
			failf("recorders: %v", err)
		}
	}
	for _, r := range slices.Clone(p.w.recorders) {
		must(p.w.Raw().Detach(r))
	}
	p.w.restart(seqs{})
	p.oracle.defers = recorders == 3
	p.oracle.recorded, p.oracle.deferred, p.recorder, p.second = recorders > 0, false, nil, nil
	if recorders > 0 {
		p.recorder = newRecorderModel(p.w)
		var r raw.Recorder = p.recorder
		if recorders == 3 {
			p.recorder.deferring, r = true, deferringRecorder{p.recorder}
		}
		must(p.w.Raw().Attach(r, 0))
	}
	if recorders == 2 {
		p.second = newRecorderModel(p.w)
		must(p.w.Raw().Attach(offsetRecorder{p.second}, offsetStart))
	}
	p.oracle.start()
}

// The operations below return whether they changed anything.

func (p *model) handle(i int) Entity {
	if i < len(p.handles) {
		return p.handles[i]
	}
	return 0
}

func (p *model) create() bool {
	got, want := p.w.Create(), p.oracle.create()
	if got != want {
		failf("Create() = %v, want %v", got, want)
	}
	if !slices.Contains(p.handles, got) {
		p.handles = append(p.handles, got)
	}
	return true
}

func (p *model) createAt(e Entity) bool {
	// The world would accept this generation, but the maximum of the model is lower.
	if e.Generation() > p.oracle.maxGeneration {
		return false
	}
	err := p.w.CreateAt(e)
	if same("CreateAt", e, err == nil, p.oracle.createAt(e)) && !slices.Contains(p.handles, e) {
		p.handles = append(p.handles, e)
	}
	return err == nil
}

func (p *model) destroy(e Entity) bool {
	return same("Destroy", e, p.w.Destroy(e), p.oracle.destroy(e))
}

func same(verb string, e Entity, got, want bool) bool {
	if got != want {
		failf("%s(%v) = %v, want %v", verb, e, got, want)
	}
	return got
}

func (p *model) set(i int, e Entity) bool {
	p.lastValue++
	v := p.lastValue * 10 % 1000
	if p.kinds[i].tag {
		v = 0
	}
	return same("Set", e, p.stores[i].set(e, v), p.oracle.set(i, e, v))
}

func (p *model) increase(i int, e Entity) bool {
	by := 1
	if p.kinds[i].tag {
		by = 0
	}
	return same("Mut", e, p.stores[i].increase(e), p.oracle.increase(i, e, by))
}

func (p *model) remove(i int, e Entity) bool {
	return same("Remove", e, p.stores[i].remove(e), p.oracle.remove(i, e))
}

func (p *model) clear(i int) bool {
	// A gap counts, because Clear removes its row, too.
	some := len(p.oracle.stores[i].entities) > 0
	p.stores[i].clear()
	p.oracle.clearStore(i)
	return some
}

func (p *model) clearAll() bool {
	some := len(p.oracle.alive) > 0
	p.w.Clear()
	p.oracle.clearAll()
	return some
}

func (p *model) setResource(i int) bool {
	p.lastValue++
	p.resources[i].Set(list{[]int{p.lastValue}})
	p.oracle.setResource(i, p.lastValue)
	return true
}

func (p *model) increaseResource(i int) bool {
	p.resources[i].Mut().Items[0]++
	p.oracle.setResource(i, p.oracle.resources[i]+1)
	return true
}

// checkpoint sets a checkpoint, unless three are held already, including checkpoints of Try.
func (p *model) checkpoint() bool {
	if p.checkpointAt(2) >= 0 {
		return false
	}
	cp := p.w.Checkpoint()
	p.cps = append(p.cps, cp)
	p.oracle.checkpoint(cp)
	return true
}

// checkpointAt returns the position of the i-th checkpoint among the frames, or -1.
func (p *model) checkpointAt(i int) int {
	for k, f := range p.oracle.frames {
		if !f.tick {
			if i == 0 {
				return k
			}
			i--
		}
	}
	return -1
}

func (p *model) restore(i int) bool {
	k := p.checkpointAt(i)
	if k < 0 {
		return false
	}
	p.beforeUndo()
	p.w.Restore(p.oracle.frames[k].cp)
	p.oracle.restore(k)
	return true
}

func (p *model) release(i int) bool {
	k := p.checkpointAt(i)
	if k < 0 {
		return false
	}
	p.w.Release(p.oracle.frames[k].cp)
	p.oracle.release(k)
	return true
}

var errTried = errors.New("tried")

// An outcome is how the function passed to Try ends.
type outcome int

const (
	succeed outcome = iota
	fail
	crash
)

// try runs f inside Try in the world. In the oracle, it sets a checkpoint before f, and releases or
// restores it afterwards.
func (p *model) try(f func(), end outcome) bool {
	depth := len(p.oracle.frames)
	run := func() (err error, panicked any) {
		defer func() { panicked = recover() }()
		return p.w.Try(func() error {
			p.oracle.checkpoint(Checkpoint{p.w, p.w.frameID})
			f()
			p.beforeUndo()
			if end == crash {
				panic(errTried)
			}
			if end == fail {
				return errTried
			}
			return nil
		}), nil
	}
	err, panicked := run()
	if (err != nil) != (end == fail) || (panicked != nil) != (end == crash) || panicked != nil && panicked != errTried {
		failf("Try = %v, panicked with %v", err, panicked)
	}
	if end != succeed {
		p.oracle.restore(depth)
	}
	p.oracle.release(depth)
	return true
}

func (p *model) commit() bool {
	p.recorder.expect(p.oracle.oracleState)
	p.second.expect(p.oracle.oracleState)
	p.w.Commit()
	p.oracle.evictAsIn(p.w)
	p.oracle.deferred = p.w.Raw().Deferred()
	p.oracle.commit()
	p.flush(5)
	return true
}

// flush makes the recorder record the deferred ticks, but only in about every n-th call. If no tick
// is deferred, it makes the recorder record the last tick again.
func (p *model) flush(n int) {
	if p.recorder == nil || p.w.Raw().Dirty() {
		return
	}
	p.recorder.expect(p.oracle.oracleState)
	p.second.expect(p.oracle.oracleState)
	if p.recorder.asked++; p.recorder.asked%n != 0 {
		return
	}
	before := p.recorder.latest()
	record := p.w.Raw().RecordLast
	if p.w.Raw().Deferred() && before%2 == 0 {
		if record = p.w.Raw().RecordDeferred; len(p.oracle.forward) > 0 {
			if err := record(); err != nil || p.recorder.latest() != before {
				failf("RecordDeferred() = %v, %d records, although later ticks are recorded", err, p.recorder.latest()-before)
			}
			return
		}
	}
	err := record()
	p.oracle.forward = nil
	if err != nil || p.recorder.latest() != before+1 || p.w.Raw().Deferred() {
		failf("recording again: %v, %d records", err, p.recorder.latest()-before)
	}
	p.oracle.frames[p.oracle.newestTick()].state.deferred = false
}

// evictAsIn makes the oracle evict ticks until it has as many frames as the real world. The real
// world has a byte limit, and the oracle cannot compute bytes.
func (w *oracle) evictAsIn(actual *World) {
	w.overBudget = func() bool { return len(w.frames) > len(actual.frames)-actual.removed }
}

// beforeUndo runs before a seek or a rewind. If ticks are deferred, the world first makes the
// recorder record them. So beforeUndo tells the recorder which state to expect.
func (p *model) beforeUndo() {
	if k := p.oracle.newestTick(); k >= 0 && p.oracle.frames[k].state.deferred && len(p.oracle.forward) == 0 {
		p.recorder.expect(p.oracle.frames[k].state)
	}
}

func (p *model) seek(tick uint64) bool {
	p.beforeUndo()
	err := p.w.History().Seek(tick)
	moved := p.oracle.seek(tick)
	if moved != (err == nil) || err != nil && !errors.Is(err, ErrNotHeld) {
		failf("Seek(%d) = %v, held: %v", tick, err, moved)
	}
	if moved {
		p.flush(3)
	}
	return moved
}

func (p *model) rewind(n int) bool {
	if uint64(n) > p.oracle.tick {
		if err := p.w.History().Rewind(n); !errors.Is(err, ErrNotHeld) {
			failf("Rewind(%d) = %v, want ErrNotHeld", n, err)
		}
		return false
	}
	p.beforeUndo()
	err := p.w.History().Rewind(n)
	moved := p.oracle.seek(p.oracle.tick - uint64(n))
	if moved != (err == nil) {
		failf("Rewind(%d) = %v, held: %v", n, err, moved)
	}
	return moved
}

// check compares the world with the oracle.
func (p *model) check() {
	if err := p.w.check(); err != nil {
		failf("%v", err)
	}
	p.checkRegistry()
	for i := range p.stores {
		p.checkStore(i)
	}
	for i, r := range p.resources {
		if got, want := r.Get().Items[0], p.oracle.resources[i]; got != want {
			failf("resource %d = %d, want %d", i, got, want)
		}
	}
	if p.events != nil {
		p.checkEvents()
	}
	p.checkGroups()
	p.checkHistory()
	p.checkPasts()
	if p.digest {
		p.checkDigest()
	}
}

func (p *model) checkRegistry() {
	rows, alive, free := p.w.Raw().Registry()
	want := slices.Concat(p.oracle.alive, p.oracle.free, p.oracle.retired)
	if !slices.Equal(raw.As[Entity](rows), want) || alive != len(p.oracle.alive) || free != alive+len(p.oracle.free) {
		failf("Registry() = %v, %d, %d, want %v, %d, %d", rows, alive, free, want, len(p.oracle.alive), len(p.oracle.alive)+len(p.oracle.free))
	}
	if !slices.Equal(p.w.Entities(), p.oracle.alive) || p.w.Len() != len(p.oracle.alive) {
		failf("Entities() = %v, Len() = %d, want %v", p.w.Entities(), p.w.Len(), p.oracle.alive)
	}
	for _, e := range p.probes() {
		if got, want := p.w.Alive(e), slices.Contains(p.oracle.alive, e); got != want {
			failf("Alive(%v) = %v, want %v", e, got, want)
		}
	}
}

// probes returns all entities ever created, and some that were never created.
func (p *model) probes() []Entity {
	return append(p.handles[:len(p.handles):len(p.handles)], 0, NewEntity(0, 9), NewEntity(5000, 1),
		NewEntity(math.MaxUint32, 1), math.MaxUint64, NewEntity(1, 0))
}

func (p *model) checkStore(i int) {
	f, want := &p.stores[i], &p.oracle.stores[i]
	s := f.any()
	if !slices.Equal(s.Entities(), want.entities) || s.Len() != want.members() || s.Raw().Rows() != len(want.entities) {
		failf("%s: Entities() = %v, Len() = %d, Rows() = %d, want %v", f.name, s.Entities(), s.Len(), s.Raw().Rows(), want.entities)
	}
	if got := f.values(); !slices.Equal(got, want.values) {
		failf("%s: Values() = %v, want %v", f.name, got, want.values)
	}
	for _, e := range p.probes() {
		v := 0
		k := want.find(e)
		if k >= 0 {
			v = want.values[k]
		}
		if got, ok := f.get(e); got != v || ok != (k >= 0) {
			failf("%s: Get(%v) = %d, %v, want %d, %v", f.name, e, got, ok, v, k >= 0)
		}
		if row, ok := f.row(e); row != max(k, 0) || ok != (k >= 0) {
			failf("%s: Row(%v) = %d, %v, want %d", f.name, e, row, ok, k)
		}
		if got := f.has(e); got != (k >= 0) {
			failf("%s: Has(%v) = %v, want %v", f.name, e, got, k >= 0)
		}
	}
}

func (p *model) checkHistory() {
	h := p.w.History()
	if p.w.Tick() != p.oracle.tick || h.Oldest() != p.oracle.oldest() || h.Newest() != p.oracle.newest() {
		failf("tick %d of %d to %d, want %d of %d to %d", p.w.Tick(), h.Oldest(), h.Newest(), p.oracle.tick, p.oracle.oldest(), p.oracle.newest())
	}
	if got, want := slices.Collect(h.Ticks()), p.oracle.ticks(); !slices.Equal(got, want) {
		failf("Ticks() = %v, want %v", got, want)
	}
	for i, cp := range p.cps {
		want := slices.ContainsFunc(p.oracle.frames, func(f oracleFrame) bool { return f.cp == cp })
		if got := cp.Valid(); got != want {
			failf("checkpoint %d: Valid() = %v, want %v", i, got, want)
		}
	}
}

// checkDigest compares the digest with the digest of a world that is built from the state of the
// oracle.
func (p *model) checkDigest() {
	w := NewWorld(Options{})
	state := &raw.State{Tick: p.oracle.tick, Registry: raw.As[uint64](slices.Concat(p.oracle.alive, p.oracle.free, p.oracle.retired)), Alive: len(p.oracle.alive)}
	state.Free = state.Alive + len(p.oracle.free)
	for i, k := range p.kinds {
		f := k.add(w)
		if k.exempt {
			continue
		}
		s := raw.StorageState{Name: f.name, Layout: f.any().Raw().Layout(), Entities: raw.As[uint64](p.oracle.stores[i].entities), Indexed: k.indexed}
		s.Rows = p.stores[i].any().Raw().AppendRows(nil, 0, p.stores[i].any().Raw().Rows())
		state.Storages = append(state.Storages, s)
	}
	if err := w.Raw().Load(state); err != nil {
		failf("Load: %v", err)
	}
	for i, v := range p.oracle.resources {
		r := newResource(w, resourceSpec(p.oracle.exemptResource[i]), list{[]int{v}})
		r.name = p.resources[i].name
		w.resources = append(w.resources, r)
	}
	if q := p.events; q != nil {
		twin := &model{w: w}
		twin.addEvents()
		twin.events.queue.Set(q.queue.Get())
		twin.reader.next.Set(uint64(p.oracle.events.read))
	}
	if got, want := p.w.Digest(), w.Digest(); got != want {
		failf("Digest() = %v, that of an equal world %v:\n%+v\n%+v", got, want, p.w.Digests(nil), w.Digests(nil))
	}
}
