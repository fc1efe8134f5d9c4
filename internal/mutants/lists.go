package main

import (
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// entries reads a list of faults. It calls f for each line about a file in sources.
func entries(name string, sources []*source, f func(s *source, line string) error) error {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for i, line := range strings.Split(string(text), "\n") {
		path, _, _ := strings.Cut(line, " ")
		at := slices.IndexFunc(sources, func(s *source) bool { return s.path == path })
		if at < 0 {
			continue // Skip comments, and faults of other packages.
		}
		if err := f(sources[at], line); err != nil {
			return fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	return err
}

// readEqual reads equal.txt. It returns the reasons in the file by the keys of their faults.
func readEqual(name string, sources []*source, faults []*fault) (map[string]string, error) {
	reasons := map[string]string{}
	return reasons, entries(name, sources, func(_ *source, line string) error {
		key, reason, ok := strings.Cut(line, "  # ")
		if !ok || !slices.ContainsFunc(faults, func(f *fault) bool { return f.key() == key }) {
			return errors.New("unknown fault, or no reason after \"  # \"")
		}
		reasons[key] = reason
		return nil
	})
}

// readHand reads the faults in hand.txt. Each line has the form "file function: text =>
// replacement". The text is an expression or a statement of the function. The suffix " #2" selects
// its second occurrence. An expression that is not a condition must have no side effects, because
// the text and the replacement are both evaluated.
func readHand(name string, sources []*source) (faults []*fault, err error) {
	err = entries(name, sources, func(s *source, line string) error {
		place, change, _ := strings.Cut(line, ": ")
		_, function, _ := strings.Cut(place, " ")
		was, is, _ := strings.Cut(change, " => ")
		is, nth, numbered := strings.Cut(is, " #")
		n, _ := strconv.Atoi(nth)
		var nodes []ast.Node
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			switch f := n.(type) {
			case *ast.FuncDecl:
				return functionName(f) == function
			case ast.Stmt, ast.Expr:
				if s.of(n) == was {
					nodes = append(nodes, n)
					return false
				}
			}
			return true
		})
		if n = max(n, 1); n > len(nodes) || !numbered && len(nodes) > 1 {
			return fmt.Errorf("%s has %d times %q as a statement or an expression", function, len(nodes), was)
		}
		before, after := "if \x00 { "+strings.TrimPrefix(is, missing)+" } else { ", " }"
		if e, ok := nodes[n-1].(ast.Expr); ok && s.isBool(e) {
			before, after = "(\x00 && ("+is+") || !\x00 && (", "))"
		} else if ok {
			before, after = "mutantPick(\x00, ", ", "+is+")"
		}
		f := s.newFault(nodes[n-1], is, before, after)
		f.nth = n
		faults = append(faults, f)
		return nil
	})
	return faults, err
}
