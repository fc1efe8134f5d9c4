package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// Every error becomes a failure: an exit status, a message, and the next command to try. classify
// and classifyOpen make a failure from an error of package inspect. misused makes a failure for a
// wrong command line, and suggests the help of the command.
//
// printFailure prints a failure on standard error: as lines, or with --json as one line of JSON.
// Programs read exit statuses, so a status has the same meaning for every command.

// The size of every complete save is a multiple of pageSize.
const pageSize = 4 << 10

// Exit statuses of the process. Scripts rely on these numbers, so the order is fixed.
const (
	exitOK = iota
	exitProblem
	exitUsage
	exitNotFound
	exitCorrupt
	exitSystem
)

// exits describes each status: the value of "kind" in [errorDoc], and a text for people.
var exits = [...]struct{ kind, text string }{
	{"ok", "success"},
	{"problem", "states differ, or another problem without damage, such as a store of a newer program"},
	{"usage", "wrong arguments"},
	{"not_found", "no such store, point in time, entity or component"},
	{"corrupt", "the store is damaged; readable parts were printed"},
	{"system", "the system could not read or write a file, or the command was interrupted"},
}

// exitsText returns the table of exit statuses.
func exitsText() string {
	var b strings.Builder
	for code, e := range exits {
		fmt.Fprintf(&b, "  %d  %s\n", code, e.text)
	}
	return b.String()
}

// A failure is an error that ends the program with an exit status.
type failure struct {
	code int
	err  error
	next string // Commands to try next, one per line; may be empty.
	text string // Replaces the text of err if set.
}

func (f *failure) Error() string { return cmp.Or(f.text, f.err.Error()) }
func (f *failure) Unwrap() error { return f.err }

// fail returns a failure with a formatted message.
func fail(code int, next, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...), next: next}
}

// systemError returns err as a failure of the operating system. It returns nil if err is nil.
func systemError(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitSystem, err: err}
}

// errDiffer sets the exit status of diff for states that differ. It is not printed.
var errDiffer = errors.New("the states differ")

// classify returns an error of reading path as a failure, with an exit status and the command to
// try next. The first matching case wins. Damage comes before not found, because the damaged part
// may contain the missing object. Unknown errors count as errors of the operating system.
func classify(path string, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if _, ok := errors.AsType[*query.Error](err); ok {
		return &failure{code: exitUsage, err: withMark(err)}
	}
	f := &failure{err: err, text: path + ": " + describe.Unprefixed(err)}
	switch {
	case errors.Is(err, fs.ErrExist): // The output exists already.
		f.code, f.text = exitUsage, describe.Unprefixed(err)
	case damaged(err):
		f.code, f.next = exitCorrupt, describe.Command("verify", path)
	case errors.Is(err, persist.ErrPoint):
		f.code, f.next = exitUsage, "ecsdump --help"
	case errors.Is(err, persist.ErrNewer):
		f.code = exitProblem
	case errors.Is(err, context.Canceled):
		f.code, f.text = exitSystem, path+": interrupted"
	case errors.Is(err, persist.ErrNotFound):
		f.code, f.next = exitNotFound, describe.Command("log", path)
		if isSave(path) {
			f.next = describe.Command("info", path)
		}
	default:
		f.code = exitSystem
	}
	return f
}

// damaged reports whether err is damage of a part of the store. The rest can still be read.
func damaged(err error) bool {
	return errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrForeign)
}

// classifyOpen returns an error of opening path as a failure. For a file that may be a damaged
// save, it suggests verify.
func classifyOpen(path string, err error) *failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitNotFound, "", "%s: no such directory or file", path)
	case errors.Is(err, persist.ErrForeign) && isDir(path):
		return fail(exitNotFound, "", "%s: not a store: it holds no snapshots and no journal", path)
	case errors.Is(err, persist.ErrForeign):
		f := fail(exitNotFound, "", "%s: not a store and not a save", path)
		// A damaged save still has the size of a save.
		if info, err := os.Stat(path); err == nil && info.Size() > 0 && info.Size()%pageSize == 0 {
			f.next = describe.Command("verify", path)
		}
		return f
	}
	return classify(path, err)
}

// errorDoc is what --json prints to standard error when a command fails.
type errorDoc struct {
	Error struct {
		Code int `json:"code"` // The exit status.
		// Kind of failure: problem, usage, not_found, corrupt or system.
		Kind    string `json:"kind"`
		Message string `json:"message"`
		Try     string `json:"try,omitempty"` // A command that may help.
	} `json:"error"`
}

// lines returns the message of f, then the commands to try, one per line.
func (f *failure) lines() []string {
	lines := strings.Split(f.Error(), "\n")
	for line := range strings.SplitSeq(f.next, "\n") {
		if line != "" {
			lines = append(lines, "try: "+line)
		}
	}
	return lines
}

// withMark adds the text of the expression, and a mark below the position of the error:
//
//	no field "Z" …
//	    Position.Z > 3
//	             ^
//
// The mark is placed by the width of the text before it, because some characters take two columns
// of a terminal and some take none.
func withMark(err error) error {
	e, ok := errors.AsType[*query.Error](err)
	if !ok || e.At < 0 {
		return err
	}
	line, before := e.Excerpt()
	first := term.Clean(string(line[:before]))
	return fmt.Errorf("%w\n    %s%s\n    %*s", err, first, term.Clean(string(line[before:])), term.Width(first)+1, "^")
}

// isSave reports whether path is a file, and so probably a save.
func isSave(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// isDir reports whether path is a directory, and so probably a store.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
