package ecs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A program is a sequence of steps of two bytes: an operation and its argument. Any bytes are a
// program.
//
//	| step | argument | step | argument | ...
//
// A program runs on a model with storages of every kind and with resources. The first byte
// chooses the length of the history and whether there is a recorder.
type program []byte

// programKinds starts with the components that the queries use.
var programKinds = append(slices.Clone(queryKinds), listKind, extraKind, indexedKind, gapKind, hashedKind, orderedKind, markedKind, keptKind, largeKind)

// steps are the operations of a program. The first steps change only entities, components and
// values: see structural.
var steps = []func(r *programRunner, arg int){
	func(r *programRunner, _ int) { r.create() },
	func(r *programRunner, _ int) { r.create() },
	func(r *programRunner, arg int) { r.set(arg%len(r.stores), r.pick(arg)) },
	func(r *programRunner, arg int) { r.set(arg%len(r.stores), r.pick(arg)) },
	func(r *programRunner, arg int) { r.populate(arg%32, min(arg%32, arg%5)) },
	func(r *programRunner, arg int) { r.set(arg%len(r.stores), r.pick(arg/7)) },
	func(r *programRunner, arg int) { r.increase(arg%len(r.stores), r.pick(arg)) },
	func(r *programRunner, arg int) { r.remove(arg%len(r.stores), r.pick(arg)) },
	func(r *programRunner, arg int) { r.destroy(r.pick(arg)) },
	func(r *programRunner, arg int) { r.clear(arg % len(r.stores)) },
	func(r *programRunner, arg int) { r.setResource(arg % len(r.resources)) },
	func(r *programRunner, arg int) { r.increaseResource(arg % len(r.resources)) },
	func(r *programRunner, arg int) { r.clearSometimes(arg) },
	func(r *programRunner, arg int) { r.send(arg % 4) },
	func(r *programRunner, arg int) { r.read(arg % 5) },
	func(r *programRunner, arg int) { r.drain(arg%len(r.stores), 1+arg%7, arg%4) },
	func(r *programRunner, arg int) { r.keepOnly(r.pick(arg), arg*37) },
	func(r *programRunner, arg int) { r.createNear(arg) },
	func(r *programRunner, _ int) { r.checkpoint() },
	func(r *programRunner, arg int) { r.restore(arg % 3) },
	func(r *programRunner, arg int) { r.restore(arg % 3) },
	func(r *programRunner, arg int) { r.release(arg % 3) },
	func(r *programRunner, _ int) { r.commit() },
	func(r *programRunner, _ int) { r.commit() },
	func(r *programRunner, arg int) { r.rewind(arg % 4) },
	func(r *programRunner, arg int) { r.seek(r.oracle.tick + uint64(arg%4)) },
	func(r *programRunner, arg int) { r.tryStep(arg) },
	func(r *programRunner, arg int) { r.checkQuery(&r.queries[arg%len(r.queries)]) },
	func(r *programRunner, arg int) { r.writeAll(&r.queries[arg%2*2]) },
	func(r *programRunner, _ int) { r.queries = queryModels(r.model) },
	func(r *programRunner, _ int) { r.writeLists(storeList) },
	func(r *programRunner, arg int) { r.fork(arg) },
	func(r *programRunner, arg int) { r.attach(arg) },
	func(r *programRunner, _ int) { r.checkChanges() },
	func(r *programRunner, arg int) { r.checkIndex(arg % len(r.stores)) },
	func(r *programRunner, _ int) { r.checkIndexes() },
	func(r *programRunner, arg int) { r.aim(arg%2, r.oracle.tick+2-min(r.oracle.tick+2, uint64(arg/2%6))) },
	func(r *programRunner, _ int) { r.readPasts() },
	func(r *programRunner, arg int) { r.checkRetainedAt(arg) },
}

// structural is the number of steps, from the start of the list, that a fork of the world can also
// run. They change only entities, components and values.
const structural = 18

type programRunner struct {
	*model
	queries []queryModel
	rest    program                           // The program after the current step.
	steps   []func(r *programRunner, arg int) // All steps of the program.
}

func (p program) run() error { return p.runWith(steps) }

