// Package dump has the commands of ecsdump, which print what a store or a save holds.
// It lies where nested modules of this repository can import it: a program that
// opens the stores of another engine is a main of its own with the same commands.
package dump

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// Main is the whole of a program: it runs the command that os.Args has, and returns
// what to exit with.
func Main() int { return run(os.Args[1:], os.Stdout, os.Stderr) }

// An app is one call of the program.
type app struct {
	*term.Out // Standard output.
	stderr    io.Writer
	bar       *term.Bar // nil: no progress is shown.

	json     bool // Also with ndjson.
	ndjson   bool
	color    term.When // The flags of these names.
	progress term.When
	noPager  bool
}

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) (code int) {
	ctx, stop := interruptible()
	defer stop()
	return runUntil(ctx, stop, args, stdout, stderr)
}

// runUntil is run until ctx ends, which stop does.
func runUntil(ctx context.Context, stop func(), args []string, stdout, stderr io.Writer) (code int) {
	a := &app{Out: term.NewOut(stdout, stop), stderr: stderr}
	root := a.command()
	root.SetArgs(append([]string{}, args...))
	root.SetOut(a.Out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	a.bar.End()
	if e := a.Close(); e != nil {
		err = &failure{exitSystem, e, ""}
	}
	var f *failure
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, syscall.EPIPE):
		return exitOK // The reader has seen enough.
	case !errors.As(err, &f):
		f = &failure{exitUsage, err, cmd.CommandPath() + " --help"} // What cobra found.
	}
	a.json = a.json || slices.Contains(args, "--json") || slices.Contains(args, "--ndjson") // The flags may be what is wrong.
	a.report(f)
	return f.code
}

// interruptible returns a context that ends at the first interrupt, so that nothing
// is left half-written. The second interrupt ends the program.
func interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// begin makes what the flags ask for, before any command runs.
func (a *app) begin(cmd *cobra.Command, _ []string) error {
	a.json = a.json || a.ndjson
	a.Suit(a.color, a.json, !a.noPager)
	if a.bar = a.NewBar(a.stderr, a.progress, a.json); a.bar != nil {
		cmd.SetContext(persist.WithProgress(cmd.Context(), func(p persist.Progress) { a.bar.Show(string(p.Phase), p.Done, p.Total) }))
	}
	return nil
}

// command returns the command line.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "ecsdump COMMAND STORE",
		Short: "Print what a store or a save holds, without changing it",
		Long: `Ecsdump prints what a store (a directory of persist.Open) or a save (a file of
persist.Save) holds. It never changes what it reads.

A POINT in time is a tick (1200), @latest, @first, @-5s, @+5s, seq:88 (a record of
the journal), snap:3 or snap:NAME (a snapshot), mark:NAME (a tick that the program
named), tip:1 (the end of a branch), or one of these with ~10: 10 ticks before. An ENTITY is INDEXvGENERATION, as
in 12v3.

Exit status: 0 all is well, 1 a problem that is no damage, 2 called wrongly,
3 not found, 4 damaged, 5 the system did not let it be read.`,
		Example: `  ecsdump info D
  ecsdump ls D --with Position,Name --limit 5
  ecsdump show D 12v3 --at @latest~10
  ecsdump arrays D Position
  ecsdump log D 10..20 --verbose
  ecsdump verify D`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.begin,
		RunE: func(*cobra.Command, []string) error {
			return &failure{exitUsage, errors.New("no command given"), "ecsdump --help"}
		},
	}
	a.flags(root.PersistentFlags())
	root.AddCommand(
		newInfo(a),
		newLs(a),
		newShow(a),
		newSchema(a),
		newArrays(a),
		newLog(a),
		newVerify(a),
		newDiff(a),
		newExport(a),
		newImport(a),
		newQuery(a),
		newBisect(a),
		newStats(a),
		newHistory(a),
		newBlame(a),
		newRecover(a),
		newCompact(a),
		newMan(a),
		newTail(a),
	)
	root.AddCommand(newTopics()...)
	complete(root)
	return root
}

// flags adds the flags of every command.
func (a *app) flags(f *pflag.FlagSet) {
	a.color, a.progress = "auto", "auto"
	f.BoolVar(&a.json, "json", false, "print one JSON document")
	f.BoolVar(&a.ndjson, "ndjson", false, "print JSON, each element of a list on a line of its own")
	f.Var(&a.color, "color", "colour the output: auto (on a terminal), always or never")
	f.Var(&a.progress, "progress", "show on standard error how far it has come: auto (on a terminal), always or never")
	f.BoolVar(&a.noPager, "no-pager", false, "do not show long output with a pager")
}

// positional makes a command take between least and most arguments.
func positional(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return &failure{exitUsage, errors.New("usage: " + cmd.UseLine()), cmd.CommandPath() + " --help"}
		}
		return nil
	}
}
