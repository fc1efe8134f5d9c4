package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The worlds of this file are small, so they show the cost of a loop before its first row. The
// limit is the loop over the same slices. In the ECS benchmark suite, fragmented_iter doubles 520
// numbers. The limit takes 0.30 ns per row, and Shipyard takes 0.14 ns, because rustc doubles four
// numbers at once and Go only one. So 1.5 times Shipyard is 0.7 times the limit.

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
