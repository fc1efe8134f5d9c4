package benchmarks

import "github.com/stet-ecs/stet/ecs"

// few is a threshold of go-ecs-benchmarks. Below it, entities are destroyed one by one, newest
// first. Otherwise the world is cleared.
const few = 64

// end destroys entities, which must be all entities of w, and returns the empty slice.
func end(w *ecs.World, entities []ecs.Entity) []ecs.Entity {
	if len(entities) >= few {
		w.Clear()
		return entities[:0]
	}
	for i := len(entities) - 1; i >= 0; i-- {
		w.Destroy(entities[i])
	}
	return entities[:0]
}

// create2comp creates n entities with two components, one by one, and stores them in a slice.
func create2comp(n int) *work {
	m := newMovers()
	return &work{
		world:   m.world,
		prepare: func() { m.entities = end(m.world, m.entities) },
		repeat: func() {
			world, positions, velocities, entities := m.world, m.positions, m.velocities, m.entities
			for range n {
				e := world.Create()
				positions.Set(e, position{})
				velocities.Set(e, velocity{})
				entities = append(entities, e)
			}
			m.entities = entities
		},
		check: func(int) bool {
			return m.world.Len() == n && m.positions.Len() == n && m.velocities.Len() == n && len(m.entities) == n
		},
	}
}

// create10comp is like create2comp, with ten components.
func create10comp(n int) *work {
	w := ecs.NewWorld(ecs.Options{})
	x := newExtras(w)
	var entities []ecs.Entity
	return &work{
		world:   w,
		prepare: func() { entities = end(w, entities) },
		repeat: func() {
			entities := &entities
			for range n {
				e := w.Create()
				x.all(e)
				*entities = append(*entities, e)
			}
		},
		check: func(int) bool { return w.Len() == n && x.c1.Len() == n && x.c10.Len() == n && len(entities) == n },
	}
}

// delete2comp destroys n entities with two components, one by one in creation order.
func delete2comp(n int) *work {
	m := newMovers()
	return deleted(m.world, n, func() ecs.Entity { return m.move(velocity{}) })
}

// delete10comp is like delete2comp, with ten components.
func delete10comp(n int) *work {
	w := ecs.NewWorld(ecs.Options{})
	x := newExtras(w)
	return deleted(w, n, func() ecs.Entity {
		e := w.Create()
		x.all(e)
		return e
	})
}

func deleted(w *ecs.World, n int, create func() ecs.Entity) *work {
	var entities []ecs.Entity
	return &work{
		world: w,
		prepare: func() {
			entities = entities[:0]
			for range n {
				entities = append(entities, create())
			}
		},
		repeat: func() {
			for _, e := range entities {
				w.Destroy(e)
			}
		},
		check: func(int) bool { return w.Len() == 0 && len(entities) == n },
	}
}

// addRemove adds a velocity to n entities with a position, then removes it from all of them.
func addRemove(n int) *work { return addedRemoved(n, newMovers(), func(ecs.Entity) {}) }

// addRemoveLarge is like addRemove, for entities with ten more components.
func addRemoveLarge(n int) *work {
	m := newMovers()
	return addedRemoved(n, m, newExtras(m.world).all)
}

func addedRemoved(n int, m *movers, more func(ecs.Entity)) *work {
	for range n {
		e := m.place()
		more(e)
		m.entities = append(m.entities, e)
	}
	return &work{
		world: m.world,
		repeat: func() {
			velocities, entities := m.velocities, m.entities
			for _, e := range entities {
				velocities.Set(e, velocity{})
			}
			for _, e := range entities {
				velocities.Remove(e)
			}
		},
		check: func(int) bool { return m.velocities.Len() == 0 && m.positions.Len() == n },
	}
}

// newWorld creates an empty world.
func newWorld(int) *work {
	var w *ecs.World
	return &work{
		repeat: func() { w = ecs.NewWorld(ecs.Options{}) },
		check:  func(int) bool { return w.Len() == 0 },
	}
}