// runWith runs p with the given steps, on a world with groups of the given stores.
func (p program) runWith(steps []func(r *programRunner, arg int), groups ...[]int) (err error) {
	defer catch(&err)
	shape := 0
	if len(p) > 0 {
		shape, p = int(p[0]), p[1:]
	}
	r := programRunner{steps: steps, model: newModel(modelOptions{
		kinds:         programKinds,
		groups:        groups,
		resources:     3,
		events:        true,
		relations:     shape%3 == 0,
		history:       shape % 5,
		historyBytes:  int64(shape >> 3 & 1 * 20_000),
		historyDense:  shape >> 6 & 1 * (1 + shape>>7),
		record:        shape>>4&1 == 1,
		keepTick:      shape>>5&1 == 1,
		maxGeneration: uint32(2 + shape>>5),
		entities:      8,
		members:       5,
	})}
	r.queries = queryModels(r.model)
	for ; len(p) >= 2; p = p[2:] {
		r.rest = p[2:]
		steps[int(p[0])%len(steps)](&r, int(p[1]))
		if err := r.w.check(); err != nil {
			failf("%v", err)
		}
	}
	r.digest = true
	r.check()
	r.checkIndexes()
	for i := range r.queries {
		r.checkQuery(&r.queries[i])
	}
	return nil
}

// pick returns the entity of a handle. Most of these entities are alive.
func (r *programRunner) pick(arg int) Entity { return r.handle(arg * 7 % (len(r.handles) + 1)) }

// createNear creates the entity of a handle again. Or it creates an entity with a low generation,
// whose index is near the highest index in use.
func (r *programRunner) createNear(arg int) {
	if arg%2 == 0 {
		r.createAt(r.pick(arg / 2))
		return
	}
	indices := len(r.oracle.alive) + len(r.oracle.free) + len(r.oracle.retired)
	r.createAt(NewEntity(uint32(max(0, indices-4+arg/2%8)), uint32(arg/16%4)))
}

// clearSometimes clears the world for few values of arg, so that most programs keep some entities.
func (r *programRunner) clearSometimes(arg int) {
	if arg%8 == 0 {
		r.clearAll()
	}
}

// tryStep runs a structural step inside Try. The next two bytes of the program choose the step.
func (r *programRunner) tryStep(arg int) {
	if r.checkpointAt(2) >= 0 {
		return
	}
	r.try(func() {
		if len(r.rest) >= 2 {
			r.steps[int(r.rest[0])%structural](r, int(r.rest[1]))
		}
	}, outcome(arg%3))
}

func (r *programRunner) attach(arg int) {
	if r.checkpointAt(0) < 0 {
		r.restart(arg % 4)
	}
}

// fork makes two copies of the world: a clone, and a new world with the same state that registers
// only some of the types. The next steps of the program must have the same effect on both copies,
// and must not change the original world.
func (r *programRunner) fork(arg int) {
	known := make([]kind, 0, len(r.kinds))
	var stores []int
	for i, k := range r.kinds {
		if arg>>i&1 == 0 || k.exempt || r.oracle.groupOf(i) != nil {
			known, stores = append(known, k), append(stores, i)
		}
	}
	loaded := loadedRunner(r, known, stores)
	cloned := clonedRunner(r, stores)
	if got, want := loaded.w.Digest(), r.w.Digest(); got != want {
		failf("the digest after Load is %v, want %v", got, want)
	}
	if got, want := cloned.w.Digest(), r.w.Digest(); got != want {
		failf("the digest of Clone is %v, want %v", got, want)
	}
	for rest := r.rest[:min(len(r.rest), 32)]; len(rest) >= 2; rest = rest[2:] {
		step := r.steps[int(rest[0])%structural]
		step(loaded, int(rest[1]))
		step(cloned, int(rest[1]))
		loaded.checkIndex(int(rest[1]) % len(loaded.stores))
		cloned.checkIndex(int(rest[1]) % len(cloned.stores))
		if got, want := loaded.w.Digest(), cloned.w.Digest(); got != want {
			failf("the digest after Load and some steps is %v, after Clone %v", got, want)
		}
	}
	loaded.check()
	cloned.check()
	r.check()
}

