package dump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// What the process exits with.
const (
	exitOK       = 0
	exitProblem  = 1
	exitUsage    = 2
	exitNotFound = 3
	exitCorrupt  = 4
	exitSystem   = 5
)

// exitNames are the values of "kind" in [errorDoc].
var exitNames = [...]string{"ok", "problem", "usage", "not_found", "corrupt", "system"}

// A failure ends the program.
type failure struct {
	code int
	err  error
	next string // The command to try next, or ""; others on further lines.
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// classify makes err, which reading path gave, a failure.
func classify(path string, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if e := new(query.Error); errors.As(err, &e) {
		return &failure{exitUsage, pointedOut(err), ""}
	}
	f = &failure{err: &storeError{path + ": " + unprefixed(err), err}}
	switch {
	case errors.Is(err, persist.ErrCorrupt), errors.Is(err, persist.ErrForeign):
		f.code, f.next = exitCorrupt, command("verify", path)
	case errors.Is(err, persist.ErrPoint):
		f.code, f.next = exitUsage, "ecsdump --help"
	case errors.Is(err, persist.ErrNewer):
		f.code = exitProblem
	case errors.Is(err, context.Canceled):
		f.code, f.err = exitSystem, fmt.Errorf("%s: interrupted", path)
	case errors.Is(err, persist.ErrNotFound):
		f.code, f.next = exitNotFound, command("log", path)
	default:
		f.code = exitSystem
	}
	return f
}

// A storeError is an error of package persist, worded for the command line.
type storeError struct {
	text string
	err  error
}

func (e *storeError) Error() string { return e.text }
func (e *storeError) Unwrap() error { return e.err }

// unprefixed returns the text of err without the name of package persist.
func unprefixed(err error) string { return strings.TrimPrefix(err.Error(), "persist: ") }

// opening makes err, which opening path gave, a failure.
func opening(path string, err error) *failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &failure{exitNotFound, fmt.Errorf("%s: no such directory or file", path), ""}
	case errors.Is(err, persist.ErrForeign) && isDir(path):
		return &failure{exitNotFound, fmt.Errorf("%s: not a store: it holds no snapshots and no journal", path), ""}
	case errors.Is(err, persist.ErrForeign):
		return &failure{exitCorrupt, &storeError{path + ": " + unprefixed(err), err}, ""}
	}
	return classify(path, err)
}

// errorDoc is what --json prints to standard error when a command fails.
type errorDoc struct {
	Error struct {
		Code    int    `json:"code"` // The exit status.
		Kind    string `json:"kind"` // problem, usage, not_found, corrupt or system.
		Message string `json:"message"`
		Try     string `json:"try,omitempty"` // A command that may help.
	} `json:"error"`
}

// report prints f to standard error.
func (a *app) report(f *failure) {
	if errors.Is(f, errDiffer) && !errors.Is(f, persist.ErrCorrupt) {
		return // The differences were printed.
	}
	if a.json {
		var doc errorDoc
		doc.Error.Code, doc.Error.Kind = f.code, exitNames[f.code]
		doc.Error.Message = f.Error()
		doc.Error.Try, _, _ = strings.Cut(f.next, "\n")
		members, err := membersOf(doc)
		if err != nil {
			panic(err) // It has numbers and text.
		}
		fmt.Fprintln(a.stderr, object(members))
		return
	}
	for _, line := range strings.Split(f.Error(), "\n") {
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(line))
	}
	for line := range strings.SplitSeq(f.next, "\n") {
		if line != "" {
			fmt.Fprintf(a.stderr, "ecsdump: try: %s\n", term.Clean(line))
		}
	}
}

// command returns a command line of this program.
func command(name string, args ...string) string {
	line := "ecsdump " + name // May be several words.
	if len(args) > 0 {
		line += " " + shell.Command(args...)
	}
	return line
}
