package ecs_test

import (
	"fmt"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A crowd is a world of n entities. Each entity has one of several components.
type crowd struct {
	w        *ecs.World
	storages []*ecs.Storage[position]
}

func newCrowd(n, storages int) *crowd {
	c := &crowd{w: ecs.NewWorld(ecs.Options{})}
	for i := range storages {
		c.storages = append(c.storages, ecs.MustRegister(c.w, ecs.Component[position]{Name: fmt.Sprint("position", i)}))
	}
	for i := range n {
		c.storages[i%storages].Set(c.w.Create(), position{1, 2})
	}
	return c
}

// flat compares a call in small and large worlds, which must take the same time. If nanoseconds is
// not 0, it is an additional limit of the call.
func flat(b *testing.B, calls int, nanoseconds float64, call func(c *crowd) side) {
	for _, size := range []struct{ n, storages int }{{1_000, 1}, {1_000, 64}, {1_000_000, 1}, {1_000_000, 64}} {
		b.Run(fmt.Sprintf("%s/%d", sizeName(size.n), size.storages), func(b *testing.B) {
			small, large := call(newCrowd(1_000, 1)), call(newCrowd(size.n, size.storages))
			compare(b, calls, 1.5, large, small)
			if nanoseconds > 0 {
				b.ReportMetric(nanoseconds, "ns/budget")
			}
		})
	}
}

func BenchmarkBudgetCheckpoint(b *testing.B) {
	const calls = 1000
	flat(b, calls, 100, func(c *crowd) side {
		oldest := c.w.Checkpoint()
		return side{
			prepare: func() { c.w.Restore(oldest) },
			work: func() {
				for range calls {
					c.w.Checkpoint()
				}
			},
		}
	})
}

// The benchmark measures Clear in an open frame.
func BenchmarkBudgetClear(b *testing.B) {
	const calls = 1000
	flat(b, calls, 100, func(c *crowd) side {
		c.w.Checkpoint()
		s := c.storages[0]
		n := s.Len()
		return repeated(calls, func() {
			s.Clear()
			s.Unclear(n)
		})
	})
}

// The benchmark measures a sequence of calls: Checkpoint, Clear as the first change after it,
// Restore and Release.
func BenchmarkBudgetClearRestored(b *testing.B) {
	const calls = 1000
	flat(b, calls, 0, func(c *crowd) side {
		s := c.storages[0]
		return repeated(calls, func() {
			cp := c.w.Checkpoint()
			s.Clear()
			c.w.Restore(cp)
			c.w.Release(cp)
		})
	})
}

// The benchmark measures Restore after some of 1M rows of 16 bytes were written, at random or all
// in order. The limit is a hand-written undo log that holds row numbers and old values.
//
// A copy of all rows would be an unfair limit, because an undo log cannot predict that every row
// will be written in order. If few rows were written, Restore is compared with such a copy as well.
func BenchmarkBudgetRestore(b *testing.B) {
	const n = 1_000_000
	p := moving(n)
	undo, handles := newLimitUndo(p, n)
	saved := make([]position, n)
	copied := side{work: func() { copy(saved, p.positions.Values()) }}
	random, ascending := permutation(n, 4), make([]int, n)
	for i := range ascending {
		ascending[i] = i
	}
	for _, c := range []struct {
		name string
		rows []int
		// The time limit, as a multiple of a copy of all rows; 0 means no limit.
		copies float64
	}{
		{"0.1%", random[:n/1000], 1.0 / 30},
		{"1%", random[:n/100], 1.0 / 4},
		{"100%", ascending, 0},
		{"100%/random", random, 0},
	} {
		cp := p.w.Checkpoint()
		ours := side{
			prepare: func() {
				for _, i := range c.rows {
					p.positions.Mut(p.entities[i]).X++
				}
			},
			work: func() { p.w.Restore(cp) },
		}
		written := make([]limitEntity, len(c.rows))
		for k, i := range c.rows {
			written[k] = handles[p.entities[i].Index()]
		}
		byHand := side{prepare: func() { undo.mutAll(written) }, work: undo.back}
		b.Run(c.name, func(b *testing.B) { compare(b, len(c.rows), 1.3, ours, byHand) })
		if c.copies > 0 {
			b.Run(c.name+"/copy", func(b *testing.B) { compare(b, len(c.rows), c.copies, ours, copied) })
		}
		p.w.Release(cp)
	}
}

// The benchmark compares the Commit of a tick in histories of 10,000 or 100,000 ticks with a
// history of 10 ticks. Each tick writes one row. A thinned history finds the tick to evict by
// binary search.
func BenchmarkBudgetCommit(b *testing.B) {
	const calls = 1000
	for _, form := range []struct {
		name   string
		budget float64
		tick   func(held int) (tick func())
	}{
		{"history", 2, func(held int) func() { return oneRow(ecs.Options{History: held}) }},
		{"thinned", 4, func(held int) func() { return oneRow(ecs.Options{History: held, HistoryDense: held / 4}) }},
		{"checkpoints", 2, oneRowBehindCheckpoints},
	} {
		for _, held := range []int{10_000, 100_000} {
			b.Run(fmt.Sprint(form.name, "/", held), func(b *testing.B) {
				few, many := form.tick(10), form.tick(held)
				for range 3 * held {
					many()
				}
				compare(b, calls, form.budget, repeated(calls, many), repeated(calls, few))
			})
		}
	}
}

// oneRow returns a function that writes a row and commits the tick.
func oneRow(o ecs.Options) (tick func()) {
	w := ecs.NewWorld(o)
	s := ecs.MustRegister[position](w)
	e := w.Create()
	s.Set(e, position{})
	return func() {
		s.Mut(e).X++
		w.Commit()
	}
}

// oneRowBehindCheckpoints is like oneRow, with a checkpoint in each retained tick.
func oneRowBehindCheckpoints(held int) (tick func()) {
	w := ecs.NewWorld(ecs.Options{History: 1})
	s := ecs.MustRegister[position](w)
	e := w.Create()
	s.Set(e, position{})
	cps, at := make([]ecs.Checkpoint, held), 0
	return func() {
		if cps[at].Valid() {
			w.Release(cps[at])
		}
		cps[at] = w.Checkpoint()
		at = (at + 1) % held
		s.Mut(e).X++
		w.Commit()
	}
}
