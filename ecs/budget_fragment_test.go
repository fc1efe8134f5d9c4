package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A fragment is a small part of a world: what has a component that few have.
type fragment struct{ all, runs, hand func() }

type (
	mark  float32
	value float32
)

const (
	fragments  = 26
	fragmentOf = 20
)

// newFragment returns a fragment of a world of its own, and the loops over it.
func newFragment() fragment {
	w := ecs.NewWorld(ecs.Options{})
	marks, values := ecs.MustRegister[mark](w), ecs.MustRegister[value](w)
	for range fragmentOf {
		e := w.Create()
		marks.Set(e, 1)
		values.Set(e, 1)
	}
	q := ecs.NewQuery2(ecs.Write(marks), ecs.Read(values))
	a, b := marks.Values(), values.Values()
	return fragment{
		all:  func() { fragmentAll(q) },
		runs: func() { fragmentRuns(q) },
		hand: func() { fragmentByHand(a, b) },
	}
}

//go:noinline
func fragmentAll(q *ecs.Query2[mark, value]) {
	for _, row := range q.All() {
		*row.A += mark(*row.B)
	}
}

//go:noinline
func fragmentRuns(q *ecs.Query2[mark, value]) {
	for run := range q.Runs() {
		fragmentByHand(run.A, run.B)
	}
}

//go:noinline
func fragmentByHand(a []mark, b []value) {
	b = b[:len(a)]
	for i := range a {
		a[i] += mark(b[i])
	}
}

func BenchmarkBudgetFragmented(b *testing.B) {
	var all [fragments]fragment
	for i := range all {
		all[i] = newFragment()
	}
	const times = 200
	each := func(work func(f *fragment)) side {
		return repeated(times, func() {
			for i := range all {
				work(&all[i])
			}
		})
	}
	limit := each(func(f *fragment) { f.hand() })
	b.Run("runs", func(b *testing.B) {
		compare(b, times*fragments*fragmentOf, 1.5, each(func(f *fragment) { f.runs() }), limit)
	})
	b.Run("all", func(b *testing.B) {
		compare(b, times*fragments*fragmentOf, 2, each(func(f *fragment) { f.all() }), limit)
	})
}
