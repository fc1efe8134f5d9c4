package ecs

import "iter"

// A Query2 iterates over the entities that have two components. See [Query1]
// for the rules.
type Query2[A, B any] struct {
	join join
	a    Access[A]
	b    Access[B]
}

// NewQuery2 returns a query over two components.
func NewQuery2[A, B any](a Access[A], b Access[B]) *Query2[A, B] {
	return &Query2[A, B]{newJoin(a.s.w, a.joined(), b.joined()), a, b}
}

// With keeps only entities that have all of the filters too. It returns q.
func (q *Query2[A, B]) With(filters ...AnyStorage) *Query2[A, B] { q.join.with(filters); return q }

// Without keeps only entities that have none of the filters. It returns q.
func (q *Query2[A, B]) Without(filters ...AnyStorage) *Query2[A, B] {
	q.join.exclude(filters)
	return q
}

// Count returns the number of entities found.
func (q *Query2[A, B]) Count() int { return q.join.count() }

// Row2 points to the components of one entity.
type Row2[A, B any] struct {
	A *A
	B *B
}

// All iterates over the entities and their components.
func (q *Query2[A, B]) All() iter.Seq2[Entity, Row2[A, B]] {
	return func(yield func(Entity, Row2[A, B]) bool) {
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
				if q.b.unsaved(run[1], n) {
					q.b.save(run[1], n)
				}
				b := q.b.s.data.live[run[1]:][:n]
				for i, e := range entities {
					if !yield(e, Row2[A, B]{&a[i], &b[i]}) {
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

// Run2 is a run of rows that are consecutive in all storages.
type Run2[A, B any] struct {
	Entities []Entity
	A        []A
	B        []B
}

// Runs iterates over aligned slices, at most 4096 rows each. The world's
// structure must not change during the loop.
func (q *Query2[A, B]) Runs() iter.Seq[Run2[A, B]] {
	return func(yield func(Run2[A, B]) bool) {
		cur := q.join.begin()
		for runs := cur.next(); len(runs) > 0; runs = cur.next() {
			for ; len(runs) > 0; runs = runs[cur.stride:] {
				n := runs[cur.stride-1]
				run := Run2[A, B]{Entities: cur.set.dense.live[runs[cur.driver]:][:n]}
				run.A = q.a.rows(runs[0], n)
				run.B = q.b.rows(runs[1], n)
				if !yield(run) {
					return
				}
			}
		}
	}
}
