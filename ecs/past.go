package ecs

import (
	"fmt"
	"iter"
	"math"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Past reads the world as it was at the end of a tick that its history holds, while the
// world stays as it is: who was alive, and with [Storage.At] and [Resource.At] what there was.
//
//	past, err := world.History().At(shot.Tick)
//	…
//	was := positions.At(past)
//	for _, e := range targets {
//		if p, ok := was.Get(e); ok && shot.Hits(p) { … }
//	}
//
// It shows what the world would hold after [History.Seek] to that tick, and looks it up in what
// the history saved: nothing is copied when a tick ends, and nothing is gone back over. A
// storage costs O(rows written since) at its first look-up, hardly anything where they lie side
// by side, and nothing if none was; then a look-up takes two to three times one in the present.
// Where entities are asked for, a storage that was cleared since costs O(rows it had), once.
//
// The world may change meanwhile, by any means: a Past follows, and the first look-up behind a
// change costs O(rows that it wrote); behind one that took memory back (a restore, a tick
// given up between others) as much as the first one. It is valid as long as its tick is held,
// wherever the world goes: after going back further it lies ahead, and is lost with what
// lies ahead at the next change. A look-up panics then; ask [Past.Valid] before.
//
// Components and resources that are NoRewind are in no tick: they have their present values,
// for entities that were alive. What was registered later was had by nobody then.
//
// A Past uses its memory again: a program makes one for each purpose and aims it by [Past.At].
// In [Query1.ParallelRuns] it can be read only where it need not catch up, else it panics: look
// it up once in each storage before, and read none that the query writes.
type Past struct {
	w     *World
	tick  uint64
	state uint64 // Of the frame that begins with the end of tick.
	turn  uint64 // The world's, when that frame was looked for last:
	frame uint64 // its id, or that of the one that ends with the end of tick,
	ahead bool   // as that lies ahead.
	alive pastSet
	parts []interface{ aim() } // One for each storage and resource that was asked for.
}

// At returns a reader of the world as it was at the end of tick, which may lie ahead after a
// rewind. It costs O(1). An error wraps [ErrNotHeld] and names the nearest ticks that are held.
func (h History) At(tick uint64) (*Past, error) {
	p := &Past{w: h.w}
	r := &h.w.entities
	p.alive = pastSet{pastReader: pastReader{p: p, w: h.w, then: track.NewThen(&r.rows, &r.dense.Log, nil)}, dense: &r.dense, set: nil}
	p.alive.follow()
	if err := p.At(tick); err != nil {
		return nil, err
	}
	return p, nil
}

// At aims p at the end of another tick, and with it what [Storage.At] returned for p. After an
// error, which is that of [History.At], p is as it was.
func (p *Past) At(tick uint64) error {
	state, ok := p.w.stateOf(tick)
	if !ok {
		return fmt.Errorf("ecs: the past at tick %d: %w; %s", tick, ErrNotHeld, p.w.History().held(tick))
	}
	p.tick, p.state, p.turn = tick, state, 0
	p.alive.aim()
	for _, part := range p.parts {
		part.aim()
	}
	return nil
}

// Tick returns which tick p is at.
func (p *Past) Tick() uint64 { return p.tick }

// Valid reports whether p can be read: whether its tick is held.
func (p *Past) Valid() bool { return p.turn == p.w.turn || p.find() }

// Alive reports whether e was alive. Any e may be asked: an entity that has the index of
// another one by now is judged by who had it then.
func (p *Past) Alive(e Entity) bool { return p.alive.row(e) >= 0 }

// Len returns the number of entities that were alive.
func (p *Past) Len() int {
	p.alive.keepUp()
	return p.alive.then.N
}

// Entities iterates over the entities that were alive, in the order in which
// [World.Entities] had them. The world may change meanwhile.
func (p *Past) Entities() iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		for row := 0; row < p.Len(); row++ {
			if !yield(p.alive.entity(row)) {
				return
			}
		}
	}
}

// stateOf returns the state of the boundary at the end of tick, and whether it is held.
func (w *World) stateOf(tick uint64) (state uint64, ok bool) {
	if k := w.forwardTo(tick); k >= 0 {
		return w.forward[k].state, true
	}
	if k := w.lastBoundary(tick); k >= 0 && w.frames[k].held() {
		return w.frames[k].state, true
	}
	return 0, false
}

// find finds the frame of p's boundary, and reports whether there is one.
func (p *Past) find() bool {
	w := p.w
	if k := w.forwardTo(p.tick); k >= 0 && w.forward[k].state == p.state {
		p.frame, p.ahead, p.turn = w.forward[k].ID, true, w.turn
		return true
	}
	if k := w.lastBoundary(p.tick); k >= 0 && w.frames[k].held() && w.frames[k].state == p.state {
		p.frame, p.ahead, p.turn = w.frames[k].ID, false, w.turn
		return true
	}
	return false
}

// mustFind panics if p can no longer be read.
func (p *Past) mustFind() {
	if !p.Valid() {
		panic(fmt.Sprintf("ecs: the past at tick %d is read, which the world no longer holds, or not as it was: %s; "+
			"aim it at a tick by Past.At, or ask Past.Valid before", p.tick, p.w.History().held(p.tick)))
	}
}

