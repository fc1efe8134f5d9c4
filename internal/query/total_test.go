package query

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSum_LargeIntegers(t *testing.T) {
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

// The sum of floats of all sizes is exact, in any order, and after some floats are removed.
func TestSum_IndependentOfFloatOrder(t *testing.T) {
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
			all.Remove(Answer{f})
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
		infinite.Remove(Answer{f})
	}
	require.NoError(t, infinite.Add(Answer{math.Inf(1)}))
	require.NoError(t, infinite.Add(Answer{math.Inf(-1)}))
	require.True(t, math.IsNaN(infinite.Result().v.(float64)))
}

// A digit never exceeds 64 bits.
func TestFloatSum_CarriesBeforeOverflow(t *testing.T) {
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

// The minimum and maximum are those of the current answers while the answers change. The heap stays
// small.
func TestMinMax_AnswersChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, kind := range []string{"min", "max"} {
		k := &answerCache{answers: make([]Answer, 20), tally: newTally(kind)}
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

// percentileOf returns the percentile by sorting the values.
func percentileOf(values []Answer, p int) Answer {
	slices.SortFunc(values, Answer.Compare)
	if len(values) == 0 {
		return Answer{nil}
	}
	return values[max(1, int(math.Ceil(float64(len(values))*float64(p)/100)))-1]
}

func TestPercentile_ExactForFewValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		var values []Answer
		p := rng.IntN(101)
		total := NewTotal("p" + strconv.Itoa(p))
		for range rng.IntN(50) {
			v := Answer{[]any{rng.IntN(20) - 10, float64(rng.Float64()*20) - 10, uint64(1<<63) + rng.Uint64N(3), math.NaN(), math.Inf(1), math.MinInt}[rng.IntN(6)]}
			values = append(values, v)
			require.NoError(t, total.Add(v))
			require.NoError(t, total.Add(Answer{nil}))
		}
		require.Equal(t, percentileOf(values, p).String(), total.Result().String(), "p%d of %v", p, values)
		require.False(t, total.Near())
	}
	require.Error(t, NewTotal("p5").Add(Answer{"text"}))
}

// The percentiles equal those of the sorted numbers, while numbers are added and removed.
func TestPercentile_AddAndRemove(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	// Test floats alone, then numbers of all types.
	for _, kinds := range []int{1, 7} {
		total := NewTotal("p0")
		var values []Answer
		for i := range 12_000 {
			grows := i%6000 < 4000
			if len(values) > 0 && rng.IntN(10) < 4 != grows && rng.IntN(4) > 0 {
				k := rng.IntN(len(values))
				total.Remove(values[k])
				values[k] = values[len(values)-1]
				values = values[:len(values)-1]
			} else {
				v := Answer{[]any{rng.NormFloat64(), rng.IntN(900) - 450, float64(rng.IntN(3)), uint64(1<<63) + rng.Uint64N(3), math.NaN(), math.Inf(1), math.Copysign(0, -1)}[rng.IntN(kinds)]}
				values = append(values, v)
				require.NoError(t, total.Add(v))
			}
			if i%50 > 0 {
				continue
			}
			total.percent = rng.IntN(101)
			want := percentileOf(slices.Clone(values), total.percent)
			if want.v == 0.0 {
				// -0 and 0 count as equal.
				want.v = 0.0
			}
			require.Equal(t, want.String(), total.Result().String(), "seed %d, p%d after %d", seed, total.percent, i)
			n := 0
			for k, of := range total.spread.order.runs {
				require.True(t, len(of.values) > 0 && len(of.values) <= longestRun && len(of.values) == len(of.times), "seed %d: run %d", seed, k)
				n += of.n
			}
			require.Equal(t, total.spread.values-total.spread.nans, n, "seed %d", seed)
		}
	}
}

// A total from which answers were removed equals a total with only the remaining answers. The sizes
// are near the limit above which counts are estimates.
func TestDistinctCount_AddAndRemove(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	followed := newTally("distinct")
	values := map[int]int{}
	for _, most := range []int{mostKept * 5, mostKept / 2, mostKept * 3 / 2, mostKept * 9 / 8, 0} {
		for len(values) < most {
			v := rng.IntN(1 << 20)
			values[v]++
			require.NoError(t, followed.add(Answer{v}, 0))
		}
		for v := range values {
			if len(values) <= most {
				break
			}
			for range values[v] {
				followed.take(Answer{v})
			}
			delete(values, v)
		}
		fresh := NewTotal("distinct")
		for v := range values {
			require.NoError(t, fresh.Add(Answer{v}))
		}
		require.Equal(t, fresh.Result(), followed.result(nil, nil), "seed %d, %d values", seed, most)
		require.LessOrEqual(t, len(fresh.variety.hashes), mostKept)
	}
}

