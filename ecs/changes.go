package ecs

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// A Delta is what differs in a storage between an earlier boundary and now, by
// entity: a row that merely moved differs in nothing, and neither does a value
// that was written and is the same again. An entity that was destroyed is another
// one than that which has its index now.
//
// Values are the same if their canonical bytes are: NaN is itself, -0 is not 0,
// padding does not count. Values of NoPersist components that cannot be encoded
// are compared by [reflect.DeepEqual].
//
// A Delta holds what it found: the world may be changed while it is read. Its
// values are copies; what they point to, they share with the world.
//
// [Storage.Since] makes one; its own Since and SinceCommit use its memory again,
// and allocate nothing once that is large enough.
type Delta[T any] struct {
	s *Storage[T]
	comparison
	values track.Spans // The values that were written, as they were.
	old    []T         // The values beside then.

	added, changed, removed edits[T]
}

// An Edit is a value before and after.
type Edit[T any] struct{ Old, New T }

// edits are entities with their values before and after.
type edits[T any] struct {
	entities []Entity
	values   []Edit[T]
}

func (l *edits[T]) add(e Entity, v Edit[T]) {
	l.entities, l.values = append(l.entities, e), append(l.values, v)
}

// reset empties l. What it held is given up to the garbage collector, if that would look.
func (l *edits[T]) reset(pointers bool) {
	if pointers {
		clear(l.values)
	}
	l.entities, l.values = l.entities[:0], l.values[:0]
}

// room makes room for n more, and for as many as there are: lists of rows become long.
func (l *edits[T]) room(n int) {
	if k := len(l.entities); cap(l.entities)-k < n || cap(l.values)-k < n {
		n = max(n, k)
		l.entities, l.values = slices.Grow(l.entities, n), slices.Grow(l.values, n)
	}
}

// Since returns what changed since the end of tick, on the branch of history that
// led here. What was written after the last commit counts.
//
// It costs O(rows written since), whatever the storage holds; if many were
// written here and there, also a bit for every row. An error wraps [ErrNotHeld]:
// the history does not hold the tick, or the component is NoRewind. The ticks
// held are those of [Options.History] and the newest boundary of a world that
// keeps one for [Storage.OnChange] or for a [ChangeFilter].
func (s *Storage[T]) Since(tick uint64) (*Delta[T], error) {
	d := &Delta[T]{s: s}
	return d, d.Since(tick)
}

// At returns s as it was at the tick of past, of the same world. The first call for a past makes
// it, others return the same, so a program may keep it or not.
func (s *Storage[T]) At(past *Past) *PastStorage[T] { return pastOf(s, past) }

// SinceCommit returns what changed since the last commit. See [Storage.Since].
func (s *Storage[T]) SinceCommit() (*Delta[T], error) {
	d := &Delta[T]{s: s}
	return d, d.SinceCommit()
}

// Added returns a filter that keeps the entities that have the component and did
// not have it at the last commit.
//
// A world without a history keeps the values at its last commit from now on; see
// [Storage.OnChange] for what follows from that, and for when it panics.
func (s *Storage[T]) Added() *ChangeFilter {
	return newChangeFilter(s, "Added", func(d *Delta[T]) []Entity { return d.added.entities })
}

// Changed returns a filter that keeps the entities that had the component at the
// last commit and have another value of it now. [Delta] says which values are the
// same, [Storage.Added] what is asked of the world.
func (s *Storage[T]) Changed() *ChangeFilter {
	return newChangeFilter(s, "Changed", func(d *Delta[T]) []Entity { return d.changed.entities })
}

// Removed returns a filter that keeps the entities that had the component at the
// last commit and do not have it now. [Storage.Added] says what is asked of the world.
func (s *Storage[T]) Removed() *ChangeFilter {
	return newChangeFilter(s, "Removed", func(d *Delta[T]) []Entity { return d.removed.entities })
}

