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
		w, cur := q.join.w, q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			entities := cur.entities(run[cur.stride-1])
			a := q.a.s.data.live[run[0]:][:len(entities)]
			b := q.b.s.data.live[run[1]:][:len(entities)]
			c := q.c.s.data.live[run[2]:][:len(entities)]
			changes := w.changes
			for i, e := range entities {
				if !yield(e, Row3[A, B, C]{&a[i], &b[i], &c[i]}) {
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
		cur := q.join.begin(q.join.columns)
		for run := cur.next(); run != nil; run = cur.next() {
			n := run[cur.stride-1]
			rows := Run3[A, B, C]{Entities: cur.entities(n)}
			rows.A = q.a.s.data.live[run[0]:][:n]
			rows.B = q.b.s.data.live[run[1]:][:n]
			rows.C = q.c.s.data.live[run[2]:][:n]
			if !yield(rows) {
				return
			}
		}
	}
}
