package ecs

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Delta lists the entities whose component was added, changed or removed between an earlier
// boundary and now. [Storage.Since] creates a Delta. The methods Since and SinceCommit of a Delta
// reuse its memory. They allocate nothing once the memory is large enough.
//
// A row that only moved is not a change. Neither is a value that was changed and then changed back.
// Two entities that use the same index one after the other are different entities.
//
// Two values are the same if their canonical bytes are equal: NaN equals itself, -0 differs from 0,
// and padding does not count. NoPersist values that cannot be encoded are compared by
// [reflect.DeepEqual].
//
// A Delta has copies of the values, so the program may change the world while it reads the Delta. A
// pointer in a copied value still points to the memory of the world.
type Delta[T any] struct {
	s *Storage[T]
	comparison
	// The values that were written since the boundary, as they were before.
	values track.Spans
	// The value that each row in comparison.rows had at the boundary.
	old []T

	added, changed, removed edits[T]
}

// An Edit is a value before and after a change.
type Edit[T any] struct{ Old, New T }

// edits is a list of entities, each with its value before and after a change.
type edits[T any] struct {
	entities []Entity
	values   []Edit[T]
}

func (l *edits[T]) add(e Entity, v Edit[T]) {
	l.entities, l.values = append(l.entities, e), append(l.values, v)
}

// reset empties l. If the values contain pointers, reset clears them for the garbage collector.
func (l *edits[T]) reset(pointers bool) {
	if pointers {
		clear(l.values)
	}
	l.entities, l.values = l.entities[:0], l.values[:0]
}

// room grows l so that n more edits fit. It at least doubles the capacity, as lists can get long.
func (l *edits[T]) room(n int) {
	if k := len(l.entities); cap(l.entities)-k < n || cap(l.values)-k < n {
		n = max(n, k)
		l.entities, l.values = slices.Grow(l.entities, n), slices.Grow(l.values, n)
	}
}

// Since returns the changes since the end of the given tick, on the current branch of history.
// Writes after the last commit are included.
//
// The cost is O(rows written since that tick). If many scattered rows were written, the cost also
// includes one bit for each row of the storage. An error wraps [ErrNotHeld] if the history does not
// hold the tick, or if the component is NoRewind. The history holds the ticks that
// [Options.History] retains.
func (s *Storage[T]) Since(tick uint64) (*Delta[T], error) {
	d := &Delta[T]{s: s}
	return d, d.Since(tick)
}

// At returns s as of the tick of the given Past, which must be of the same world. Later calls with
// the same Past return the same PastStorage, so the program need not keep it.
func (s *Storage[T]) At(past *Past) *PastStorage[T] { return pastOf(s, past) }

// SinceCommit returns the changes since the last commit. See [Storage.Since].
func (s *Storage[T]) SinceCommit() (*Delta[T], error) {
	d := &Delta[T]{s: s}
	return d, d.SinceCommit()
}

// Added returns a filter that keeps the entities that have the component now and did not have it at
// the last commit.
//
// From now on, the world retains the values at its last commit, also without a history. See
// [Storage.OnChange] for the consequences, and for the cases in which Added panics.
func (s *Storage[T]) Added() *ChangeFilter {
	return newChangeFilter(s, "Added", func(d *Delta[T]) []Entity { return d.added.entities })
}

// Changed returns a filter that keeps the entities that had the component at the last commit and
// have another value of it now. See [Delta] for equality of values, and [Storage.Added] for the
// requirements.
func (s *Storage[T]) Changed() *ChangeFilter {
	return newChangeFilter(s, "Changed", func(d *Delta[T]) []Entity { return d.changed.entities })
}

// Removed returns a filter that keeps the entities that had the component at the last commit and
// do not have it now. See [Storage.Added] for the requirements.
func (s *Storage[T]) Removed() *ChangeFilter {
	return newChangeFilter(s, "Removed", func(d *Delta[T]) []Entity { return d.removed.entities })
}

