package benchmarks

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A zipf draws ranks below n. The probability of rank k is proportional to 1/(k+1)^skew. The skew
// is at least 0 (uniform) and less than 1. The generator of math/rand/v2 only supports skews above
// 1.
//
// The formulas are those of Gray and others, "Quickly generating billion-record synthetic
// databases" (SIGMOD 1994). The probabilities of ranks 0 and 1 are exact. Those of the other ranks
// are approximate.
type zipf struct {
	rng *rand.Rand
	n   float64
	sum float64 // Sum of all n weights.
	// The generator draws a random number from 0 to sum. A number below first means rank 0. Any
	// other number below second means rank 1.
	first, second  float64
	slope, inverse float64
}

func newZipf(rng *rand.Rand, n int, skew float64) *zipf {
	z := &zipf{rng: rng, n: float64(n), first: 1, inverse: 1 / (1 - skew)}
	for k := 1; k <= n; k++ {
		z.sum += math.Pow(float64(k), -skew)
	}
	z.second = 1 + math.Pow(2, -skew)
	z.slope = (1 - math.Pow(2/z.n, 1-skew)) / (1 - z.second/z.sum)
	return z
}

func (z *zipf) next() int {
	u := z.rng.Float64()
	switch w := float64(u * z.sum); {
	case w < z.first:
		return 0
	case w < z.second:
		return 1
	}
	return min(int(z.n*math.Pow(float64(z.slope*(u-1))+1, z.inverse)), int(z.n)-1)
}

func TestZipf_FrequenciesOfRanks(t *testing.T) {
	const n, draws = 1000, 200_000
	for _, skew := range []float64{0, 0.5, 0.9, 0.99} {
		z := newZipf(rand.New(rand.NewPCG(1, 2)), n, skew)
		below := make([]float64, n+1) // below[k] counts the draws of ranks below k.
		for range draws {
			below[z.next()+1]++
		}
		want := 0.0
		for k := range n {
			below[k+1] += below[k]
			want += math.Pow(float64(k+1), -skew) / z.sum
			if got := below[k+1] / draws; math.Abs(got-want) > 0.03 {
				t.Fatalf("skew %v: %.3f of the draws have a rank up to %d, want %.3f", skew, got, k, want)
			}
		}
	}
}
