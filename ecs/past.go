package ecs

import (
	"fmt"
	"iter"
	"math"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Past reads the world as it was at the end of an earlier tick. The world itself stays at the
// current tick. [Storage.At] and [Resource.At] return the components and resources of the earlier
// tick:
//
//	past, err := world.History().At(shot.Tick)
//	…
//	was := positions.At(past)
//	for _, e := range targets {
//		if p, ok := was.Get(e); ok && shot.Hits(p) { … }
//	}
//
// A Past shows the state that [History.Seek] to that tick would restore. It reads the rows that the
// history saved, and undoes nothing.
//
// # Cost
//
// The first look-up in a storage costs O(rows written since the tick). Each later look-up takes two
// to three times as long as a look-up in the world. The first look-up after a change of the world
// costs O(rows written by the change).
//
// Some operations free saved rows: a restore, and the removal of a tick from a thinned history. The
// next look-up then costs as much as the first look-up. If a storage was cleared since the tick,
// the first look-up of an entity also costs O(rows before Clear).
//
// # Validity
//
// The world may change while a Past is used. A Past is valid as long as its tick is retained. If
// the world goes back to a tick before that of the Past, the next change of the world drops the
// later ticks. A look-up in an invalid Past panics; use [Past.Valid] to check.
//
// The history has no values of NoRewind components and resources. A Past returns their current
// values, for entities that were alive. A component that was registered after the tick has no
// members in the Past.
//
// A Past reuses its memory. Create one for each purpose, and move it to other ticks with [Past.At].
// In [Query1.ParallelRuns], a Past panics if the world has changed since its last look-up in the
// storage. So make a look-up in each storage before the loop, and do not read storages that the
// query writes.
type Past struct {
	_ noCopy

	w    *World
	tick uint64
	// The field state of the frame that begins at the end of the tick. It identifies the boundary,
	// even after an undo and a redo.
	state     uint64
	checkedAt uint64 // World.turn at the last call of find() that found the frame.
	// The id of the frame that begins at the end of the tick. If ahead is set, the id of the undone
	// frame that ends there.
	frame uint64
	// The world was rewound to a state before the tick.
	ahead bool
	alive pastSet
	parts []interface{ reset() } // Readers of the storages and resources in use.
}

// At returns a reader of the world at the end of the given tick, which may also be a tick undone by
// a rewind. It costs O(1). An error wraps [ErrNotHeld] and names the nearest retained ticks.
func (h History) At(tick uint64) (*Past, error) {
	p := &Past{w: h.w}
	r := &h.w.entities
	p.alive = pastSet{pastReader: pastReader{p: p, w: h.w, then: track.NewAsOf(&r.rows, &r.dense.Log, nil)}, dense: &r.dense, set: nil}
	p.alive.follow()
	if err := p.At(tick); err != nil {
		return nil, err
	}
	return p, nil
}

// At moves p to the end of another tick. The results of [Storage.At] for p move too. Errors are
// those of [History.At], and leave p unchanged.
func (p *Past) At(tick uint64) error {
	state, ok := p.w.stateOf(tick)
	if !ok {
		return fmt.Errorf("ecs: the past at tick %d: %w; %s", tick, ErrNotHeld, p.w.History().nearestRetained(tick))
	}
	p.tick, p.state, p.checkedAt = tick, state, 0
	p.alive.reset()
	for _, part := range p.parts {
		part.reset()
	}
	return nil
}

// Tick returns the tick that p reads.
func (p *Past) Tick() uint64 { return p.tick }

// Valid reports whether the tick of p is still retained, so that p can be read.
func (p *Past) Valid() bool { return p.checkedAt == p.w.turn || p.find() }

// Alive reports whether e was alive at the tick. e may be any value, even a stale entity.
func (p *Past) Alive(e Entity) bool { return p.alive.row(e) >= 0 }

// Len returns the number of entities that were alive at the tick.
func (p *Past) Len() int {
	p.alive.refresh()
	return p.alive.then.N
}

// Entities iterates over the entities that were alive at the tick, in the order that
// [World.Entities] had then. The loop may change the world.
func (p *Past) Entities() iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for row := 0; row < p.Len(); row++ {
			if !yield(p.alive.entity(row)) {
				return
			}
		}
	}
}

// stateOf returns the field state of the frame at the end of the given tick. It returns false if
// the tick is not retained.
func (w *World) stateOf(tick uint64) (state uint64, ok bool) {
	if k := w.forwardTo(tick); k >= 0 {
		return w.forward[k].state, true
	}
	if k := w.lastBoundary(tick); k >= 0 && w.frames[k].held() {
		return w.frames[k].state, true
	}
	return 0, false
}

