package ecs_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
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
// not 0, it is a second budget, in nanoseconds per call.
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
// in order. It compares Restore with a hand-written undo log of row numbers and old values. If few
// rows were written, it also compares Restore with a copy of all rows.
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
		// The allowed multiple of the time to copy all rows, or 0 for no budget.
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
// history of 10 ticks. Each tick writes one row.
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

// A loggedRow is the number of a row and its value before the row was written.
type loggedRow struct {
	row uint32
	old position
}

// A handDelta finds changes by hand-written code. It logs rows before they are written, and
// compares them with their old values later.
type handDelta struct {
	entities []ecs.Entity
	live     []position
	log      []loggedRow
	changed  []ecs.Entity
	edits    []ecs.Edit[position]
}

func (d *handDelta) compare() {
	d.changed, d.edits = d.changed[:0], d.edits[:0]
	for i := range d.log {
		n := &d.log[i]
		if now := d.live[n.row]; now != n.old {
			d.changed, d.edits = append(d.changed, d.entities[n.row]), append(d.edits, ecs.Edit[position]{Old: n.old, New: now})
		}
	}
}

// The benchmark measures Delta.SinceCommit in three cases. Either every value was written, or 1 %
// were written at random. In the third case, an entity has also lost the component, so the last row
// has moved.
func BenchmarkBudgetDelta(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		for _, c := range []struct {
			name   string
			part   int
			moved  bool
			budget float64
		}{
			{"all", 1, false, 1},
			{"1%", 100, false, 2},
			{"1%/moved", 100, true, 2},
		} {
			b.Run(c.name+"/"+sizeName(n), func(b *testing.B) {
				ours, limit := delta(n, c.part, c.moved)
				compare(b, n/c.part, c.budget, ours, limit)
			})
		}
	}
}

// delta returns the two sides of a benchmark. Each side finds which of n values were written since
// the last commit. There are n/part such values.
func delta(n, part int, moved bool) (ours, limit side) {
	w := ecs.NewWorld(ecs.Options{History: 1})
	s := ecs.MustRegister[position](w)
	hand := &handDelta{live: make([]position, n)}
	for range n {
		e := w.Create()
		s.Set(e, position{1, 2})
		hand.entities = append(hand.entities, e)
	}
	w.Commit()
	d, err := s.SinceCommit()
	if err != nil {
		panic(err)
	}
	rows := permutation(n, 5)
	begin := 0
	some := func() []int { // Selects different rows on each call.
		if part == 1 {
			return nil
		}
		if begin += n / part; begin+n/part > n {
			begin = 0
		}
		return rows[begin : begin+n/part]
	}
	ours = side{
		prepare: func() {
			w.Commit()
			if part == 1 {
				values := s.MutValues()
				for i := range values {
					values[i].X++
				}
			}
			for _, i := range some() {
				s.Mut(hand.entities[i]).X++
			}
			if moved {
				e := hand.entities[n/2]
				v, _ := s.Get(e)
				s.Remove(e)
				s.Set(e, v)
			}
		},
		work: func() {
			if err := d.SinceCommit(); err != nil {
				panic(err)
			}
		},
	}
	limit = side{
		prepare: func() {
			hand.log = hand.log[:0]
			write := func(i int) {
				hand.log = append(hand.log, loggedRow{uint32(i), hand.live[i]})
				hand.live[i].X++
			}
			if part == 1 {
				for i := range n {
					write(i)
				}
			}
			for _, i := range some() {
				write(i)
			}
		},
		work: hand.compare,
	}
	return ours, limit
}

// The hand-written alternative to a Past is a copy of all values at the end of each tick.

// BenchmarkBudgetPastBeside measures the interpolation of all rows between the previous tick and
// the present tick. The hand-written code copies an array of present values and interpolates. A
// tick writes all rows, 1 % at random, or no row.
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
// written a tenth of all rows. The benchmark compares this with look-ups of the present positions.
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

// BenchmarkBudgetPastAim measures Past.At together with the first look-up after it. The time is per
// row that was written since the tick. The hand-written code collects the old values in a slice. To
// find them by row, it uses an array with an entry of 4 bytes for every row. It clears the whole
// array each time, even if few rows were written.
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

// aimed returns the two sides of a benchmark. Each side collects the values that n rows had some
// ticks ago. The parameter back is this number of ticks. The result written is the number of writes
// in these ticks.
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

// A world with a history applies recorded ticks. Each tick wrote a thousand random rows. The
// benchmark compares this with hand-written code that decodes the rows into slices and keeps an
// undo log.
func BenchmarkBudgetApply(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(sizeName(n), func(b *testing.B) {
			ours, limit := applied(b, n, 1000)
			compare(b, 1000*appliedTicks, 3, ours, limit)
		})
	}
}

// appliedTicks is the number of ticks that are timed together.
const appliedTicks = 16

func applied(b *testing.B, n, rows int) (ours, limit side) {
	w := ecs.NewWorld(ecs.Options{History: 4})
	s := ecs.MustRegister[position](w)
	for range n {
		s.Set(w.Create(), position{1, 2})
	}
	w.Commit()
	order := permutation(n, 5)
	var patches []*raw.Patch
	for i := range appliedTicks {
		written := slices.Clone(order[i*rows : (i+1)*rows])
		slices.Sort(written)
		c := raw.StorageChange{Storage: s.Raw(), Before: n}
		p := raw.StoragePatch{After: n}
		for _, row := range written {
			if k := len(c.Values) - 1; k >= 0 && c.Values[k].First+c.Values[k].N == row {
				c.Values[k].N++
			} else {
				c.Values = append(c.Values, raw.Range{First: row, N: 1})
			}
			p.Rows = s.Raw().AppendRows(p.Rows, row, row+1)
		}
		p.StorageChange = c
		patches = append(patches, &raw.Patch{Storages: []raw.StoragePatch{p}})
	}
	ours = side{work: func() {
		for _, p := range patches {
			p.Tick = w.Tick() + 1
			if err := w.Raw().Apply(raw.Ticks(p)); err != nil {
				b.Fatal(err)
			}
		}
	}}

	live := make([]position, n)
	var logs [4][]loggedRow
	turn := 0
	limit = side{work: func() {
		for _, p := range patches {
			turn++
			log := logs[turn%len(logs)][:0]
			src := p.Storages[0].Rows
			for _, r := range p.Storages[0].Values {
				for row := r.First; row < r.First+r.N; row++ {
					log = append(log, loggedRow{uint32(row), live[row]})
					live[row].X = math.Float64frombits(binary.LittleEndian.Uint64(src))
					live[row].Y = math.Float64frombits(binary.LittleEndian.Uint64(src[8:]))
					src = src[16:]
				}
			}
			logs[turn%len(logs)] = log
		}
	}}
	return ours, limit
}
