package ecs_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// changeSizes has the number of entities of two worlds. The small world fits the second-level
// cache, and the large world does not.
var changeSizes = []int{16_000, 256_000}

// The functions below are the work that the benchmarks measure. Each function handles all entities,
// one by one.

func (p *benchWorld) create() {
	for i := range p.entities {
		e := p.w.Create()
		p.positions.Set(e, position{1, 2})
		p.velocities.Set(e, velocity{3, 4})
		p.entities[i] = e
	}
}

func (p *benchWorld) destroy() {
	for _, e := range p.entities {
		p.w.Destroy(e)
	}
}

func (p *benchWorld) addRemove() {
	for _, e := range p.entities {
		p.velocities.Set(e, velocity{3, 4})
	}
	for _, e := range p.entities {
		p.velocities.Remove(e)
	}
}

func (p *benchWorld) removeAdd() {
	for _, e := range p.entities {
		p.velocities.Remove(e)
	}
	for _, e := range p.entities {
		p.velocities.Set(e, velocity{3, 4})
	}
}

func (p *benchWorld) set() {
	for _, e := range p.entities {
		p.velocities.Set(e, velocity{3, 4})
	}
}

func (p *benchWorld) limitCreate() {
	w := &p.limit
	for i := range p.handles {
		e := w.create()
		w.setPosition(e, position{1, 2})
		w.setVelocity(e, velocity{3, 4})
		p.handles[i] = e
	}
}

func (p *benchWorld) limitDestroy() {
	for _, e := range p.handles {
		p.limit.destroy(e)
	}
}

func (p *benchWorld) limitAddRemove() {
	for _, e := range p.handles {
		p.limit.setVelocity(e, velocity{3, 4})
	}
	for _, e := range p.handles {
		p.limit.removeVelocity(e)
	}
}

func (p *benchWorld) removeVelocities() {
	p.addRemove()
	p.limitAddRemove()
}

// A change is one kind of work and its inverse. budget is the allowed multiple of the hand-written
// code's time, or 0 for no budget. The field more is the number of nanoseconds that the first call
// in a frame may take in addition.
type change struct {
	name   string
	budget float64
	more   float64
	start  func(p *benchWorld) // Called after every entity got both components. May be nil.

	undo, work           func(p *benchWorld)
	limitUndo, limitWork func(p *benchWorld)
}

var changes = []change{
	{"create", 1.6, 4, nil, (*benchWorld).destroy, (*benchWorld).create, (*benchWorld).limitDestroy, (*benchWorld).limitCreate},
	{"destroy", 2, 10, nil, (*benchWorld).create, (*benchWorld).destroy, (*benchWorld).limitCreate, (*benchWorld).limitDestroy},
	{"add+remove", 1.5, 4, (*benchWorld).removeVelocities, nil, (*benchWorld).addRemove, nil, (*benchWorld).limitAddRemove},
	{"remove+add", 0, 8, nil, nil, (*benchWorld).removeAdd, nil, nil},
	{"set", 0, 4, nil, nil, (*benchWorld).set, nil, nil},
}

// world returns a world of n entities that is ready for c.undo.
func (c *change) world(n int) *benchWorld {
	p := moving(n)
	if c.start != nil {
		c.start(p)
	}
	if c.name == "destroy" {
		p.destroy()
		p.limitDestroy()
	}
	return p
}

func (c *change) side(p *benchWorld, undo, work func(p *benchWorld)) side {
	s := side{work: func() { work(p) }}
	if undo != nil {
		s.prepare = func() { undo(p) }
	}
	return s
}

// The benchmark measures each change in a world without an open frame, and in a world whose open
// frame has already saved the rows.
func BenchmarkBudgetChange(b *testing.B) {
	for _, c := range changes {
		if c.budget == 0 {
			continue
		}
		for _, n := range changeSizes {
			for _, frame := range []string{"free", "held"} {
				b.Run(c.name+"/"+sizeName(n)+"/"+frame, func(b *testing.B) {
					p := c.world(n)
					if frame == "held" {
						p.w.Checkpoint()
					}
					ours, limit := c.side(p, c.undo, c.work), c.side(p, c.limitUndo, c.limitWork)
					compare(b, n, c.budget, ours, limit)
				})
			}
		}
	}
}

