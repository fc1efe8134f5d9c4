package dump

import (
	"math"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
)

// A series is a number over time: it has each of its values from a tick on.
type series struct {
	field  string
	points []pointInTime
}

type pointInTime struct {
	tick  uint64
	value float64 // NaN: there is none from here on, or one that cannot be drawn.
}

// set notes the value from a tick on.
func (s *series) set(tick uint64, value float64) {
	if n := len(s.points); n > 0 && s.points[n-1].tick == tick {
		s.points[n-1].value = value
		return
	}
	s.points = append(s.points, pointInTime{tick, value})
}

// bounds returns the lowest and the highest value. Without values low is above high.
func (s *series) bounds() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, p := range s.points {
		if !math.IsNaN(p.value) {
			low, high = min(low, p.value), max(high, p.value)
		}
	}
	return low, high
}

const sparks = "▁▂▃▄▅▆▇█"

// sparkline draws s from tick first to last in at most so many cells. A cell shows
// the value that s had at the end of its ticks; nothing where it had none.
func (s *series) sparkline(first, last uint64, cells int) string {
	span := last - first + 1
	if first > last || span == 0 {
		return ""
	}
	if span < uint64(cells) {
		cells = int(span)
	}
	low, high := s.bounds()
	value, next := math.NaN(), 0
	var b strings.Builder
	for cell := range cells {
		end := first + uint64(float64(span)*float64(cell+1)/float64(cells)) - 1
		for next < len(s.points) && s.points[next].tick <= end {
			value = s.points[next].value
			next++
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
	part := (value/2 - low/2) / (high/2 - low/2) // Halves, as high-low may be too much for a float.
	return levels[min(int(part*float64(len(levels))), len(levels)-1)]
}

// number returns v as a number that can be drawn.
func number(v layout.Value) (x float64, ok bool) {
	switch k := v.Kind(); {
	case k >= layout.Int8 && k <= layout.Int64:
		x = float64(v.Int())
	case k >= layout.Uint8 && k <= layout.Uint64:
		x = float64(v.Uint())
	case k == layout.Float32 || k == layout.Float64:
		x = v.Float()
	default:
		return 0, false
	}
	if math.IsInf(x, 0) {
		x = math.NaN()
	}
	return x, true
}
