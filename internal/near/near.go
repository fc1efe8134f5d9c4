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

// distance returns how many bytes must be inserted, deleted or replaced to make
// a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1) // Distances of the beginning of a to those of b.
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
