package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stet-ecs/stet/journal"
)

// call runs the program in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// mustCall runs the program, which must succeed, and returns what it prints.
func mustCall(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(args...)
	if code != 0 || stderr != "" {
		t.Fatalf("life %s: exit code %d, stderr %q", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// writeFile writes a file into a new directory and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun_PublishedPopulations(t *testing.T) {
	blinker := writeFile(t, "blinker.rle", "3o!")
	nothing := writeFile(t, "nothing.rle", "3b!")
	tests := []struct{ pattern, generations, want string }{
		{pattern: filepath.Join("patterns", "r-pentomino.rle"), generations: "1103", want: "116\n"},
		{pattern: "r-pentomino", generations: "1103", want: "116\n"},
		{pattern: "gosper-gun", generations: "300", want: "86\n"},
		{pattern: "acorn", generations: "0", want: "7\n"},
		{pattern: blinker, generations: "7", want: "3\n"},
		{pattern: nothing, generations: "7", want: "0\n"},
	}
	for _, tt := range tests {
		for _, dir := range []string{"", t.TempDir()} {
			args := []string{"-pattern", tt.pattern, "-generations", tt.generations, "-population"}
			if dir != "" {
				args = append(args, "-dir", dir)
			}
			if got := mustCall(t, args...); got != tt.want {
				t.Errorf("life %s prints %q, want %q", strings.Join(args, " "), got, tt.want)
			}
		}
	}
}

func TestFlags_DefaultGenerations(t *testing.T) {
	if got := mustCall(t, "-pattern", "r-pentomino", "-population"); got != "116\n" {
		t.Errorf("without -generations the population is %q, want 116", got)
	}
}

func TestRun_PrintsGenerations(t *testing.T) {
	want := fmt.Sprintf("R-pentomino\n  %v\n  %v\n", newLife(t, "r-pentomino", 0), at(t, "r-pentomino", 20))
	if got := mustCall(t, "-generations", "20"); got != want {
		t.Errorf("prints\n%swant\n%s", got, want)
	}
}

// at returns a built-in pattern at a generation.
func at(t *testing.T, name string, generation uint64) *Life {
	t.Helper()
	life := newLife(t, name, 0)
	runTo(t, life, generation)
	return life
}

func TestRun_ContinuesDirectory(t *testing.T) {
	dir := t.TempDir()
	mustCall(t, "-pattern", "acorn", "-generations", "30", "-dir", dir)
	for generation := uint64(30); generation <= 90; generation += 30 {
		got := mustCall(t, "-generations", fmt.Sprint(generation), "-dir", dir)
		want := []string{
			"Acorn in " + dir,
			fmt.Sprintf("recovered tick %d", max(generation-30, 30)),
			at(t, "acorn", generation).String(),
			"ecsdump info " + dir,
		}
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("to generation %d: prints\n%swithout %q", generation, got, want)
			}
		}
	}
}

func TestRun_ForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	mustCall(t, "-pattern", "acorn", "-generations", "30", "-dir", dir)
	tests := []struct{ args, want string }{
		{args: "-generations 29", want: dir + " holds generation 30, which is past 29"},
		{args: "-generations 29 -population", want: "past 29"},
		{args: "-pattern gosper-gun", want: dir + " holds another pattern, Acorn"},
	}
	for _, tt := range tests {
		args := append(strings.Fields(tt.args), "-dir", dir)
		code, stdout, stderr := call(args...)
		if code != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("life %s = %d with %q on stderr, want 1 with %q", tt.args, code, stderr, tt.want)
		}
		if strings.Contains(tt.args, "-population") && stdout != "" {
			t.Errorf("life %s prints %q, want nothing", tt.args, stdout)
		}
	}
	if got := mustCall(t, "-pattern", "acorn", "-generations", "31", "-dir", dir); !strings.Contains(got, "recovered tick 30") {
		t.Errorf("a refused run changed the directory:\n%s", got)
	}
}

func TestPatternFile_BadLineOrMissing(t *testing.T) {
	bad := writeFile(t, "bad.rle", "x = 3, y = 3\nbo$2bo$4o!")
	missing := filepath.Join(t.TempDir(), "none.rle")
	tests := []struct{ file, want string }{
		{file: bad, want: "life: " + bad + ": line 2: row 3 is longer than x = 3\n"},
		{file: missing, want: missing},
		{file: t.TempDir(), want: "is a directory"},
	}
	for _, tt := range tests {
		code, stdout, stderr := call("-pattern", tt.file)
		if code != 1 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("life -pattern %s = %d with %q and %q, want 1 with %q on stderr", tt.file, code, stdout, stderr, tt.want)
		}
	}
}

func TestPatternFile_NameAsTitle(t *testing.T) {
	file := writeFile(t, "blinker.rle", "3o!")
	if got := mustCall(t, "-pattern", file, "-generations", "1"); !strings.HasPrefix(got, "blinker.rle\n") {
		t.Errorf("prints\n%swant blinker.rle in the first line", got)
	}
}

