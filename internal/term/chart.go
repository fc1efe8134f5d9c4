package term

import (
	"fmt"
	"math"
	"strings"
)

// A braille character has 2 columns of 4 dots.
const (
	dotColumns = 2
	dotRows    = 4
)

// dotBits are the bits of the dots of a braille character, by column, from the top.
var dotBits = [dotColumns][dotRows]rune{{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}

// Chart draws s from tick first to tick last, with Braille dots. It draws the values in the given
// number of lines (rows), and the ticks in one more line. Each line has at most the given width. A
// column of dots covers all values at its ticks, so every peak is visible.
//
//	40 |    ⡏⠉⠉⠉
//	   |⣀⣀⣀⣀⡇
//	 0 |
//	   1         5
func (s *Series) Chart(first, last uint64, width, rows int) []string {
	low, high := s.Bounds()
	labels := make([]string, rows)
	switch {
	case low > high:
	case low == high:
		labels[rows/2] = Number(low)
	default:
		labels[0], labels[rows-1] = Number(high), Number(low)
	}
	margin := 0
	for _, label := range labels {
		margin = max(margin, len(label))
	}
	cells := max(1, width-margin-2)
	lines := make([]string, 0, rows+1)
	for row, dots := range s.dots(first, last, cells, rows) {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%*s |%s", margin, labels[row], string(dots)), " "))
	}
	begin, end := fmt.Sprint(first), fmt.Sprint(last)
	gap := cells - len(begin) - len(end)
	if gap < 1 || begin == end {
		end, gap = "", 0
	}
	return append(lines, strings.TrimRight(strings.Repeat(" ", margin+2)+begin+strings.Repeat(" ", gap)+end, " "))
}

// Number formats a number for people: a whole number in full, other numbers with six digits.
func Number(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.6g", x)
}

// dots returns s as rows of braille characters.
func (s *Series) dots(first, last uint64, cells, rows int) [][]rune {
	drawn := make([][]rune, rows)
	for i := range drawn {
		drawn[i] = []rune(strings.Repeat(" ", cells))
	}
	low, high := s.Bounds()
	levels := rows * dotRows
	at := func(value float64) int { // Returns a level, counted from the top.
		if low == high {
			return levels/2 + dotRows/2 - 1
		}
		return levels - 1 - level(value, low, high, levels)
	}
	value, rest := math.NaN(), s.points
	for x := range cells * dotColumns {
		// A column of dots begins with the value before its first tick, so that it joins the column
		// on its left.
		top, bottom := levels, -1
		note := func() {
			if !math.IsNaN(value) {
				top, bottom = min(top, at(value)), max(bottom, at(value))
			}
		}
		// The ticks up to the end of this column.
		share := math.Ceil(float64(last-first+1) * float64(x+1) / float64(cells*dotColumns))
		for note(); len(rest) > 0 && rest[0].tick < first+uint64(share); note() {
			value, rest = rest[0].value, rest[1:]
		}
		for y := top; y <= bottom; y++ {
			cell := &drawn[y/dotRows][x/dotColumns]
			*cell = max(*cell, 0x2800) | dotBits[x%dotColumns][y%dotRows]
		}
	}
	return drawn
}
