package query

import (
	"cmp"
	"slices"
)

// ranks is a sorted multiset of numbers: each distinct number with its count. It finds the number
// at a position. The sorted numbers are split into runs, such as [1 2 4], [5 8] and [9 11 12]. Each
// run has the sum of the counts of its numbers.
//
// To add or remove a number, it moves the rest of one run. To find a position, it visits each run.
type ranks struct {
	runs []run
}

// A run is a part of the sorted numbers, with their counts.
type run struct {
	values []any // Distinct numbers in ascending order; times has their counts.
	times  []int
	n      int // Sum of the counts in times.
}

// longestRun is the length at which a run is split in two.
const longestRun = 512

// ranksOf returns the numbers in counts as ranks.
func ranksOf(counts map[any]int) *ranks {
	values := make([]any, 0, len(counts))
	for v := range counts {
		values = append(values, v)
	}
	slices.SortFunc(values, compareNumbers)
	r := new(ranks)
	for part := range slices.Chunk(values, longestRun/2) {
		of := run{values: slices.Clone(part)}
		for _, v := range part {
			of.times = append(of.times, counts[v])
			of.n += counts[v]
		}
		r.runs = append(r.runs, of)
	}
	return r
}

// counts returns the numbers with their counts, the inverse of ranksOf.
func (r *ranks) counts() map[any]int {
	counts := map[any]int{}
	for _, of := range r.runs {
		for i, v := range of.values {
			counts[v] = of.times[i]
		}
	}
	return counts
}

// compareNumbers orders numbers, and equal numbers by their types. The numbers must not be NaN.
func compareNumbers(a, b any) int {
	if x, ok := a.(float64); ok {
		if y, ok := b.(float64); ok {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Or(Answer{a}.Compare(Answer{b}), cmp.Compare(kindOf(Answer{a}), kindOf(Answer{b})))
}

// add adds times, which may be negative, to the count of v. If the count becomes 0, add removes v.
// It returns the change in the number of distinct numbers: 1, 0 or -1.
func (r *ranks) add(v any, times int) (more int) {
	// Find the first run whose greatest number is at least v.
	k, _ := slices.BinarySearchFunc(r.runs, v, func(of run, v any) int { return compareNumbers(of.values[len(of.values)-1], v) })
	// A number greater than all others belongs to the last run.
	if k == len(r.runs) {
		if k--; k < 0 {
			r.runs, k = []run{{}}, 0
		}
	}
	of := &r.runs[k]
	of.n += times
	i, known := slices.BinarySearchFunc(of.values, v, compareNumbers)
	switch {
	case !known:
		of.values, of.times = slices.Insert(of.values, i, v), slices.Insert(of.times, i, times)
		if len(of.values) > longestRun {
			r.split(k)
		}
		return 1
	case of.times[i]+times > 0:
		of.times[i] += times
		return 0
	case len(of.values) > 1:
		of.values, of.times = slices.Delete(of.values, i, i+1), slices.Delete(of.times, i, i+1)
	default:
		r.runs = slices.Delete(r.runs, k, k+1)
	}
	return -1
}

// split splits run k in two.
func (r *ranks) split(k int) {
	of, half := &r.runs[k], len(r.runs[k].values)/2
	upper := run{values: slices.Clone(of.values[half:]), times: slices.Clone(of.times[half:])}
	for _, times := range upper.times {
		upper.n += times
	}
	clear(of.values[half:])
	of.values, of.times, of.n = of.values[:half], of.times[:half], of.n-upper.n
	r.runs = slices.Insert(r.runs, k+1, upper)
}

// at returns the number at a position, counted from 1, or nil after the last position.
func (r *ranks) at(place int) any {
	for _, of := range r.runs {
		if place > of.n {
			place -= of.n
			continue
		}
		for i, times := range of.times {
			if place -= times; place <= 0 {
				return of.values[i]
			}
		}
	}
	return nil
}
