package ecs

import "iter"

// Access says how a query uses a component: [Write] or [Read].
type Access[T any] struct {
	s     *Storage[T]
	write bool
}

// Write makes a query hand out components of s for writing. Every row it hands
// out counts as written.
func Write[T any](s *Storage[T]) Access[T] { return Access[T]{s, true} }

// Read makes a query hand out components of s for reading. They must not be
// written: what is written through a read access is neither restored nor
// journaled.
func Read[T any](s *Storage[T]) Access[T] { return Access[T]{s, false} }

func (a Access[T]) joined() joinedColumn { return joinedColumn{&a.s.set, &a.s.data, a.write} }

// A Query1 iterates over the entities that have a component. Queries of several
// components have the same methods and rules.
//
// Make a query once and keep it: it remembers how its storages lie beside each
// other.
//
// # Order
//
// The storage with the fewest rows drives, the first of equals; its dense order
// is the order of iteration.
//
// # Changing the world while iterating with All
//
//   - Components handed out for writing may be written.
//   - Entities may be created and components added; a row appended to the driving
//     storage is visited.
//   - The entity being visited may be destroyed or lose components, once; the row
//     that moves into its place is visited.
//   - Destroying another entity, or removing a component of the query from
//     another, panics with a message that says so. So does Restore or Seek, if it
//     puts back a storage of the query.
//   - Checkpoint, Commit and Release are allowed.
//
// Pointers are valid until the loop's next step and until such a change.
type Query1[A any] struct {
	join join
	a    Access[A]
}

// NewQuery1 returns a query over a component.
func NewQuery1[A any](a Access[A]) *Query1[A] {
	return &Query1[A]{newJoin(a.s.w, a.joined()), a}
}

// With keeps only entities that have all of the filters too. It returns q.
func (q *Query1[A]) With(filters ...AnyStorage) *Query1[A] { q.join.with(filters); return q }

// Without keeps only entities that have none of the filters. It returns q.
func (q *Query1[A]) Without(filters ...AnyStorage) *Query1[A] { q.join.exclude(filters); return q }

// Count returns the number of entities found.
func (q *Query1[A]) Count() int { return q.join.count() }

// All iterates over the entities and their components.
func (q *Query1[A]) All() iter.Seq2[Entity, *A] {
	return func(yield func(Entity, *A) bool) {
		w, cur := q.join.w, q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			entities := cur.entities(run[cur.stride-1])
			a := q.a.s.data.live[run[0]:][:len(entities)]
			changes := w.changes
			for i, e := range entities {
				if !yield(e, &a[i]) {
					return
				}
				if w.changes != changes {
					cur.resume(i, e)
					break
				}
			}
		}
	}
}

// Run1 is a run of consecutive rows.
type Run1[A any] struct {
	Entities []Entity
	A        []A
}

// Runs iterates over slices of consecutive rows, at most 4096 rows each. The
// world's structure must not change during the loop.
func (q *Query1[A]) Runs() iter.Seq[Run1[A]] {
	return func(yield func(Run1[A]) bool) {
		cur := q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			n := run[cur.stride-1]
			rows := Run1[A]{Entities: cur.entities(n)}
			rows.A = q.a.s.data.live[run[0]:][:n]
			if !yield(rows) {
				return
			}
		}
	}
}
