package ecs_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// iterationSizes has the number of entities of three worlds. The first fits the first-level cache,
// the second fits the second-level cache, and the third fits neither.
var iterationSizes = []int{1_000, 100_000, 1_000_000}

func sizeName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%dk", n/1_000)
}

// aligned runs f for every size and every form of loop over two components. Both components were
// added in the same order.
func aligned(b *testing.B, sizes []int, f func(b *testing.B, p *benchWorld, form string, step func())) {
	for _, form := range []string{"runs", "all"} {
		for _, n := range sizes {
			b.Run(form+"/"+sizeName(n), func(b *testing.B) {
				p := moving(n)
				q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
				step := map[string]func(){"runs": func() { stepRuns(q) }, "all": func() { stepAll(q) }}[form]
				f(b, p, form, step)
			})
		}
	}
}

//go:noinline
func stepRuns(q *ecs.Query2[position, velocity]) {
	for run := range q.Runs() {
		stepSlices(run.A, run.B)
	}
}

//go:noinline
func stepAll(q *ecs.Query2[position, velocity]) {
	for _, row := range q.All() {
		row.A.X += row.B.X
		row.A.Y += row.B.Y
	}
}

//go:noinline
func stepSlices(positions []position, velocities []velocity) {
	v := velocities[:len(positions)]
	for i := range positions {
		positions[i].X += v[i].X
		positions[i].Y += v[i].Y
	}
}

// The open frame has already saved the rows, as in every loop but the first in a frame.
func BenchmarkBudgetIterate(b *testing.B) {
	budget := map[string]float64{"runs": 1.15, "all": 1.3}
	aligned(b, iterationSizes, func(b *testing.B, p *benchWorld, form string, step func()) {
		defer p.w.Release(p.w.Checkpoint())
		n := p.positions.Len()
		times := max(1, 200_000/n)
		raw := func() { stepSlices(p.positions.Values(), p.velocities.Values()) }
		compare(b, n*times, budget[form], repeated(times, step), repeated(times, raw))
	})
}

// Every row is written for the first time since a checkpoint. The limit copies the whole column
// first.
func BenchmarkBudgetIterateFirst(b *testing.B) {
	aligned(b, iterationSizes[1:], func(b *testing.B, p *benchWorld, form string, step func()) {
		cp := p.w.Checkpoint()
		defer func() { p.w.Release(cp) }()
		ours := side{
			prepare: func() {
				p.w.Release(cp)
				cp = p.w.Checkpoint()
			},
			work: step,
		}
		n := p.positions.Len()
		saved := make([]position, n)
		limit := side{work: func() {
			copy(saved, p.positions.Values())
			stepSlices(p.positions.Values(), p.velocities.Values())
		}}
		compare(b, n, 1.3, ours, limit)
	})
}

// The storages are in unrelated orders, so every row needs a look-up in the other storage.
func BenchmarkBudgetIterateShuffled(b *testing.B) {
	const n = 1_000_000
	p := shuffled(n)
	reading := ecs.NewQuery2(ecs.Read(p.positions), ecs.Read(p.velocities))
	writing := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
	b.Run("read", func(b *testing.B) {
		compare(b, n, 1.3, side{work: func() { sumAll(reading) }}, side{work: func() { sumLimit(&p.limit) }})
	})
	b.Run("write", func(b *testing.B) {
		defer p.w.Release(p.w.Checkpoint())
		compare(b, n, 1.6, side{work: func() { stepAll(writing) }}, side{work: func() { stepLimit(&p.limit) }})
	})
}

//go:noinline
func sumAll(q *ecs.Query2[position, velocity]) {
	sum := 0.0
	for _, row := range q.All() {
		sum += row.A.X + row.B.Y
	}
	sink = sum
}

//go:noinline
func sumLimit(w *limitWorld) {
	sum := 0.0
	for row, i := range w.positions.dense {
		if v := w.velocities.get(i); v != nil {
			sum += w.positions.values[row].X + v.Y
		}
	}
	sink = sum
}

//go:noinline
func stepLimit(w *limitWorld) {
	for row, i := range w.positions.dense {
		if v := w.velocities.get(i); v != nil {
			p := &w.positions.values[row]
			p.X += v.X
			p.Y += v.Y
		}
	}
}

// The limit also rejects handles of destroyed entities: it compares the handle with the entity in
// the row.
func BenchmarkBudgetGet(b *testing.B) {
	for _, n := range []int{16 << 10, 1_000_000} {
		p := moving(n)
		order := permutation(n, 3)
		entities, handles := make([]ecs.Entity, n), make([]limitEntity, n)
		for i, k := range order {
			entities[i], handles[i] = p.entities[k], p.handles[k]
		}
		b.Run(sizeName(n), func(b *testing.B) {
			times := max(1, 100_000/n)
			ours := repeated(times, func() { getAll(p.positions, entities) })
			set := partSet{0, make([]uint32, n), make([]limitEntity, n), make([]part, n)}
			for _, e := range p.handles {
				set.put(e, aPart)
			}
			limit := repeated(times, func() { getLimit(&set, handles) })
			compare(b, n*times, 1.5, ours, limit)
		})
	}
}

//go:noinline
func getAll(s *ecs.Storage[position], entities []ecs.Entity) {
	sum := 0.0
	for _, e := range entities {
		if v, ok := s.Get(e); ok {
			sum += v.X
		}
	}
	sink = sum
}

//go:noinline
func getLimit(s *partSet, handles []limitEntity) {
	sum := 0.0
	for _, e := range handles {
		if v := s.get(e); v != nil {
			sum += v.X
		}
	}
	sink = sum
}

// A thousand rows are processed on all processors. If rows are expensive, the limit splits the
// slices over goroutines. If rows are cheap, the limit is a single loop, because waking a goroutine
// takes longer than the loop.
//
// The measured time is the time of the calling thread. With two processors, it is twice the limit
// if the work is not shared.
func BenchmarkBudgetParallel(b *testing.B) {
	const n = 1000
	p := moving(n)
	q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
	b.Run("long", func(b *testing.B) {
		ours := func() {
			q.ParallelRuns(0, func(run ecs.Run2[position, velocity]) { turnSlices(run.A, run.B) })
		}
		compare(b, n, 1.2, side{work: ours}, side{work: func() { turnByHand(p.positions.Values(), p.velocities.Values()) }})
	})
	b.Run("short", func(b *testing.B) {
		const times = 100
		ours := func() {
			q.ParallelRuns(0, func(run ecs.Run2[position, velocity]) { stepSlices(run.A, run.B) })
		}
		compare(b, n*times, 3, repeated(times, ours), repeated(times, func() { stepSlices(p.positions.Values(), p.velocities.Values()) }))
	})
}

// turnSlices is work that takes a microsecond or more per row.
//
//go:noinline
func turnSlices(positions []position, velocities []velocity) {
	for i := range positions {
		x, y := positions[i].X, positions[i].Y
		for range 100 {
			sin, cos := math.Sincos(velocities[i].X)
			x, y = float64(x*cos)-float64(y*sin), float64(x*sin)+float64(y*cos)
		}
		positions[i].X, positions[i].Y = x, y
	}
}

func turnByHand(positions []position, velocities []velocity) {
	var group sync.WaitGroup
	parts := runtime.GOMAXPROCS(0)
	share := len(positions) / parts
	for part := 1; part < parts; part++ {
		lo, hi := len(positions)*part/parts, len(positions)*(part+1)/parts
		group.Go(func() { turnSlices(positions[lo:hi], velocities[lo:hi]) })
	}
	turnSlices(positions[:share], velocities[:share])
	group.Wait()
}