// The benchmark compares the first write of each row in a frame with later writes. It measures the
// same difference for hand-written code.
func BenchmarkBudgetChangeFirst(b *testing.B) {
	for _, c := range changes {
		for _, n := range changeSizes {
			b.Run(c.name+"/"+sizeName(n), func(b *testing.B) {
				p, held := c.world(n), c.world(n)
				held.w.Checkpoint()
				first := c.side(p, c.undo, c.work)
				undo := first.ready
				var cp ecs.Checkpoint
				first.prepare = func() {
					undo()
					if cp.Valid() {
						p.w.Release(cp)
					}
					cp = p.w.Checkpoint()
				}
				compareMore(b, n, c.more, first, c.side(held, c.undo, c.work), framedSides(c.name, n)...)
			})
		}
	}
}

// The hand-written code for first writes in a frame is a sparse set with undo logs. Each log is one
// slice that grows by append. The logs save the same data as the package:
//
//   - a row together with its value, at most once in a frame
//   - a sparse entry, when its entity is added
//   - the generation of an entity, and its position in the free list

// A framedSet is a sparse set with one open frame. Its capacity is fixed.
type framedSet[T any] struct {
	// Maps an index to a row. A stale entry may refer to the row of another entity.
	sparse     []uint32
	dense      []uint32
	values     []T
	n, prot    uint32
	rowSaved   []uint64 // A set bit for each saved row.
	entrySaved []uint64 // A set bit for each saved sparse entry.
	rows       []framedRow[T]
	entries    []framedEntry
}

type framedRow[T any] struct {
	row, dense uint32
	value      T
}

type framedEntry struct{ at, was uint32 }

func newFramedSet[T any](n int) framedSet[T] {
	return framedSet[T]{
		sparse: make([]uint32, n), dense: make([]uint32, n), values: make([]T, n),
		rowSaved: make([]uint64, n/64+1), entrySaved: make([]uint64, n/64+1),
	}
}

// open begins a frame. The rows that exist now are saved before their first write in the frame.
func (s *framedSet[T]) open() {
	s.prot = s.n
	clear(s.rowSaved)
	clear(s.entrySaved)
	s.rows, s.entries = s.rows[:0], s.entries[:0]
}

func (s *framedSet[T]) row(i uint32) (uint32, bool) {
	r := s.sparse[i]
	return r, r < s.n && s.dense[r] == i
}

func (s *framedSet[T]) saveRow(r uint32) {
	if m := &s.rowSaved[r>>6]; r < s.prot && *m>>(r&63)&1 == 0 {
		*m |= 1 << (r & 63)
		s.rows = append(s.rows, framedRow[T]{r, s.dense[r], s.values[r]})
	}
}

func (s *framedSet[T]) saveEntry(i uint32) {
	if m := &s.entrySaved[i>>6]; s.sparse[i] < s.prot && *m>>(i&63)&1 == 0 {
		*m |= 1 << (i & 63)
		s.entries = append(s.entries, framedEntry{i, s.sparse[i]})
	}
}

func (s *framedSet[T]) set(i uint32, v T) {
	if r, ok := s.row(i); ok {
		s.saveRow(r)
		s.values[r] = v
		return
	}
	s.saveRow(s.n)
	s.saveEntry(i)
	s.dense[s.n], s.values[s.n], s.sparse[i] = i, v, s.n
	s.n++
}

func (s *framedSet[T]) remove(i uint32) bool {
	r, ok := s.row(i)
	if !ok {
		return false
	}
	if s.n--; r != s.n {
		moved := s.dense[s.n]
		s.saveRow(r)
		s.saveEntry(moved)
		s.dense[r], s.values[r], s.sparse[moved] = moved, s.values[s.n], r
	}
	return true
}

// A framedWorld has entities and two components, all with undo logs.
type framedWorld struct {
	generations framedSlots
	free        framedSlots
	alive       int
	positions   framedSet[position]
	velocities  framedSet[velocity]
	handles     []limitEntity
}

// A framedSlots is a list of numbers with an undo log for one open frame.
type framedSlots struct {
	now   []uint32
	saved []uint64
	log   []framedEntry
}

func (s *framedSlots) put(i, v uint32) {
	if m := &s.saved[i>>6]; *m>>(i&63)&1 == 0 {
		*m |= 1 << (i & 63)
		s.log = append(s.log, framedEntry{i, s.now[i]})
	}
	s.now[i] = v
}

func (s *framedSlots) open() {
	clear(s.saved)
	s.log = s.log[:0]
}

func newFramedWorld(n int) *framedWorld {
	w := &framedWorld{
		generations: framedSlots{now: make([]uint32, n), saved: make([]uint64, n/64+1)},
		free:        framedSlots{now: make([]uint32, n), saved: make([]uint64, n/64+1)},
		positions:   newFramedSet[position](n), velocities: newFramedSet[velocity](n),
		handles: make([]limitEntity, n),
	}
	for i := range w.free.now {
		w.free.now[i] = uint32(n - 1 - i)
	}
	w.create()
	return w
}