// find looks up the frame of p and stores its id. It returns false if the frame no longer exists.
func (p *Past) find() bool {
	w := p.w
	if k := w.forwardTo(p.tick); k >= 0 && w.forward[k].state == p.state {
		p.frame, p.ahead, p.checkedAt = w.forward[k].ID, true, w.turn
		return true
	}
	if k := w.lastBoundary(p.tick); k >= 0 && w.frames[k].held() && w.frames[k].state == p.state {
		p.frame, p.ahead, p.checkedAt = w.frames[k].ID, false, w.turn
		return true
	}
	return false
}

// mustFind panics if p is no longer valid.
func (p *Past) mustFind() {
	if !p.Valid() {
		panic(fmt.Sprintf("ecs: read of the past at tick %d, which is no longer retained or was replaced by another branch: %s; "+
			"move the Past to a retained tick by Past.At, or check Past.Valid first", p.tick, p.w.History().nearestRetained(p.tick)))
	}
}

// A pastReader reads the rows of a tracker at a past tick.
type pastReader struct {
	_ noCopy

	p         *Past
	w         *World
	then      track.AsOf
	updatedAt uint64 // World.turn at the last call of update(), or 0 before the first call.
}

// reset drops what x has read, because its Past has moved to another tick.
func (x *pastReader) reset() {
	x.then.Reset()
	x.updatedAt = 0
}

// current reports whether the world is unchanged since the last update of x.
func (x *pastReader) current() bool { return x.updatedAt == x.w.turn && x.then.Current() }

// refresh updates x if necessary.
func (x *pastReader) refresh() {
	if !x.current() {
		x.update()
	}
}

//go:noinline
func (x *pastReader) update() {
	if x.w.parallel {
		panic("ecs: a Past is read in ParallelRuns after the world changed; make a look-up in the storage before the loop, and do not read storages that the query writes")
	}
	x.p.mustFind()
	x.then.CatchUp(x.p.frame, x.p.ahead)
	x.updatedAt = x.w.turn
}

// A pastSet finds the rows that entities had at a tick. It looks up an entity in two places:
//
//   - in its current row, if that row was not written since the tick
//   - in oldRows, which has the entities of all rows that were written since the tick
//
// Rows after the current last row are added to oldRows when a look-up needs them.
type pastSet struct {
	pastReader
	dense    *track.Column[Entity]
	set      *set // Nil for the registry.
	noRewind bool // The component is NoRewind, so only its current state exists.
	// notePastEnd has added the entities in rows from notedFrom on to oldRows.
	notedFrom int
	// Row of each entity index at the tick. Entries may be stale, so each look-up compares the
	// entity of the row.
	oldRows []uint32
}

const (
	pastDense = iota // Index of the entity column in then.Columns.
	pastData         // Index of the value column in then.Columns.
)

// follow makes x record the old entities of rows that are written.
func (x *pastSet) follow() {
	if x.set != nil && x.set.kind == Indexed {
		return // In an Indexed storage, entities do not change rows.
	}
	track.OnOld(x.dense, x.old(pastDense), func(row int, entities []Entity) {
		for i, e := range entities {
			x.note(e, row+i)
		}
	})
}

func (x *pastSet) old(column int) *track.Old { return &x.then.Columns[column] }

func (x *pastSet) note(e Entity, row int) {
	i := int(e.Index())
	if i >= len(x.oldRows) {
		x.oldRows = longer(x.oldRows, max(i+1, x.w.entities.rows.Total))
	}
	x.oldRows[i] = uint32(row)
}

func (x *pastSet) reset() {
	x.pastReader.reset()
	x.notedFrom = math.MaxInt
}

// entity returns the entity that row had. The row must have existed at the tick.
func (x *pastSet) entity(row int) Entity { return *track.RowAsOf(x.dense, x.old(pastDense), row) }

// row returns the row that e had at the tick, or -1.
func (x *pastSet) row(e Entity) int {
	if debug {
		mustBeCurrent(e)
	}
	if x.noRewind {
		return x.noRewindRow(e)
	}
	if !x.current() { // refresh, inlined by hand.
		x.update()
	}
	r := x.presentRow(e)
	if r < x.then.N && !x.old(pastDense).Has(r) && x.dense.Live[r] == e {
		return r
	}
	return x.movedRow(e)
}

