// Package dump has the commands of ecsdump, which print what a store or a save holds.
// It lies where nested modules of this repository can import it: a program that
// opens the stores of another engine is a main of its own with the same commands.
//
// A command is a variable of type command in a file of its own, with the documents of
// its --json and all that it does; it is listed in the table. Its script goes to
// testdata/script, and go test ./internal/dump -update notes the members of its documents
// and writes docs/ECSDUMP.md again. Nothing else has to know of it.
//
// Commands read a source, at a point that makes a state of it. What they print goes to
// the app: a document (a struct whose name ends in Doc), which is printed as JSON or prints
// itself for people (a report), or what a walk visits, as the list of a document or as rows.
// Lines and tables keep no error, as the app tells the first at the end. What goes wrong is
// a failure; what is called wrongly says what would be right.
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

// An app is one call of the program: what it prints to, and what the flags of every command say.
// Its commands are given a [call], and those that read something a [source], each with what comes
// before it inside:
//
//	app      standard output, --json
//	call     the arguments and flags of a command, the context
//	source   the store or save that the first argument names
//	state    a world in it, at a point in time
//
// What the flags say is filled in before a command runs; bar is made by begin, and openers, formats
// and stdin are what the program was built and called with. An agent's question gets an app of its
// own, which prints to memory and has lend set.
type app struct {
	*term.Out // Standard output.
	stderr    io.Writer
	bar       *term.Bar // nil: no progress is shown.
	openers   map[string]Opener
	secrets   secrets   // Of the URLs that it was called with.
	opened    []disk.FS // By these.
	formats   []Format  // That export writes beside its own.
	lend      lending   // nil: whatever is read is opened for it, and closed again.
	stdin     io.Reader
	piped     disk.FS // What was read of it; nil: nothing was.

	json     bool // Also with ndjson.
	ndjson   bool
	color    term.When // The flags of these names.
	progress term.When
	noPager  bool
}

// An Opener returns the files that a URL leads to, and what is to be read in them: the
// name of a save, or "." for the store at their top. They are closed at the end. The URL has the
// name and password that were given in it, which an error must not show.
type Opener func(ctx context.Context, url string) (files disk.FS, name string, err error)

// find calls the opener of a URL, or reads standard input. Everything else is a path, for
// which there are no files.
//
//	standard input      "-": a file in memory
//	SCHEME://…          what the opener of the scheme returns; it is closed when the program ends
//	anything else       a path: an unknown scheme is no error yet, a file may be called so
//
// The secret of a URL is put back only here, so whatever prints the path prints none.
func (a *app) find(ctx context.Context, path string) (files disk.FS, name string, err error) {
	if path == standardInput {
		files, err = a.input()
		return files, path, err
	}
	scheme, _, _ := strings.Cut(path, "://")
	open := a.openers[scheme]
	switch {
	case open == nil && strings.HasPrefix(path, "nats://"):
		return nil, path, fail(exitUsage, "go -C persist/replica/natslog install ./ecsdump-nats # in the sources of Stet",
			"this program does not read logs on NATS; ecsdump-nats does, and all else that ecsdump does")
	case open == nil:
		return nil, path, nil
	}
	files, name, err = open(ctx, a.secrets.whole(path))
	switch {
	case err == nil:
		a.opened = append(a.opened, files)
	case errors.Is(err, syscall.EPIPE): // Of the engine: standard output is still read.
		// The chain is cut: execute takes EPIPE for a reader who has seen enough.
		err = errors.New(err.Error())
	}
	return files, name, err
}

// open opens what path names: a directory, a file, a URL of a scheme that has an opener,
// or standard input.
func (a *app) open(ctx context.Context, path string) (*inspect.View, error) {
	files, name, err := a.find(ctx, path)
	if err != nil {
		return nil, err
	}
	if files == nil {
		return inspect.OpenReadOnly(ctx, name)
	}
	return inspect.OpenFS(ctx, files, name)
}

// A lending gives out a view of what path names, which goes to nobody else until it is given back.
// back is called once; the view is not used after that.
type lending func(ctx context.Context, path string) (v *inspect.View, back func(), err error)

// view returns what path names, and what lets go of it.
func (a *app) view(ctx context.Context, path string) (v *inspect.View, back func(), err error) {
	if a.lend != nil {
		return a.lend(ctx, path)
	}
	v, err = a.open(ctx, path)
	return v, func() { _ = v.Close() }, err // It was only read.
}

// A command is a row of the table. It is all there is to say of it: help, man pages,
// completion and docs/ECSDUMP.md print what is here.
//
// The name is the first word of use. The other words say how many arguments there are, so that no
// command has to count them, see arguments.
type command struct {
	use      string // How it is called: its name, then what it takes, as in "ls STORE [A..B]".
	doc      string // One line; if there is more to say, an empty one and all of it.
	example  string
	complete []completer // For each argument behind the first, which is a file.

	// run declares the flags and returns what is to be done then.
	run func(f flags) action
}

// An action is what a command does.
type action func(c *call) error

// A call is what an action is called with. It lives as long as the program, so it may have the
// context.
type call struct {
	*app
	ctx   context.Context
	args  []string
	flags flags
}

// name returns what c is called.
func (c *command) name() string {
	name, _, _ := strings.Cut(c.use, " ")
	return name
}

// arguments returns between how many arguments c takes, by what use says: those that begin
// with a bracket may be left out, and behind … there can be more. If there are several ways to
// call it, it counts itself.
//
//	export STORE [A..B]                         1 to 2
//	edit STORE ASSIGNMENT …                     2 or more
//	import FILE -o OUT                          1: flags end what is counted
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

// cobra returns c as that package has commands. Flags are declared before anything runs, so
// that help, completion and man pages know them. With --json a limit that nobody asked for is
// lifted before the command runs. Errors of arguments are told by the usage line.
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

// begin makes what the flags ask for, before any command runs. The bar hangs on the context,
// where whatever takes long finds it: package persist tells how far it is, and knows no bar.
// Colours and the pager depend on flags, so standard output learns of them here.
func (a *app) begin(cmd *cobra.Command, _ []string) error {
	a.json = a.json || a.ndjson
	a.Suit(a.color, a.json, !a.noPager)
	if a.bar = a.NewBar(a.stderr, a.progress, a.json); a.bar != nil {
		cmd.SetContext(persist.WithProgress(cmd.Context(), func(p persist.Progress) { a.bar.Show(string(p.Phase), p.Done, p.Total) }))
	}
	return nil
}
