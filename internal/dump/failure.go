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

// Every error becomes a failure: an exit status, a message, and the next command to try.
//
//	error of package inspect ──▶ classify or classifyOpen: by the errors that it wraps
//	wrong command line       ──▶ misused: suggests the help of the command
//	failure                  ──▶ report: lines on standard error, or with --json one line of JSON
//
// Programs read exit statuses, so a status has the same meaning for every command. classify returns
// a failure unchanged, so the code closest to the error sets its status.

// The size of every save is a multiple of pageSize. A file of another size is no complete save.
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

// systemError returns err as a failure of the operating system, or nil if err is nil. The result
// type is error, because a nil *failure in an error is not nil.
func systemError(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitSystem, err: err}
}

// errDiffer gives diff its exit status for states that differ. It is not reported, because the
// differences are printed already.
var errDiffer = errors.New("the states differ")

// classify returns an error of reading path as a failure, with the exit status of its kind and the
// command to try next. Damage takes precedence over not found, because the missing thing may be in
// the damaged part.
//
// An error with several causes is classified by the first matching case. All other errors are
// errors of the operating system.
func classify(path string, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if e := new(query.Error); errors.As(err, &e) {
		return &failure{code: exitUsage, err: withMark(err)}
	}
	f = &failure{err: err, text: path + ": " + describe.Unprefixed(err)}
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

// damaged reports whether err is damage in a store, so that undamaged data can still be read. A
// foreign file under the name of a file of the store counts as damage.
func damaged(err error) bool {
	return errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrForeign)
}

// classifyOpen returns an error of opening path as a failure. It distinguishes a path that is no
// store or save from a damaged one. A directory without snapshots and journal was probably named by
// mistake, so no repair is suggested. A file with the size of a save may be a save without its
// beginning. The error then suggests verify, which reports whether recover finds pages in the file.
func classifyOpen(path string, err error) *failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitNotFound, "", "%s: no such directory or file", path)
	case errors.Is(err, persist.ErrForeign) && isDir(path):
		return fail(exitNotFound, "", "%s: not a store: it holds no snapshots and no journal", path)
	case errors.Is(err, persist.ErrForeign):
		f := fail(exitNotFound, "", "%s: not a store and not a save", path)
		// The file may be a damaged save.
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

// printNote prints a message that is not part of the result to standard error. With --json it
// prints nothing, because standard error then contains only errors. It first ends the progress bar,
// which uses the same line.
func (a *app) printNote(format string, args ...any) {
	if !a.json {
		a.bar.End()
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(fmt.Sprintf(format, args...)))
	}
}

// printFailure prints f to standard error: the message, then the commands to try. With --json it
// prints one line of JSON with the first of the commands.
func (a *app) printFailure(f *failure) {
	if f.code == exitProblem && errors.Is(f, errDiffer) {
		return // The differences are printed already.
	}
	if a.json {
		var doc errorDoc
		doc.Error.Code, doc.Error.Kind = f.code, exits[f.code].kind
		doc.Error.Message = f.Error()
		doc.Error.Try, _, _ = strings.Cut(f.next, "\n")
		text, err := formatted(doc)
		if err != nil {
			panic(err) // The document has only numbers and text.
		}
		fmt.Fprintln(a.stderr, text)
		return
	}
	for _, line := range f.lines() {
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(line))
	}
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

// withMark adds the expression and a mark below the position of err, if err has a position. The
// column of the mark is the terminal column, because some characters take two columns and some
// none.
//
//	no field "Z" …
//	    Position.Z > 3
//	             ^
func withMark(err error) error {
	var e *query.Error
	if !errors.As(err, &e) || e.At < 0 {
		return err
	}
	line, before := e.Excerpt()
	first := term.Clean(string(line[:before]))
	return fmt.Errorf("%w\n    %s%s\n    %*s", err, first, term.Clean(string(line[before:])), term.Width(first)+1, "^")
}
