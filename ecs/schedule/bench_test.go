package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// BenchmarkBudgetStep measures what a step adds to its systems: the time of a step of 96 systems
// that do nothing, for each system. The limit is 2 µs.
func BenchmarkBudgetStep(b *testing.B) {
	const systems, limit = 96, 2 * time.Microsecond
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			w := ecs.NewWorld(ecs.Options{})
			s := schedule.New[int](w).Workers(workers)
			var resources [4]*ecs.Resource[int]
			for i := range resources {
				resources[i] = ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: fmt.Sprint(i)}))
			}
			for i := range systems { // Batches of four systems.
				s.Add(fmt.Sprint(i), resources[i%4], func(*schedule.Tick[int]) {})
			}
			s.Step(0)
			w.Commit()
			var total time.Duration
			for b.Loop() {
				start := time.Now()
				s.Step(0)
				total += time.Since(start)
				w.Commit()
			}
			perSystem := total / time.Duration(b.N) / systems
			b.ReportMetric(float64(perSystem), "ns/system")
			b.ReportMetric(float64(perSystem)/float64(limit), "x/limit")
			b.ReportMetric(1, "x/budget")
		})
	}
}

// BenchmarkStep runs three systems over 100,000 entities each. Two of them conflict, so with two
// workers the step takes at least two thirds of the time.
func BenchmarkStep(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			w := ecs.NewWorld(ecs.Options{History: 2})
			as, bs := ecs.MustRegister[c0](w), ecs.MustRegister[c1](w)
			for i := range int64(100_000) {
				e := w.Create()
				as.Set(e, c0{i, i})
				bs.Set(e, c1{i, i})
			}
			s := schedule.New[int](w).Workers(workers)
			first, second := ecs.NewQuery1(ecs.Write(as)), ecs.NewQuery1(ecs.Write(bs))
			work := func(v, n int64) int64 {
				for range 20 {
					v = v*31 + n
				}
				return v
			}
			s.Add("a", first, func(*schedule.Tick[int]) {
				for _, v := range first.All() {
					v.V = work(v.V, v.N)
				}
			})
			s.Add("b", second, func(*schedule.Tick[int]) {
				for _, v := range second.All() {
					v.V = work(v.V, v.N)
				}
			})
			for b.Loop() {
				s.Step(0)
				w.Commit()
			}
		})
	}
}
