package ecs_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// In the worlds of this file, the rows of different storages are in different orders. The limit is
// a hand-written loop over the entities of the smallest storage. The loop looks up each entity in
// the other storages.

type mass struct{ X, Y float64 }

// A scatter is a world of three components. The rows of each storage are in a different order.
type scatter struct {
	w *ecs.World
	a *ecs.Storage[position]
	b *ecs.Storage[velocity]
	c *ecs.Storage[mass]

	both []ecs.Entity // The entities with all three components.
	next int
}

// newScatter returns a world in which each component belongs to n entities. The given share of
// these entities has all three components.
func newScatter(n int, share float64) *scatter {
	s := &scatter{w: ecs.NewWorld(ecs.Options{})}
	s.a = ecs.MustRegister[position](s.w)
	s.b = ecs.MustRegister[velocity](s.w)
	s.c = ecs.MustRegister[mass](s.w)
	common := int(float64(n) * share)
	s.both = s.w.CreateN(nil, common)
	all := make([][]ecs.Entity, 3)
	for k := range all {
		all[k] = append(append(all[k], s.both...), s.w.CreateN(nil, n-common)...)
	}
	for _, i := range permutation(n, 1) {
		s.a.Set(all[0][i], position{X: 1, Y: 1})
	}
	for _, i := range permutation(n, 2) {
		s.b.Set(all[1][i], velocity{X: 1, Y: 1})
	}
	for _, i := range permutation(n, 3) {
		s.c.Set(all[2][i], mass{X: 1, Y: 1})
	}
	return s
}

func (s *scatter) query() *ecs.Query3[position, velocity, mass] {
	return ecs.NewQuery3(ecs.Write(s.a), ecs.Read(s.b), ecs.Read(s.c))
}

// change removes a component of an entity that has all three, and adds it again.
func (s *scatter) change() {
	s.next = (s.next + 7919) % len(s.both)
	e := s.both[s.next]
	v, _ := s.b.Get(e)
	s.b.Remove(e)
	s.b.Set(e, v)
}

// churn replaces the given share of the entities by new ones, the given number of times.
func (s *scatter) churn(times int, share float64) {
	for range times {
		for range int(float64(len(s.both)) * share) {
			s.next = (s.next + 7919) % len(s.both)
			s.w.Destroy(s.both[s.next])
			e := s.w.Create()
			s.a.Set(e, position{X: 1, Y: 1})
			s.b.Set(e, velocity{X: 1, Y: 1})
			s.c.Set(e, mass{X: 1, Y: 1})
			s.both[s.next] = e
		}
	}
}

//go:noinline
func scatterAll(q *ecs.Query3[position, velocity, mass]) {
	for _, row := range q.All() {
		row.A.X += row.B.X
		row.A.Y += row.C.Y
	}
}

//go:noinline
func scatterRuns(q *ecs.Query3[position, velocity, mass]) {
	for run := range q.Runs() {
		a := run.A
		b, c := run.B[:len(a)], run.C[:len(a)]
		for i := range a {
			a[i].X += b[i].X
			a[i].Y += c[i].Y
		}
	}
}

//go:noinline
func scatterByHand(s *scatter) {
	for _, e := range s.a.Entities() {
		b, ok := s.b.Get(e)
		if !ok {
			continue
		}
		if c, ok := s.c.Get(e); ok {
			a := s.a.Mut(e)
			a.X += b.X
			a.Y += c.Y
		}
	}
}

// scattered compares the loops over All and over Runs with the hand-written loop. It calls change
// before each loop.
func scattered(b *testing.B, s *scatter, all, runs float64, change func()) {
	q, n := s.query(), len(s.both)
	times := max(1, 200_000/s.a.Len())
	limit := repeated(times, func() {
		change()
		scatterByHand(s)
	})
	b.Run("all", func(b *testing.B) {
		compare(b, n*times, all, repeated(times, func() {
			change()
			scatterAll(q)
		}), limit)
	})
	b.Run("runs", func(b *testing.B) {
		compare(b, n*times, runs, repeated(times, func() {
			change()
			scatterRuns(q)
		}), limit)
	})
}