// noRewindRow returns the current row of e, for a NoRewind component. It returns -1 if e has no
// row, or was not alive at the tick.
func (x *pastSet) noRewindRow(e Entity) int {
	if !x.p.Alive(e) {
		return -1
	}
	return x.set.row(e)
}

// presentRow returns the row in the sparse entry of e, even if the entry is stale.
func (x *pastSet) presentRow(e Entity) int {
	i := e.Index()
	if x.set == nil {
		if sparse := x.w.entities.sparse; int64(i) < int64(len(sparse)) {
			return int(sparse[i])
		}
	} else if p := x.set.sparse.Page(i); p != nil {
		return int(p.Rows[i&pageMask])
	}
	return math.MaxInt
}

// movedRow returns the row that e had at the tick, or -1. The caller has already tried the current
// row of e.
//
//go:noinline
func (x *pastSet) movedRow(e Entity) int {
	i, n := int64(e.Index()), x.then.N
	if x.set != nil && x.set.kind == Indexed {
		if i < int64(n) && e != Vacant && x.entity(int(i)) == e {
			return int(i)
		}
		return -1
	}
	if lo := x.rowsNow(); lo < x.notedFrom {
		if x.w.parallel { // Goroutines share oldRows, so they must not write to it.
			return x.search(e, lo)
		}
		x.notePastEnd(lo)
	}
	return x.notedRow(e)
}

// notedRow returns the row of e in oldRows, or -1 if it is missing or stale.
func (x *pastSet) notedRow(e Entity) int {
	if i := int64(e.Index()); i < int64(len(x.oldRows)) {
		if r := int(x.oldRows[i]); r < x.then.N && x.entity(r) == e {
			return r
		}
	}
	return -1
}

// notePastEnd adds the rows after the last current row to oldRows. The parameter lo is the current
// number of rows.
func (x *pastSet) notePastEnd(lo int) {
	for row := lo; row < min(x.notedFrom, x.then.N); row++ {
		if !x.old(pastDense).Has(row) {
			x.note(x.dense.Live[row], row)
		}
	}
	x.notedFrom = lo
}

// search returns the row that e had at the tick, or -1. Unlike notePastEnd, it does not write to
// oldRows.
func (x *pastSet) search(e Entity, lo int) int {
	for row := lo; row < min(x.notedFrom, x.then.N); row++ {
		if x.dense.Live[row] == e && !x.old(pastDense).Has(row) {
			return row
		}
	}
	return x.notedRow(e)
}

// rowsNow returns the current number of rows.
func (x *pastSet) rowsNow() int {
	if x.set == nil {
		return x.w.entities.rows.N
	}
	return x.set.rows.N
}

// A PastStorage reads a storage as it was at the tick of a [Past]. It is valid as long as the Past
// and has the same costs. [Storage.At] creates a PastStorage.
type PastStorage[T any] struct {
	pastSet
	s       *Storage[T]
	scratch []T
}

// pastOf implements [Storage.At].
func pastOf[T any](s *Storage[T], past *Past) *PastStorage[T] {
	for _, part := range past.parts {
		if x, ok := part.(*PastStorage[T]); ok && x.s == s {
			return x
		}
	}
	past.mustBeOf(s.w, s.name)
	x := &PastStorage[T]{s: s}
	x.pastSet = pastSet{pastReader: pastReader{p: past, w: s.w, then: track.NewAsOf(&s.rows, &s.dense.Log, &s.data.Log)}, dense: &s.dense, set: &s.set, noRewind: s.noRewind, notedFrom: math.MaxInt}
	x.follow()
	past.parts = append(past.parts, x)
	return x
}

// mustBeOf panics if p belongs to another world than w.
func (p *Past) mustBeOf(w *World, name string) {
	if p.w != w {
		panic("ecs: At of " + name + " with a past of another world; use Storage.In or Resource.In of that world")
	}
}

// Has reports whether e had the component at the tick. e may be any value.
func (x *PastStorage[T]) Has(e Entity) bool { return x.row(e) >= 0 }

// Get returns the component that e had at the tick. The result ok is false if e did not have the
// component.
//
// Slices, maps and pointers in the component are read-only, and valid until the next change of the
// world.
func (x *PastStorage[T]) Get(e Entity) (v T, ok bool) {
	row := x.row(e)
	if row < 0 {
		return v, false
	}
	if track.Lives(&x.s.data, x.old(pastData), row) { // Usually, the row is unchanged.
		return x.s.data.Live[row], true
	}
	return *track.RowAsOf(&x.s.data, x.old(pastData), row), true
}

