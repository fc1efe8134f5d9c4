package query

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASumOfIntegersIsExactHoweverLarge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		total, want := NewTotal("sum"), new(big.Int)
		for range rng.IntN(20) {
			v := []int{math.MaxInt, math.MinInt, -1, 0, 1, int(rng.Uint64())}[rng.IntN(6)]
			require.NoError(t, total.Add(Answer{v}))
			want.Add(want, big.NewInt(int64(v)))
		}
		require.Equal(t, want.String(), total.Result().String())
		require.Equal(t, want.String(), total.Result().String(), "asked again")
	}
}

// TestASumOfFloatsHasNoOrder adds floats of all sizes in two orders, takes some out again, and compares with
// the exact sum.
func TestASumOfFloatsHasNoOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		some, all := make([]float64, rng.IntN(30)), NewTotal("sum")
		exact := new(big.Float).SetPrec(2200)
		for i := range some {
			for {
				some[i] = math.Float64frombits(rng.Uint64())
				if rng.IntN(3) == 0 {
					some[i] = []float64{0.1, -0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, -1, 1 << 53, 0x1p-1022}[rng.IntN(7)]
				}
				if !math.IsNaN(some[i]) && !math.IsInf(some[i], 0) {
					break
				}
			}
			exact.Add(exact, big.NewFloat(some[i]))
		}
		want, _ := exact.Float64()
		gone := []float64{math.NaN(), math.Inf(1), math.MaxFloat64, 0.3, rng.Float64()}
		for _, f := range append(slices.Clone(gone), some...) {
			require.NoError(t, all.Add(Answer{f}))
		}
		for _, f := range gone {
			require.NoError(t, all.Remove(Answer{f}))
		}
		back := NewTotal("sum")
		for _, f := range slices.Backward(some) {
			require.NoError(t, back.Add(Answer{f}))
		}
		if len(some) > 0 {
			require.Equal(t, want, all.Result().v, "%v", some)
		}
		require.Equal(t, back.Result(), all.Result(), "%v", some)
	}
	infinite := NewTotal("sum")
	for f, want := range map[float64]float64{math.Inf(1): math.Inf(1), math.Inf(-1): math.Inf(-1)} {
		require.NoError(t, infinite.Add(Answer{f}))
		require.Equal(t, want, infinite.Result().v)
		require.NoError(t, infinite.Remove(Answer{f}))
	}
	require.NoError(t, infinite.Add(Answer{math.Inf(1)}))
	require.NoError(t, infinite.Add(Answer{math.Inf(-1)}))
	require.True(t, math.IsNaN(infinite.Result().v.(float64)))
}

// TestTheDigitsOfASumAreCarried before they can be beyond 64 bits.
func TestTheDigitsOfASumAreCarried(t *testing.T) {
	s := &floatSum{since: maxAdded - 2}
	s.add(-1.5, 1)
	require.Negative(t, s.digits[32]+s.digits[33])
	s.add(math.Pi, 1)
	require.Zero(t, s.since)
	for _, d := range s.digits[:len(s.digits)-1] {
		require.True(t, d >= 0 && d < 1<<digitBits, "%v", s.digits)
	}
	pi := math.Pi
	require.Equal(t, pi-1.5, s.near())
}

// TestAnExtremeForgetsWhatWasTakenOut compares the extremes of answers that change with those of a
// look at all, and requires that what is kept does not grow.
func TestAnExtremeForgetsWhatWasTakenOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, kind := range []string{"min", "max"} {
		k := &kept{answers: make([]Answer, 20), tally: newTally(kind)}
		for range 5000 {
			i, a := rng.IntN(20), Answer{rng.IntN(1000) - 500}
			k.take(uint32(i))
			if rng.IntN(9) > 0 {
				require.NoError(t, k.tally.add(a, uint32(i)))
				k.answers[i] = a
			}
			want := NewTotal(kind)
			for _, a := range k.answers {
				require.NoError(t, want.Add(a))
			}
			require.Equal(t, want.Result(), k.tally.result(k, nil))
			require.LessOrEqual(t, len(k.tally.best.heap), 2*20+64)
		}
	}
}

func TestPlainAnswersThatAreEqualHaveTheSameKey(t *testing.T) {
	values := []any{nil, true, false, 0, 1, -1, "", "1", "a", 1.0, 0.5, 0.0, math.Copysign(0, -1), math.NaN(), math.Inf(1), uint64(1), []int{1}, uint8(1)}
	for _, a := range values {
		for _, b := range values {
			if a, b := (Answer{a}), (Answer{b}); a.Plain() && b.Plain() && a == b {
				require.Equal(t, a.Key(), b.Key())
			}
		}
	}
	require.True(t, Answer{1}.Plain() && Answer{0.5}.Plain() && Answer{"a"}.Plain())
}
