package ecs_test

import (
	"fmt"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A query finds the entities that changed since the last commit. It reads three components whose
// rows are in different orders. The limit is a hand-written loop over the delta that looks up each
// entity.
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
// others.
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
