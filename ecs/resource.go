package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A Resource is a value of which a world has one: the score, the seed of its
// random numbers, the rules of the game. It is put back, journaled and
// snapshotted like the components. [RegisterResource] makes it.
type Resource[T any] struct {
	w    *World
	rows track.Tracker
	data track.Column[T]
	spec
	face rowFace[T]
	raw  rawStorage

	spans track.Spans // Scratch of since.
}

func newResource[T any](w *World, s typedSpec[T], value T) *Resource[T] {
	r := &Resource[T]{spec: s.spec}
	r.face = rowFace[T]{&r.data, s.codec, nil}
	r.raw = rawStorage{r, &r.face}
	r.w = w
	r.data.Init(&w.clock, s.pointers)
	r.data.Clone, r.data.Log.Keeps = s.clone, s.keepsOld()
	r.data.Live = []T{value}
	r.rows.Init(&w.clock, s.noRewind, &r.data.Log)
	r.rows.N = 1
	return r
}

// Get returns a copy of the value. Slices, maps and pointers in it are those of the world, to be
// read only: see [Storage.Get].
func (r *Resource[T]) Get() T { return r.data.Live[0] }

// Read returns a pointer through which the value can be read: what Get copies whole, as
// a map of many fields, costs nothing. It must not be written; [Resource.Mut] is for
// that. The pointer is valid as long as the world is, and shows what the value is at
// the time.
func (r *Resource[T]) Read() *T { return &r.data.Live[0] }

// Mut returns a pointer through which the value can be written. It counts as
// written. The pointer is valid until the next Checkpoint, Commit, Restore,
// Release or Seek.
func (r *Resource[T]) Mut() *T {
	if debug {
		r.mustBeWritable()
	}
	if r.rows.Span != r.w.clock.Span {
		r.rows.Open()
	}
	r.data.Touch(0)
	return &r.data.Live[0]
}

// Set replaces the value, and takes over the slices, maps and pointers in v.
func (r *Resource[T]) Set(v T) { *r.Mut() = v }

// GetAny is [Resource.Get] of a copy that shares nothing with the world. The entity does
// not matter. It finds none if the program has not registered the resource; GetJSON does.
func (r *Resource[T]) GetAny(Entity) (v any, ok bool) {
	if r.unknown {
		return nil, false
	}
	return r.face.copy(r.data.Live[0]), true
}

// SetAny is [Storage.SetAny] of the value; the entity does not matter.
func (r *Resource[T]) SetAny(_ Entity, v any) error {
	value, err := r.face.ofAny(&r.spec, v)
	return r.setChecked(value, err)
}

// GetJSON is [Storage.GetJSON] of the value; the entity does not matter.
func (r *Resource[T]) GetJSON(Entity) (src []byte, ok bool) { return r.face.json(&r.spec, 0) }

// SetJSON is [Storage.SetJSON] of the value; the entity does not matter.
func (r *Resource[T]) SetJSON(_ Entity, src []byte) error {
	value, err := r.face.ofJSON(&r.spec, 0, src)
	return r.setChecked(value, err)
}

// setChecked replaces the value by v, which was made with err.
func (r *Resource[T]) setChecked(v T, err error) error {
	if err == nil {
		r.Set(v)
	}
	return valueFault(r.name, r.layout, 0, true, err)
}

// Len returns 1: a resource is a storage of one row.
func (r *Resource[T]) Len() int { return 1 }

// Entities returns nil: the row of a resource belongs to no entity.
func (r *Resource[T]) Entities() []Entity { return nil }

func (r *Resource[T]) discard(Entity, int) {}
func (r *Resource[T]) discardAll()         {}

// In returns the resource of the same name and type in another world, or nil.
func (r *Resource[T]) In(w *World) *Resource[T] {
	other, _ := w.names[r.name].(*Resource[T])
	return other
}

// Raw returns the resource as code sees it that does not know its type.
func (r *Resource[T]) Raw() raw.Storage { return &r.raw }

func (r *Resource[T]) tracked() *track.Tracker { return &r.rows }

func (r *Resource[T]) sparseSet() *set { return nil }

func (r *Resource[T]) valuesWritten(ranges []raw.Range, k, limit int) ([]raw.Range, bool) {
	return written(&r.data.Log, ranges, k, limit)
}

// A ticking value changes when a tick ends, as part of the tick: that of [Events].
type ticking interface {
	clear()            // Makes it what it is in a new world.
	idle() bool        // There is nothing to change.
	endTick(keep bool) // False: what it holds ends with the tick.
}

// isTicking reports whether the value is.
func (r *Resource[T]) isTicking() bool {
	_, ok := any(&r.data.Live[0]).(ticking)
	return ok
}

// endTick tells the value, which is ticking, that a tick ends.
func (r *Resource[T]) endTick() {
	if !any(&r.data.Live[0]).(ticking).idle() {
		any(r.Mut()).(ticking).endTick(!r.noPersist)
	}
}

// endTick tells all ticking values that a tick ends.
func (w *World) endTick() {
	for _, r := range w.ticking {
		r.endTick()
	}
}

func (r *Resource[T]) narrow(narrowed) { panic(resourceFilter(r)) }

func resourceFilter(r AnyStorage) string {
	return "ecs: a query cannot filter by the resource " + r.Name() + "; it belongs to no entity"
}
