package ecs_test

// The limit for structural changes and look-ups is hand-written sparse sets, without checkpoints
// and without generations in the rows. Adding or removing a component checks that the entity is
// alive.

type position struct{ X, Y float64 }
type velocity struct{ X, Y float64 }

// A limitSet is a sparse set without tracking of changes.
type limitSet[T any] struct {
	sparse []uint32 // Maps an index to a row + 1. 0 means no row.
	dense  []uint32
	values []T
}

func (s *limitSet[T]) get(i uint32) *T {
	if int(i) < len(s.sparse) {
		if r := s.sparse[i]; r != 0 {
			return &s.values[r-1]
		}
	}
	return nil
}

func (s *limitSet[T]) set(i uint32, v T) {
	if int(i) >= len(s.sparse) {
		s.grow(i)
	}
	if r := s.sparse[i]; r != 0 {
		s.values[r-1] = v
		return
	}
	s.dense = append(s.dense, i)
	s.values = append(s.values, v)
	s.sparse[i] = uint32(len(s.dense))
}

func (s *limitSet[T]) grow(i uint32) {
	for int(i) >= len(s.sparse) {
		s.sparse = append(s.sparse, make([]uint32, max(1024, len(s.sparse)))...)
	}
}

func (s *limitSet[T]) remove(i uint32) bool {
	if int(i) >= len(s.sparse) || s.sparse[i] == 0 {
		return false
	}
	r, last := s.sparse[i]-1, len(s.dense)-1
	moved := s.dense[last]
	s.dense[r], s.values[r] = moved, s.values[last]
	s.sparse[moved] = r + 1
	s.sparse[i] = 0
	s.dense, s.values = s.dense[:last], s.values[:last]
	return true
}

type limitEntity struct{ index, generation uint32 }

// A limitWorld has entities and two components.
type limitWorld struct {
	generations []uint32
	free        []uint32
	positions   limitSet[position]
	velocities  limitSet[velocity]
}

func (w *limitWorld) create() limitEntity {
	if k := len(w.free) - 1; k >= 0 {
		i := w.free[k]
		w.free = w.free[:k]
		return limitEntity{i, w.generations[i]}
	}
	w.generations = append(w.generations, 1)
	return limitEntity{uint32(len(w.generations) - 1), 1}
}

func (w *limitWorld) alive(e limitEntity) bool {
	return int(e.index) < len(w.generations) && w.generations[e.index] == e.generation
}

func (w *limitWorld) setPosition(e limitEntity, v position) bool {
	if !w.alive(e) {
		return false
	}
	w.positions.set(e.index, v)
	return true
}

func (w *limitWorld) setVelocity(e limitEntity, v velocity) bool {
	if !w.alive(e) {
		return false
	}
	w.velocities.set(e.index, v)
	return true
}

func (w *limitWorld) removeVelocity(e limitEntity) bool {
	return w.alive(e) && w.velocities.remove(e.index)
}

func (w *limitWorld) destroy(e limitEntity) bool {
	if !w.alive(e) {
		return false
	}
	w.positions.remove(e.index)
	w.velocities.remove(e.index)
	w.generations[e.index]++
	w.free = append(w.free, e.index)
	return true
}
