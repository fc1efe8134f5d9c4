// Package dump has the commands of ecsdump, which print what a store or a save contains. Nested
// modules of this repository can import it: a program that opens the stores of another engine has
// its own main and the same commands.
//
// A command is a variable of type command in its own file, together with its --json documents and
// its code. The table of commands lists it. Its test script is in testdata/script. go test
// ./internal/dump -update records the members of its documents and rewrites docs/ECSDUMP.md. No
// other place needs a change.
//
// A command reads a source at a point in time, which yields a state. It passes its output to the
// app. The output is a document (a struct whose name ends in Doc), or the items of a walk. A
// document is printed as JSON, or as text if it is a report. The items of a walk become the list of
// a document, or rows of a table. Functions that print lines and tables return no error; the app
// reports the first write error at the end. Every error is reported as a [failure], which sets the
// exit status. A usage error says how to call the command.
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

// An app is one call of the program: its output and the flags that all commands share. A command
// gets a [call], and a command that reads something gets a [source]. Each type in this list
// contains the type before it:
//
//	app      standard output, --json
//	call     the arguments and flags of a command, the context
//	source   the store or save that the first argument names
//	state    a world in the store, at a point in time
//
// Flags are filled in before a command runs, and begin creates bar. The main program sets openers,
// formats and stdin. Each request of an agent gets a separate app, which prints to memory and has
// lend set.
type app struct {
	*term.Out // Standard output.
	stderr    io.Writer
	bar       *term.Bar // Nil if no progress is shown.
	openers   map[string]Opener
	secrets   secrets   // Secrets of the URLs on the command line.
	opened    []disk.FS // Files that the openers returned, closed at the end.
	formats   []Format  // Export formats of the program, in addition to the built-in ones.
	// Lends opened stores to commands. If nil, each command opens and closes its source.
	lend  lendFunc
	stdin io.Reader
	piped disk.FS // The content of stdin; nil until it is read.

	json     bool // True with --json, and also with --ndjson.
	ndjson   bool
	color    term.When // Value of --color.
	progress term.When
	noPager  bool
}

// An Opener returns the files behind a URL and the name to read in them: a save, or "." for a
// store at their top. The program closes the files at the end. The URL contains the name and
// password that the user gave, which an error must not show.
type Opener func(ctx context.Context, url string) (files disk.FS, name string, err error)

// findFiles calls the opener of a URL, or reads standard input. Everything else is a path, for
// which findFiles returns nil files.
//
//	standard input      "-": a file in memory
//	SCHEME://…          what the opener of the scheme returns; it is closed when the program ends
//	anything else       a path, even with an unknown scheme: a file may have such a name
//
// Only findFiles puts the secret back into a URL. So code that prints the path prints no secret.
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
	// The opener returned EPIPE, which concerns its own connection. Standard output is still open.
	case errors.Is(err, syscall.EPIPE):
		// Drop the error chain: execute would read EPIPE as a closed standard output.
		err = errors.New(err.Error())
	}
	return files, name, err
}

// open opens what path names: a directory, a file, a URL of a scheme with an opener, or standard
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

// A lendFunc returns a view of what path names, for the exclusive use of the caller. After its last
// use of the view, the caller calls the returned function once.
type lendFunc func(ctx context.Context, path string) (v *inspect.View, back func(), err error)

// view returns a view of what path names, and a function that releases it.
func (a *app) view(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if a.lend != nil {
		return a.lend(ctx, path)
	}
	v, err = a.open(ctx, path)
	// The view is read-only, so an error of Close loses nothing.
	return v, func() { _ = v.Close() }, err
}

// A command is a row of the table of commands. Help, man pages, completion and docs/ECSDUMP.md
// print its fields.
//
// The name is the first word of use. The number of arguments follows from the other words, so no
// command counts its arguments; see arguments.
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

// A call holds the arguments of an action. A call ends with the program, so it may store the
// context.
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

// arguments returns the smallest and largest number of arguments of c, derived from use. An
// argument in brackets may be omitted, and "…" allows any number. A command with several forms
// counts its arguments itself.
//
//	export STORE [A..B]                         1 to 2
//	edit STORE ASSIGNMENT …                     2 or more
//	import FILE -o OUT                          1: counting ends at the first flag
//	bisect STORE EXPR … | bisect STORE …        any: bisect counts itself
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

// cobra converts c to a command of package cobra. Flags are declared before the command runs, so
// help, completion and man pages list them. With --json, a default limit is removed before the
// command runs. An error about arguments shows the usage line.
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

// begin applies the flags before the command runs. It puts the progress bar into the context as a
// callback, because package persist reports progress but does not import the bar. It also applies
// --color and --no-pager to standard output.
func (a *app) begin(cmd *cobra.Command, _ []string) error {
	a.json = a.json || a.ndjson
	a.Suit(a.color, a.json, !a.noPager)
	if a.bar = a.NewBar(a.stderr, a.progress, a.json); a.bar != nil {
		cmd.SetContext(persist.WithProgress(cmd.Context(), func(p persist.Progress) { a.bar.Show(p.Phase, p.Done, p.Total) }))
	}
	return nil
}
