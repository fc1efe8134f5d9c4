package term

import (
	"math"
	"strings"
)

// A Series is a number over time: it has each of its values from a tick on.
type Series struct {
	Field  string
	points []pointInTime
}

// A pointInTime is a value that a series has from a tick on.
type pointInTime struct {
	tick  uint64
	value float64 // NaN: there is none from here on, or one that cannot be drawn.
}

// Set notes the value from a tick on.
func (s *Series) Set(tick uint64, value float64) {
	if n := len(s.points); n > 0 && s.points[n-1].tick == tick {
		s.points[n-1].value = value
		return
	}
	s.points = append(s.points, pointInTime{tick, value})
}

// Bounds returns the lowest and the highest value. Without values low is above high.
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

// Sparkline draws s from tick first to last in at most so many cells. A cell shows
// the value that s had at the end of its ticks; nothing where it had none.
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

// level returns which of n levels between low and high, which is above it, a value is on.
func level(value, low, high float64, n int) int {
	part := (value/2 - low/2) / (high/2 - low/2) // Halves, as high-low may be too much for a float.
	return min(int(part*float64(n)), n-1)
}