func TestRun_WrongArguments(t *testing.T) {
	tests := []struct {
		args string
		code int
		want string // On stderr.
	}{
		{args: "-h", code: 0, want: "built-in one: acorn, gosper-gun, r-pentomino"},
		{args: "-generations -1", code: 2, want: `invalid value "-1"`},
		{args: "-generations", code: 2, want: "needs an argument"},
		{args: "-sync sometimes", code: 2, want: "neither always nor never nor a duration"},
		{args: "-sync -1s", code: 2, want: "neither always nor never nor a duration"},
		{args: "-speed 9", code: 2, want: "-speed"},
		{args: "acorn", code: 2, want: `unexpected argument "acorn"`},
	}
	for _, tt := range tests {
		code, stdout, stderr := call(strings.Fields(tt.args)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("life %s = %d with %q and %q, want %d with %q on stderr", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}

func TestParseFlags_ValidCombinations(t *testing.T) {
	tests := []struct {
		args                         string
		isTour, journaled, anyOrigin bool
		sync                         time.Duration
	}{
		{args: "", isTour: true, anyOrigin: true},
		{args: "-dir d", isTour: true, journaled: true, anyOrigin: true},
		{args: "-acks -population", isTour: true, journaled: true, anyOrigin: true},
		{args: "-generations 5", anyOrigin: true},
		{args: "-generations 1103", anyOrigin: true},
		{args: "-pattern r-pentomino"},
		{args: "-pattern acorn -dir d", journaled: true},
		{args: "-pattern acorn -acks", journaled: true},
		{args: "-pattern acorn -sync always", journaled: true, sync: journal.SyncAlways},
		{args: "-pattern acorn -sync never", journaled: true, sync: journal.SyncNever},
		{args: "-pattern acorn -sync 20ms", journaled: true, sync: 20e6},
	}
	for _, tt := range tests {
		c, err := parseFlags(strings.Fields(tt.args), io.Discard)
		if err != nil {
			t.Errorf("parseFlags(%s): %v", tt.args, err)
		}
		if c.isTour != tt.isTour || c.journaled != tt.journaled || c.anyOrigin != tt.anyOrigin || c.sync != tt.sync {
			t.Errorf("parseFlags(%s) = %+v, want %+v", tt.args, c, tt)
		}
	}
}

func TestAcks_EachGenerationOnce(t *testing.T) {
	for _, policy := range []string{"always", "never", "1ms"} {
		dir := t.TempDir()
		next := uint64(0)
		for _, generation := range []string{"40", "80"} {
			out := mustCall(t, "-generations", generation, "-dir", dir, "-acks", "-sync", policy, "-population")
			readAcks(strings.NewReader(out), func(got uint64) {
				if got != next {
					t.Errorf("-sync %s: durable %d, want %d", policy, got, next)
				}
				next = got + 1
			})
			// The next run begins with the last durable generation.
			next--
		}
		if next != 80 {
			t.Errorf("-sync %s: last acknowledged is %d, want 80", policy, next)
		}
	}
}

func TestAcks_SyncNeverPrintsAtClose(t *testing.T) {
	config, err := parseFlags([]string{"-acks", "-sync", "never", "-dir", t.TempDir()}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	out := &output{w: &written}
	p := &program{config: config, stdout: out, pattern: &Pattern{Cells: glider(0, 0)}}
	game, err := p.open(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := game.RunTo(t.Context(), 3, game.commit); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // The default policy syncs within this time.
	out.mu.Lock()
	before := written.String()
	out.mu.Unlock()
	if err := game.close(); err != nil {
		t.Fatal(err)
	}
	if want := "durable 0\n"; before != want {
		t.Errorf("before the end, prints %q, want %q", before, want)
	}
	if got, want := written.String(), "durable 0\ndurable 1\ndurable 2\ndurable 3\n"; got != want {
		t.Errorf("in the end, has printed %q, want %q", got, want)
	}
}

func TestRun_OutputFails(t *testing.T) {
	var stderr bytes.Buffer
	code := run([]string{"-generations", "2", "-population"}, fullDisk{}, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "disk is full") {
		t.Errorf("life on a full disk = %d with %q on stderr, want 1 and the reason", code, &stderr)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestRun_StoppedAndContinued(t *testing.T) {
	dir := t.TempDir()
	config, err := parseFlags([]string{"-generations", "1000000", "-dir", dir}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	config.acks = true
	out := &stopAt{line: "durable 5\n", stop: func() { stop(errors.New("enough")) }}
	if err := play(ctx, config, out); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("a stopped run returns %v, want the reason", err)
	}
	game := reopen(t, dir)
	if !game.store.Report().Clean || game.Generation() < 5 {
		t.Errorf("after a run that was stopped at generation 5 or later: %v at %v", game.found(), game)
	}
}

// A stopAt calls its function when a line is written.
type stopAt struct {
	line string
	stop func()
}

func (s *stopAt) Write(p []byte) (int, error) {
	if string(p) == s.line {
		s.stop()
	}
	return len(p), nil
}

func TestPacedCommit_StopEndsWait(t *testing.T) {
	config := config{pace: 1 << 62}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	commits := 0
	commit := config.paced(ctx, func() error { commits++; return nil })
	if err := commit(); err != nil || commits != 1 {
		t.Errorf("a paced commit returned %v after %d commits, want one", err, commits)
	}
	failed := errors.New("failed")
	if err := config.paced(ctx, func() error { return failed })(); err != failed {
		t.Errorf("a paced commit that fails returned %v, want %v", err, failed)
	}
}
