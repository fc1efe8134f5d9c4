package term

import (
	"math"
	"strings"
)

// A Series is a number that changes over time. Each value is valid from its tick to the next
// value's tick.
type Series struct {
	Field  string
	points []pointInTime
}

// A pointInTime is a value of a series and the tick at which it begins.
type pointInTime struct {
	tick  uint64
	value float64 // NaN means no value, or a value that cannot be drawn.
}

// Set sets the value from a tick on. Ticks must not decrease.
func (s *Series) Set(tick uint64, value float64) {
	if n := len(s.points); n > 0 && s.points[n-1].tick == tick {
		s.points[n-1].value = value
		return
	}
	s.points = append(s.points, pointInTime{tick, value})
}

// Bounds returns the lowest and the highest value. Without values, low is above high.
func (s *Series) Bounds() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range s.points {
		if !math.IsNaN(p.value) {
			low, high = min(low, p.value), max(high, p.value)
		}
	}
	return low, high
}

// sparks are the characters of a sparkline, from the lowest value to the highest.
const sparks = "▁▂▃▄▅▆▇█"

// Sparkline draws s from tick first to last in at most the given number of cells. A cell shows the
// value at its last tick. A cell without a value is blank.
func (s *Series) Sparkline(first, last uint64, cells int) string {
	span := last - first + 1
	if first > last || span == 0 {
		return ""
	}
	if span < uint64(cells) {
		cells = int(span)
	}
	low, high := s.Bounds()
	value, rest := math.NaN(), s.points
	var b strings.Builder
	for cell := range cells {
		end := first + uint64(float64(span)*float64(cell+1)/float64(cells)) - 1
		for len(rest) > 0 && rest[0].tick <= end {
			value, rest = rest[0].value, rest[1:]
		}
		b.WriteRune(spark(value, low, high))
	}
	return b.String()
}

// spark returns the character for a value between low and high.
func spark(value, low, high float64) rune {
	levels := []rune(sparks)
	switch {
	case math.IsNaN(value):
		return ' '
	case low == high:
		return levels[len(levels)/2]
	}
	return levels[level(value, low, high, len(levels))]
}

// level returns the level of value, from 0 to n-1, if low to high is divided into n levels. high
// must be above low.
func level(value, low, high float64, n int) int {
	// The values are halved, because high-low may overflow.
	part := (value/2 - low/2) / (high/2 - low/2)
	return min(int(part*float64(n)), n-1)
}
