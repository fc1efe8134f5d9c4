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
//	ecsdump verify STORE              check everything
//	ecsdump recover STORE -o OUT      write what is good of a damaged one to a new one
//	ecsdump compact STORE -o OUT      write the newest state, and little else, to a new one
//
// STORE is a directory kept by persist.Open or a file written by persist.Save. An
// ENTITY is written INDEXvGENERATION: 12v3.
//
// # Points in time
//
// The flag --at shows the state at another time than the newest:
//
//	@latest       the newest state
//	@latest~10    10 ticks before it
//	@first        the oldest
//	@-5s          the newest that is at least 5 seconds older
//	1200          tick 1200 on the way to the newest state
//	seq:88        record 88 of the journal, on whatever branch
//	snap:3        the state in snapshot file 3
//
// A range for log is A..B, A.., ..B or a single point. Ticks in it mean those of
// all branches; other points mean the order in the journal.
//
// # Output
//
// Results go to standard output, as tables for people, without colours. Lines are
// cut to the width of the terminal, or of COLUMNS if that is set; what goes to a
// file or a pipe is whole. Everything else goes to standard error.
//
// With --json, standard output is one JSON document: [infoDoc], [lsDoc],
// [showDoc], [resourcesDoc], [schemaDoc], [arraysDoc], [logDoc], [verifyDoc],
// [recoverDoc] or [compactDoc], and an error is one line of JSON on standard error: [errorDoc]. Members are
// only ever added. Entities are strings as above, digests are 16 hexadecimal
// digits, times are RFC 3339 in UTC, values are as package layout writes them.
//
// # Exit status
//
//	0  all is well
//	1  a problem that is no damage: a newer program wrote it
//	2  called wrongly
//	3  no such store, point in time, entity or component
//	4  damaged; what could be read was printed
//	5  the system did not let it be read
package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// An app is one call of the program.
type app struct {
	stdout *bufio.Writer
	stderr io.Writer
	json   bool
	width  int // Columns to cut lines to; 0: do not.
}

// run is main without the process around it.
func run(args []string, stdout, stderr io.Writer) (code int) {
	a := &app{stdout: bufio.NewWriter(stdout), stderr: stderr, width: lineWidth(stdout)}
	root := a.command()
	root.SetArgs(append([]string{}, args...))
	root.SetOut(a.stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if e := a.stdout.Flush(); e != nil {
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
	a.json = a.json || slices.Contains(args, "--json") // The flags may be what is wrong.
	a.report(f)
	return f.code
}

// command returns the command line.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "ecsdump COMMAND STORE",
		Short: "Print what a store or a save holds, without changing it",
		Long: `Ecsdump prints what a store (a directory of persist.Open) or a save (a file of
persist.Save) holds. It never changes what it reads.

A POINT in time is a tick (1200), @latest, @latest~10, @first, @-5s, seq:88 (a
record of the journal) or snap:3 (a snapshot). An ENTITY is INDEXvGENERATION, as
in 12v3.

Exit status: 0 all is well, 1 a problem that is no damage, 2 called wrongly,
3 not found, 4 damaged, 5 the system did not let it be read.`,
		Example: `  ecsdump info D
  ecsdump ls D --with Position,Name --limit 5
  ecsdump show D 12v3 --at @latest~10
  ecsdump arrays D Position
  ecsdump log D 10..20 --verbose
  ecsdump verify D`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			return &failure{exitUsage, errors.New("no command given"), "ecsdump --help"}
		},
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON document")
	root.AddCommand(newInfo(a), newLs(a), newShow(a), newSchema(a), newArrays(a), newLog(a), newVerify(a))
	root.AddCommand(newRecover(a), newCompact(a))
	return root
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
