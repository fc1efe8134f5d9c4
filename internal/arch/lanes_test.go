package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	lanePattern = regexp.MustCompile(`(?:-run |-skip |RUN=)(?:'([^']*)'|([^\s'$]+))`)
	testFunc    = regexp.MustCompile(`^(Test|Fuzz|Example)`)
)

// TestLanes_PatternsMatch checks the patterns by which the Makefile and CI select tests. Each
// alternative of a pattern must match the name of a test. If it matches none, the test was probably
// renamed and no longer runs.
func TestLanes_PatternsMatch(t *testing.T) {
	names := testNames(t, "../..")
	if len(names) < 1000 {
		t.Fatalf("only %d tests found", len(names))
	}
	patterns := 0
	for _, file := range []string{"Makefile", ".ci/run", ".ci/machines"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, unmatched := range unmatchedPatterns(string(text), names, &patterns) {
			t.Errorf("%s selects tests by %q, and no test has such a name", file, unmatched)
		}
	}
	if patterns < 10 {
		t.Errorf("only %d patterns found", patterns)
	}
}

func TestLanes_UnmatchedPattern(t *testing.T) {
	names := []string{"TestOpen_Locked", "ExampleOpen"}
	n := 0
	text := "go test -run 'Open|Closed' -skip Locked ./a\ngo test -run '^$$' -bench .\n" +
		"go test -run '^TestOpen_L|^Missing$$'\ngo test -run 'Open(_Locked)'; make race RUN='Locked|Gone'"
	got := strings.Join(unmatchedPatterns(text, names, &n), " ")
	if got != "Closed ^Missing$ Open(_Locked) Gone" || n != 7 {
		t.Errorf("unmatched: %q of %d", got, n)
	}
}

// unmatchedPatterns returns the alternatives of -run and -skip in text that match no name. For
// example, the pattern "A|B" has the alternatives A and B. It adds their number to n. A pattern
// with parentheses is always returned, because it cannot be split at "|". The pattern "^$$" selects
// no test, and is ignored.
func unmatchedPatterns(text string, names []string, n *int) (unmatched []string) {
	for _, m := range lanePattern.FindAllStringSubmatch(text, -1) {
		pattern := strings.ReplaceAll(m[1]+m[2], "$$", "$")
		if strings.Contains(pattern, "(") {
			unmatched = append(unmatched, pattern)
			continue
		}
		for _, alternative := range strings.Split(pattern, "|") {
			if alternative == "" || alternative == "^$" {
				continue
			}
			*n++
			if !matchesAny(regexp.MustCompile(alternative), names) {
				unmatched = append(unmatched, alternative)
			}
		}
	}
	return unmatched
}

func matchesAny(pattern *regexp.Regexp, names []string) bool {
	for _, name := range names {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}

// testNames returns the names of all tests, fuzz targets and examples below root, including nested
// modules.
func testNames(t *testing.T, root string) (names []string) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		tree, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range tree.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testFunc.MatchString(f.Name.Name) {
				names = append(names, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
