package ecs_test

import (
	"cmp"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The benchmarks of groups and sorts are compared with a limit: the same work without a group. See
// bench_test.go for the metrics. These benchmarks have no budgets.

const grouped = 1_000_000

// Two components were added in two different random orders and are then grouped. The limit is a
// world whose components were added in the same order.
func BenchmarkGroupIterate(b *testing.B) {
	for _, form := range []string{"runs", "all"} {
		b.Run(form, func(b *testing.B) {
			group, limit := shuffled(grouped), moving(grouped)
			ecs.Must(group.w.NewGroup(group.positions, group.velocities))
			step := func(p *benchWorld) side {
				q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
				if form == "runs" {
					return side{work: func() { stepRuns(q) }}
				}
				return side{work: func() { stepAll(q) }}
			}
			compare(b, grouped, 1.05, step(group), step(limit))
		})
	}
}

// Two components were added in two different random orders and are then grouped. The limit is a
// world whose rows stay in random orders.
func BenchmarkGroupIterateInsteadOfShuffled(b *testing.B) {
	group, limit := shuffled(grouped), shuffled(grouped)
	ecs.Must(group.w.NewGroup(group.positions, group.velocities))
	a := ecs.NewQuery2(ecs.Write(group.positions), ecs.Read(group.velocities))
	c := ecs.NewQuery2(ecs.Write(limit.positions), ecs.Read(limit.velocities))
	compare(b, grouped, 1, side{work: func() { stepAll(a) }}, side{work: func() { stepAll(c) }})
}

// One entity in ten is a member of the group. The query does not visit the rows after the group.
func BenchmarkGroupFew(b *testing.B) {
	few := func(group bool) side {
		p := newBenchWorld(grouped)
		if group {
			ecs.Must(p.w.NewGroup(p.positions, p.velocities))
		}
		for i, k := range permutation(grouped, 1) {
			p.setPosition(k)
			if i%10 > 0 {
				p.setVelocity(p.other(k))
			}
			if i%10 == 0 {
				p.setVelocity(k)
			}
		}
		q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
		return side{work: func() { stepAll(q) }}
	}
	compare(b, grouped, 1, few(true), few(false))
}

// other creates an entity without components. It returns the entity's position in p.entities.
func (p *benchWorld) other(int) int {
	p.entities = append(p.entities, p.w.Create())
	p.handles = append(p.handles, p.limit.create())
	return len(p.entities) - 1
}

// A component is added to every entity and removed again, one entity at a time. Each call moves a
// row in both storages of the group.
func BenchmarkGroupAddRemove(b *testing.B) {
	const n = 100_000
	group, limit := moving(n), moving(n)
	ecs.Must(group.w.NewGroup(group.positions, group.velocities))
	group.removeVelocities()
	limit.removeVelocities()
	compare(b, n, 5, side{work: group.addRemove}, side{work: limit.addRemove})
}

func BenchmarkGroupSort(b *testing.B) {
	p := moving(grouped)
	by := func(x, y position) int { return cmp.Compare(x.X, y.X) }
	shuffle := func() {
		for i, k := range permutation(grouped, 5) {
			p.positions.Mut(p.entities[i]).X = float64(k)
		}
	}
	b.Run("shuffled", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			shuffle()
			b.StartTimer()
			p.positions.SortFunc(by)
		}
	})
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			p.positions.SortFunc(by)
		}
	})
	b.Run("like", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			shuffle()
			p.positions.SortFunc(by)
			b.StartTimer()
			p.positions.SortLike(p.velocities)
		}
	})
	b.Run("like/sorted", func(b *testing.B) {
		for b.Loop() {
			p.positions.SortLike(p.velocities)
		}
	})
}

// The benchmark measures Align per entity in three cases: all rows are scattered, a tick has
// replaced 1 % of the rows, and nothing has changed.
func BenchmarkGroupAlign(b *testing.B) {
	const n = 100_000
	align := func(b *testing.B, prepare func(s *scatter)) {
		s := newScatter(n, 1)
		for b.Loop() {
			b.StopTimer()
			prepare(s)
			b.StartTimer()
			s.w.Align(s.a, s.b, s.c)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entity")
	}
	b.Run("scattered", func(b *testing.B) {
		align(b, func(s *scatter) {
			s.b.SortEntities(func(x, y ecs.Entity) int { return cmp.Compare(x*0x9e3779b97f4a7c15, y*0x9e3779b97f4a7c15) })
			s.c.SortEntities(func(x, y ecs.Entity) int { return cmp.Compare(x*0xd1342543de82ef95, y*0xd1342543de82ef95) })
		})
	})
	b.Run("tick", func(b *testing.B) { align(b, func(s *scatter) { s.churn(1, 0.01) }) })
	b.Run("aligned", func(b *testing.B) { align(b, func(*scatter) {}) })
}
