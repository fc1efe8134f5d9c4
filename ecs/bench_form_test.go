package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A formSystem is a system whose methods are different forms of the same loop.
type formSystem struct {
	q *ecs.Query2[position, velocity]
}

func (s *formSystem) all() {
	for _, row := range s.q.All() {
		row.A.X += row.B.X
	}
}

// get calls Get of each row, which returns the pointers of the row.
func (s *formSystem) get() {
	for _, row := range s.q.All() {
		p, v := row.Get()
		p.X += v.X
	}
}

// allCalled calls All through a variable, so the compiler inlines neither All nor the loop body.
func (s *formSystem) allCalled() {
	all := s.q.All
	if s.q == nil {
		all = nil
	}
	for _, row := range all() {
		row.A.X += row.B.X
	}
}

func (s *formSystem) runs() {
	for run := range s.q.Runs() {
		a, b := run.A, run.B[:len(run.A)]
		for i := range a {
			a[i].X += b[i].X
		}
	}
}

// The benchmark compares forms of a loop over two components. In the scattered world, the rows of
// the second component are in random order.
func BenchmarkIterateForms(b *testing.B) {
	const n = 10_000
	for name, scattered := range map[string]bool{"aligned": false, "scattered": true} {
		w := ecs.NewWorld(ecs.Options{})
		positions, velocities := ecs.MustRegister[position](w), ecs.MustRegister[velocity](w)
		entities := w.CreateN(nil, n)
		positions.SetAll(entities, position{})
		for i, k := range permutation(n, 1) {
			if !scattered {
				k = i
			}
			velocities.Set(entities[k], velocity{1, 1})
		}
		s := &formSystem{ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))}
		closure := func() {
			for _, row := range s.q.All() {
				row.A.X += row.B.X
			}
		}
		for form, loop := range map[string]func(){"method": s.all, "get": s.get, "closure": closure, "called": s.allCalled, "runs": s.runs} {
			b.Run(name+"/"+form, func(b *testing.B) {
				for b.Loop() {
					loop()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
