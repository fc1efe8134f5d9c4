package query

import (
	"cmp"
	"slices"
)

// A ranks has different numbers in their order, each with how often it is there, so that what is
// at a place among all is found without sorting them again. It is cut into runs:
//
//	runs    [1 2 4] [5 8] [9 11 12]    each ordered, none empty, all before the next
//	n          5      2       7        numbers of a run, counting each as often as it is there
//
// Adding and taking out cost a search and a move within a run, finding a place O(runs). Runs
// are short, so that moving half of one is cheap, and long enough that there are few.
type ranks struct {
	runs []run
}

// A run is a part of the numbers, one after the other, and how often each is there.
type run struct {
	values []any // Ascending; times has as many.
	times  []int
	n      int // Sum of times.
}

// longestRun is how many numbers a run has before it becomes two.
const longestRun = 512

// ranksOf returns the numbers that counts has.
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

// counts returns the numbers and how often each is there: what ranksOf makes a ranks of.
func (r *ranks) counts() map[any]int {
	counts := map[any]int{}
	for _, of := range r.runs {
		for i, v := range of.values {
			counts[v] = of.times[i]
		}
	}
	return counts
}

// compareNumbers orders numbers, none of which is NaN: equal ones by their kinds.
func compareNumbers(a, b any) int {
	if x, ok := a.(float64); ok {
		if y, ok := b.(float64); ok {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Or(Answer{a}.Compare(Answer{b}), cmp.Compare(kindOf(Answer{a}), kindOf(Answer{b})))
}

// add adds v as often as times says, or takes it out if that is -1. It returns by how many there are more
// different numbers: 1, 0 or -1.
func (r *ranks) add(v any, times int) (more int) {
	// The first run whose greatest number is not below v, so that runs stay before each other.
	k, _ := slices.BinarySearchFunc(r.runs, v, func(of run, v any) int { return compareNumbers(of.values[len(of.values)-1], v) })
	if k == len(r.runs) { // It is above all.
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

// split makes two of run k. The upper half gets memory of its own, so that both can grow.
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

// at returns the number at a place, from 1 on; nil behind the last. It passes whole runs by their n, and
// counts within one only.
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
