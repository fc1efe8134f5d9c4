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
				if q.c.unsaved(run[2], n) {
					q.c.save(run[2], n)
				}
				c := q.c.s.data.live[run[2]:][:n]
				if q.d.unsaved(run[3], n) {
					q.d.save(run[3], n)
				}
				d := q.d.s.data.live[run[3]:][:n]
				for i, e := range entities {
					if !yield(e, Row4[A, B, C, D]{&a[i], &b[i], &c[i], &d[i]}) {
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
		cur := q.join.begin()
		for runs := cur.next(); len(runs) > 0; runs = cur.next() {
			for ; len(runs) > 0; runs = runs[cur.stride:] {
				n := runs[cur.stride-1]
				run := Run4[A, B, C, D]{Entities: cur.set.dense.live[runs[cur.driver]:][:n]}
				run.A = q.a.rows(runs[0], n)
				run.B = q.b.rows(runs[1], n)
				run.C = q.c.rows(runs[2], n)
				run.D = q.d.rows(runs[3], n)
				if !yield(run) {
					return
				}
			}
		}
	}
}
