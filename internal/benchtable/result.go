package main

import (
	"strconv"
	"strings"
)

// A result is one line of go test -bench: a name and its metrics, in the order of the line.
type result struct {
	name      string
	benchmark string // The function and its sub-benchmarks, in the form that go test accepts.
	pkg       string
	metrics   []metric
}

// A metric is a value and its unit, as in 12.5 ns/op.
type metric struct {
	value float64
	unit  string
}

// parseResult reads a line such as
//
//	BenchmarkName/case-2    1    12.50 ns/op    1.100 x/limit
//
// and reports whether the line is a result. It removes the prefix Benchmark and the number of
// processors from the name.
func parseResult(line string) (result, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
		return result{}, false
	}
	if _, err := strconv.ParseUint(fields[1], 10, 64); err != nil {
		return result{}, false
	}
	benchmark := withoutProcessors(fields[0])
	r := result{name: plainName(benchmark), benchmark: benchmark}
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return result{}, false
		}
		r.metrics = append(r.metrics, metric{v, fields[i+1]})
	}
	return r, true
}

func withoutProcessors(s string) string {
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		if _, err := strconv.ParseUint(s[i+1:], 10, 32); err == nil {
			return s[:i]
		}
	}
	return s
}

func plainName(s string) string {
	return strings.TrimPrefix(strings.TrimPrefix(s, "Benchmark"), "Budget")
}

// A verdict is a metric and its budget.
type verdict struct {
	measured, budget metric
}

func (v verdict) ok() bool { return v.measured.value <= v.budget.value }

// judge divides the metrics of r into metrics with a budget and metrics without a budget.
func (r result) judge() (verdicts []verdict, others []metric) {
	bounded := make(map[string]bool)
	for _, m := range r.metrics {
		quantity, isBudget := strings.CutSuffix(m.unit, "/budget")
		if !isBudget {
			continue
		}
		bounded[m.unit] = true
		if measured, ok := r.find(quantity+"/limit", quantity+"/more", quantity+"/op"); ok {
			bounded[measured.unit] = true
			verdicts = append(verdicts, verdict{measured, m})
		}
	}
	for _, m := range r.metrics {
		if !bounded[m.unit] {
			others = append(others, m)
		}
	}
	return verdicts, others
}

// find looks for the given units in order, and returns the first metric of r that it finds.
func (r result) find(units ...string) (metric, bool) {
	for _, unit := range units {
		for _, m := range r.metrics {
			if m.unit == unit {
				return m, true
			}
		}
	}
	return metric{}, false
}
