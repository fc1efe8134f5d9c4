// Benchtable prints the output of go test -bench as a table with the result and the budget of each
// benchmark.
//
//	go test -run '^$' -bench '^BenchmarkBudget' -benchtime 1x ./ecs | go run ./internal/benchtable
//
// A benchmark reports its budget as a metric. The unit of the budget selects the metric that is
// compared with it:
//
//	budget in    is compared with
//	x/budget     x/limit, the ratio to hand-written code
//	ns/budget    ns/more, or ns/op if the result has no ns/more
//
// With -grid, it prints a Markdown table for each unit. The last element of a benchmark's name
// selects the column. Repeated results show their median.
//
//	go test -run '^$' -bench . ./benchmarks | go run ./internal/benchtable -grid
//
// The file of -limits lists benchmarks above their budget, each with the greatest accepted value
// and the reason. With -strict, the exit status is 1 if a benchmark exceeds its budget and its
// limit by more than -noise. Such a benchmark first runs alone again, up to -retry times. Lines
// that are not results are copied unchanged.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

type options struct {
	grid   bool
	strict bool
	limits string
	noise  float64
	retry  int
}

func main() {
	var o options
	flag.BoolVar(&o.grid, "grid", false, "print Markdown tables with a column for every last element of a name")
	flag.BoolVar(&o.strict, "strict", false, "exit with 1 if a benchmark is over")
	flag.StringVar(&o.limits, "limits", "", "file with limits of benchmarks above their budget")
	flag.Float64Var(&o.noise, "noise", 0.3, "part of the allowed value by which a result may exceed it")
	flag.IntVar(&o.retry, "retry", 0, "how often a benchmark that is over runs again")
	flag.Parse()
	ok, err := run(o, os.Stdin, os.Stdout, runAgain)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || o.strict && !ok {
		os.Exit(1)
	}
}

// run reads the output of go test -bench and writes the table to out. It calls the function bench
// to run a benchmark again if its value is not allowed. At the end, ok reports whether all results
// are allowed.
func run(o options, in io.Reader, out io.Writer, bench func(result) (result, error)) (ok bool, err error) {
	t := &table{noise: o.noise}
	if o.limits != "" {
		if t.limits, err = readLimits(o.limits); err != nil {
			return false, err
		}
	}
	if err := t.read(in, out); err != nil {
		return false, err
	}
	show := (*table).render
	if o.grid {
		show = (*table).renderGrids
	} else if err := t.retryOver(o.retry, bench); err != nil {
		return false, err
	}
	return len(t.over()) == 0, t.write(out, show)
}
