package ecs_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// iterationSizes has the number of entities of three worlds. The small world fits the first-level
// cache, and the middle world fits the second-level cache. The large world is larger than both
// caches.
var iterationSizes = []int{1_000, 100_000, 1_000_000}

func sizeName(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%dk", n/1_000)
}

// aligned runs f for loops over Runs and over All, and for every size of the world. Both components
// were added in the same order.
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

// The world has a checkpoint. The first loop saves all rows, so the measured loops need not save
// them.
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

// Every row is written for the first time since a checkpoint. The hand-written loop copies the
// whole column before it writes.
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

// The hand-written look-up also rejects handles of destroyed entities: it compares the handle with
// the entity in the row.
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

// A thousand rows are processed on all processors. If rows are expensive, the hand-written code
// splits the slices over goroutines. If rows are cheap, the hand-written code is a single loop,
// because waking a goroutine takes longer than the loop.
//
// Only the time of the calling thread is measured. If no other processor takes a share of the work,
// this time is twice the time of the hand-written code.
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

// In the scatter benchmarks, the rows of different storages are in different orders. The benchmarks
// compare a query with a hand-written loop over the entities of one storage. This loop looks up
// each entity in the other storages.

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

// scattered compares the loops over All and over Runs with the hand-written loop. The parameters
// all and runs are the budgets of these two loops. The function change runs before each loop.
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

// The benchmark measures loops after one call of Align, which has put the rows of all storages in
// the same order. The benchmark compares them with a hand-written loop over slices in that order.
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

// The benchmark measures the first loop over a new query, which allocates memory. The garbage
// collector runs before each measurement, but not during it. So the query reuses freed memory, and
// does not wait for new memory from the operating system.
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

// Every second entity has the second component. The rows of these entities are in the same order in
// both storages, with gaps between them in the first storage.
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

// The worlds of BenchmarkBudgetFragmented are small, so they show the cost of a loop before its
// first row. The benchmark is like fragmented_iter of the ECS benchmark suite. There, Shipyard
// takes 0.14 ns per row, because rustc doubles four numbers at once. Go doubles one number at a
// time, so even the hand-written loop takes 0.30 ns per row.

// A fragment is a small world with three ways to loop over it: All, Runs, and hand-written code.
type fragment struct{ all, runs, hand func() }

type (
	amount float32
	gain   float32
)

func newFragment(n int) fragment {
	w := ecs.NewWorld(ecs.Options{})
	amounts, gains := ecs.MustRegister[amount](w), ecs.MustRegister[gain](w)
	for range n {
		e := w.Create()
		amounts.Set(e, 1)
		gains.Set(e, 1)
	}
	q := ecs.NewQuery2(ecs.Write(amounts), ecs.Read(gains))
	a, g := amounts.Values(), gains.Values()
	return fragment{
		all:  func() { fragmentAll(q) },
		runs: func() { fragmentRuns(q) },
		hand: func() { fragmentByHand(a, g) },
	}
}

//go:noinline
func fragmentAll(q *ecs.Query2[amount, gain]) {
	for _, row := range q.All() {
		*row.A += amount(*row.B)
	}
}

//go:noinline
func fragmentRuns(q *ecs.Query2[amount, gain]) {
	for run := range q.Runs() {
		a := run.A
		g := run.B[:len(a)]
		for i := range a {
			a[i] += amount(g[i])
		}
	}
}

//go:noinline
func fragmentByHand(a []amount, g []gain) {
	g = g[:len(a)]
	for i := range a {
		a[i] += amount(g[i])
	}
}

// The benchmark measures one loop over all rows, and 26 loops over 20 rows each.
func BenchmarkBudgetFragmented(b *testing.B) {
	const fragments, times = 26, 200
	for _, c := range []struct {
		name     string
		walks, n int
		budget   float64
	}{
		{"one", 1, fragments * 20, 1.3},
		{"each", fragments, 20, 2},
	} {
		parts := make([]fragment, c.walks)
		for i := range parts {
			parts[i] = newFragment(c.n)
		}
		walks := func(loop func(*fragment)) side {
			return repeated(times, func() {
				for i := range parts {
					loop(&parts[i])
				}
			})
		}
		limit := walks(func(f *fragment) { f.hand() })
		b.Run(c.name+"/all", func(b *testing.B) {
			compare(b, times*c.walks*c.n, c.budget, walks(func(f *fragment) { f.all() }), limit)
		})
		b.Run(c.name+"/runs", func(b *testing.B) {
			compare(b, times*c.walks*c.n, c.budget, walks(func(f *fragment) { f.runs() }), limit)
		})
	}
}

// A query finds the entities that changed since the last commit. It reads three components whose
// rows are in different orders. The benchmark compares it with a hand-written loop over a Delta
// that looks up each entity.
func BenchmarkBudgetChangeFilter(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		for _, c := range []struct {
			percent int
			budget  float64
		}{{100, 1}, {10, 1.1}, {1, 1.5}} {
			b.Run(fmt.Sprintf("%s/%d%%", sizeName(n), c.percent), func(b *testing.B) {
				s := newChangingWorld(n, n*c.percent/100)
				q := s.query().With(s.a.Changed())
				d, err := s.a.SinceCommit()
				if err != nil {
					b.Fatal(err)
				}
				compare(b, s.part, c.budget,
					side{s.tick, func() { scatterAll(q) }},
					side{s.tick, func() { changedByHand(s.scatter, d) }})
			})
		}
	}
}

// A changingWorld is a world in which each tick writes some of the entities. The next tick writes
// other entities.
type changingWorld struct {
	*scatter
	part  int
	order []int
	begin int
}

func newChangingWorld(n, part int) *changingWorld {
	return &changingWorld{scatter: newScatter(n, 1), part: part, order: permutation(n, 5)}
}

func (s *changingWorld) tick() {
	s.w.Commit()
	if s.begin += s.part; s.begin+s.part > len(s.order) {
		s.begin = 0
	}
	for _, i := range s.order[s.begin : s.begin+s.part] {
		s.a.Mut(s.both[i]).X++
	}
}

//go:noinline
func changedByHand(s *scatter, d *ecs.Delta[position]) {
	if err := d.SinceCommit(); err != nil {
		panic(err)
	}
	for e := range d.Changed() {
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
