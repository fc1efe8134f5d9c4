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

func (a Access[T]) joined() joined { return joined{&a.s.set, a.write} }

// unsaved reports whether save must be called before n rows from lo on are handed
// out. It is inlined; for a single row it is exact.
func (a Access[T]) unsaved(lo, n uint32) bool {
	return a.write && (n > 1 || a.s.data.unsaved(int(lo)))
}

func (a Access[T]) save(lo, n uint32) { a.s.data.touchRange(int(lo), int(lo+n)) }

// rows hands out n rows from lo on.
func (a Access[T]) rows(lo, n uint32) []T {
	if a.unsaved(lo, n) {
		a.save(lo, n)
	}
	return a.s.data.live[lo:][:n]
}

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
//     another, panics with a message that says so. So does Restore or Seek.
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
		w, cur := q.join.w, q.join.begin()
		for runs := cur.next(); len(runs) > 0; runs = cur.next() {
			changes := w.changes
			for len(runs) > 0 {
				run := runs[:cur.stride]
				runs = runs[cur.stride:]
				first, n := int(run[cur.driver]), run[cur.stride-1]
				entities := cur.set.dense.live[first:][:n]
				if q.a.unsaved(run[0], n) {
					q.a.save(run[0], n)
				}
				a := q.a.s.data.live[run[0]:][:n]
				for i, e := range entities {
					if !yield(e, &a[i]) {
						return
					}
					if w.changes != changes {
						cur.resume(first+i, e)
						runs = nil
						break
					}
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
		cur := q.join.begin()
		for runs := cur.next(); len(runs) > 0; runs = cur.next() {
			for ; len(runs) > 0; runs = runs[cur.stride:] {
				n := runs[cur.stride-1]
				run := Run1[A]{Entities: cur.set.dense.live[runs[cur.driver]:][:n]}
				run.A = q.a.rows(runs[0], n)
				if !yield(run) {
					return
				}
			}
		}
	}
}
