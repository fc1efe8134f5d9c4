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
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// What goes wrong ends in one place, as a failure: an exit status, what went wrong, and the next
// command to try.
//
//	error of package inspect ──▶ classify or opening: by what it wraps, not by its text
//	wrong call               ──▶ misused: the help of the command
//	failure                  ──▶ report: lines on standard error, or with --json one line of JSON
//
// Those who read exit statuses are programs: a status means the same for every command. A failure
// passes through classify as it is, so whoever is nearest to what went wrong decides what it is.

// pageSize is what the size of every save is a multiple of. A file of another size was none,
// however damaged it is.
const pageSize = 4 << 10

// What the process exits with. Scripts rely on these numbers: the order stays.
const (
	exitOK = iota
	exitProblem
	exitUsage
	exitNotFound
	exitCorrupt
	exitSystem
)

// exits says what each of these means: the value of "kind" in [errorDoc], and for people.
var exits = [...]struct{ kind, text string }{
	{"ok", "all is well"},
	{"problem", "states differ, or a problem that is no damage: a newer program wrote it"},
	{"usage", "called wrongly"},
	{"not_found", "no such store, point in time, entity or component"},
	{"corrupt", "damaged; what could be read was printed"},
	{"system", "the system did not let it be read or written, or an interrupt ended it"},
}

// exitsText returns the table of them.
func exitsText() string {
	var b strings.Builder
	for code, e := range exits {
		fmt.Fprintf(&b, "  %d  %s\n", code, e.text)
	}
	return b.String()
}

// A failure ends the program.
type failure struct {
	code int
	err  error
	next string // The command to try next, or ""; others on further lines.
	text string // Instead of that of err, if there is one.
}

func (f *failure) Error() string { return cmp.Or(f.text, f.err.Error()) }
func (f *failure) Unwrap() error { return f.err }

// fail returns a failure with a text.
func fail(code int, next, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...), next: next}
}

// system returns err as a failure of the operating system; nil stays nil. It must not return a
// *failure: a nil one in an error is not nil.
func system(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitSystem, err: err}
}

// errDiffer gives diff the exit status of states that are not the same. It is not
// reported: the differences were printed.
var errDiffer = errors.New("the states differ")

// classify returns an error of reading path as a failure: with the exit status that its
// kind has, and the command to try next. Damage comes before all else that an error may be at
// the same time: what is not found in a damaged file may be there.
//
// An expression that is wrong comes first. The order of the cases is what an error counts as if it
// is several things: the name of an output that is taken, damage, a point that is written wrongly,
// a newer format, an interrupt, something that is not there. What remains is the system's.
func classify(path string, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	if e := new(query.Error); errors.As(err, &e) {
		return &failure{code: exitUsage, err: pointedOut(err)}
	}
	f = &failure{err: err, text: path + ": " + describe.Unprefixed(err)}
	switch {
	case errors.Is(err, fs.ErrExist): // What it was to be written to.
		f.code, f.text = exitUsage, describe.Unprefixed(err)
	case damaged(err):
		f.code, f.next = exitCorrupt, try("verify", path)
	case errors.Is(err, persist.ErrPoint):
		f.code, f.next = exitUsage, "ecsdump --help"
	case errors.Is(err, persist.ErrNewer):
		f.code = exitProblem
	case errors.Is(err, context.Canceled):
		f.code, f.text = exitSystem, path+": interrupted"
	case errors.Is(err, persist.ErrNotFound):
		f.code, f.next = exitNotFound, try("log", path)
		if isSave(path) {
			f.next = try("info", path)
		}
	default:
		f.code = exitSystem
	}
	return f
}

// damaged reports whether err says that something in a store is damaged, so that the rest of it
// can be read all the same. A file that is of something else (foreign) counts as damage where a
// store has it in the place of its own.
func damaged(err error) bool {
	return errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrForeign)
}

// opening returns an error of opening path as a failure. What is no store or save at all
// is told from one that is damaged. A directory without a snapshot or a journal was most likely
// named by mistake, so no repair is suggested. A file that is no save may be one whose beginning is
// lost: then its size is one that saves have, and verify says whether recover finds pages in it.
func opening(path string, err error) *failure {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitNotFound, "", "%s: no such directory or file", path)
	case errors.Is(err, persist.ErrForeign) && isDir(path):
		return fail(exitNotFound, "", "%s: not a store: it holds no snapshots and no journal", path)
	case errors.Is(err, persist.ErrForeign):
		f := fail(exitNotFound, "", "%s: not a store and not a save", path)
		if info, err := os.Stat(path); err == nil && info.Size() > 0 && info.Size()%pageSize == 0 { // It may have been one.
			f.next = try("verify", path)
		}
		return f
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

// note tells people something that is no result, on standard error. With --json standard error has
// errors alone. The progress bar ends first, as it stands on the same line.
func (a *app) note(format string, args ...any) {
	if !a.json {
		a.bar.End()
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(fmt.Sprintf(format, args...)))
	}
}

// report prints f to standard error: what went wrong, then what to try. With --json that is one
// line, so that a program that reads standard error line by line has all of it. Of several commands
// to try a program is given the first.
func (a *app) report(f *failure) {
	if f.code == exitProblem && errors.Is(f, errDiffer) {
		return // The differences were printed.
	}
	if a.json {
		var doc errorDoc
		doc.Error.Code, doc.Error.Kind = f.code, exits[f.code].kind
		doc.Error.Message = f.Error()
		doc.Error.Try, _, _ = strings.Cut(f.next, "\n")
		text, err := formatted(doc)
		if err != nil {
			panic(err) // It has numbers and text.
		}
		fmt.Fprintln(a.stderr, text)
		return
	}
	for _, line := range f.lines() {
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(line))
	}
}

// lines returns what f tells: what went wrong, then what to try.
func (f *failure) lines() []string {
	lines := strings.Split(f.Error(), "\n")
	for line := range strings.SplitSeq(f.next, "\n") {
		if line != "" {
			lines = append(lines, "try: "+line)
		}
	}
	return lines
}

// try returns a command line of this program. Arguments are quoted as a shell needs it: names and
// paths may be anything.
func try(name string, args ...string) string {
	line := "ecsdump " + name // May be several words.
	if len(args) > 0 {
		line += " " + shell.Command(args...)
	}
	return line
}

// pointedOut shows below err where in an expression it is, if it is in one. A mark stands below a
// column of the terminal, of which some characters take two and some none.
//
//	no field "Z" …
//	    Position.Z > 3
//	             ^
func pointedOut(err error) error {
	var e *query.Error
	if !errors.As(err, &e) || e.At < 0 {
		return err
	}
	line, before := e.Excerpt()
	first := term.Clean(string(line[:before]))
	return fmt.Errorf("%w\n    %s%s\n    %*s", err, first, term.Clean(string(line[before:])), term.Width(first)+1, "^")
}
