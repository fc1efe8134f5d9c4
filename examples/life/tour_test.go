//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTour_PrintsResults(t *testing.T) {
	t.Setenv(asProgram, "1") // The child process needs this variable.
	dir := t.TempDir()
	out := mustCall(t, "-dir", dir, "-acks")
	wants := []string{
		"R-pentomino in " + dir,
		at(t, "r-pentomino", 600).String(),
		"Rewind 300 generations",
		at(t, "r-pentomino", 300).String(),
		"Recover",
		"it had not been closed",
		at(t, "r-pentomino", 1103).String(),
		"population 116, of which 6 gliders have escaped: as published",
		"ecsdump info " + dir,
		"ecsdump ls " + dir + " --limit 5",
		"ecsdump show " + dir,
		"ecsdump log " + dir,
		"ecsdump arrays " + dir + " Cell",
	}
	rest := out
	for _, want := range wants {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("tour does not print %q at the expected place:\n%s", want, out)
		}
		rest = after
	}
	if got, want := strings.Count(out, "equal to an uninterrupted run in memory"), 4; got != want {
		t.Errorf("tour compares itself with a run in memory %d times, want %d", got, want)
	}
	// The child was killed before it could print the last durable generations. The parent prints
	// only the newest of them, after the recovery.
	told, found := numberAfter(t, out, "the last line of the child: durable "), numberAfter(t, out, "recovered tick ")
	for generation := range 1104 {
		if generation > told && generation < found {
			continue
		}
		if !strings.Contains(out, fmt.Sprintf("durable %d\n", generation)) {
			t.Errorf("tour does not report that generation %d is durable", generation)
		}
	}
	if got := mustCall(t, "-dir", dir, "-population"); got != "116\n" {
		t.Errorf("a second tour in the directory prints %q, want 116", got)
	}
}

func TestTour_TemporaryDirectory(t *testing.T) {
	t.Setenv(asProgram, "1")
	t.Setenv("TMPDIR", t.TempDir())
	if got := mustCall(t, "-population"); got != "116\n" {
		t.Errorf("prints %q, want 116", got)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "stet-life-*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("directories left: %v, %v, want one", left, err)
	}
	if game := reopen(t, left[0]); !game.store.Report().Clean || game.Generation() != 1103 {
		t.Errorf("left: %s, %v", game.found(), game)
	}
}

func TestTour_ChildProcessFails(t *testing.T) {
	dir := t.TempDir()
	config, err := parseFlags([]string{"-dir", dir}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asProgram, "1")
	held := reopen(t, filepath.Join(dir, "held")) // The directory is locked, so the child fails.
	tour := &tour{program: &program{config: config, stdout: new(bytes.Buffer)}, game: held}
	_, err = tour.killChild(t.Context())
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(err.Error(), "in use") {
		t.Errorf("killChild on a directory in use returns %v, want exit code 1 and the reason", err)
	}
}

// numberAfter returns the number that follows text in out.
func numberAfter(t *testing.T, out, text string) (n int) {
	t.Helper()
	_, rest, _ := strings.Cut(out, text)
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatalf("no number after %q in:\n%s", text, out)
	}
	return n
}