// OnAdd makes s call f when an entity gets the component: at the end of Set, with
// the value set.
//
// # The order of hooks
//
// The hooks of an event are called in the order in which they were added; one
// that is added meanwhile is called from the next event on. Of an entity with
// components that comes to be and ends, they are told in this order:
//
//	World.OnCreate    it was created
//	RequiredBy        it got a component, and gets those that go with it
//	OnAdd             it got a component, in the order of the calls; of a bundle that of its types
//	OnSet             it was given a component that it had
//	World.OnDestroy   it is about to be destroyed, behind those that a [Relation] destroys with it
//	OnRemove          it is about to lose each component, in the order of registration
//
// Commands and batches tell at each change that they make. OnChange comes in Commit.
//
// # What hooks may do
//
// A hook may change anything, this storage included:
//
//   - OnAdd and OnSet may remove the component again or destroy the entity. The hooks
//     that follow are not called then; Set reports true all the same.
//   - OnRemove finds the entity alive, with all its components, this one included.
//     It may write this one, which is in vain; removing it again, or destroying
//     the entity that is being destroyed, does nothing.
//   - A component that OnRemove gives to an entity being destroyed is taken away
//     again, and its own OnRemove hooks are called.
//   - A component that refers to the entity being destroyed is treated as the policy of
//     its [Relation] says, after the last hook.
//   - What a hook does in a loop over a query is subject to the rules of the loop.
//
// If a hook panics, the hooks behind it are not called; the component was added,
// or is still there, and the world is whole. Set within OnAdd of the same storage
// calls the hooks within one another, without a limit.
//
// # What calls no hooks
//
// Restore, Rewind, Seek and Load do not: see [World.OnRestore]. Neither do rows of
// a NoRewind component that go because their entities were undone. Hooks are not
// part of the world's state: they stay when it is put back, and a clone has none.
func (s *Storage[T]) OnAdd(f func(e Entity, v T)) {
	h := s.hooked()
	h.add = append(h.add, func(e Entity, row int) { f(e, s.data.Live[row]) })
}

// OnRemove makes s call f before an entity loses the component: in Remove,
// Destroy and Clear. See [Storage.OnAdd] for what f may do.
//
// Clear of a storage with such a hook removes the components it found one by one,
// from the last row to the first; World.Clear destroys the entities so. What
// hooks add meanwhile stays.
func (s *Storage[T]) OnRemove(f func(e Entity, v T)) {
	h := s.hooked()
	h.remove = append(h.remove, func(e Entity, row int) { f(e, s.data.Live[row]) })
}

// OnSet makes s call f when an entity that has the component is given another: at the end
// of Set, of a batch, a bundle or a command, once for each, whether or not the values
// differ. old is what it had, to be read only. What writes through pointers is not told:
// that is [Storage.OnChange]. See [Storage.OnAdd] for what f may do; Set within OnSet of the
// same storage calls the hooks within one another.
func (s *Storage[T]) OnSet(f func(e Entity, old, now T)) {
	s.hooked()
	s.onSet = append(s.onSet, f)
}

// RequiredBy makes whoever gets a component of other get one of s too, with a copy of v,
// unless it has one: at the end of Set, of a batch, a bundle, a command or a copy, before
// the OnAdd hooks of other are called. The default goes through the hooks of s, and may
// require others in turn.
//
//	velocities.RequiredBy(positions, Velocity{})
//	positions.Set(e, Position{1, 2}) // And e has a Velocity.
//
// It says what comes along, not what stays: to remove the component later is as ever. It
// is a hook: see [Storage.OnAdd] for what calls none.
// A bundle that has both gives them in its order, so name what is required first, and
// OnAdd is told of the bundle's value rather than of v. It panics if other is s, a resource
// or in another world.
func (s *Storage[T]) RequiredBy(other AnyStorage, v T) {
	o := s.w.mustBeComponent("RequiredBy", other)
	if o == &s.set {
		panic("ecs: RequiredBy of " + s.name + " with itself; give it the storage of another component")
	}
	v = s.face.copy(v)
	h := o.hooked()
	h.require = append(h.require, func(e Entity) {
		if s.row(e) < 0 {
			s.Set(e, s.face.copy(v))
		}
	})
}

