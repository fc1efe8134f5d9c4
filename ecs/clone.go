package ecs

import "slices"

// Clone returns an independent world with the same entities, components,
// resources and tick, and with the same options. History, checkpoints, recorder
// and OnRestore functions stay behind. Use [Storage.In] to find a storage again.
//
// It costs O(rows).
func (w *World) Clone() *World {
	c := NewWorld(w.options)
	r := &w.entities
	c.entities.load(r.dense.Live[:r.rows.Total], r.rows.Lengths)
	c.entities.maxGeneration = r.maxGeneration
	for _, s := range w.storages {
		s.cloneInto(c)
	}
	for _, s := range w.resources {
		s.cloneInto(c)
	}
	w.cloneGroups(c)
	c.tick = w.tick
	c.restart(0)
	return c
}

// In returns the storage of the same name and type in another world, or nil.
func (s *Storage[T]) In(w *World) *Storage[T] {
	other, _ := w.names[s.name].(*Storage[T])
	return other
}

// In returns the resource of the same name and type in another world, or nil.
func (r *Resource[T]) In(w *World) *Resource[T] {
	other, _ := w.names[r.name].(*Resource[T])
	return other
}

func (s *Storage[T]) cloneInto(w *World) {
	c := newStorage(w, s.spec, s.rows.Exempt)
	w.adopt(c)
	c.replace(slices.Clone(s.Entities()), cloneAll(s.Values(), s.clone), nil)
}

func (r *Resource[T]) cloneInto(w *World) {
	c := newResource(w, r.spec, cloneAll(r.data.Live, r.clone)[0], r.rows.Exempt)
	w.names[r.name] = c
	w.resources = append(w.resources, c)
}

func cloneAll[T any](rows []T, clone func(T) T) []T {
	c := append([]T(nil), rows...)
	if clone != nil {
		for i := range c {
			c[i] = clone(c[i])
		}
	}
	return c
}
