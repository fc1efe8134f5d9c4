package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// A fault is a change of one node in the source. The text before is inserted in front of the node,
// and the text after is inserted behind it, so line numbers stay the same. In these texts, "\x00"
// stands for a call that reports whether the fault is active. For example, a condition c becomes c
// || mutantIs(7) in parentheses.
type fault struct {
	*source
	function   string
	line       int
	start, end int    // Offsets of the node.
	was, is    string // The text of the node in reports, without and with the change.
	// Number of this fault among the faults with the same texts in one function, starting at 1.
	nth           int
	before, after string

	id    int     // Number that activates the fault.
	tests []*test // Tests that reach the fault, the fastest first.
}

// newFault makes the fault that changes n.
func (s *source) newFault(n ast.Node, is, before, after string) *fault {
	was, _, more := strings.Cut(s.of(n), "\n")
	if more {
		was += " …"
	}
	return &fault{source: s, function: s.functionAt(n.Pos()), line: s.set.Position(n.Pos()).Line,
		start: s.offset(n.Pos()), end: s.offset(n.End()), was: was, is: is, before: before, after: after}
}

// key identifies the fault in the lists. It does not contain the line number.
func (f *fault) key() string {
	key := fmt.Sprintf("%s %s: %s => %s", f.path, f.function, f.was, f.is)
	if f.nth > 1 {
		key += fmt.Sprintf(" #%d", f.nth)
	}
	return key
}

func (f *fault) String() string {
	return strings.Replace(f.key(), " ", fmt.Sprintf(":%d ", f.line), 1)
}

// number sets the field nth of faults, which must be in source order.
func number(faults []*fault) []*fault {
	seen := map[string]int{}
	for _, f := range faults {
		key := f.key()
		seen[key]++
		f.nth = seen[key]
	}
	return faults
}

// rewrite returns the text of s with the faults inserted.
func rewrite(s *source, faults []*fault) string {
	type insertion struct {
		at int
		// order sorts insertions at the same offset. Texts after a node come first, that of the
		// innermost node first. Texts before a node follow, that of the outermost node first.
		order [3]int
		text  string
	}
	var insertions []insertion
	for _, f := range faults {
		if f.source == s {
			is := fmt.Sprintf("mutantIs(%d)", f.id)
			insertions = append(insertions,
				insertion{f.start, [3]int{1, -f.end, f.id}, strings.ReplaceAll(f.before, "\x00", is)},
				insertion{f.end, [3]int{0, -f.start, -f.id}, strings.ReplaceAll(f.after, "\x00", is)})
		}
	}
	slices.SortFunc(insertions, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at, b.at), slices.Compare(a.order[:], b.order[:]))
	})
	var b strings.Builder
	at := 0
	for _, in := range insertions {
		b.WriteString(s.text[at:in.at] + in.text)
		at = in.at
	}
	return b.String() + s.text[at:]
}
