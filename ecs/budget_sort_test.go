package ecs_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The benchmark measures a sort by value. The limit uses the key directly: it sorts pairs of key
// and row with slices.SortFunc, and breaks ties by row. It then gathers entities and values into
// separate arrays, and updates the sparse array.
func BenchmarkBudgetSort(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		w := ecs.NewWorld(ecs.Options{})
		s := ecs.MustRegister[position](w)
		entities := w.CreateN(nil, n)
		s.SetAll(entities, position{})
		keys := permutation(n, 1)
		hand := handSorted{
			dense: slices.Clone(s.Entities()), data: make([]position, n), sparse: make([]uint32, n), keys: make([]keyed, n),
			entities: make([]ecs.Entity, n), values: make([]position, n),
		}
		for row, e := range hand.dense {
			hand.sparse[e.Index()] = uint32(row)
		}
		round := 0
		fill := func(values []position) {
			round++
			for i := range values {
				values[i].X = float64(keys[(i+round*7919)%n])
			}
		}
		// Each repetition sorts new values. Otherwise the processor would learn to predict the
		// branches.
		ours := side{
			prepare: func() { fill(s.MutValues()) },
			work:    func() { s.SortFunc(func(x, y position) int { return cmp.Compare(x.X, y.X) }) },
		}
		limit := side{prepare: func() { fill(hand.data) }, work: hand.sort}
		b.Run(scatterName(n), func(b *testing.B) { compare(b, n, 1.2, ours, limit) })
	}
}

type keyed struct {
	key float64
	row uint32
}

type handSorted struct {
	dense, entities []ecs.Entity
	data, values    []position
	sparse          []uint32
	keys            []keyed
}

//go:noinline
func (h *handSorted) sort() {
	for row, v := range h.data {
		h.keys[row] = keyed{v.X, uint32(row)}
	}
	slices.SortFunc(h.keys, func(x, y keyed) int {
		if c := cmp.Compare(x.key, y.key); c != 0 {
			return c
		}
		return cmp.Compare(x.row, y.row)
	})
	for row, k := range h.keys {
		e := h.dense[k.row]
		h.entities[row], h.values[row] = e, h.data[k.row]
		h.sparse[e.Index()] = uint32(row)
	}
	h.dense, h.entities = h.entities, h.dense
	h.data, h.values = h.values, h.data
}