// OnAdd adds a hook that runs when an entity gets the component. It runs at the end of Set, with
// the new value.
//
// # The order of hooks
//
// The hooks of an event run in the order in which they were added. A hook that is added during an
// event runs from the next event on. During the lifetime of an entity, hooks run in this order:
//
//	World.OnCreate    after the entity was created
//	RequiredBy        after the entity got a component; adds the required components
//	OnAdd             after the entity got a component
//	OnSet             after a component of the entity was set again
//	World.OnDestroy   before the entity is destroyed
//	OnRemove          before the entity loses a component
//
// OnAdd hooks of a bundle run in the order of its types. OnRemove hooks of a destroyed entity run
// in the order in which the components were registered. A [Relation] destroys other entities before
// World.OnDestroy runs. Commands and batches call the hooks at each change that they make. OnChange
// hooks run in Commit.
//
// # What hooks may do
//
// A hook may change anything, including this storage:
//
//   - OnAdd and OnSet may remove the component again or destroy the entity. The remaining hooks do
//     not run in this case, and Set still returns true.
//   - During OnRemove the entity is alive and has all its components. Writing this component has no
//     effect. Removing the component or destroying the entity again does nothing.
//   - If OnRemove adds a component to an entity whose destruction has begun, the component is
//     removed again, and its OnRemove hooks run.
//   - If a hook adds a reference to an entity whose destruction has begun, the policy of the
//     [Relation] applies after the last hook.
//   - In a loop over a query, a hook must follow the rules of the loop.
//
// If a hook panics, the remaining hooks do not run, and the world is consistent. After a panic in
// OnAdd the entity has the new component. After a panic in OnRemove the entity still has the
// component. If an OnAdd hook calls Set of the same storage, the hooks run again inside this call.
// The depth of such calls is not limited.
//
// # What calls no hooks
//
// Restore, Rewind, Seek and Load call no hooks: see [World.OnRestore]. A rollback may remove
// entities that have a NoRewind component. It calls no OnRemove hooks for these components either.
// A restore keeps all hooks. A clone has no hooks.
func (s *Storage[T]) OnAdd(f func(e Entity, v T)) {
	h := s.ensureHooks()
	h.add = append(h.add, func(e Entity, row int) { f(e, s.data.Live[row]) })
}

// OnRemove adds a hook that runs before an entity loses the component, in Remove, Destroy and
// Clear. See [Storage.OnAdd] for what f may do.
//
// Clear of a storage with such a hook removes its rows one by one, from the last row to the first.
// World.Clear destroys the entities in the same way. Components and entities that hooks add during
// Clear are not removed.
func (s *Storage[T]) OnRemove(f func(e Entity, v T)) {
	h := s.ensureHooks()
	h.remove = append(h.remove, func(e Entity, row int) { f(e, s.data.Live[row]) })
}

// OnSet adds a hook that runs when an existing component of an entity is set again, even to an
// equal value. It runs at the end of Set, of a batch, a bundle or a command, once for each entity.
// old is the previous value, for reading only. See [Storage.OnAdd] for what f may do.
//
// Writes through pointers do not call the hook; see [Storage.OnChange]. If an OnSet hook calls Set
// of the same storage, the hooks run again inside this call.
func (s *Storage[T]) OnSet(f func(e Entity, old, now T)) {
	s.ensureHooks()
	s.onSet = append(s.onSet, f)
}

// RequiredBy makes s a required component of another storage. An entity that gets a component of
// the other storage also gets a copy of v in s. An entity that is already in s keeps its component:
//
//	velocities.RequiredBy(positions, Velocity{})
//	positions.Set(e, Position{1, 2}) // Now e also has a Velocity.
//
// The copy is added before the OnAdd hooks of the other storage run. Adding the copy runs the hooks
// of s. The program may remove the required component later.
//
// RequiredBy is a hook: see [Storage.OnAdd] for operations that call no hooks. In a bundle, name a
// required component first, so that the bundle's value is used instead of v. RequiredBy panics if
// the argument other is s, a resource, or a storage of another world.
func (s *Storage[T]) RequiredBy(other AnyStorage, v T) {
	o := s.w.mustBeComponent("RequiredBy", other)
	if o == &s.set {
		panic("ecs: RequiredBy of " + s.name + " with itself; give it the storage of another component")
	}
	v = s.adapter.copy(v)
	h := o.ensureHooks()
	h.require = append(h.require, func(e Entity) {
		if s.row(e) < 0 {
			s.Set(e, s.adapter.copy(v))
		}
	})
}

