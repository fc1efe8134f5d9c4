package term

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestChart_DrawsStepsPeaksAndGaps(t *testing.T) {
	of := func(points ...pointInTime) *Series { return &Series{points: points} }
	for _, test := range []struct {
		about       string
		s           *Series
		first, last uint64
		width, rows int
		want        string
	}{
		{"steps are joined", of(pointInTime{1, 0}, pointInTime{3, 40}), 1, 4, 13, 2, `
40 |    ⢸⠉⠉⠉⠉
 0 |⣀⣀⣀⣀⣸
    1       4`},
		{"no peak is lost", of(pointInTime{0, 0}, pointInTime{501, 7}, pointInTime{502, 0}), 0, 999, 12, 2, `
7 |    ⢸
0 |⣀⣀⣀⣀⣸⣀⣀⣀⣀
   0     999`},
		{"a gap", of(pointInTime{1, 2}, pointInTime{2, math.NaN()}, pointInTime{3, 4}), 1, 3, 9, 2, `
4 |    ⠉⠉
2 |⣀⣀⡀
   1    3`},
		{"a constant", of(pointInTime{0, 5}), 0, 9, 8, 3, `
  |
5 |⣀⣀⣀⣀⣀
  |
   0   9`},
		{"nothing", of(), 3, 3, 6, 1, `
 |
  3`},
		{"too narrow", of(pointInTime{100, 5}), 100, 999, 1, 1, `
5 |⣀
   100`},
		{"as far apart as floats are", of(pointInTime{0, -math.MaxFloat64}, pointInTime{1, math.MaxFloat64}), 0, 1, 18, 2, `
 1.79769e+308 | ⢸⠉
-1.79769e+308 |⣀⣸
               0 1`},
	} {
		got := "\n" + strings.Join(test.s.Chart(test.first, test.last, test.width, test.rows), "\n")
		assert.Equal(t, test.want, got, "%s:%s", test.about, got)
	}
}

// TestChart_DrawsMinimumAndMaximum checks random series at several widths: the lowest and the
// highest value are drawn, and no line is too wide.
func TestChart_DrawsMinimumAndMaximum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		s, ticks := new(Series), uint64(1+rng.IntN(400))
		for tick := range ticks {
			if rng.IntN(3) == 0 || tick == 0 {
				s.Set(tick, rng.Float64())
			}
		}
		width, rows := 20+rng.IntN(60), 2+rng.IntN(6)
		lines := s.Chart(0, ticks-1, width, rows)
		require.Len(t, lines, rows+1)
		require.LessOrEqual(t, slices.Max(listWidths(lines)), width)
		if low, high := s.Bounds(); low < high {
			drawn := s.dots(0, ticks-1, width, rows)
			isDot := func(column int) func(r rune) bool {
				return func(r rune) bool { return r != ' ' && (r-0x2800)&(dotBits[0][column]|dotBits[1][column]) != 0 }
			}
			require.True(t, slices.ContainsFunc(drawn[0], isDot(0)), "the highest: %q", drawn)
			require.True(t, slices.ContainsFunc(drawn[rows-1], isDot(dotRows-1)), "the lowest: %q", drawn)
		}
	}
}

func listWidths(lines []string) (widths []int) {
	for _, line := range lines {
		widths = append(widths, Width(line))
	}
	return widths
}