// Len returns the number of entities that had the component at the tick.
func (x *PastStorage[T]) Len() (n int) {
	if x.noRewind {
		for range x.All() {
			n++
		}
		return n
	}
	x.refresh()
	return x.then.N - x.then.Extra
}

// All iterates over the entities that had the component at the tick, with their values, in the
// order of rows at that tick. The loop may change the world. The values share memory in the same
// way as those of Get.
func (x *PastStorage[T]) All() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		for row := 0; row < x.rows(); row++ {
			e := x.entity(row)
			if e == Vacant || x.noRewind && !x.p.Alive(e) {
				continue
			}
			if !yield(e, *track.RowAsOf(&x.s.data, x.old(pastData), row)) {
				return
			}
		}
	}
}

// rows returns the number of rows at the tick, including gaps.
func (x *PastStorage[T]) rows() int {
	if x.noRewind {
		x.p.mustFind()
		return x.s.rows.N
	}
	x.refresh()
	return x.then.N
}

// Beside returns a value for each of the entities: the component at the tick, or else the current
// component, or else zero. A loop can compare the present with the past:
//
//	for run := range drawn.Runs() {
//		then := was.Beside(run.Entities)
//		for i, now := range run.A {
//			draw(run.Entities[i], lerp(then[i], now, alpha))
//		}
//	}
//
// If entities have consecutive rows in the storage, like the entities of a run, the call copies
// only the rows written since the tick. The value for [Vacant] is undefined. The slice is
// read-only, and valid until the next call or the next change of the world.
func (x *PastStorage[T]) Beside(entities []Entity) []T {
	if len(entities) == 0 {
		return nil
	}
	x.rows()
	if row, n := x.runOf(entities); n == len(entities) {
		x.scratch = longer(x.scratch, n)
		return track.RowsAsOf(&x.s.data, x.old(pastData), row, x.scratch[:n])
	}
	x.scratch = longer(x.scratch, len(entities))
	return x.gather(entities)
}

// gather returns the values for entities whose rows are not all consecutive.
func (x *PastStorage[T]) gather(entities []Entity) []T {
	dst := x.scratch[:len(entities)]
	for i := 0; i < len(entities); {
		if row, n := x.runOf(entities[i:]); n > 1 {
			copy(dst[i:], track.RowsAsOf(&x.s.data, x.old(pastData), row, dst[i:i+n]))
			i += n
			continue
		}
		v, ok := x.Get(entities[i])
		if !ok {
			v, _ = x.s.Get(entities[i])
		}
		dst[i] = v
		i++
	}
	return dst
}

// runOf returns the current row of entities[0], and how many of the first entities have consecutive
// rows, both now and at the tick.
func (x *PastStorage[T]) runOf(entities []Entity) (row, n int) {
	if row = x.set.row(entities[0]); row < 0 {
		return 0, 0
	}
	if x.noRewind {
		for n < min(len(entities), x.s.rows.N-row) && x.dense.Live[row+n] == entities[n] {
			n++
		}
		return row, n
	}
	live := x.dense.Live[row:max(row, min(x.s.rows.N, x.then.N))]
	for n < min(len(entities), len(live)) {
		block := min(len(entities), len(live), n+64-(row+n)&63)
		written := x.old(pastDense).Any(row+n, row+block)
		for ; n < block; n++ {
			if live[n] != entities[n] || written && x.old(pastDense).Has(row+n) {
				return row, n
			}
		}
	}
	return row, n
}

// A pastResource reads a resource as it was at the tick of a Past.
type pastResource[T any] struct {
	pastReader
	r *Resource[T]
}

// At returns the value at the tick of the given Past, which must belong to the same world. Memory
// that the value points to is read-only: see [PastStorage.Get]. At returns the first value of a
// resource that was registered after the tick, and the current value of a NoRewind resource.
func (r *Resource[T]) At(past *Past) T {
	x := r.in(past)
	if r.noRewind {
		past.mustFind()
	} else {
		x.refresh()
	}
	return *track.RowAsOf(&r.data, &x.then.Columns[0], 0)
}

// in returns the reader of r in past.
func (r *Resource[T]) in(past *Past) *pastResource[T] {
	for _, part := range past.parts {
		if x, ok := part.(*pastResource[T]); ok && x.r == r {
			return x
		}
	}
	past.mustBeOf(r.w, r.name)
	x := &pastResource[T]{pastReader{p: past, w: r.w, then: track.NewAsOf(&r.rows, &r.data.Log, nil)}, r}
	past.parts = append(past.parts, x)
	return x
}
