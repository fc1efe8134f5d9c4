// Benchtable prints the output of go test -bench as a table of budgets: what
// every benchmark measured beside what it may be.
//
//	go test -run '^$' -bench '^BenchmarkBudget' -benchtime 1x ./ecs | go run ./internal/benchtable
//
// A benchmark states a budget with a metric whose unit ends in /budget; it bounds
// the metric of the same quantity that ends in /limit, /more or /op, the first
// that is there:
//
//	x/budget  bounds x/limit: a ratio to the hand-written limit
//	ns/budget bounds ns/more, or else ns/op
//
// With -grid it prints Markdown instead, for benchmarks that differ in the last
// element of their names only: a table for every unit, with a column for every
// last element. What was measured more than once shows its median.
//
//	go test -run '^$' -bench . ./benchmarks | go run ./internal/benchtable -grid
//
// What is over its budget is shown, not punished: the exit status is 0, because
// machines are noisy. Lines that are not results are copied as they are.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	grid := flag.Bool("grid", false, "print Markdown tables with a column for every last element of a name")
	flag.Parse()
	show := render
	if *grid {
		show = renderGrids
	}
	if err := run(os.Stdin, os.Stdout, show); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
