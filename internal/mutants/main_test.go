package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const tinyModule = `
-- go.mod --
module tiny

go 1.26
-- tiny.go --
package tiny

func Clamp(x, limit int) int {
	if x > limit {
		return limit
	}
	return x
}

const debug = false

func Sum(values []int) (sum int) {
	for i := 0; i < len(values); i++ {
		sum += values[i]
	}
	if debug && sum > 7 {
		panic("large")
	}
	return sum
}

func Unprotected(x int) bool { return x < 0 }
-- tiny_test.go --
package tiny

import "testing"

func TestClamp(t *testing.T) {
	if Clamp(5, 3) != 3 || Clamp(1, 3) != 1 {
		t.Fatal("wrong")
	}
}

func TestSum(t *testing.T) {
	if Sum([]int{1, 2}) != 3 {
		t.Fatal("wrong")
	}
}
-- hand.txt --
# A loop without an end.
tiny.go Sum: sum += values[i] => i--
-- equal.txt --
tiny.go Clamp: x > limit => x >= limit  # Both are returned as the same number.
`

// inModule creates the files in text in a new directory, and changes to that directory. Each file
// begins with a line "-- name --".
func inModule(t *testing.T, text string) {
	t.Chdir(t.TempDir())
	for _, file := range strings.Split(text, "\n-- ")[1:] {
		name, text, _ := strings.Cut(file, " --\n")
		if err := os.WriteFile(filepath.FromSlash(name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRun_ReportsEachFault(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	defer func(p time.Duration) { patience = p }(patience)
	patience = time.Second
	inModule(t, tinyModule)
	var out strings.Builder
	if err := run(options{all: true, lists: ".", packages: []string{"."}}, &out); !errors.Is(err, errSurvivors) {
		t.Fatalf("run: %v\n%s", err, &out)
	}
	got := regexp.MustCompile(`\d+ s\n`).ReplaceAllString(out.String(), "T s\n")
	const want = `seed 0: 11 faults, of 10 generated and 1 written by hand
tiny.go:14 Sum: sum += values[i] => i--: timed out in TestSum
tiny.go:4 Clamp: x > limit => true: killed by TestClamp
tiny.go:4 Clamp: x > limit => false: killed by TestClamp
tiny.go:4 Clamp: x > limit => x >= limit: equal: Both are returned as the same number.
tiny.go:13 Sum: 0 => 1: killed by TestSum
tiny.go:13 Sum: i < len(values) => false: killed by TestSum
tiny.go:13 Sum: i < len(values) => i <= len(values): killed by TestSum
tiny.go:14 Sum: sum += values[i] => (nothing): killed by TestSum
tiny.go:22 Unprotected: x < 0 => !(x < 0): survived, no test reaches it
tiny.go:22 Unprotected: x < 0 => x <= 0: survived, no test reaches it
tiny.go:22 Unprotected: 0 => 1: survived, no test reaches it
11 faults: 7 killed, 1 equal, 3 survived, T s
survived: tiny.go:22 Unprotected: x < 0 => !(x < 0)
survived: tiny.go:22 Unprotected: x < 0 => x <= 0
survived: tiny.go:22 Unprotected: 0 => 1
`
	if got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

// Equal seeds choose the same faults. Another seed chooses other faults.
func TestChoose_SameSeedSameFaults(t *testing.T) {
	inModule(t, tinyModule)
	sources, err := load([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	chosen := func(seed int) (keys string) {
		for _, f := range choose(generate(sources), options{n: 5, seed: seed}) {
			keys += f.key() + "\n"
		}
		return keys
	}
	first, again, other := chosen(1), chosen(1), chosen(2)
	if first != again || strings.Count(first, "\n") != 5 {
		t.Errorf("seed 1 chooses\n%sand then\n%s", first, again)
	}
	if first == other {
		t.Errorf("seeds 1 and 2 choose\n%s", first)
	}
}

// A list entry that matches no fault is an error, because the source has changed.
func TestFaultLists_StaleEntry(t *testing.T) {
	inModule(t, tinyModule)
	sources, err := load([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"tiny.go Clamp: x > limit => x == limit  # Reason.": "list:1: unknown fault",
		"tiny.go Clamp: x > limit => true":                  "list:1: unknown fault, or no reason",
	} {
		os.WriteFile("list", []byte(line+"\n"), 0o600)
		if _, err := readEqual("list", sources, generate(sources)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
	os.WriteFile("list", []byte("tiny.go Clamp: x > 7 => false\n"), 0o600)
	if _, err := readHand("list", sources); err == nil || !strings.Contains(err.Error(), `list:1: Clamp has 0 times "x > 7"`) {
		t.Errorf("error %v", err)
	}
}

// Every entry in the lists of this module matches a fault.
func TestFaultLists_MatchThisModule(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	sources, err := load([]string{"./ecs", "./ecs/rollback", "./ecs/internal/track"})
	if err != nil {
		t.Fatal(err)
	}
	hand, err := readHand("internal/mutants/faults/hand.txt", sources)
	if err != nil {
		t.Error(err)
	}
	equal, err := readEqual("internal/mutants/faults/equal.txt", sources, slices.Concat(generate(sources), hand))
	if err != nil {
		t.Error(err)
	}
	for name, n := range map[string]int{"hand.txt": len(hand), "equal.txt": len(equal)} {
		text, err := os.ReadFile(filepath.Join("internal", "mutants", "faults", name))
		if err != nil {
			t.Fatal(err)
		}
		if lines := regexp.MustCompile(`(?m)^[^#\s]`).FindAll(text, -1); len(lines) != n || n == 0 {
			t.Errorf("%s: %d of %d lines describe faults of files that exist", name, n, len(lines))
		}
	}
}
