package ecs

import (
	"fmt"
	"iter"
	"math/bits"
)

// All iterates over the entities and components in dense order, or in the order of entity indices
// for an [Ordered] storage. Components are copies, but share the memory of slices, maps and
// pointers as in [Storage.Get]. To write components, use a query.
//
// The loop may change the world by the rules of [Query1]: it may destroy any entity, and add and
// remove any component.
func (s *Storage[T]) All() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		if s.byIndex {
			s.inOrder(yield)
			return
		}
		if debug {
			s.mustBeReadable("All")
		}
		var p progress
		p.begin(&s.set)
		w := s.w
		for lo, hi, more := p.take(&s.set); more; lo, hi, more = p.take(&s.set) {
			entities, values, visited := s.dense.Live[lo:hi], s.data.Live[lo:hi], p.ahead
			changes := w.changes
			for i, e := range entities {
				if e == Vacant || visited != nil && visited.has(e) && !p.back {
					continue
				}
				if !yield(e, values[i]) {
					p.end(&s.set)
					return
				}
				if w.changes != changes {
					s.mustKeepOrder(s.Name, e, changes)
					p.mustFollow(&s.set, lo+i, s.Name, e)
					break
				}
			}
		}
		p.end(&s.set)
	}
}

// inOrder is All in the order of entity indices.
func (s *Storage[T]) inOrder(yield func(Entity, T) bool) {
	changes := s.w.changes
	for b, word := scan(s.mask, 0); b >= 0; b, word = scan(s.mask, b+1) {
		for word != 0 {
			i := uint32(b<<6 + bits.TrailingZeros64(word))
			word &= word - 1
			r := s.sparse.Page(i).Rows[i&pageMask]
			e := s.dense.Live[r]
			if !yield(e, s.data.Live[r]) {
				return
			}
			if s.w.changes != changes {
				s.mustKeepOrder(s.Name, e, changes)
				changes = s.w.changes
				word = s.mask.word(b) &^ (1<<(i&63+1) - 1) // Bits of indices above e.
			}
		}
	}
}

// Drain iterates over the entities and copies of their components, from the last row to the first.
// It removes each component before it visits the entity. It ends when the storage is empty, so it
// also visits entities that the loop adds. A storage can thus serve as a work queue. A loop that
// ends early leaves the remaining components.
//
// The loop body may restore a checkpoint that it created in the same iteration, as [World.Try]
// does. A restore of an older checkpoint makes removed rows live again. Drain then panics, because
// the loop could run forever. For NoRewind components it continues, because they are not restored.
func (s *Storage[T]) Drain() iter.Seq2[Entity, T] {
	return func(yield func(Entity, T) bool) {
		loop := s.w.drains.begin()
		defer loop.end()
		for visited := true; visited; {
			visited = false
			for row := s.rows.N - 1; row >= 0; row = min(row, s.rows.N) - 1 {
				e := s.dense.Live[row]
				if e == Vacant {
					continue
				}
				v := s.adapter.copy(s.data.Live[row])
				// The loop may run in an OnRemove hook for e. Remove then does nothing, so skip e.
				if s.Remove(e); s.row(e) >= 0 {
					continue
				}
				s.mustBeTaken(loop) // A hook may have undone the removal.
				loop.take(e, s.w.openFrame())
				if visited = true; !yield(e, v) {
					return
				}
				s.mustBeTaken(loop)
				if s.set.kind != Indexed {
					row = s.rows.N
				}
			}
		}
	}
}

// openFrame returns the id of the open frame, or 0 if there is none.
func (w *World) openFrame() uint64 {
	if w.clock.Frame == nil {
		return 0
	}
	return w.clock.Frame.ID
}

// mustBeTaken panics if a restore has undone the last removal of the loop.
func (s *Storage[T]) mustBeTaken(loop *drainLoop) {
	if loop.undone && !s.noRewind {
		panic(fmt.Sprintf("ecs: a loop over Drain of %s continues after a restore to a state before %v was removed; end the loop after such a restore, or create the checkpoint in the loop",
			s.name, loop.taken))
	}
}
