package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/term"
)

// A table has the results of go test -bench, and their limits.
type table struct {
	results []result
	limits  limits
	noise   float64 // The fraction by which a result may exceed its allowed value.
}

// read reads the output of go test -bench. It writes the lines that are not results to w.
func (t *table) read(r io.Reader, w io.Writer) error {
	pkg := ""
	in := bufio.NewScanner(r)
	for in.Scan() {
		line := in.Text()
		if res, ok := parseResult(line); ok {
			res.pkg = pkg
			t.results = append(t.results, res)
			continue
		}
		if path, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = path
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("benchtable: write: %w", err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("benchtable: read: %w", err)
	}
	return nil
}

// write writes the text that show returns.
func (t *table) write(w io.Writer, show func(*table) string) error {
	if len(t.results) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, show(t)); err != nil {
		return fmt.Errorf("benchtable: write: %w", err)
	}
	return nil
}

// excess divides each measured value of r by its allowed value, and returns the greatest ratio. A
// ratio of 1.1 means that the value is 10 percent above the allowed value.
func (t *table) excess(r result) (ratio float64) {
	verdicts, _ := r.judge()
	for _, v := range verdicts {
		ratio = max(ratio, v.measured.value/t.limits.allowed(r.name, v.budget.value))
	}
	return ratio
}

// isOver reports whether r exceeds its allowed value by more than noise.
func (t *table) isOver(r result) bool { return t.excess(r) > 1+t.noise }

// over returns the names of the results that are above their allowed values by more than noise.
func (t *table) over() (names []string) {
	for _, r := range t.results {
		if t.isOver(r) {
			names = append(names, r.name)
		}
	}
	return names
}

// render returns the table, with a row for each budget and for each result without a budget. The
// verdicts are:
//
//	ok      the value is at most the budget
//	listed  the value is at most the limit in the file of limits
//	noise   the value is above the limit, and the difference may be noise
//	over    the value is above the limit by more than noise
func (t *table) render() string {
	var b strings.Builder
	out := term.NewOut(&b, nil)
	g := out.Grid("benchmark", ">measured", ">budget", "verdict", "also")
	within, budgets := 0, 0
	for _, r := range t.results {
		verdicts, others := r.judge()
		if len(verdicts) == 0 {
			g.Row(r.name, "", "", "", list(others))
		}
		for _, v := range verdicts {
			word := "over"
			switch allowed := t.limits.allowed(r.name, v.budget.value); {
			case v.ok():
				word = "ok"
				within++
			case v.measured.value <= allowed:
				word = "listed"
			case v.measured.value <= allowed*(1+t.noise):
				word = "noise"
			}
			budgets++
			g.Row(r.name, v.measured, number(v.budget.value), word, list(others))
		}
	}
	g.Flush()
	out.Line("%d of %d within budget", within, budgets)
	if names := t.over(); len(names) > 0 {
		out.Line("over: %s", strings.Join(names, ", "))
	}
	_ = out.Close() // Writing to a builder never fails.
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

// number formats v with three digits, or with all digits of its integer part.
func number(v float64) string {
	if v >= 1000 || v <= -1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
