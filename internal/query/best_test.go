package query

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// What is kept, from whatever place on and joined from however many parts, is what sorting all gives.
func TestBest_IsWhatSortingGives(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		all := make([]Ranked, rng.IntN(300))
		for i := range all {
			all[i] = Ranked{ecs.NewEntity(uint32(i), 1), []Answer{{rng.IntN(20)}, {rng.IntN(2)}}}
		}
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, func(a, b Ranked) int { return slices.CompareFunc(a.Keys, b.Keys, Answer.Compare) })
		limit, from, after := rng.IntN(40), 0, (*Ranked)(nil)
		if len(sorted) > 0 && rng.IntN(2) == 0 {
			from = 1 + rng.IntN(len(sorted))
			after = &sorted[from-1]
		}
		best := &Best{Order: Answer.Compare, Limit: limit, After: after}
		for part := range slices.Chunk(all, 1+rng.IntN(50)) {
			of := best.Part()
			for _, r := range part {
				of.Add(r)
			}
			best.Join(of)
			if limit > 0 {
				require.LessOrEqual(t, len(best.found), 2*limit)
			}
		}
		want := sorted[from:]
		if limit > 0 {
			want = want[:min(limit, len(want))]
		}
		require.Equal(t, len(all), best.Total)
		require.Equal(t, len(want), len(best.Sorted()))
		for i, r := range best.Sorted() {
			require.Equal(t, want[i].Entity, r.Entity, "%d from %d", i, from)
		}
	}
}