// OnChange adds a hook that runs in Commit, once for each entity whose component has another value
// than at the last commit. It does not matter how the value was written. Entities that gained or
// lost the component are left out. See [Delta] for equality of values.
//
// Hooks run in the order in which they were added to the world. A hook may change anything, but it
// must not call Commit. Its writes belong to the tick that Commit ends. Later hooks see these
// writes. If a hook panics, the tick is not committed.
//
// From now on, the world keeps the values at its last commit, and can be rolled back to it.
// OnChange panics:
//
//   - if the component is NoRewind
//   - if the world has no history and holds a checkpoint
//   - if the world has a recorder and there are writes since the last commit
func (s *Storage[T]) OnChange(f func(e Entity, before, now T)) {
	s.w.mustKeepTick(&s.rows, "OnChange", s.name)
	d := &Delta[T]{s: s}
	h := &s.w.hooks
	h.change = append(h.change, func() {
		if err := d.SinceCommit(); err != nil {
			panic(err) // Unreachable: the world keeps the tick.
		}
		for e, v := range d.Changed() {
			f(e, v.Old, v.New)
		}
	})
}

// Since sets d to the changes since the end of the given tick. After an error d is empty.
func (d *Delta[T]) Since(tick uint64) error { return d.since(d.s.w.lastBoundary(tick), tick) }

// SinceCommit sets d to the changes since the last commit. After an error d is empty.
func (d *Delta[T]) SinceCommit() error { return d.since(d.s.w.newestBoundary(), d.s.w.tick) }

// Added iterates over the entities that have the component now and did not have it at the boundary,
// in the order of their rows.
func (d *Delta[T]) Added() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		for i, e := range d.added.entities {
			if !yield(e, d.added.values[i].New) {
				return
			}
		}
	}
}

// Changed iterates over the entities that had the component at the boundary and have another value
// of it now, in the order of their rows.
func (d *Delta[T]) Changed() iter.Seq2[Entity, Edit[T]] {
	return func(yield func(Entity, Edit[T]) bool) {
		for i, e := range d.changed.entities {
			if !yield(e, d.changed.values[i]) {
				return
			}
		}
	}
}

// Removed iterates over the entities that had the component at the boundary and do not have it now,
// alive or not. It yields the old values, in the order of rows at the boundary.
func (d *Delta[T]) Removed() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		for i, e := range d.removed.entities {
			if !yield(e, d.removed.values[i].Old) {
				return
			}
		}
	}
}

// Empty reports whether there are no differences.
func (d *Delta[T]) Empty() bool {
	return len(d.added.entities)+len(d.changed.entities)+len(d.removed.entities) == 0
}

// since sets d to the differences between frame k and now. Frame k starts at the end of the given
// tick.
func (d *Delta[T]) since(k int, tick uint64) error {
	defer d.s.w.clock.Lock()()
	pointers := d.s.pointers
	d.added.reset(pointers)
	d.changed.reset(pointers)
	d.removed.reset(pointers)
	frame, err := d.s.w.boundary(k, tick, &d.s.rows, d.s.name)
	if err != nil {
		return err
	}
	if k, before, changed := d.s.rows.Since(frame); changed {
		d.compare(k, before.N)
	}
	return nil
}

// compare fills d with the differences between the start of frame k and now. The parameter before
// is the number of rows at that start.
func (d *Delta[T]) compare(k, before int) {
	s := d.s
	d.load(&s.dense, k, before, s.rows.N, s.row)
	d.values.Read(&s.data.Log, k)
	d.loadOldValues(before)
	for _, p := range d.gone {
		d.removed.add(d.then[p], Edit[T]{Old: d.old[p]})
	}
	d.walk(min(before, s.rows.N))
	d.values.Reset()
	if s.pointers {
		clear(d.old)
	}
}

// loadOldValues sets d.old to the values that the rows in d.rows had at the boundary.
func (d *Delta[T]) loadOldValues(before int) {
	d.old = slices.Grow(d.old[:0], len(d.rows))[:len(d.rows)]
	k := 0
	for p, row := range d.rows {
		if d.then[p] == 0 {
			continue // The row did not exist at the boundary, so its value is unused.
		}
		if k = d.values.Seek(k, row); k < d.values.Len() && d.values.At(k).Row <= row {
			d.old[p] = d.s.data.Old(d.values.At(k))[row-d.values.At(k).Row]
		} else {
			d.old[p] = d.s.data.Live[row]
		}
	}
}