// A pastReader keeps up with a tracker.
type pastReader struct {
	p    *Past
	w    *World
	then track.Then
	turn uint64 // The world's, when it was caught up with; 0: it was not.
}

// aim follows p, which was aimed at another tick.
func (x *pastReader) aim() {
	x.then.Aim()
	x.turn = 0
}

// current reports whether the world is as it was when x caught up with it.
func (x *pastReader) current() bool { return x.turn == x.w.turn && x.then.Current() }

// keepUp makes x current.
func (x *pastReader) keepUp() {
	if !x.current() {
		x.catchUp()
	}
}

//go:noinline
func (x *pastReader) catchUp() {
	if x.w.parallel {
		panic("ecs: a Past is read in ParallelRuns behind what was written since its last look-up; look it up before the loop, and not where the query writes")
	}
	x.p.mustFind()
	x.then.CatchUp(x.p.frame, x.p.ahead)
	x.turn = x.w.turn
}

// A pastSet finds the rows that entities had.
//
// An entity whose row then was not written since, and that its sparse entry still names, is
// found like any other. Where those are that came to another row is noted: by who was in
// a row that was written, and once that is asked for, who was in a row past the present length.
type pastSet struct {
	pastReader
	dense  *track.Column[Entity]
	set    *set     // nil: the registry.
	exempt bool     // NoRewind: the present is all there is.
	low    int      // Rows from it on are noted.
	place  []uint32 // By index, the row noted. An entry may hold rubbish, as dense is asked back.
}

const (
	pastDense = iota // The columns of a pastSet's Then.
	pastData
)

// follow makes x note who was in rows that were written.
func (x *pastSet) follow() {
	if x.set != nil && x.set.kind == Indexed {
		return // The row is the index.
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
	if i >= len(x.place) {
		x.place = longer(x.place, max(i+1, x.w.entities.rows.Total))
	}
	x.place[i] = uint32(row)
}

// aim is pastReader.aim.
func (x *pastSet) aim() {
	x.pastReader.aim()
	x.low = math.MaxInt
}

// entity returns the entity at row, which there was.
func (x *pastSet) entity(row int) Entity { return *track.RowThen(x.dense, x.old(pastDense), row) }

// row returns the row that e had, or -1.
func (x *pastSet) row(e Entity) int {
	if debug {
		mustBeCurrent(e)
	}
	if x.exempt {
		return x.exemptRow(e)
	}
	if !x.current() { // keepUp, which Go does not inline.
		x.catchUp()
	}
	r := x.present(e)
	if r < x.then.N && !x.old(pastDense).Has(r) && x.dense.Live[r] == e {
		return r
	}
	return x.moved(e)
}

// exemptRow is row of a storage that is in no tick.
func (x *pastSet) exemptRow(e Entity) int {
	if !x.p.Alive(e) {
		return -1
	}
	return x.set.row(e)
}

// present returns what the sparse entry of e names.
func (x *pastSet) present(e Entity) int {
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

// moved is row for an entity that is not where it was.
//
//go:noinline
func (x *pastSet) moved(e Entity) int {
	i, n := int64(e.Index()), x.then.N
	if x.set != nil && x.set.kind == Indexed {
		if i < int64(n) && e != Vacant && x.entity(int(i)) == e {
			return int(i)
		}
		return -1
	}
	if lo := x.rowsNow(); lo < x.low {
		if x.w.parallel { // Goroutines note nothing.
			return x.search(e, lo)
		}
		x.noteFallen(lo)
	}
	return x.noted(e)
}

// noted is row for an entity whose row is noted.
func (x *pastSet) noted(e Entity) int {
	if i := int64(e.Index()); i < int64(len(x.place)) {
		if r := int(x.place[i]); r < x.then.N && x.entity(r) == e {
			return r
		}
	}
	return -1
}

// noteFallen notes who was in rows past the present length, lo, which hold what they did.
func (x *pastSet) noteFallen(lo int) {
	for row := lo; row < min(x.low, x.then.N); row++ {
		if !x.old(pastDense).Has(row) {
			x.note(x.dense.Live[row], row)
		}
	}
	x.low = lo
}

// search is row for an entity that noteFallen might note.
func (x *pastSet) search(e Entity, lo int) int {
	for row := lo; row < min(x.low, x.then.N); row++ {
		if x.dense.Live[row] == e && !x.old(pastDense).Has(row) {
			return row
		}
	}
	return x.noted(e)
}

// rowsNow returns how many rows there are now.
func (x *pastSet) rowsNow() int {
	if x.set == nil {
		return x.w.entities.rows.N
	}
	return x.set.rows.N
}

// A PastStorage reads a storage as it was at the tick of a [Past], which says how long it is
// valid and what it costs. [Storage.At] makes one.
type PastStorage[T any] struct {
	pastSet
	s       *Storage[T]
	scratch []T
}

// pastOf is [Storage.At].
func pastOf[T any](s *Storage[T], past *Past) *PastStorage[T] {
	for _, part := range past.parts {
		if x, ok := part.(*PastStorage[T]); ok && x.s == s {
			return x
		}
	}
	past.mustBeOf(s.w, s.name)
	x := &PastStorage[T]{s: s}
	x.pastSet = pastSet{pastReader: pastReader{p: past, w: s.w, then: track.NewThen(&s.rows, &s.dense.Log, &s.data.Log)}, dense: &s.dense, set: &s.set, exempt: s.noRewind, low: math.MaxInt}
	x.follow()
	past.parts = append(past.parts, x)
	return x
}

// mustBeOf panics if p is not of world w.
func (p *Past) mustBeOf(w *World, name string) {
	if p.w != w {
		panic("ecs: At of " + name + " with a past of another world; use Storage.In or Resource.In of that world")
	}
}

// Has reports whether e had the component. Any e may be asked.
func (x *PastStorage[T]) Has(e Entity) bool { return x.row(e) >= 0 }

// Get returns the component that e had, and whether it had one.
//
// Slices, maps and pointers in it are those of the history, or of the world: to be read only,
// and until the world's next change.
func (x *PastStorage[T]) Get(e Entity) (v T, ok bool) {
	row := x.row(e)
	if row < 0 {
		return v, false
	}
	if track.Lives(&x.s.data, x.old(pastData), row) { // As most do.
		return x.s.data.Live[row], true
	}
	return *track.RowThen(&x.s.data, x.old(pastData), row), true
}

// Len returns the number of entities that had the component.
func (x *PastStorage[T]) Len() (n int) {
	if x.exempt {
		for range x.All() {
			n++
		}
		return n
	}
	x.keepUp()
	return x.then.N - x.then.Extra
}

// All iterates over the entities that had the component and what it was, in the dense order of
// then, for an [Ordered] storage too. The world may change meanwhile. Components are copies as
// those of Get are.
func (x *PastStorage[T]) All() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		for row := 0; row < x.rows(); row++ {
			e := x.entity(row)
			if e == Vacant || x.exempt && !x.p.Alive(e) {
				continue
			}
			if !yield(e, *track.RowThen(&x.s.data, x.old(pastData), row)) {
				return
			}
		}
	}
}

