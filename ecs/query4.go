package ecs

import "iter"

// A Query4 iterates over the entities that have four components. See [Query1]
// for the rules.
type Query4[A, B, C, D any] struct {
	join join
	a    Access[A]
	b    Access[B]
	c    Access[C]
	d    Access[D]
}

// NewQuery4 returns a query over four components.
func NewQuery4[A, B, C, D any](a Access[A], b Access[B], c Access[C], d Access[D]) *Query4[A, B, C, D] {
	return &Query4[A, B, C, D]{newJoin(a.s.w, a.joined(), b.joined(), c.joined(), d.joined()), a, b, c, d}
}

// With keeps only entities that have all of the filters too. It returns q.
func (q *Query4[A, B, C, D]) With(filters ...AnyStorage) *Query4[A, B, C, D] {
	q.join.with(filters)
	return q
}

// Without keeps only entities that have none of the filters. It returns q.
func (q *Query4[A, B, C, D]) Without(filters ...AnyStorage) *Query4[A, B, C, D] {
	q.join.exclude(filters)
	return q
}

// Count returns the number of entities found.
func (q *Query4[A, B, C, D]) Count() int { return q.join.count() }

// Row4 points to the components of one entity.
type Row4[A, B, C, D any] struct {
	A *A
	B *B
	C *C
	D *D
}

// All iterates over the entities and their components.
func (q *Query4[A, B, C, D]) All() iter.Seq2[Entity, Row4[A, B, C, D]] {
	return func(yield func(Entity, Row4[A, B, C, D]) bool) {
		w, cur := q.join.w, q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			entities := cur.entities(run[cur.stride-1])
			a := q.a.s.data.live[run[0]:][:len(entities)]
			b := q.b.s.data.live[run[1]:][:len(entities)]
			c := q.c.s.data.live[run[2]:][:len(entities)]
			d := q.d.s.data.live[run[3]:][:len(entities)]
			changes := w.changes
			for i, e := range entities {
				if !yield(e, Row4[A, B, C, D]{&a[i], &b[i], &c[i], &d[i]}) {
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

// Run4 is a run of rows that are consecutive in all storages.
type Run4[A, B, C, D any] struct {
	Entities []Entity
	A        []A
	B        []B
	C        []C
	D        []D
}

// Runs iterates over aligned slices, at most 4096 rows each. The world's
// structure must not change during the loop.
func (q *Query4[A, B, C, D]) Runs() iter.Seq[Run4[A, B, C, D]] {
	return func(yield func(Run4[A, B, C, D]) bool) {
		cur := q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			n := run[cur.stride-1]
			rows := Run4[A, B, C, D]{Entities: cur.entities(n)}
			rows.A = q.a.s.data.live[run[0]:][:n]
			rows.B = q.b.s.data.live[run[1]:][:n]
			rows.C = q.c.s.data.live[run[2]:][:n]
			rows.D = q.d.s.data.live[run[3]:][:n]
			if !yield(rows) {
				return
			}
		}
	}
}
