package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stet-ecs/stet/internal/parallel"
)

// switches is the source of a file that is added to every package with faults.
//
//go:embed switch.tmpl
var switches string

// A test is a test function in the test binary of a package.
type test struct {
	*pkg
	binary, name string
	flags        []string
	took         time.Duration // Duration without a fault.
	failed       bool          // Set if the test fails without a fault.
}

// build compiles the test binary of each package with all of its faults, and returns the tests.
func build(temp string, sources []*source, faults []*fault) (tests []*test, err error) {
	for i, f := range faults {
		f.id = i + 1
	}
	overlay := map[string]string{}
	var packages []*pkg
	for i, s := range sources {
		files := map[string]string{filepath.Base(s.path): rewrite(s, faults)}
		if !slices.Contains(packages, s.pkg) {
			packages = append(packages, s.pkg)
			files["zz_mutant.go"] = fmt.Sprintf(switches, s.Name)
		}
		for name, text := range files {
			to := filepath.Join(temp, fmt.Sprintf("%d_%s", i, name))
			overlay[filepath.Join(s.Dir, name)] = to
			if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
				return nil, err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	list := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return nil, err
	}
	for i, p := range packages {
		binary := filepath.Join(temp, fmt.Sprintf("%d.test", i))
		if text, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, p.ImportPath).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go test -c %s: %w\n%s", p.ImportPath, err, text)
		}
		names, err := exec.Command(binary, "-test.list", "^(Test|Fuzz|Example)").Output()
		if err != nil {
			return nil, fmt.Errorf("tests of %s: %w", p.ImportPath, err)
		}
		// Do not save failed inputs in testdata.
		flags := []string{"-test.short", "-test.failfast", "-rapid.nofailfile"}
		if exec.Command(binary, "-test.list", "^$", flags[2]).Run() != nil {
			flags = flags[:2] // A test binary without package rapid rejects the last flag.
		}
		for name := range strings.FieldsSeq(string(names)) {
			tests = append(tests, &test{pkg: p, binary: binary, name: name, flags: flags})
		}
	}
	return tests, nil
}

// reach runs each test alone and without a fault. It adds the test to fault.tests of each fault
// that the test reaches.
func reach(temp string, tests []*test, faults []*fault, out io.Writer) error {
	reached := map[*test]string{}
	err := parallel.InOrder(context.Background(), len(tests), func(_, i int) (string, error) {
		t, begin := tests[i], time.Now()
		name := filepath.Join(temp, fmt.Sprintf("reach%d", i))
		_, t.failed = execute([]*test{t}, 10*time.Minute, "MUTANT_REACH="+name)
		t.took = time.Since(begin)
		text, err := os.ReadFile(name)
		return string(text), err
	}, func(text string) error {
		reached[tests[len(reached)]] = text
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	for _, t := range tests {
		if t.failed {
			fmt.Fprintf(out, "not used: %s fails without a fault, once switches are compiled in\n", t.name)
			continue
		}
		for line := range strings.FieldsSeq(reached[t]) {
			id, err := strconv.Atoi(line)
			if err != nil {
				return err
			}
			faults[id-1].tests = append(faults[id-1].tests, t)
		}
	}
	return nil
}

// patience is the extra time limit of tests, in addition to ten times their usual time.
var patience = 20 * time.Second

// quick limits the tests that run first, by their total usual time. The slower tests run after
// them.
const quick = 300 * time.Millisecond

// try runs the tests that reach f, and returns the verdict to report.
func try(f *fault) (verdict string, killed bool) {
	if len(f.tests) == 0 {
		return "survived, no test reaches it", false
	}
	parts, sum := make([][]*test, 2), time.Duration(0)
	for _, t := range f.tests {
		part := 0
		if sum += t.took; sum > quick {
			part = 1
		}
		parts[part] = append(parts[part], t)
	}
	for _, part := range parts {
		for len(part) > 0 { // Run the tests of one binary in one process.
			var same, others []*test
			limit := patience
			for _, t := range part {
				if t.pkg != part[0].pkg {
					others = append(others, t)
					continue
				}
				same = append(same, t)
				limit += 10 * t.took
			}
			if verdict, killed = execute(same, min(limit, 5*time.Minute), "MUTANT="+strconv.Itoa(f.id)); killed {
				return verdict, true
			}
			part = others
		}
	}
	return fmt.Sprintf("survived %d tests", len(f.tests)), false
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\w+)`)
	// runningTest matches a line in which a timeout lists a running test.
	runningTest = regexp.MustCompile(`(?m)^\t\t(\w+)\S* \(\d`)
	endOfAll    = regexp.MustCompile(`(?m)^(panic|fatal error|runtime): .*`)
)

// execute runs tests of one binary and reports whether any of them failed. It limits the memory,
// because a fault may allocate without end.
func execute(tests []*test, limit time.Duration, environment string) (verdict string, failed bool) {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 8000000; exec "$0" "$@"`, tests[0].binary,
		"-test.timeout=" + limit.String(), "-test.run=^(" + strings.Join(names, "|") + ")$"}, tests[0].flags...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = tests[0].Dir, append(os.Environ(), environment), time.Second
	text, err := cmd.CombinedOutput()
	switch m := failedTest.FindSubmatch(text); {
	case err == nil:
		return "", false
	case ctx.Err() != nil || strings.Contains(string(text), "panic: test timed out"):
		if m = runningTest.FindSubmatch(text); m != nil {
			return "timed out in " + string(m[1]), true
		}
		return "timed out", true
	case m != nil:
		return "killed by " + string(m[1]), true
	}
	return fmt.Sprintf("killed: %v: %s", err, endOfAll.Find(text)), true
}
