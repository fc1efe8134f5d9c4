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

// From the words of a command line to an exit status:
//
//	os.Args ──▶ secrets taken out ──▶ cobra: command, flags, arguments ──▶ action ──▶ failure or nil
//	        Main, run                 root, begin, app.cobra              command.run    execute, report

// commands is the table of all commands. They stand in the order of the alphabet.
var commands = []*command{
	&arraysCommand, &bisectCommand, &blameCommand, &branchesCommand, &compactCommand, &diffCommand, &editCommand, &exportCommand, &historyCommand,
	&importCommand, &infoCommand, &logCommand, &lsCommand, &manCommand, &marksCommand, &mcpCommand, &panelCommand, &plotCommand, &queryCommand, &recoverCommand, &schemaCommand,
	&serveCommand, &showCommand, &statsCommand, &tailCommand, &treeCommand, &verifyCommand,
}

// Main is the whole of a program: it runs the command that os.Args has, and returns
// what to exit with. Besides directories and files it reads what the openers open, which
// are by the scheme of URLs: that of "nats" opens nats://host/world. Export writes formats
// beside its own.
func Main(openers map[string]Opener, formats ...Format) int {
	ctx, stop := interruptible()
	defer stop()
	return run(ctx, stop, openers, os.Args[1:], os.Stdout, os.Stderr, formats...)
}

// run runs the command that args has, until ctx ends, which stop does: also when nobody
// reads what is printed, so that a walk through a large store does not go on for nothing.
//
// That nobody reads any more is seen by the writer of standard output, which calls stop. If cobra
// fails before it has read --json, the words are searched for it, so that a program that asked for
// JSON gets its error as JSON.
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
	a.json = a.json || slices.Contains(args, "--json") || slices.Contains(args, "--ndjson") // The flags may be what is wrong.
	a.report(f)
	return f.code
}

// execute runs the one of commands that args has, prints what is left to print, and returns how it
// failed, or nil.
//
// Whatever happens, the bar ends, files are closed and the output is flushed, in this order; only
// then it is known whether printing failed. A result that could not be printed is a failure of the
// system, unless it was a pipe that was closed.
func (a *app) execute(ctx context.Context, commands []*command, args []string) (f *failure) {
	root := a.root(commands)
	root.SetArgs(append([]string{}, args...))
	root.SetOut(a.Out)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	a.bar.End()
	for _, files := range a.opened {
		_ = files.Close() // They were only read.
	}
	if e := a.Close(); e != nil {
		err = &failure{code: exitSystem, err: e}
	}
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE): // The reader has seen enough, as head does.
		return nil
	case !errors.As(err, &f): // It is one of package cobra, and no command ran.
		f = unnamed(cmd, err)
	}
	return f
}

// interruptible returns a context that ends at the first interrupt, so that nothing
// is left half-written. The second interrupt ends the program. stop is what makes it so: after the
// first the signal has its usual effect.
func interruptible() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// root returns the command line that has commands. Cobra's own commands (help, completion) are made
// now and changed to say what is wrong, see usage.go.
func (a *app) root(commands []*command) *cobra.Command {
	which := false // --version.
	root := &cobra.Command{
		Use:   "ecsdump COMMAND STORE",
		Short: "Print what a store or a save holds, without changing it",
		Long: `Ecsdump prints what a store (a directory of persist.Open) or a save (a file of
persist.Save) holds. It never changes what it reads. An ENTITY is INDEXvGENERATION, as
in 12v3; the INDEX alone is the entity that is alive with it. In the place of STORE, a - is
a save on standard input, of at most 1 GiB.

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
		DisableSuggestions: true, // Ours are better.
	}
	root.RunE = func(*cobra.Command, []string) error {
		if which {
			return a.tell(version())
		}
		return misused(root, "no command given")
	}
	root.Flags().BoolVar(&which, "version", false, "print which program this is")
	root.SetFlagErrorFunc(wrongFlag)
	a.global(root.PersistentFlags())
	for _, c := range commands {
		root.AddCommand(a.cobra(c))
	}
	for _, t := range topics { // They do nothing, so that help finds them.
		root.AddCommand(&cobra.Command{Use: t.name, Short: t.title, Long: t.title + "\n\n" + t.text})
	}
	knownHelp(root)
	a.fittingHelp(root)
	knownShells(root)
	a.completeFlags(root)
	return root
}