// With more values than the limit, percentiles are approximate for any order of values and for
// every group.
func TestPercentile_ApproximateForManyValues(t *testing.T) {
	const n = 2*mostValues + mostValues/8
	rng := rand.New(rand.NewPCG(3, 3))
	values := make([]Answer, n)
	for i := range values {
		values[i] = Answer{rng.ExpFloat64() - 0.5}
		if i%2 == 0 {
			values[i] = Answer{rng.IntN(math.MaxInt32)}
		}
	}
	// results returns the totals of group 0 and then of group 1.
	results := func(order []int, kinds ...string) (all []*Total) {
		groups := NewTotals(kinds...)
		all = append(groups(), groups()...)
		for _, i := range order {
			for _, t := range all[len(kinds)*(i%2):][:len(kinds)] {
				_ = t.Add(values[i])
			}
		}
		return all
	}
	inOrder := make([]int, n)
	for i := range inOrder {
		inOrder[i] = i
	}
	all, again := results(inOrder, "p0", "p50", "p90"), results(rng.Perm(n), "p50")
	for g := range 2 {
		require.Equal(t, all[3*g+1].Result(), again[g].Result(), "another order gives another result")
		var own []Answer
		for i := g; i < n; i += 2 {
			own = append(own, values[i])
		}
		for k, p := range []int{0, 50, 90} {
			total := all[3*g+k]
			require.True(t, total.Near())
			got, _ := total.Result().Float()
			want, _ := percentileOf(own, p).Float()
			require.InEpsilon(t, want, got, 1e-3)
		}
	}
	require.LessOrEqual(t, all[0].spread.kept, mostValues)
}

// A percentile accepts more values after its result was read, and still rounds them if there are
// too many.
func TestPercentile_AddAfterResult(t *testing.T) {
	told, untold := NewTotal("p50"), NewTotal("p50")
	for i := range mostValues {
		for _, total := range []*Total{told, untold} {
			// Add each number twice: i/2*2 is equal for two steps.
			require.NoError(t, total.Add(Answer{float64(i / 2 * 2)}))
			require.NoError(t, total.Add(Answer{float64(i) + 0.25}))
		}
		if i == 1000 {
			told.Result()
		}
	}
	require.True(t, told.Near())
	require.Equal(t, untold.spread.kept, told.spread.kept)
	require.LessOrEqual(t, told.spread.kept, mostValues)
	require.Equal(t, untold.Result(), told.Result())
}

func TestDistinctCount_ExactThenEstimated(t *testing.T) {
	total := NewTotal("distinct")
	for _, v := range []any{1, 1.0, "1", true, nil, "a", 1, uint64(1), []int{1}, []int{1}, 2} {
		require.NoError(t, total.Add(Answer{v}))
	}
	require.Equal(t, Answer{6}, total.Result())
	for i := range 10 * mostKept {
		require.NoError(t, total.Add(Answer{i}))
		if i == mostKept/2 {
			require.Equal(t, Answer{i + 5}, total.Result())
		}
	}
	require.InEpsilon(t, 10*mostKept, total.Result().v.(int), 0.02)
	require.LessOrEqual(t, len(total.variety.hashes), mostKept)
}

func TestAnswer_EqualPlainAnswersHaveEqualKeys(t *testing.T) {
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

func TestMinMax_NegativeZero(t *testing.T) {
	for _, zeros := range [][2]float64{{math.Copysign(0, -1), 0}, {0, math.Copysign(0, -1)}} {
		k := &answerCache{answers: make([]Answer, 1), tally: newTally("min")}
		for _, zero := range zeros {
			k.take(0)
			require.NoError(t, k.tally.add(Answer{zero}, 0))
			k.answers[0] = Answer{zero}
		}
		best, ok := k.tally.best.of(k.answers)
		require.True(t, !ok || math.Signbit(best.v.(float64)) == math.Signbit(zeros[1]), "%v", zeros)
	}
}

func TestSplitTotal_NameAndArgument(t *testing.T) {
	for text, want := range map[string]string{
		" sum(Health)": "sum Health", "p95((A + 1) * (B))": "p95 (A + 1) * (B)", `count(Name == ")")`: `count Name == ")"`, "count()": "count ",
		"sum(A) + sum(B)": "", "sum(A) * (2)": "", "sum(A))": "", "sum((A)": "", "(A)": "", "any(A)": "", "sum": "", "": "",
	} {
		kind, expr, ok := SplitTotal(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, kind+" "+expr)
		}
	}
}
