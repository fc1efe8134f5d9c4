package query

import (
	"math"
	"math/big"
	"math/rand/v2"
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
