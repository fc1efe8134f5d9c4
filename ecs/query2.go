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
		w, cur := q.join.w, q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			entities := cur.entities(run[cur.stride-1])
			a := q.a.s.data.live[run[0]:][:len(entities)]
			b := q.b.s.data.live[run[1]:][:len(entities)]
			changes := w.changes
			for i, e := range entities {
				if !yield(e, Row2[A, B]{&a[i], &b[i]}) {
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
		cur := q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			n := run[cur.stride-1]
			rows := Run2[A, B]{Entities: cur.entities(n)}
			rows.A = q.a.s.data.live[run[0]:][:n]
			rows.B = q.b.s.data.live[run[1]:][:n]
			if !yield(rows) {
				return
			}
		}
	}
}