// OnChange makes s call f in Commit, once for every entity that had the component
// at the last commit and has another value of it now, in the order of rows. So it
// is called whatever wrote the value, and not for a value that was written and is
// the same again; see [Delta] for which values are the same.
//
// Hooks are called in the order in which they were added to the world, before the
// tick ends and is told to the recorder. A hook may change anything: what it
// writes belongs to the tick that ends, is seen by the hooks behind it, and is
// told to none of those before it. It must not call Commit. If it panics, the
// tick is not committed.
//
// A world without a history keeps the values at its last commit from now on; it
// can then be put back to that tick. OnChange panics for a NoRewind component
// and, in such a world, while a checkpoint is held or if a recorder is attached
// and something was written since the last commit: add it before, or after Commit.
func (s *Storage[T]) OnChange(f func(e Entity, before, now T)) {
	s.w.mustKeepTick(&s.rows, "OnChange", s.name)
	d := &Delta[T]{s: s}
	h := &s.w.hooks
	h.change = append(h.change, func() {
		if err := d.SinceCommit(); err != nil {
			panic(err) // Unreachable: the tick is kept.
		}
		for e, v := range d.Changed() {
			f(e, v.Old, v.New)
		}
	})
}

// Since makes d what changed since the end of tick. After an error d is empty.
func (d *Delta[T]) Since(tick uint64) error { return d.since(d.s.w.lastBoundary(tick), tick) }

// SinceCommit makes d what changed since the last commit. After an error d is
// empty.
func (d *Delta[T]) SinceCommit() error { return d.since(d.s.w.newestBoundary(), d.s.w.tick) }

// Added iterates over the entities that have the component now and had it not
// then, in the order of their rows.
func (d *Delta[T]) Added() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		for i, e := range d.added.entities {
			if !yield(e, d.added.values[i].New) {
				return
			}
		}
	}
}

// Changed iterates over the entities that had the component then and have another
// value of it now, in the order of their rows.
func (d *Delta[T]) Changed() iter.Seq2[Entity, Edit[T]] {
	return func(yield func(Entity, Edit[T]) bool) {
		for i, e := range d.changed.entities {
			if !yield(e, d.changed.values[i]) {
				return
			}
		}
	}
}

// Removed iterates over the entities that had the component then and have it not
// now, alive or not, with the values of then, in the order of their rows then.
func (d *Delta[T]) Removed() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		for i, e := range d.removed.entities {
			if !yield(e, d.removed.values[i].Old) {
				return
			}
		}
	}
}

// Empty reports whether nothing differs.
func (d *Delta[T]) Empty() bool {
	return len(d.added.entities)+len(d.changed.entities)+len(d.removed.entities) == 0
}

// since compares with the beginning of the k-th frame, the end of tick.
func (d *Delta[T]) since(k int, tick uint64) error {
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

// compare compares with what was when the logs from k on were opened, and before rows.
func (d *Delta[T]) compare(k, before int) {
	s := d.s
	d.lay(&s.dense, k, before, s.rows.N, s.row)
	d.values.Read(&s.data.Log, k)
	d.layValues(before)
	for _, p := range d.gone {
		d.removed.add(d.then[p], Edit[T]{Old: d.old[p]})
	}
	d.walk(min(before, s.rows.N))
	d.values.Reset()
	if s.pointers {
		clear(d.old)
	}
}

// layValues lays the values of then beside it.
func (d *Delta[T]) layValues(before int) {
	d.old = slices.Grow(d.old[:0], len(d.rows))[:len(d.rows)]
	k := 0
	for p, row := range d.rows {
		if d.then[p] == 0 {
			continue // Not looked at, like the rest.
		}
		if k = d.values.Seek(k, row); k < d.values.Len() && d.values.At(k).Row <= row {
			d.old[p] = d.s.data.Old(d.values.At(k))[row-d.values.At(k).Row]
		} else {
			d.old[p] = d.s.data.Live[row]
		}
	}
}

// walk compares the values that were written below limit, where there were rows then
// and are now: in spans, between the rows at which another entity may be.
func (d *Delta[T]) walk(limit int) {
	p, next := 0, d.at(0)
	plain := plainRows[T](d.s.face.codec)
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

// compareSingles is compareRows of plain values for the spans from i on, as far as they
// are single rows below limit. It returns how far that is. Its loop calls nothing, so that
// the processor looks at several rows at a time.
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

// compareRows compares old with the rows from row on, in which the same entities were.
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
		} else if sameRow(&s.w.equal, s.face.codec, old[i:i+1], now[i:i+1]) {
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

// compareEntity finds out what became of the entity at d.rows[p], if there is one.
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
	case !plain && sameRow(&s.w.equal, s.face.codec, d.old[p:p+1], now):
	default:
		d.changed.add(e, Edit[T]{d.old[p], now[0]})
	}
}