var scatterSizes = []int{10_000, 100_000, 256_000}

func scatterName(n int) string { return fmt.Sprintf("%dk", n/1000) }

func BenchmarkBudgetScatter(b *testing.B) {
	for _, n := range scatterSizes {
		for _, percent := range []int{100, 50, 10, 1} {
			s := newScatter(n, float64(percent)/100)
			name := fmt.Sprintf("%s/%d%%/", scatterName(n), percent)
			b.Run(name+"unchanged", func(b *testing.B) { scattered(b, s, 0.5, 1.3, func() {}) })
			b.Run(name+"changed", func(b *testing.B) { scattered(b, s, 1.1, 1.3, s.change) })
		}
	}
}

func BenchmarkBudgetScatterChurn(b *testing.B) {
	s := newScatter(100_000, 1)
	s.churn(200, 0.01)
	b.Run("unchanged", func(b *testing.B) { scattered(b, s, 0.5, 1.3, func() {}) })
	b.Run("tick", func(b *testing.B) { scattered(b, s, 1.1, 1.3, func() { s.churn(1, 0.01) }) })
}

//go:noinline
func alignedByHand(a []position, b []velocity, c []mass) {
	b, c = b[:len(a)], c[:len(a)]
	for i := range a {
		a[i].X += b[i].X
		a[i].Y += c[i].Y
	}
}

// After the churn, one call of Align puts the rows of all storages in the same order. The limit is
// the loop over slices in that order.
func BenchmarkBudgetScatterAlign(b *testing.B) {
	const n, times = 100_000, 2
	s := newScatter(n, 1)
	s.churn(200, 0.01)
	s.w.Align(s.a, s.b, s.c)
	q := s.query()
	x, y, z := slices.Clone(s.a.Values()), slices.Clone(s.b.Values()), slices.Clone(s.c.Values())
	limit := repeated(times, func() { alignedByHand(x, y, z) })
	b.Run("all", func(b *testing.B) {
		compare(b, n*times, 1.3, repeated(times, func() { scatterAll(q) }), limit)
	})
	b.Run("runs", func(b *testing.B) {
		compare(b, n*times, 1.3, repeated(times, func() { scatterRuns(q) }), limit)
	})
}

// The benchmark measures the first loop over a new query. The garbage collector is off during a
// measurement, so it runs before each one. Otherwise the query would only get memory that the
// operating system provides for the first time.
func BenchmarkBudgetScatterFirst(b *testing.B) {
	for _, n := range scatterSizes {
		for percent, budget := range map[int]float64{100: 1.1, 10: 1.5, 1: 1.5} {
			s := newScatter(n, float64(percent)/100)
			b.Run(fmt.Sprintf("%s/%d%%", scatterName(n), percent), func(b *testing.B) {
				times := max(1, 200_000/n)
				ours := repeated(times, func() { scatterAll(s.query()) })
				ours.prepare = runtime.GC
				compare(b, len(s.both)*times, budget, ours, repeated(times, func() { scatterByHand(s) }))
			})
		}
	}
}

//go:noinline
func everyByHand(a *ecs.Storage[position], b *ecs.Storage[velocity]) {
	for row, e := range b.Entities() {
		if p := a.Mut(e); p != nil {
			v := b.Values()[row]
			p.X += v.X
			p.Y += v.Y
		}
	}
}

// Every second entity has the second component. The common rows are in the same order in both
// storages, with gaps between them in the first storage.
func BenchmarkBudgetScatterEvery2nd(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		p := moving(n)
		for _, e := range p.entities {
			p.velocities.Remove(e)
		}
		for i, e := range p.entities {
			if i%2 == 0 {
				p.velocities.Set(e, velocity{X: 1, Y: 1})
			}
		}
		q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
		times := max(1, 200_000/n)
		limit := repeated(times, func() { everyByHand(p.positions, p.velocities) })
		b.Run(scatterName(n)+"/all", func(b *testing.B) {
			compare(b, n/2*times, 1.1, repeated(times, func() { stepAll(q) }), limit)
		})
	}
}
