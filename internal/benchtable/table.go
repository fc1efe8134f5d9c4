package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/term"
)

// run reads the output of go test -bench from r and writes what show makes of the
// results to w, with the lines that are not results before it.
func run(r io.Reader, w io.Writer, show func([]result) string) error {
	var results []result
	in := bufio.NewScanner(r)
	for in.Scan() {
		if res, ok := parseResult(in.Text()); ok {
			results = append(results, res)
		} else if _, err := fmt.Fprintln(w, in.Text()); err != nil {
			return fmt.Errorf("benchtable: write: %w", err)
		}
	}
	if len(results) > 0 {
		if _, err := fmt.Fprintln(w, show(results)); err != nil {
			return fmt.Errorf("benchtable: write: %w", err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("benchtable: read: %w", err)
	}
	return nil
}

// render returns the table: a row for every budget, one for every result without.
func render(results []result) string {
	var b strings.Builder
	out := term.NewOut(&b, nil)
	g := out.Grid("benchmark", ">measured", ">budget", "verdict", "also")
	within, budgets := 0, 0
	for _, r := range results {
		verdicts, others := r.judge()
		if len(verdicts) == 0 {
			g.Row(r.name, "", "", "", list(others))
		}
		for _, v := range verdicts {
			word := "over"
			if v.ok() {
				word = "ok"
				within++
			}
			budgets++
			g.Row(r.name, v.measured, number(v.budget.value), word, list(others))
		}
	}
	g.Flush()
	out.Line("%d of %d within budget", within, budgets)
	_ = out.Close() // Nothing keeps a builder from taking it.
	return strings.TrimSuffix(b.String(), "\n")
}

func list(metrics []metric) string {
	words := make([]string, len(metrics))
	for i, m := range metrics {
		words[i] = m.String()
	}
	return strings.Join(words, ", ")
}

func (m metric) String() string { return number(m.value) + " " + m.unit }

// number writes v with three digits, or all digits before the point.
func number(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