func (w *framedWorld) open() {
	w.generations.open()
	w.free.open()
	w.positions.open()
	w.velocities.open()
}

func (w *framedWorld) has(e limitEntity) bool { return w.generations.now[e.index] == e.generation }

//go:noinline
func (w *framedWorld) setPosition(e limitEntity, v position) {
	if w.has(e) {
		w.positions.set(e.index, v)
	}
}

//go:noinline
func (w *framedWorld) setVelocity(e limitEntity, v velocity) {
	if w.has(e) {
		w.velocities.set(e.index, v)
	}
}

//go:noinline
func (w *framedWorld) removeVelocity(e limitEntity) bool {
	return w.has(e) && w.velocities.remove(e.index)
}

//go:noinline
func (w *framedWorld) destroyOne(e limitEntity) bool {
	if !w.has(e) {
		return false
	}
	w.positions.remove(e.index)
	w.velocities.remove(e.index)
	w.generations.put(e.index, e.generation+1)
	w.alive--
	w.free.put(uint32(len(w.handles)-1-w.alive), e.index)
	return true
}

func (w *framedWorld) create() {
	for k := range w.handles {
		i := w.free.now[len(w.handles)-1-w.alive]
		w.alive++
		e := limitEntity{i, w.generations.now[i]}
		w.setPosition(e, position{1, 2})
		w.setVelocity(e, velocity{3, 4})
		w.handles[k] = e
	}
}

func (w *framedWorld) destroy() {
	for _, e := range w.handles {
		w.destroyOne(e)
	}
}

func (w *framedWorld) removeAdd() {
	for _, e := range w.handles {
		w.removeVelocity(e)
	}
	w.set()
}

func (w *framedWorld) set() {
	for _, e := range w.handles {
		w.setVelocity(e, velocity{3, 4})
	}
}

// framedChanges maps the names of some changes to hand-written code. The benchmark measures the
// function work, which makes the change. Before each measurement, undo makes the opposite change.
var framedChanges = map[string]struct{ undo, work func(w *framedWorld) }{
	"destroy":    {(*framedWorld).create, (*framedWorld).destroy},
	"remove+add": {nil, (*framedWorld).removeAdd},
	"set":        {nil, (*framedWorld).set},
}

// framedSides returns hand-written code for the named change of n entities, as two sides of a
// benchmark. The first side makes the change in a new frame. The second side makes it in a frame
// that has saved the rows already. The result is nil if framedChanges does not have the change.
func framedSides(name string, n int) (sides []side) {
	c, ok := framedChanges[name]
	if !ok {
		return nil
	}
	for _, first := range []bool{true, false} {
		w := newFramedWorld(n)
		w.open()
		if c.undo != nil {
			w.destroy()
		}
		sides = append(sides, side{
			prepare: func() {
				if c.undo != nil {
					c.undo(w)
				}
				if first {
					w.open()
				}
			},
			work: func() { c.work(w) },
		})
	}
	return sides
}

// A transform has 64 bytes, and a vector has 12 bytes.
type (
	transform [16]float32
	vector    [3]float32
)

// A filledWorld is a world whose entities have a transform and three vectors.
type filledWorld struct {
	w         *ecs.World
	transform *ecs.Storage[transform]
	vectors   [3]*ecs.Storage[vector]
	bundle    *ecs.Bundle4[transform, vector, vector, vector]
}

func newFilledWorld() *filledWorld {
	f := &filledWorld{w: ecs.NewWorld(ecs.Options{})}
	f.transform = ecs.MustRegister[transform](f.w)
	for i, name := range []string{"position", "rotation", "velocity"} {
		f.vectors[i] = ecs.MustRegister(f.w, ecs.Component[vector]{Name: name})
	}
	f.bundle = ecs.NewBundle4(f.transform, f.vectors[0], f.vectors[1], f.vectors[2])
	return f
}

func (f *filledWorld) reserve(n int) {
	f.w.Reserve(n)
	f.transform.Reserve(n)
	for _, s := range f.vectors {
		s.Reserve(n)
	}
}

// Entities with four components are inserted into a new world. The benchmark compares this with
// hand-written sparse sets for the same components, whose slices have their final capacity from the
// start.
func BenchmarkBudgetInsert(b *testing.B) {
	const n = 10_000
	limit := side{work: func() { insertByHand(n) }}
	for _, form := range []struct {
		name   string
		budget float64
		insert func(f *filledWorld)
	}{
		{"one by one", 3, func(f *filledWorld) { f.insert(n) }},
		{"reserved", 2, func(f *filledWorld) { f.reserve(n); f.insert(n) }},
		{"at once", 1.6, func(f *filledWorld) { f.bundle.CreateN(nil, n, transform{}, vector{}, vector{}, vector{}) }},
	} {
		b.Run(form.name, func(b *testing.B) {
			compare(b, n, form.budget, side{work: func() { form.insert(newFilledWorld()) }}, limit)
		})
	}
}