// walk finds the changed entities in rows below limit, which exist both at the boundary and now.
// For rows with the same entity, it compares the written values. For the other rows, which are in
// d.rows, it calls compareEntity.
func (d *Delta[T]) walk(limit int) {
	p, next := 0, d.at(0)
	plain := plainRows[T](d.s.adapter.codec)
	for i := 0; i < d.values.Len(); i++ {
		span := d.values.At(i)
		if plain && span.N == 1 {
			if k := d.compareSingles(i, min(next, limit)); k > i {
				i = k - 1
				continue
			}
		}
		lo, hi := int(span.Row), min(int(span.Row+span.N), limit)
		if lo >= hi {
			break
		}
		old := d.s.data.Old(span)
		for next < hi {
			if lo < next {
				d.compareRows(lo, old[:next-lo], plain)
				lo, old = next, old[next-lo:]
			}
			if lo == next {
				lo, old = lo+1, old[1:]
			}
			d.compareEntity(p, plain)
			p++
			next = d.at(p)
		}
		d.compareRows(lo, old[:hi-lo], plain)
	}
	for ; p < len(d.rows); p++ {
		d.compareEntity(p, plain)
	}
}

// compareSingles does the same as compareRows for spans of one row, but faster. It starts with span
// i. It stops after 256 spans, at a longer span, or at a row that is not below limit. It returns
// the position of the first span that it has not compared.
func (d *Delta[T]) compareSingles(i, limit int) int {
	s, l := d.s, &d.changed
	spans, order := d.values.Spans()
	end := min(i+256, len(spans))
	l.room(end - i)
	entities, now := s.dense.Live[:limit], s.data.Live[:limit]
	k := len(l.entities)
	toEntities, toValues := l.entities[k:cap(l.entities)], l.values[k:cap(l.values)]
	k = 0
	for ; i < end; i++ {
		span := &spans[i]
		if i < len(order) {
			span = &spans[uint32(order[i])]
		}
		row := int(span.Row)
		if span.N != 1 || row >= limit {
			break
		}
		old := s.data.OldRow(span)
		if sameMemory(old, &now[row]) {
			continue
		}
		if e := entities[row]; e != Vacant {
			toEntities[k] = e
			to := &toValues[k]
			to.Old, to.New = *old, now[row]
			k++
		}
	}
	k += len(l.entities)
	l.entities, l.values = l.entities[:k], l.values[:k]
	return i
}

// compareRows compares the slice old with the current values of len(old) rows. The parameter row is
// the first of them. Each of these rows has the same entity as at the boundary. The parameter plain
// says that values can be compared as bytes in memory: see plainRows.
func (d *Delta[T]) compareRows(row int, old []T, plain bool) {
	s, l, k := d.s, &d.changed, len(d.changed.entities)
	l.room(len(old))
	entities, now := s.dense.Live[row:row+len(old)], s.data.Live[row:row+len(old)]
	toEntities, toValues := l.entities[k:k+len(old)], l.values[k:k+len(old)]
	k = 0
	for i := range old {
		if plain {
			if sameMemory(&old[i], &now[i]) {
				continue
			}
		} else if sameRow(&s.w.equal, s.adapter.codec, old[i:i+1], now[i:i+1]) {
			continue
		}
		if e := entities[i]; e != Vacant {
			toEntities[k], toValues[k] = e, Edit[T]{old[i], now[i]}
			k++
		}
	}
	k += len(l.entities)
	l.entities, l.values = l.entities[:k], l.values[:k]
}

// compareEntity compares the entity at row d.rows[p] with its state at the boundary. It adds a new
// entity to d.added, and a changed entity to d.changed.
func (d *Delta[T]) compareEntity(p int, plain bool) {
	s, row := d.s, int(d.rows[p])
	if row >= s.rows.N || s.dense.Live[row] == Vacant {
		return
	}
	e, now := s.dense.Live[row], s.data.Live[row:row+1]
	switch p := int(d.from[p]) - 1; {
	case p < 0:
		d.added.add(e, Edit[T]{New: now[0]})
	case s.tag:
	case plain && sameMemory(&d.old[p], &now[0]):
	case !plain && sameRow(&s.w.equal, s.adapter.codec, d.old[p:p+1], now):
	default:
		d.changed.add(e, Edit[T]{d.old[p], now[0]})
	}
}

// Since returns the value at the end of the given tick, the current value, and whether they differ.
// Its errors are those of [Storage.Since].
func (r *Resource[T]) Since(tick uint64) (e Edit[T], changed bool, err error) {
	return r.since(r.w.lastBoundary(tick), tick)
}

// SinceCommit returns the value at the last commit and now, and whether they differ. See
// [Resource.Since].
func (r *Resource[T]) SinceCommit() (e Edit[T], changed bool, err error) {
	return r.since(r.w.newestBoundary(), r.w.tick)
}

