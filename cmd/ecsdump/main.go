// Ecsdump prints what a store or a save holds. It needs no application types and
// never changes what it reads: it takes no lock, repairs nothing, and may look at
// a directory that a running program has open.
//
//	ecsdump info STORE                what there is: state, components, snapshots, journal
//	ecsdump ls STORE                  entities with their components
//	ecsdump show STORE ENTITY         one entity, all fields; --resources: the resources
//	ecsdump schema STORE              components and resources with their layouts
//	ecsdump arrays STORE COMPONENT    its sparse, dense and data arrays as they lie
//	ecsdump log STORE [A..B]          what every tick changed
//	ecsdump diff STORE [A..B]         how two states differ, or those of two stores
//	ecsdump export STORE [A..B]       a state, or what ticks changed, as JSON, NDJSON or CSV
//	ecsdump import FILE -o OUT        a save of what export wrote
//	ecsdump history STORE ENTITY      what happened to an entity, a component or a field
//	ecsdump blame STORE ENTITY        which tick gave every field its value
//	ecsdump verify STORE              check everything
//	ecsdump query STORE [EXPR]        expressions and totals over entities
//	ecsdump bisect STORE EXPR [A..B]  the first tick at which a condition holds
//	ecsdump stats STORE [A..B]        what takes the bytes: components, ticks, files
//	ecsdump tail STORE                the newest ticks, and new ones as they come
//	ecsdump recover STORE -o OUT      write what is good of a damaged one to a new one
//	ecsdump compact STORE -o OUT      write the newest state, and little else, to a new one
//	ecsdump man -o DIR                man pages of all commands
//
// STORE is a directory kept by persist.Open or a file written by persist.Save. An
// ENTITY is written INDEXvGENERATION: 12v3.
//
// # Points in time
//
// The flag --at shows the state at another time than the newest:
//
//	@latest       the newest state
//	@first        the oldest
//	@-5s          the newest that is at least 5 seconds older than the newest state
//	@+5s          the first tick that is at least 5 seconds newer than the oldest
//	1200          tick 1200 on the way to the newest state
//	seq:88        record 88 of the journal, on whatever branch
//	snap:3        the state in snapshot file 3; snap:NAME: in the one of that name
//	mark:NAME     the newest tick that the program gave that name
//	tip:1         the end of the oldest branch; info says how many there are
//	mark:NAME~10  10 ticks before it; so after every other point: @latest~10
//
// A range for log is A..B, A.., ..B or a single point. Ticks in it mean those of
// all branches; other points mean the order in the journal.
//
// # Expressions
//
// ls --where, query and bisect take expressions over the fields of an entity:
//
//	Position.X > 3 && Health < 10
//	Label.Text contains "orc" || any(Label.Tags, # == "big")
//	has(Target) && !exists(Target.Of)
//	component("game.Unit-2").HP ?? 0
//
// The language is that of expr-lang.org. A component is its value, a tag whether the
// entity has it; entity, index, generation, tick and alive (how many entities are)
// are there too, and resources by their names. Integers count exactly, those beyond
// 63 bits only in comparisons; a float32 is the number it prints as; entities are
// text. A component that the entity lacks, or a nil pointer on the way, is nothing:
// each comparison with it is false, and so is a condition that is nothing itself,
// whatever and, or and not make of that; a value is null; ?? replaces it.
//
// # Output
//
// Results go to standard output, as tables for people. On a terminal they have
// colours (not if NO_COLOR is set; --color decides otherwise) and, if they are longer
// than it, go through the pager that PAGER names (or ECSDUMP_PAGER; not with
// --no-pager). Lines are cut to the width of the terminal, or of COLUMNS if that is
// set; what goes to a file or a pipe is whole. Everything else goes to standard
// error: what takes longer than a second shows there how far it is, if that is a
// terminal (--progress decides otherwise).
//
// With --json, standard output is one JSON document, and an error is one line of
// JSON on standard error. The first member of each says its format, as in
// "ecsdump.ls/1": the number rises when a member goes or changes its meaning, and
// members may be added at any time. With --ndjson, the elements of the document's
// list are on lines of their own; the lines before and behind them, which have a
// format, hold its other members.
//
// Entities are strings as above, digests are 16 hexadecimal digits, times are RFC
// 3339 in UTC, values are as package layout writes them.
//
// # Exit status
//
//	0  all is well
//	1  states differ, something was lost, or a problem that is no damage: a newer
//	   program wrote it
//	2  called wrongly
//	3  no such store, point in time, entity or component
//	4  damaged; what could be read was printed
//	5  the system did not let it be read
package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/persist"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// An app is one call of the program.
type app struct {
	stdout *bufio.Writer // To screen.
	screen *screen
	stderr io.Writer
	bar    *bar // nil: no progress is shown.

	json     bool // Also with ndjson.
	ndjson   bool
	color    when // The flags of these names.
	progress when
	noPager  bool

	colour bool // Results have colours.
	width  int  // Columns to cut lines to; 0: do not.
}

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) (code int) {
	ctx, stop := interruptible()
	defer stop()
	return runUntil(ctx, stop, args, stdout, stderr)
}

// runUntil is run until ctx ends, which stop does.
func runUntil(ctx context.Context, stop func(), args []string, stdout, stderr io.Writer) (code int) {
	a := &app{screen: &screen{out: stdout, failed: stop}, stderr: stderr, width: lineWidth(stdout)}
	a.stdout = bufio.NewWriter(a.screen)
	root := a.command()
	root.SetArgs(append([]string{}, args...))
	root.SetOut(a.stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	a.bar.end()
	if e := firstError(a.stdout.Flush(), a.screen.Close()); e != nil {
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
	terminal := terminalOf(a.screen.out)
	a.colour = a.color.is(terminal.is && wantsColour(os.Getenv)) && !a.json
	if terminal.is && !a.noPager {
		a.screen.pageBeyond(terminal.height, pagerOf(os.Getenv, hasProgram))
	}
	messages := terminalOf(a.stderr)
	if a.progress.is(messages.is && !a.json) {
		a.bar = newBar(a.stderr, messages.width, time.Now)
		if terminal.is {
			a.screen.began = a.bar.end
		}
		cmd.SetContext(persist.WithProgress(cmd.Context(), a.bar.show))
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
