package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A Resource is a single value of a world, such as the score, the random seed or the rules of a
// game. It is restored, journaled and snapshotted like the components. [RegisterResource] creates a
// Resource.
type Resource[T any] struct {
	_ noCopy

	w    *World
	rows track.Tracker
	data track.Column[T]
	spec
	adapter rowAdapter[T]
	raw     rawAdapter

	spans track.Spans // Buffer that the method since reuses.
}

func newResource[T any](w *World, s typedSpec[T], value T) *Resource[T] {
	r := &Resource[T]{spec: s.spec}
	r.adapter = rowAdapter[T]{&r.data, s.codec, nil}
	r.raw = rawAdapter{r, &r.adapter}
	r.w = w
	r.data.Init(&w.clock, s.pointers)
	r.data.Clone, r.data.Log.Keeps = s.clone, s.keepsOld()
	r.data.Live = []T{value}
	r.rows.Init(&w.clock, s.noRewind, &r.data.Log)
	r.rows.N = 1
	return r
}

// Get returns a copy of the value. Slices, maps and pointers in it belong to the world and are
// read-only: see [Storage.Get].
func (r *Resource[T]) Get() T {
	if debug {
		r.w.mustReadResource("Get", r.name)
	}
	return r.data.Live[0]
}

// Read returns a pointer for reading the value, without the copy that Get makes. The program must
// not write through the pointer; use [Resource.Mut] for writing. The pointer is valid as long as
// the world, and always points to the current value.
func (r *Resource[T]) Read() *T {
	if debug {
		r.w.mustReadResource("Read", r.name)
	}
	return &r.data.Live[0]
}

// Mut returns a pointer for writing the value. The value counts as written. The pointer is valid
// until the next Checkpoint, Commit, Restore, Release or Seek.
func (r *Resource[T]) Mut() *T {
	if debug {
		r.w.mustWriteResource(r.name)
	}
	r.rows.Open()
	r.data.Touch(0)
	return &r.data.Live[0]
}

// Set replaces the value. The world takes ownership of the slices, maps and pointers in v.
func (r *Resource[T]) Set(v T) { *r.Mut() = v }

// GetAny is [Resource.Get], but returns a copy that shares no memory with the world. It ignores
// the entity. It returns false if the program has not registered the resource; GetJSON can read
// such resources.
func (r *Resource[T]) GetAny(Entity) (v any, ok bool) {
	if r.unknown {
		return nil, false
	}
	return r.adapter.copy(r.data.Live[0]), true
}

// SetAny sets the value as [Storage.SetAny] sets a component. It ignores the entity.
func (r *Resource[T]) SetAny(_ Entity, v any) error {
	value, err := r.adapter.ofAny(&r.spec, v)
	return r.setChecked(value, err)
}

// GetJSON returns the value as [Storage.GetJSON] returns a component. It ignores the entity.
func (r *Resource[T]) GetJSON(Entity) (src []byte, ok bool) { return r.adapter.json(&r.spec, 0) }

// SetJSON changes the value as [Storage.SetJSON] changes a component. It ignores the entity.
func (r *Resource[T]) SetJSON(_ Entity, src []byte) error {
	value, err := r.adapter.ofJSON(&r.spec, 0, src)
	return r.setChecked(value, err)
}

// setChecked sets the value to v, unless err is not nil. The parameter err is the error of
// converting a value to v.
func (r *Resource[T]) setChecked(v T, err error) error {
	if err == nil {
		r.Set(v)
	}
	return valueFault(r.name, r.layout, 0, true, err)
}

// Len returns 1, because a resource is a storage with one row.
func (r *Resource[T]) Len() int { return 1 }

// Entities returns nil, because the row of a resource belongs to no entity.
func (r *Resource[T]) Entities() []Entity { return nil }

// In returns the resource of the same name and type in another world, or nil.
func (r *Resource[T]) In(w *World) *Resource[T] {
	other, _ := w.names[r.name].(*Resource[T])
	return other
}

// Raw returns the interface of the resource for code that does not know its type.
func (r *Resource[T]) Raw() raw.Storage { return &r.raw }

// Uses tells package schedule that a system writes r.
func (r *Resource[T]) Uses() []raw.Use {
	return []raw.Use{{Storage: &r.raw, Values: raw.Writes}}
}

func (r *Resource[T]) tracked() *track.Tracker { return &r.rows }

func (r *Resource[T]) sparseSet() *set { return nil }

func (r *Resource[T]) valuesWritten(ranges []raw.Range, k, limit int) ([]raw.Range, bool) {
	return written(&r.data.Log, ranges, k, limit)
}

func (r *Resource[T]) pinPart() *pinPart {
	part := new(pinPart)
	part.data = pinColumn(part, &r.data, r.rows.N, r.adapter.encodeRows)
	return part
}

// A ticking value changes at the end of each tick, as a part of the tick. [Events] are ticking.
type ticking interface {
	clear()            // Resets the value to that of a new world.
	idle() bool        // Reports whether the end of a tick changes nothing.
	endTick(keep bool) // Ends the tick. If keep is false, it also empties the value.
}

func (r *Resource[T]) isTicking() bool {
	_, ok := any(&r.data.Live[0]).(ticking)
	return ok
}

// endTick ends a tick for the value, which must be ticking.
func (r *Resource[T]) endTick() {
	if !any(&r.data.Live[0]).(ticking).idle() {
		any(r.Mut()).(ticking).endTick(!r.noPersist)
	}
}

// endTick ends a tick for all ticking values.
func (w *World) endTick() {
	for _, r := range w.ticking {
		r.endTick()
	}
}

func (r *Resource[T]) narrow(narrowed) { panic(resourceFilter(r)) }

func resourceFilter(r AnyStorage) string {
	return "ecs: a query cannot filter by the resource " + r.Name() + "; it belongs to no entity"
}
