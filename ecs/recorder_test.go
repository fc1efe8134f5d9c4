package ecs

import (
	"bytes"
	"maps"
	"slices"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A recorderModel stores a copy of the world for every sequence number that it returned. It creates
// the copy of a tick by applying the Change to the copy of the parent. Then it compares the copy
// with the world.
type recorderModel struct {
	w         *World
	states    []recordedState // The state for each sequence number.
	exempt    map[string]recordedStore
	want      *oracleState // The expected state of the next tick.
	named     []raw.StorageChange
	patched   *patchedWorld
	deferring bool // Set if a deferringRecorder uses this model, so some ticks are deferred.
	asked     int  // The number of calls of Defer and of model.flush.
}

// deferringRecorder defers about every second tick.
type deferringRecorder struct{ *recorderModel }

func (r deferringRecorder) Defers() bool { return true }

func (r deferringRecorder) Defer(tick, recorded uint64) bool {
	if tick != r.want.tick+1 || recorded >= tick {
		failf("asked to defer tick %d after %d, want %d", tick, recorded, r.want.tick+1)
	}
	r.asked++
	return uint32(r.asked)*0x9e3779b1>>8&1 == 0
}

// offsetRecorder returns other sequence numbers than a recorderModel for the same ticks.
type offsetRecorder struct{ *recorderModel }

const offsetStart = 1000

func (r offsetRecorder) Record(c *raw.Change) uint64 {
	own := *c
	own.Parent -= offsetStart
	return r.recorderModel.Record(&own) + offsetStart
}

type recordedState struct {
	tick        uint64
	rows        []Entity
	alive, free int
	stores      map[string]recordedStore // The storages by name, including resources.
}

type recordedStore struct {
	entities []Entity
	rows     [][]byte
}

func newRecorderModel(w *World) *recorderModel {
	r := &recorderModel{w: w, exempt: map[string]recordedStore{}}
	s := recordedState{tick: w.tick, stores: map[string]recordedStore{}}
	rows, alive, free := w.Raw().Registry()
	s.rows, s.alive, s.free = raw.As[Entity](slices.Clone(rows)), alive, free
	for _, as := range w.Raw().Storages() {
		r.storesOf(&s, as)[as.Name()] = storeOf(as)
	}
	r.states = []recordedState{s}
	r.patched = newPatchedWorld(w)
	return r
}

// storesOf returns the map that has the copy of a storage in state s. A storage that rewinds has
// one copy for each state. A storage that does not rewind has a single copy, in r.exempt.
func (r *recorderModel) storesOf(s *recordedState, as raw.Storage) map[string]recordedStore {
	if as.Rewinds() {
		return s.stores
	}
	return r.exempt
}

func storeOf(as raw.Storage) recordedStore {
	s := recordedStore{entities: raw.As[Entity](slices.Clone(as.Entities()))}
	for i := range as.Rows() {
		s.rows = append(s.rows, as.AppendRows(nil, i, i+1))
	}
	return s
}

func (r *recorderModel) latest() uint64 {
	if r == nil {
		return 0
	}
	return uint64(len(r.states) - 1)
}

// expect sets the state that r must get for the next tick.
func (r *recorderModel) expect(want *oracleState) {
	if r != nil {
		r.want = want
	}
}

// Record checks c and returns the next sequence number.
func (r *recorderModel) Record(c *raw.Change) uint64 {
	if c.Parent >= uint64(len(r.states)) {
		failf("parent %d is not a mark of this recorder", c.Parent)
	}
	parent := &r.states[c.Parent]
	want := r.want.tick + 1
	if c.Late {
		want--
	}
	again := c.Late && parent.tick == want
	if c.ParentTick != parent.tick || c.Tick != want || !again && (parent.tick >= want || !r.deferring && parent.tick != want-1) {
		failf("tick %d continues %d, want %d", c.Tick, parent.tick, want)
	}
	if again && (c.Entities.Changed || len(c.Ops) > 0 || slices.ContainsFunc(c.Storages, raw.Storage.Rewinds)) {
		failf("tick %d is recorded again with changes, %d operations", c.Tick, len(c.Ops))
	}
	s := recordedState{tick: c.Tick, stores: maps.Clone(parent.stores)}
	r.patchRegistry(&s, parent, c)
	r.patchStores(&s, c)
	r.compare(&s)
	r.replay(parent, &s, c)
	r.patched.apply(r, c)
	r.states = append(r.states, s)
	return r.latest()
}

func (r *recorderModel) patchRegistry(s, parent *recordedState, c *raw.Change) {
	change := c.Entities
	rows, alive, free := r.w.Raw().Registry()
	if change.Total != len(rows) || change.Alive != alive || change.Free != free || change.Before != len(parent.rows) {
		failf("EntityChange %+v of %d rows, Registry() = %v, %d, %d", change, len(parent.rows), rows, alive, free)
	}
	s.rows, s.alive, s.free = slices.Clone(parent.rows), alive, free
	s.rows = resize(s.rows, change.Total)
	eachRow(change.Rows, change.Total, func(i int) { s.rows[i] = Entity(rows[i]) })
}

func resize[T any](s []T, n int) []T {
	if n <= len(s) {
		return slices.Clip(s[:n])
	}
	return append(s, make([]T, n-len(s))...)
}

// eachRow calls f for the rows of ranges. It fails unless the ranges are ascending, below n, and as
// few as possible.
func eachRow(ranges []raw.Range, n int, f func(i int)) {
	next := -1
	for _, r := range ranges {
		if r.First <= next || r.N <= 0 || r.First+r.N > n {
			failf("ranges %v of %d rows are not ascending, separate and in bounds", ranges, n)
		}
		next = r.First + r.N
		for i := r.First; i < next; i++ {
			f(i)
		}
	}
}

func (r *recorderModel) patchStores(s *recordedState, c *raw.Change) {
	r.named = r.named[:0]
	position := -1
	for _, as := range c.Storages {
		change := c.Of(as)
		if k := r.position(as); k <= position {
			failf("%s is out of order", as.Name())
		} else {
			position = k
		}
		r.named = append(r.named, raw.StorageChange{Storage: as, Before: change.Before, Entities: slices.Clone(change.Entities), Values: slices.Clone(change.Values)})
		old := r.storesOf(s, as)[as.Name()]
		if as.Rewinds() && change.Before != len(old.rows) {
			failf("%s: Before = %d, want %d", as.Name(), change.Before, len(old.rows))
		}
		if !as.Rewinds() {
			old = recordedStore{} // The change contains all rows, so the old rows are not needed.
		}
		n := as.Rows()
		patched := recordedStore{rows: resize(slices.Clone(old.rows), n)}
		if entities := as.Entities(); entities != nil {
			patched.entities = resize(slices.Clone(old.entities), n)
			eachRow(change.Entities, n, func(i int) { patched.entities[i] = Entity(entities[i]) })
		} else if len(change.Entities) > 0 {
			failf("%s: a resource with entity rows %v", as.Name(), change.Entities)
		}
		var values []byte
		eachRow(change.Values, n, func(i int) {
			patched.rows[i] = as.AppendRows(nil, i, i+1)
			values = append(values, patched.rows[i]...)
		})
		if got := as.AppendRanges(nil, change.Values); !bytes.Equal(got, values) {
			failf("%s: AppendRanges(%v) = %x, want %x", as.Name(), change.Values, got, values)
		}
		r.storesOf(s, as)[as.Name()] = patched
	}
}

func (r *recorderModel) position(as raw.Storage) int {
	return slices.Index(r.w.Raw().Storages(), as)
}

// compare compares the patched copy with the world.
func (r *recorderModel) compare(s *recordedState) {
	if rows, _, _ := r.w.Raw().Registry(); !slices.Equal(s.rows, raw.As[Entity](rows)) {
		failf("recorded registry %v, want %v", s.rows, rows)
	}
	for _, as := range r.w.Raw().Storages() {
		got, want := r.storesOf(s, as)[as.Name()], storeOf(as)
		if !slices.Equal(got.entities, want.entities) || !slices.EqualFunc(got.rows, want.rows, bytes.Equal) {
			failf("%s: recorded %v %v, want %v %v", as.Name(), got.entities, got.rows, want.entities, want.rows)
		}
		for _, e := range got.entities {
			if e != Vacant && !slices.Contains(s.rows[:s.alive], e) {
				failf("%s: a row of %v is recorded, which is not alive", as.Name(), e)
			}
		}
	}
}

// replay applies the operations of c to sets of entities, and compares the results with s.
func (r *recorderModel) replay(parent, s *recordedState, c *raw.Change) {
	alive := setOf(parent.rows[:parent.alive])
	members := map[string]map[Entity]bool{}
	for name, st := range parent.stores {
		members[name] = setOf(st.entities)
	}
	for _, op := range c.Ops {
		if op.Storage != nil && !op.Storage.Rewinds() {
			continue
		}
		replayOp(op, alive, members)
	}
	if want := setOf(s.rows[:s.alive]); !maps.Equal(alive, want) {
		failf("operations leave %v alive, want %v", alive, want)
	}
	for name, st := range s.stores {
		if want := setOf(st.entities); !maps.Equal(members[name], want) {
			failf("%s: operations leave %v, want %v", name, members[name], want)
		}
	}
}

func replayOp(op raw.Op, alive map[Entity]bool, members map[string]map[Entity]bool) {
	expect := func(ok bool) {
		if !ok {
			failf("operation %+v cannot follow the ones before", op)
		}
	}
	entity := Entity(op.Entity)
	switch op.Kind {
	case raw.OpCreate:
		expect(!alive[entity])
		alive[entity] = true
	case raw.OpDestroy:
		expect(alive[entity])
		delete(alive, entity)
		for _, m := range members {
			delete(m, entity)
		}
	case raw.OpAdd:
		m := members[op.Storage.Name()]
		expect(alive[entity] && !m[entity])
		m[entity] = true
	case raw.OpRemove:
		m := members[op.Storage.Name()]
		expect(m[entity])
		delete(m, entity)
	case raw.OpClear:
		if op.Storage != nil {
			clear(members[op.Storage.Name()])
			return
		}
		clear(alive)
		for _, m := range members {
			clear(m)
		}
	default:
		failf("operation of kind %d", op.Kind)
	}
}

func setOf(entities []Entity) map[Entity]bool {
	m := make(map[Entity]bool, len(entities))
	for _, e := range entities {
		if e != Vacant {
			m[e] = true
		}
	}
	return m
}