func (r *Resource[T]) since(k int, tick uint64) (e Edit[T], changed bool, err error) {
	frame, err := r.w.boundary(k, tick, &r.rows, r.name)
	if err != nil {
		return e, false, err
	}
	old := r.data.Live
	k, _, _ = r.rows.Since(frame)
	if r.spans.Read(&r.data.Log, k); r.spans.Len() > 0 {
		old = r.data.Old(r.spans.At(0))
	}
	changed = !sameRow(&r.w.equal, r.adapter.codec, old[:1], r.data.Live)
	e = Edit[T]{old[0], r.data.Live[0]}
	r.spans.Reset()
	return e, changed, nil
}

// An EntityDelta lists the entities that were created and destroyed between an earlier boundary
// and now. It leaves out entities that were both created and destroyed in between. [World.Since]
// creates an EntityDelta. It is used like a [Delta].
type EntityDelta struct {
	w *World
	comparison
	created, destroyed []Entity
}

// Since returns the entities created and destroyed since the end of the given tick. Cost and errors
// are those of [Storage.Since].
func (w *World) Since(tick uint64) (*EntityDelta, error) {
	d := &EntityDelta{w: w}
	return d, d.Since(tick)
}

// SinceCommit returns the entities created and destroyed since the last commit.
func (w *World) SinceCommit() (*EntityDelta, error) {
	d := &EntityDelta{w: w}
	return d, d.SinceCommit()
}

// Since sets d to the changes since the end of the given tick. After an error d is empty.
func (d *EntityDelta) Since(tick uint64) error { return d.since(d.w.lastBoundary(tick), tick) }

// SinceCommit sets d to the changes since the last commit. After an error d is empty.
func (d *EntityDelta) SinceCommit() error { return d.since(d.w.newestBoundary(), d.w.tick) }

// Created returns the entities that are alive now and were not alive at the boundary, in the order
// of [World.Entities]. The slice is valid until the next use of d.
func (d *EntityDelta) Created() []Entity { return d.created }

// Destroyed returns the entities that were alive at the boundary and are not alive now, in the
// order that World.Entities had at the boundary. The slice is valid until the next use of d.
func (d *EntityDelta) Destroyed() []Entity { return d.destroyed }

func (d *EntityDelta) since(k int, tick uint64) error {
	d.created, d.destroyed = d.created[:0], d.destroyed[:0]
	r := &d.w.entities
	frame, err := d.w.boundary(k, tick, &r.rows, "the registry")
	if err != nil {
		return err
	}
	k, before, changed := r.rows.Since(frame)
	if !changed {
		return nil
	}
	d.load(&r.dense, k, before.N, r.rows.N, r.row)
	for _, p := range d.gone {
		d.destroyed = append(d.destroyed, d.then[p])
	}
	for p, row := range d.rows {
		if int(row) < r.rows.N && d.from[p] == 0 {
			d.created = append(d.created, r.dense.Live[row])
		}
	}
	return nil
}

// boundary returns the id of frame k, which begins at the end of the given tick. It returns an
// error if the history does not hold the tick, or if t is NoRewind. The parameter name is the
// component, for the error.
func (w *World) boundary(k int, tick uint64, t *track.Tracker, name string) (frame uint64, err error) {
	switch {
	case t.Exempt:
		return 0, fmt.Errorf("%w: changes of %s since tick %d; it is NoRewind, so the history has no values of it", ErrNotHeld, name, tick)
	case k < 0 && w.options.HistoryDense > 0:
		return 0, fmt.Errorf("%w: changes of %s since tick %d; %s", ErrNotHeld, name, tick, w.History().nearestRetained(tick))
	case k < 0 || !w.frames[k].held():
		return 0, fmt.Errorf("%w: changes of %s since tick %d; %s", ErrNotHeld, name, tick, w.ticksHeld())
	}
	return w.frames[k].ID, nil
}

// ticksHeld returns the text that lists the retained ticks for an error.
func (w *World) ticksHeld() string {
	var text strings.Builder
	first, last := uint64(0), uint64(0)
	for i := range w.frames {
		f := &w.frames[i]
		switch {
		case !f.tick || !f.held():
			continue
		case text.Len() == 0:
			fmt.Fprint(&text, "retained ticks: ", f.at)
		case f.at != last+1:
			text.WriteString(upTo(first, last))
			fmt.Fprint(&text, ", ", f.at)
		default:
			last++
			continue
		}
		first, last = f.at, f.at
	}
	if text.Len() == 0 {
		return noHistory
	}
	return text.String() + upTo(first, last)
}

func upTo(first, last uint64) string {
	if first == last {
		return ""
	}
	return fmt.Sprint(" to ", last)
}
