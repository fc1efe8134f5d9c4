package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The hand-written alternative to a Past is a copy of all values at the end of each tick.

// BenchmarkBudgetPastBeside measures a rendered frame between two ticks. It interpolates between
// the values of the previous tick and the present values, for all rows. The limit has two arrays
// and copies the older one first. A tick writes all rows, 1 % at random, or none.
func BenchmarkBudgetPastBeside(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for _, c := range []struct {
			name   string
			part   int
			budget float64
		}{{"all", 1, 1.5}, {"1%", 100, 1.5}, {"none", 0, 1.5}} {
			b.Run(c.name+"/"+sizeName(n), func(b *testing.B) {
				ours, limit := interpolated(n, c.part)
				compare(b, n, c.budget, ours, limit)
			})
		}
	}
}

func interpolated(n, part int) (ours, limit side) {
	w := ecs.NewWorld(ecs.Options{History: 2})
	s := ecs.MustRegister[position](w)
	for range n {
		s.Set(w.Create(), position{1, 2})
	}
	w.Commit()
	past, err := w.History().At(w.Tick())
	if err != nil {
		panic(err)
	}
	was, q := s.At(past), ecs.NewQuery1(ecs.Read(s))
	entities := s.Entities()
	rows := permutation(n, 5)
	begin, drawn := 0, 0.0
	tick := func(write func(i int)) {
		switch part {
		case 0:
		case 1:
			for i := range n {
				write(i)
			}
		default:
			if begin += n / part; begin+n/part > n {
				begin = 0
			}
			for _, i := range rows[begin : begin+n/part] {
				write(i)
			}
		}
	}
	ours = side{
		prepare: func() {
			if part == 1 {
				values := s.MutValues()
				for i := range values {
					values[i].X++
				}
			} else {
				tick(func(i int) { s.Mut(entities[i]).X++ })
			}
			w.Commit()
		},
		work: func() {
			if err := past.At(w.Tick() - 1); err != nil {
				panic(err)
			}
			for run := range q.Runs() {
				then, now := was.Beside(run.Entities), run.A
				then = then[:len(now)]
				for i := range now {
					drawn += then[i].X + float64((now[i].X-then[i].X)*0.25)
				}
			}
		},
	}
	before, now := make([]position, n), make([]position, n)
	limit = side{
		prepare: func() { tick(func(i int) { now[i].X++ }) },
		work: func() {
			copy(before, now)
			then := before[:len(now)]
			for i := range now {
				drawn += then[i].X + float64((now[i].X-then[i].X)*0.25)
			}
		},
	}
	return ours, limit
}

// BenchmarkBudgetPastGet looks up the positions that entities had some ticks ago. Each tick has
// written a tenth of all rows. The limit looks up the present positions.
func BenchmarkBudgetPastGet(b *testing.B) {
	for _, c := range []struct {
		name    string
		n       int
		lookups int
		back    uint64
		budget  float64
	}{
		{"hot", 10_000, 1000, 7, 3},
		{"cold", 1_000_000, 100_000, 7, 3},
	} {
		b.Run(c.name+"/"+sizeName(c.n), func(b *testing.B) {
			ours, limit := compensated(c.n, c.lookups, c.back)
			compare(b, c.lookups, c.budget, ours, limit)
		})
	}
}

func compensated(n, lookups int, back uint64) (ours, limit side) {
	w := ecs.NewWorld(ecs.Options{History: 16})
	s := ecs.MustRegister[position](w)
	for range n {
		s.Set(w.Create(), position{1, 2})
	}
	entities := s.Entities()
	rows := permutation(n, 5)
	for tick := range 16 {
		for _, i := range rows[tick*n/16/2:][:n/10] {
			s.Mut(entities[i]).X++
		}
		w.Commit()
	}
	past, err := w.History().At(w.Tick() - back)
	if err != nil {
		panic(err)
	}
	was := s.At(past)
	var targets []ecs.Entity
	for _, i := range permutation(n, 7)[:lookups] {
		targets = append(targets, entities[i])
	}
	sum := 0.0
	ours = side{work: func() {
		for _, e := range targets {
			p, _ := was.Get(e)
			sum += p.X
		}
	}}
	limit = side{work: func() {
		for _, e := range targets {
			p, _ := s.Get(e)
			sum += p.X
		}
	}}
	return ours, limit
}

// BenchmarkBudgetPastAim measures the first look-up after Aim, per row written since the tick. The
// limit is a loop that collects the old values in an array with an entry for every row. The array
// takes 4 bytes per row and is cleared each time, however few rows were written.
func BenchmarkBudgetPastAim(b *testing.B) {
	for _, c := range []struct {
		name   string
		runs   bool
		budget float64
	}{{"runs", true, 1}, {"scattered", false, 12}} {
		b.Run(c.name, func(b *testing.B) {
			ours, limit, rows := aimed(100_000, 7, c.runs)
			compare(b, rows, c.budget, ours, limit)
		})
	}
}

// aimed returns sides that prepare a Past of n rows, and the number of rows that were written since
// the tick of the Past.
func aimed(n int, back uint64, runs bool) (ours, limit side, written int) {
	w := ecs.NewWorld(ecs.Options{History: 16})
	s := ecs.MustRegister[position](w)
	for range n {
		s.Set(w.Create(), position{1, 2})
	}
	w.Commit()
	entities := s.Entities()
	rows := permutation(n, 5)
	var logs [16][]loggedRow
	for tick := range int(back) {
		some := rows[tick*n/40:][:n/10]
		if runs {
			some = nil
			for i := range n / 10 {
				some = append(some, tick*n/40+i)
			}
		}
		for _, i := range some {
			logs[tick] = append(logs[tick], loggedRow{uint32(i), position{1, 2}})
			s.Mut(entities[i]).X++
			written++
		}
		w.Commit()
	}
	past, err := w.History().At(w.Tick())
	if err != nil {
		panic(err)
	}
	was := s.At(past)
	ours = side{work: func() {
		if err := past.At(w.Tick() - back); err != nil {
			panic(err)
		}
		was.Get(entities[0])
	}}
	at, old := make([]uint32, n), []position(nil)
	limit = side{work: func() {
		clear(at)
		old = old[:0]
		for _, log := range logs[:back] {
			for _, x := range log {
				if at[x.row] == 0 {
					old = append(old, x.old)
					at[x.row] = uint32(len(old))
				}
			}
		}
	}}
	return ours, limit, written
}
