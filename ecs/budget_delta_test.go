package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

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

// delta returns sides that find n/part written values among n values.
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
	some := func() []int { // Selects other rows on each call.
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