func (f *filledWorld) insert(n int) {
	for range n {
		f.bundle.Create(transform{}, vector{}, vector{}, vector{})
	}
}

// made returns a limitSet with capacity for n components.
func made[T any](n int) (s limitSet[T]) {
	return limitSet[T]{make([]uint32, n), make([]uint32, 0, n), make([]T, 0, n)}
}

func insertByHand(n int) {
	transforms, positions, rotations, velocities := made[transform](n), made[vector](n), made[vector](n), made[vector](n)
	w := limitWorld{generations: make([]uint32, 0, n)}
	for range n {
		e := w.create()
		transforms.set(e.index, transform{})
		positions.set(e.index, vector{})
		rotations.set(e.index, vector{})
		velocities.set(e.index, vector{})
	}
}

// A limitUndo is a hand-written sparse set with generations. In a frame, it saves the value of each
// row before the first write.
type limitUndo struct {
	sparse []uint32
	dense  []limitEntity
	values []position
	saved  []uint64 // A set bit for each saved row.
	rows   []uint32
	undo   []position
}

// newLimitUndo returns a copy of the n positions of p. handles[i] is the handle of the entity with
// index i.
func newLimitUndo(p *benchWorld, n int) (s *limitUndo, handles []limitEntity) {
	s = &limitUndo{sparse: make([]uint32, n), saved: make([]uint64, n/64+1)}
	handles = make([]limitEntity, n)
	for row, e := range p.positions.Entities() {
		handles[e.Index()] = limitEntity{e.Index(), e.Generation()}
		s.sparse[e.Index()] = uint32(row)
		s.dense = append(s.dense, handles[e.Index()])
		s.values = append(s.values, p.positions.Values()[row])
	}
	return s, handles
}

//go:noinline
func (s *limitUndo) mutAll(entities []limitEntity) {
	for _, e := range entities {
		r := s.sparse[e.index]
		if s.dense[r] != e {
			continue
		}
		if m := &s.saved[r>>6]; *m>>(r&63)&1 == 0 {
			*m |= 1 << (r & 63)
			s.rows = append(s.rows, r)
			s.undo = append(s.undo, s.values[r])
		}
		s.values[r].X++
	}
}

// back restores the saved values.
func (s *limitUndo) back() {
	for i, r := range s.rows {
		s.values[r] = s.undo[i]
	}
	if len(s.rows) < len(s.saved)/8 {
		for _, r := range s.rows {
			s.saved[r>>6] = 0
		}
	} else {
		clear(s.saved)
	}
	s.rows, s.undo = s.rows[:0], s.undo[:0]
}

// A tenth of all rows, chosen at random, is written once in a frame. Mut writes one row at a time,
// and MutEach writes 64. The benchmark compares both with a hand-written look-up that has an undo
// log.
func BenchmarkBudgetMut(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		p := moving(n)
		limit, handles := newLimitUndo(p, n)
		entities, some := make([]ecs.Entity, n/10), make([]limitEntity, n/10)
		for i, k := range rand.New(rand.NewPCG(4, 4)).Perm(n)[:n/10] {
			entities[i] = p.positions.Entities()[k]
			some[i] = handles[entities[i].Index()]
		}
		cp := p.w.Checkpoint()
		ours := func(work func(*ecs.Storage[position], []ecs.Entity)) side {
			return side{prepare: func() { p.w.Restore(cp) }, work: func() { work(p.positions, entities) }}
		}
		byHand := side{prepare: limit.back, work: func() { limit.mutAll(some) }}
		b.Run(sizeName(n)+"/one", func(b *testing.B) { compare(b, n/10, 2.5, ours(mutAll), byHand) })
		b.Run(sizeName(n)+"/each", func(b *testing.B) {
			budget := 1.5
			if n < 1_000_000 {
				budget = 1.9
			}
			compare(b, n/10, budget, ours(mutEach), byHand)
		})
		p.w.Release(cp)
	}
}

//go:noinline
func mutAll(s *ecs.Storage[position], entities []ecs.Entity) {
	for _, e := range entities {
		if p := s.Mut(e); p != nil {
			p.X++
		}
	}
}

//go:noinline
func mutEach(s *ecs.Storage[position], entities []ecs.Entity) {
	for _, p := range s.MutEach(entities) {
		p.X++
	}
}
