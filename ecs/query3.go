package ecs

import "iter"

// A Query3 iterates over the entities that have three components. See [Query1]
// for the rules.
type Query3[A, B, C any] struct {
	join join
	a    Access[A]
	b    Access[B]
	c    Access[C]
}

// NewQuery3 returns a query over three components.
func NewQuery3[A, B, C any](a Access[A], b Access[B], c Access[C]) *Query3[A, B, C] {
	return &Query3[A, B, C]{newJoin(a.s.w, a.joined(), b.joined(), c.joined()), a, b, c}
}

// With keeps only entities that have all of the filters too. It returns q.
func (q *Query3[A, B, C]) With(filters ...AnyStorage) *Query3[A, B, C] {
	q.join.with(filters)
	return q
}

// Without keeps only entities that have none of the filters. It returns q.
func (q *Query3[A, B, C]) Without(filters ...AnyStorage) *Query3[A, B, C] {
	q.join.exclude(filters)
	return q
}

// Count returns the number of entities found.
func (q *Query3[A, B, C]) Count() int { return q.join.count() }

// Row3 points to the components of one entity.
type Row3[A, B, C any] struct {
	A *A
	B *B
	C *C
}

// All iterates over the entities and their components.
func (q *Query3[A, B, C]) All() iter.Seq2[Entity, Row3[A, B, C]] {
	return func(yield func(Entity, Row3[A, B, C]) bool) {
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
				for i, e := range entities {
					if !yield(e, Row3[A, B, C]{&a[i], &b[i], &c[i]}) {
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

// Run3 is a run of rows that are consecutive in all storages.
type Run3[A, B, C any] struct {
	Entities []Entity
	A        []A
	B        []B
	C        []C
}

// Runs iterates over aligned slices, at most 4096 rows each. The world's
// structure must not change during the loop.
func (q *Query3[A, B, C]) Runs() iter.Seq[Run3[A, B, C]] {
	return func(yield func(Run3[A, B, C]) bool) {
		cur := q.join.begin()
		for runs := cur.next(); len(runs) > 0; runs = cur.next() {
			for ; len(runs) > 0; runs = runs[cur.stride:] {
				n := runs[cur.stride-1]
				run := Run3[A, B, C]{Entities: cur.set.dense.live[runs[cur.driver]:][:n]}
				run.A = q.a.rows(runs[0], n)
				run.B = q.b.rows(runs[1], n)
				run.C = q.c.rows(runs[2], n)
				if !yield(run) {
					return
				}
			}
		}
	}
}