// Since returns the value at the end of tick and now, and whether they differ.
// Its errors are those of [Storage.Since].
func (r *Resource[T]) Since(tick uint64) (e Edit[T], changed bool, err error) {
	return r.since(r.w.lastBoundary(tick), tick)
}

// SinceCommit returns the value at the last commit and now, and whether they
// differ. See [Resource.Since].
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
	changed = !sameRow(&r.w.equal, r.face.codec, old[:1], r.data.Live)
	e = Edit[T]{old[0], r.data.Live[0]}
	r.spans.Reset()
	return e, changed, nil
}

// An EntityDelta is which entities were created and destroyed between an earlier
// boundary and now. Those that were created and destroyed in between are not in
// it. [World.Since] makes one; it is used as a [Delta] is.
type EntityDelta struct {
	w *World
	comparison
	created, destroyed []Entity
}

// Since returns the entities created and destroyed since the end of tick. Its
// cost and errors are those of [Storage.Since].
func (w *World) Since(tick uint64) (*EntityDelta, error) {
	d := &EntityDelta{w: w}
	return d, d.Since(tick)
}

// SinceCommit returns the entities created and destroyed since the last commit.
func (w *World) SinceCommit() (*EntityDelta, error) {
	d := &EntityDelta{w: w}
	return d, d.SinceCommit()
}

// Since makes d what changed since the end of tick. After an error d is empty.
func (d *EntityDelta) Since(tick uint64) error { return d.since(d.w.lastBoundary(tick), tick) }

// SinceCommit makes d what changed since the last commit. After an error d is
// empty.
func (d *EntityDelta) SinceCommit() error { return d.since(d.w.newestBoundary(), d.w.tick) }

// Created returns the entities that are alive and were not then, in the order of
// [World.Entities]. The slice is valid until d is used again.
func (d *EntityDelta) Created() []Entity { return d.created }

// Destroyed returns the entities that were alive then and are not now, in the
// order in which World.Entities had them. The slice is valid until d is used
// again.
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
	d.lay(&r.dense, k, before.N, r.rows.N, r.row)
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

// boundary returns the id of the k-th frame, which begins with the end of tick,
// or says why t cannot be compared with what it was then.
func (w *World) boundary(k int, tick uint64, t *track.Tracker, name string) (frame uint64, err error) {
	switch {
	case t.Exempt:
		return 0, fmt.Errorf("ecs: changes of %s since tick %d: %w; it is NoRewind, so no tick keeps its values", name, tick, ErrNotHeld)
	case k < 0 && w.options.HistoryDense > 0:
		return 0, fmt.Errorf("ecs: changes of %s since tick %d: %w; %s", name, tick, ErrNotHeld, w.History().held(tick))
	case k < 0 || !w.frames[k].held():
		return 0, fmt.Errorf("ecs: changes of %s since tick %d: %w; %s", name, tick, ErrNotHeld, w.ticksHeld())
	}
	return w.frames[k].ID, nil
}

// ticksHeld says which ticks the present can be compared with.
func (w *World) ticksHeld() string {
	var text strings.Builder
	first, last := uint64(0), uint64(0)
	for i := range w.frames {
		f := &w.frames[i]
		switch {
		case !f.tick || !f.held():
			continue
		case text.Len() == 0:
			fmt.Fprint(&text, "held are ", f.at)
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
		return "none is; set Options.History"
	}
	return text.String() + upTo(first, last)
}

func upTo(first, last uint64) string {
	if first == last {
		return ""
	}
	return fmt.Sprint(" to ", last)
}
