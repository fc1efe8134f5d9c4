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

	"github.com/stet-ecs/stet/internal/term"
)

// This file turns a command line into an exit status. The function run removes the secrets from the
// arguments. Package cobra finds the command and parses its flags. Then command.run returns an
// action, which returns a failure or nil. At the end, run prints the failure and returns its exit
// status.

// commands lists all commands, in alphabetical order.
var commands = []*command{
	&arraysCommand, &bisectCommand, &blameCommand, &branchesCommand, &compactCommand, &diffCommand, &editCommand, &exportCommand, &historyCommand,
	&importCommand, &infoCommand, &logCommand, &lsCommand, &manCommand, &marksCommand, &mcpCommand, &panelCommand, &plotCommand, &queryCommand, &recoverCommand, &schemaCommand,
	&serveCommand, &showCommand, &statsCommand, &tailCommand, &treeCommand, &verifyCommand,
}

// Main runs the command in os.Args and returns the exit status of the program. The argument openers
// maps URL schemes to functions: the function for "nats" opens nats://host/world. The argument
// formats has additional formats of export.
func Main(openers map[string]Opener, formats ...Format) int {
	ctx, stop := interruptible()
	defer stop()
	return run(ctx, stop, openers, os.Args[1:], os.Stdout, os.Stderr, formats...)
}

// run runs the command in args until ctx ends. When the reader of standard output has gone, it
// calls stop(), which ends ctx.
func run(ctx context.Context, stop func(), openers map[string]Opener, args []string, stdout, stderr io.Writer, formats ...Format) (code int) {
	a := &app{Out: term.NewOut(stdout, stop), stdin: os.Stdin, stderr: stderr, openers: openers, secrets: secrets{}, formats: formats}
	var f *failure
	args, err := a.secrets.take(args)
	if err == nil {
		f = a.execute(ctx, commands, args)
	} else {
		f = classify("", err)
	}
	if f == nil {
		return exitOK
	}
	// Search the arguments, because cobra may have failed before it parsed the flags.
	a.json = a.json || slices.Contains(args, "--json") || slices.Contains(args, "--ndjson")
	a.printFailure(f)
	return f.code
}

// execute runs the command in args and returns its failure, or nil. It then ends the progress bar,
// closes files and flushes the output, even after a failure. A closed pipe is no failure.
func (a *app) execute(ctx context.Context, commands []*command, args []string) (f *failure) {
	root := a.root(commands)
	root.SetArgs(append([]string{}, args...))
	root.SetOut(a.Out)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	a.bar.End()
	for _, files := range a.opened {
		_ = files.Close() // Ignore the error: the files were only read.
	}
	if e := a.Close(); e != nil {
		err = &failure{code: exitSystem, err: e}
	}
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE): // The reader closed the pipe, as head does.
		return nil
	// Every action returns a failure. So this error comes from package cobra.
	case !errors.As(err, &f):
		f = cobraFailure(cmd, err)
	}
	return f
}

// interruptible returns a context that ends at the first interrupt, so that the program can
// complete its output. The second interrupt kills the program.
func interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// root returns the root command with the given commands and those of cobra: help and completion.
func (a *app) root(commands []*command) *cobra.Command {
	which := false // Value of --version.
	root := &cobra.Command{
		Use:   "ecsdump COMMAND STORE",
		Short: "Print the contents of a store or a save, without changing it",
		Long: `Ecsdump prints the contents of a store (a directory of persist.Open, or a zip file of
Store.BackupTo) or a save (a file of persist.Save). It never changes what it reads. An
ENTITY is written as INDEXvGENERATION, for example 12v3; the INDEX alone means the entity
that is alive at this index. If STORE is -, it is a save on standard input, of at most
1 GiB.

` + pointsText + `
Exit status:

` + exitsText(),
		Example: `  ecsdump info D
  ecsdump ls D --with Position,Name --limit 5
  ecsdump show D 12v3 --at @latest~10
  ecsdump arrays D Position
  ecsdump log D 10..20 --verbose
  ecsdump verify D`,
		SilenceErrors:      true,
		SilenceUsage:       true,
		PersistentPreRunE:  a.begin,
		DisableSuggestions: true, // usage.go suggests similar names.
	}
	root.RunE = func(*cobra.Command, []string) error {
		if which {
			return a.printReport(version())
		}
		return misused(root, "no command given")
	}
	root.Flags().BoolVar(&which, "version", false, "print the version of this program")
	root.SetFlagErrorFunc(wrongFlag)
	a.global(root.PersistentFlags())
	for _, c := range commands {
		root.AddCommand(a.cobra(c))
	}
	for _, t := range topics { // A topic is a command without an action, for help only.
		root.AddCommand(&cobra.Command{Use: t.name, Short: t.title, Long: t.title + "\n\n" + t.text})
	}
	checkHelpTopic(root)
	a.fitHelp(root)
	checkShell(root)
	a.completeFlags(root)
	return root
}
