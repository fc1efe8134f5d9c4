package term

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSparkline_DrawsSeries(t *testing.T) {
	of := func(points ...pointInTime) *Series { return &Series{points: points} }
	nan := math.NaN()
	for _, test := range []struct {
		about       string
		s           *Series
		first, last uint64
		cells       int
		want        string
	}{
		{"a cell a tick", of(pointInTime{1, 0}, pointInTime{3, 7}), 1, 4, 9, "▁▁██"},
		{"every level", of(pointInTime{0, 0}, pointInTime{1, 1}, pointInTime{2, 2}, pointInTime{3, 3}, pointInTime{4, 4}, pointInTime{5, 5}, pointInTime{6, 6}, pointInTime{7, 7}), 0, 7, 8, sparks},
		{"several ticks a cell", of(pointInTime{0, 0}, pointInTime{1, 7}, pointInTime{99, 0}), 0, 99, 4, "███▁"},
		{"nothing before and after", of(pointInTime{2, 1}, pointInTime{3, nan}), 1, 4, 9, " ▅  "},
		{"a constant", of(pointInTime{1, 5}), 1, 2, 9, "▅▅"},
		{"as far apart as floats are", of(pointInTime{1, -math.MaxFloat64}, pointInTime{2, math.MaxFloat64}), 1, 2, 9, "▁█"},
		{"ticks without end", of(pointInTime{0, 1}, pointInTime{1, 2}), 0, math.MaxUint64 - 1, 2, "██"},
		{"ticks that go back", of(pointInTime{0, 1}), 5, 4, 2, ""},
	} {
		assert.Equal(t, test.want, test.s.Sparkline(test.first, test.last, test.cells), test.about)
	}
	s := of()
	s.Set(1, 2)
	s.Set(1, 3)
	assert.Equal(t, []pointInTime{{1, 3}}, s.points)
}