// rows returns how many rows there were, gaps included.
func (x *PastStorage[T]) rows() int {
	if x.exempt {
		x.p.mustFind()
		return x.s.rows.N
	}
	x.keepUp()
	return x.then.N
}

// Beside returns a value for each of entities: the component of then, or the one of now if it
// had none then, or zero. It is for a loop over the present that wants the past beside it:
//
//	for run := range drawn.Runs() {
//		then := was.Beside(run.Entities)
//		for i, now := range run.A {
//			draw(run.Entities[i], lerp(then[i], now, alpha))
//		}
//	}
//
// Where entities lie side by side in the storage, as those of a run do, it costs a copy of what
// was written since, and nothing if nothing was. What stands beside [Vacant] has no meaning.
// The slice is valid until the next call and the next change of the world, and must not be
// written.
func (x *PastStorage[T]) Beside(entities []Entity) []T {
	if len(entities) == 0 {
		return nil
	}
	x.rows()
	if row, n := x.stretch(entities); n == len(entities) {
		x.scratch = longer(x.scratch, n)
		return track.RowsThen(&x.s.data, x.old(pastData), row, x.scratch[:n])
	}
	x.scratch = longer(x.scratch, len(entities))
	return x.gather(entities)
}

// gather is Beside of entities that lie here and there.
func (x *PastStorage[T]) gather(entities []Entity) []T {
	dst := x.scratch[:len(entities)]
	for i := 0; i < len(entities); {
		if row, n := x.stretch(entities[i:]); n > 1 {
			copy(dst[i:], track.RowsThen(&x.s.data, x.old(pastData), row, dst[i:i+n]))
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

// stretch returns the present row of the first of entities, and how many of them lie side by
// side from there on, and did then.
func (x *PastStorage[T]) stretch(entities []Entity) (row, n int) {
	if row = x.set.row(entities[0]); row < 0 {
		return 0, 0
	}
	if x.exempt {
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

// A pastResource reads a resource as it was.
type pastResource[T any] struct {
	pastReader
	r *Resource[T]
}

// At returns the value at the tick of past, of the same world, and what it points to is to be
// read only: see [PastStorage.Get]. A resource that was registered later had the value that it
// was registered with; one that is NoRewind has its present one.
func (r *Resource[T]) At(past *Past) T {
	x := r.in(past)
	if r.noRewind {
		past.mustFind()
	} else {
		x.keepUp()
	}
	return *track.RowThen(&r.data, &x.then.Columns[0], 0)
}

// in returns the reader of r in past.
func (r *Resource[T]) in(past *Past) *pastResource[T] {
	for _, part := range past.parts {
		if x, ok := part.(*pastResource[T]); ok && x.r == r {
			return x
		}
	}
	past.mustBeOf(r.w, r.name)
	x := &pastResource[T]{pastReader{p: past, w: r.w, then: track.NewThen(&r.rows, &r.data.Log, nil)}, r}
	past.parts = append(past.parts, x)
	return x
}
