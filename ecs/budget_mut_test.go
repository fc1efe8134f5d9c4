package ecs_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A limitUndo is a hand-written sparse set with generations. In a frame, it saves the value of each
// row before the first write.
type limitUndo struct {
	sparse []uint32
	dense  []limitEntity
	values []position
	saved  []uint64 // One bit per row.
	rows   []uint32
	undo   []position
}

// newLimitUndo returns a copy of the n positions of p, and the handles by index.
func newLimitUndo(p *benchWorld, n int) (s *limitUndo, handles []limitEntity) {
	s = &limitUndo{sparse: make([]uint32, n), saved: make([]uint64, n/64+1)}
	handles = make([]limitEntity, n)
	for row, e := range p.positions.Entities() {
		handles[e.Index()] = limitEntity{e.Index(), e.Generation()}
		s.sparse[e.Index()] = uint32(row)
		s.dense = append(s.dense, handles[e.Index()])
		s.values = append(s.values, p.positions.Values()[row])
	}
	return s, handles
}

//go:noinline
func (s *limitUndo) mutAll(entities []limitEntity) {
	for _, e := range entities {
		r := s.sparse[e.index]
		if s.dense[r] != e {
			continue
		}
		if m := &s.saved[r>>6]; *m>>(r&63)&1 == 0 {
			*m |= 1 << (r & 63)
			s.rows = append(s.rows, r)
			s.undo = append(s.undo, s.values[r])
		}
		s.values[r].X++
	}
}

// back restores the saved values.
func (s *limitUndo) back() {
	for i, r := range s.rows {
		s.values[r] = s.undo[i]
	}
	if len(s.rows) < len(s.saved)/8 {
		for _, r := range s.rows {
			s.saved[r>>6] = 0
		}
	} else {
		clear(s.saved)
	}
	s.rows, s.undo = s.rows[:0], s.undo[:0]
}

// A tenth of all rows, chosen at random, is written once in a frame. Mut writes one row at a time,
// and MutEach writes 64. The limit is a hand-written look-up with an undo log.
func BenchmarkBudgetMut(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		p := moving(n)
		limit, handles := newLimitUndo(p, n)
		entities, some := make([]ecs.Entity, n/10), make([]limitEntity, n/10)
		for i, k := range rand.New(rand.NewPCG(4, 4)).Perm(n)[:n/10] {
			entities[i] = p.positions.Entities()[k]
			some[i] = handles[entities[i].Index()]
		}
		cp := p.w.Checkpoint()
		ours := func(work func(*ecs.Storage[position], []ecs.Entity)) side {
			return side{prepare: func() { p.w.Restore(cp) }, work: func() { work(p.positions, entities) }}
		}
		byHand := side{prepare: limit.back, work: func() { limit.mutAll(some) }}
		b.Run(sizeName(n)+"/one", func(b *testing.B) { compare(b, n/10, 2.5, ours(mutAll), byHand) })
		b.Run(sizeName(n)+"/each", func(b *testing.B) {
			budget := 1.5
			if n < 1_000_000 {
				budget = 1.9
			}
			compare(b, n/10, budget, ours(mutEach), byHand)
		})
		p.w.Release(cp)
	}
}

//go:noinline
func mutAll(s *ecs.Storage[position], entities []ecs.Entity) {
	for _, e := range entities {
		if p := s.Mut(e); p != nil {
			p.X++
		}
	}
}

//go:noinline
func mutEach(s *ecs.Storage[position], entities []ecs.Entity) {
	for _, p := range s.MutEach(entities) {
		p.X++
	}
}
