package query

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// bigInt is 2^53. From this number on, float64 cannot represent every integer.
var bigInt int64 = 1 << 53

// sortKeys are answers of all types. Some different numbers are equal as float64.
var sortKeys = []any{
	nil, false, true, 0, 1, -1, 7, 1<<31 - 1, int(bigInt), int(bigInt + 1), int(bigInt + 2), int(-bigInt - 1), math.MaxInt, uint8(7), uint64(1 << 53), uint64(1<<53 + 1), uint64(math.MaxUint64),
	*new(big.Int).Lsh(big.NewInt(1), 70), 0.0, math.Copysign(0, -1), 0.5, -0.5, 7.0, float64(1 << 53), 1e300, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	"", "a", "a\x00", "abcdef", "abcdefg", "abcdefh", "\xff\xff\xff\xff\xff\xff\xff", []any{1, 2}, []any{1, 3},
}

// A Best keeps the same entities as sorting all of them, with any start place and any number of
// parts.
func TestBest_EqualsSorting(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	type ranked struct {
		e    ecs.Entity
		keys []Answer
	}
	key := map[int]func() Answer{
		0: func() Answer { return Answer{sortKeys[rng.IntN(len(sortKeys))]} },
		1: func() Answer { return Answer{rng.IntN(20)} },
		2: func() Answer { return Answer{float64(rng.NormFloat64())} },
	}
	for round := range 600 {
		all, of, keys := make([]ranked, rng.IntN(300)), key[rng.IntN(len(key))], 1+rng.IntN(2)
		for i := range all {
			all[i].e = ecs.NewEntity(uint32(i), 1)
			for range keys {
				all[i].keys = append(all[i].keys, of())
			}
		}
		best := &Best{Desc: rng.IntN(2) == 0, Limit: rng.IntN(40)}
		if round%3 == 0 {
			best.Limit = 0
		}
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, func(a, b ranked) int { return slices.CompareFunc(a.keys, b.keys, best.order) })
		from := 0
		if len(sorted) > 0 && rng.IntN(2) == 0 {
			from = 1 + rng.IntN(len(sorted))
			before := &Best{Desc: best.Desc}
			before.Add(sorted[from-1].e, sorted[from-1].keys...)
			for p := range before.Sorted() {
				best.After = &p
			}
		}
		var given []Answer
		for part := range slices.Chunk(all, 1+rng.IntN(50)) {
			of := best.Part()
			for _, r := range part {
				// Add must copy the keys.
				given = append(given[:0], r.keys...)
				of.Add(r.e, given...)
			}
			best.Join(of)
			if best.Limit > 0 {
				require.LessOrEqual(t, best.kept(), 2*best.Limit)
			}
		}
		want := sorted[from:]
		if best.Limit > 0 {
			want = want[:min(best.Limit, len(want))]
		}
		require.Equal(t, len(all), best.Total)
		n := 0
		for p := range best.Sorted() {
			require.Equal(t, want[n].e, p.Entity(), "%d from %d, limit %d, desc %v", n, from, best.Limit, best.Desc)
			n++
		}
		require.Equal(t, len(want), n)
	}
}

// Codes sort like their keys, and an exact code can be converted back to its key.
func TestBest_CodesOrderedLikeKeys(t *testing.T) {
	for _, desc := range []bool{false, true} {
		b := &Best{Desc: desc}
		for _, x := range sortKeys {
			code, all := b.codeOf(Answer{x})
			if all {
				require.Zero(t, Answer{x}.Compare(b.keyOf(code)), "%v", x)
			}
			for _, y := range sortKeys {
				p, q := Place{}, Place{}
				for place, v := range map[*Place]any{&p: x, &q: y} {
					if place.code, all = b.codeOf(Answer{v}); !all {
						place.keys = []Answer{{v}}
					}
				}
				require.Equal(t, b.order(Answer{x}, Answer{y}), b.compare(&p, &q), "%v and %v, desc %v", x, y, desc)
			}
		}
	}
}

// Without a limit, Best stores places in runs, with 16 bytes each.
func TestBest_ManyRunsWithoutLimit(t *testing.T) {
	b, rng := new(Best), rand.New(rand.NewPCG(1, 1))
	for i := range 3*runLength + 5 {
		b.Add(ecs.NewEntity(uint32(i), 1), Answer{rng.IntN(1000)})
	}
	require.Len(t, b.plain, 4)
	require.Empty(t, b.full)
	n, before := 0, Place{}
	for p := range b.Sorted() {
		require.LessOrEqual(t, b.compare(&before, &p), 0)
		n, before = n+1, p
	}
	require.Equal(t, b.Total, n)
}
