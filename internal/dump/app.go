// Package dump has the commands of ecsdump, which print what a store or a save contains. Other
// modules of this repository import the package. For example, ecsdump-tables has the same commands,
// and additional export formats.
//
// To add a command:
//
//   - Declare a variable of type command in a new file, with the code of the command.
//   - Add the variable to the table of commands.
//   - Add a test script to testdata/script.
//   - Run go test ./internal/dump -update. It rewrites docs/ECSDUMP.md, and the list of all members
//     of documents.
//
// A command reads the state of a store or save at a point in time. It then prints a document: a
// struct whose name ends in Doc. A [report] prints a whole document as JSON or as text. A [walk]
// prints the items of a document one by one, as a JSON list or as rows of a table.
//
// Functions that print return no error. The app reports the first write error at the end. Every
// error is reported as a [failure], which sets the exit status.
package dump

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An app is one call of the program: its output and the flags that all commands share. It has the
// standard output and --json. Three other types describe a call:
//
//   - A call embeds an app. It has the arguments and flags of a command, and the context.
//   - A source embeds a call. It is the store or save that the first argument names.
//   - A state is a world in the store, at a point in time.
type app struct {
	*term.Out // Standard output.
	stderr    io.Writer
	bar       *term.Bar // Nil if no progress is shown.
	openers   map[string]Opener
	secrets   secrets   // Secrets of the URLs on the command line.
	opened    []disk.FS // Files that the openers returned, closed at the end.
	formats   []Format  // Export formats of the program, in addition to the built-in ones.
	// If not nil, commands borrow opened stores from this function. Otherwise each command opens
	// and closes its store.
	lend  lendFunc
	stdin io.Reader
	piped disk.FS // The content of stdin; nil until it is read.

	json     bool // True with --json, and also with --ndjson.
	ndjson   bool
	color    term.When // Value of --color.
	progress term.When
	noPager  bool
}

// An Opener opens a URL. It returns a file system and the name of a save in it, or "." for a store
// in the root directory. The program closes the file system at the end. The URL contains the user's
// name and password. Errors must not show them.
type Opener func(ctx context.Context, url string) (files disk.FS, name string, err error)

// findFiles returns the files of an argument that names a store or save:
//
//   - For "-", it returns standard input as a file in memory.
//   - For a URL with a known scheme, it returns the files of the opener. They are closed when the
//     program ends.
//   - For any other text, it returns nil files, because a path may also contain "://".
//
// The parameter path has no password. findFiles adds the password before it calls the opener.
func (a *app) findFiles(ctx context.Context, path string) (files disk.FS, name string, err error) {
	if path == standardInput {
		files, err = a.input()
		return files, path, err
	}
	scheme, _, _ := strings.Cut(path, "://")
	open := a.openers[scheme]
	switch {
	case open == nil && strings.HasPrefix(path, "nats://"):
		return nil, path, fail(exitUsage, "go -C persist/replica/natslog install ./ecsdump-nats # in the sources of Stet",
			"this program cannot read logs on NATS; use ecsdump-nats, which has all commands of ecsdump")
	case open == nil:
		return nil, path, nil
	}
	files, name, err = open(ctx, a.secrets.whole(path))
	switch {
	case err == nil:
		a.opened = append(a.opened, files)
	case errors.Is(err, syscall.EPIPE):
		// A lost network connection may cause EPIPE. The method execute ignores EPIPE, because a
		// closed standard output is no failure. The new error has the same text but does not wrap
		// EPIPE, so it is reported.
		err = errors.New(err.Error())
	}
	return files, name, err
}

// open opens the store or save at path: a directory, a file, a URL with a known scheme, or standard
// input.
func (a *app) open(ctx context.Context, path string) (*inspect.View, error) {
	files, name, err := a.findFiles(ctx, path)
	if err != nil {
		return nil, err
	}
	if files == nil {
		return inspect.OpenReadOnly(ctx, name)
	}
	return inspect.OpenFS(ctx, files, name)
}

// A lendFunc returns a view of the store or save at path, for the exclusive use of the caller. The
// caller calls back() once, after its last use of the view.
type lendFunc func(ctx context.Context, path string) (v *inspect.View, back func(), err error)

// view returns a view of the store or save at path, and a function that releases the view.
func (a *app) view(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if a.lend != nil {
		return a.lend(ctx, path)
	}
	v, err = a.open(ctx, path)
	// Ignore the error of Close, because the view is read-only.
	return v, func() { _ = v.Close() }, err
}

// A command is a row of the table of commands. Help, man pages, completion and docs/ECSDUMP.md
// print its fields.
type command struct {
	// Synopsis of the command: its name, then its arguments, as in "ls STORE [A..B]".
	use string
	// Help text: one line; then, if needed, an empty line and the details.
	doc     string
	example string
	// Completers of the second and later arguments. The first argument is a file name.
	complete []completer

	// run declares the flags and returns the action of the command.
	run func(f flags) action
}

// An action runs a command.
type action func(c *call) error

// A call holds the arguments and the context of one run of a command.
type call struct {
	*app
	ctx   context.Context
	args  []string
	flags flags
}

// name returns the name of c.
func (c *command) name() string {
	name, _, _ := strings.Cut(c.use, " ")
	return name
}

// arguments returns the smallest and largest number of arguments of c, derived from the synopsis.
// Brackets mark an optional argument, and "…" allows any number. Counting ends at the first flag.
// Each row has a synopsis and the numbers:
//
//	export STORE [A..B]                       1 to 2
//	edit STORE ASSIGNMENT …                   2 or more
//	import FILE -o OUT                        1
//	bisect STORE EXPR … | bisect STORE …      0 or more
//
// A command with two synopses counts its arguments itself.
func (c *command) arguments() (least, most int) {
	const many = 1 << 10
	if strings.Contains(c.use, " | "+c.name()) {
		return 0, many
	}
	for _, word := range strings.Fields(c.use)[1:] {
		switch {
		case word == "…":
			return least, many
		case word[0] == '-':
			return least, least + most
		case word[0] == '[':
			most++
		case most == 0:
			least++
		}
	}
	return least, least + most
}

// cobra converts c to a command of package cobra. All flags are declared here, so help, completion
// and man pages list them.
func (a *app) cobra(c *command) *cobra.Command {
	// Package cobra shows the first line in lists of commands and the rest in help.
	short, long, _ := strings.Cut(c.doc, "\n\n")
	cmd := &cobra.Command{Use: c.use, Short: short, Long: long, Example: c.example, ValidArgsFunction: a.completeArguments(c)}
	f := flags{cmd.Flags(), cmd}
	run := c.run(f)
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		if a.json {
			err = f.unlimited()
		}
		if err != nil {
			return err
		}
		return run(&call{a, cmd.Context(), args, f})
	}
	least, most := c.arguments()
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return misused(cmd, "usage: %s", cmd.UseLine())
		}
		return nil
	}
	return cmd
}

// begin applies the shared flags before the command runs. It creates the progress bar, and passes
// the bar to package persist as a callback in the context.
func (a *app) begin(cmd *cobra.Command, _ []string) error {
	a.json = a.json || a.ndjson
	a.Suit(a.color, a.json, !a.noPager)
	if a.bar = a.NewBar(a.stderr, a.progress, a.json); a.bar != nil {
		cmd.SetContext(persist.WithProgress(cmd.Context(), func(p persist.Progress) { a.bar.Show(p.Phase, p.Done, p.Total) }))
	}
	return nil
}
