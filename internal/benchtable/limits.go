package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// limits maps the name of a benchmark to the greatest accepted value. Only benchmarks above their
// budget have a limit.
type limits map[string]float64

// readLimits reads lines "name<TAB>limit<TAB>reason". Lines that begin with # are comments.
func readLimits(file string) (limits, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := limits{}
	s := bufio.NewScanner(strings.NewReader(string(text)))
	for n := 1; s.Scan(); n++ {
		if s.Text() == "" || strings.HasPrefix(s.Text(), "#") {
			continue
		}
		fields := strings.Split(s.Text(), "\t")
		if len(fields) != 3 || strings.TrimSpace(fields[2]) == "" {
			return nil, fmt.Errorf("%s:%d: want name, limit and reason with tabs between", file, n)
		}
		limit, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if _, twice := all[fields[0]]; twice {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", file, n, fields[0])
		}
		all[fields[0]] = limit
	}
	return all, s.Err()
}

// allowed returns the greatest allowed value of a benchmark: its budget, or its limit if that is
// greater.
func (l limits) allowed(name string, budget float64) float64 { return max(budget, l[name]) }
