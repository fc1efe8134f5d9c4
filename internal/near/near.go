// Package near finds what somebody may have meant to write.
package near

import (
	"slices"
	"strings"
)

// Names returns those of names, at most three, that somebody who wrote name may
// have meant, the best first.
func Names(name string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	lower := strings.ToLower(name)
	for _, n := range names {
		l := strings.ToLower(n)
		d := distance(lower, l)
		if d <= max(1, min(len(lower), len(l))/3) || len(lower) > 1 && strings.Contains(l, lower) {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var best []string
	for _, c := range near[:min(len(near), 3)] {
		best = append(best, c.name)
	}
	return best
}

// Hint returns "; did you mean …?" if some of names are near, or "".
func Hint(name string, names []string) string {
	if like := Names(name, names); len(like) > 0 {
		return "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return ""
}

// distance returns how many bytes must be inserted, deleted or replaced, or neighbours
// swapped, to make a into b (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1) // rows[i][j]: of the first i bytes of a to the first j of b.
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
				continue
			}
			rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], 1+rows[i-2][j-2])
			}
		}
	}
	return rows[len(a)][len(b)]
}
