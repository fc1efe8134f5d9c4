// Package near finds names that are similar to a misspelled name.
package near

import (
	"sort"
	"strings"
)

// Names returns at most three elements of names that are similar to name, the most similar first.
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
	sort.SliceStable(near, func(i, j int) bool { return near[i].distance < near[j].distance })
	var best []string
	for _, c := range near[:min(len(near), 3)] {
		best = append(best, c.name)
	}
	return best
}

// Hint returns "; did you mean …?" with the similar names, or "" if no name is similar.
func Hint(name string, names []string) string {
	if like := Names(name, names); len(like) > 0 {
		return "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return ""
}

// distance returns the number of edits that turn a into b: insertion, deletion or replacement of a
// byte, or exchange of two adjacent bytes. This is the optimal string alignment distance.
func distance(a, b string) int {
	// rows[i][j] is the distance of the first i bytes of a and the first j bytes of b.
	rows := make([][]int, len(a)+1)
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