// stateOf returns the state of w, built from the exported API.
func stateOf(w *World) *raw.State {
	rows, alive, free := w.Raw().Registry()
	s := &raw.State{Tick: w.Tick(), Registry: rows, Alive: alive, Free: free}
	for _, as := range w.Raw().Storages() {
		if as.Persistent() && as.Layout() != nil {
			s.Storages = append(s.Storages, raw.StorageState{
				Name: as.Name(), Layout: as.Layout(), Resource: as.IsResource(),
				Indexed: as.IsIndexed(), Default: as.AppendDefault(nil), Entities: as.Entities(), Rows: as.AppendRows(nil, 0, as.Rows()),
			})
		}
	}
	return s
}

func loadedRunner(r *programRunner, known []kind, stores []int) *programRunner {
	groups := r.groupsAmong(stores)
	l := &programRunner{model: newModel(modelOptions{kinds: known, groups: groups, resources: len(r.resources), events: r.events != nil, relations: len(r.relations) > 0, entities: 3, members: 2, history: 1})}
	l.w.entities.maxGeneration = r.w.entities.maxGeneration
	l.checkIndexes()
	state := stateOf(r.w)
	if r.w.Tick()%2 == 1 { // Load must have the same effect with a state that has check results.
		state = checkedState(r.w)
	}
	if err := l.w.Raw().Load(state); err != nil {
		failf("Load: %v", err)
	}
	l.copyOracle(r, len(known), groups)
	return l
}

func clonedRunner(r *programRunner, stores []int) *programRunner {
	w := r.w.Clone()
	c := &programRunner{model: &model{w: w, oracle: &oracle{history: r.oracle.history, dense: r.oracle.dense, overBudget: w.overBudget}}}
	for _, i := range stores {
		c.stores, c.kinds = append(c.stores, r.stores[i].in(w)), append(c.kinds, r.kinds[i])
	}
	for _, res := range r.resources {
		c.resources = append(c.resources, res.In(w))
	}
	if r.events != nil {
		c.events, c.reader = r.events.In(w), r.reader.In(w)
	}
	if r.indexes != nil {
		for _, i := range stores {
			c.indexes = append(c.indexes, r.indexes[i].in(w))
		}
	}
	for i, f := range c.stores {
		for k, rel := range r.oracle.relations {
			if r.stores[rel.store].name == f.name {
				c.relations, c.oracle.relations = append(c.relations, r.relations[k].in(w)), append(c.oracle.relations, oracleRelation{i, rel.policy})
			}
		}
	}
	c.copyOracle(r, len(stores), r.groupsAmong(stores))
	return c
}

// groupsAmong returns the stores of each group, as positions in stores.
func (r *programRunner) groupsAmong(stores []int) (groups [][]int) {
	for _, g := range r.oracle.groups {
		var at []int
		for _, i := range g.stores {
			at = append(at, slices.Index(stores, i))
		}
		groups = append(groups, at)
	}
	return groups
}

// copyOracle gives the fork r a copy of the oracle of another runner. The copy has only the stores
// that the fork registers.
func (r *programRunner) copyOracle(from *programRunner, known int, groups [][]int) {
	r.handles, r.lastValue, r.cps = slices.Clone(from.handles), from.lastValue, nil
	r.oracle.oracleState = from.oracle.oracleState.clone()
	r.oracle.maxGeneration, r.oracle.exemptResource = from.oracle.maxGeneration, from.oracle.exemptResource
	all := r.oracle.stores
	r.oracle.stores, r.oracle.exempt = make([]oracleStore, known), make([]bool, known)
	for i, f := range r.stores {
		k := slices.IndexFunc(from.stores, func(other intStore) bool { return other.name == f.name })
		r.oracle.stores[i], r.oracle.exempt[i] = all[k], from.oracle.exempt[k]
	}
	for i, stores := range groups {
		r.oracle.groups[i].stores = stores
	}
	r.oracle.recorded = false
	r.oracle.start()
}

func TestProgram_RandomOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := program(rapid.SliceOfN(rapid.Byte(), 100, 600).Draw(t, "program"))
		if err := p.run(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzWorldProgram(f *testing.F) {
	for shape := range 32 {
		p := program{byte(shape * 8)}
		for i := range 200 {
			p = append(p, byte(i*(shape+3)), byte(i*i+shape))
		}
		f.Add([]byte(p))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if err := program(p[:min(len(p), 1000)]).run(); err != nil {
			t.Fatal(err)
		}
	})
}
