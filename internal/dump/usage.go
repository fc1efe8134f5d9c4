package dump

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
)

// This file rewords the errors of packages pflag and cobra for wrong command lines. An error names
// the wrong word, the accepted words, and the most similar name.

// misused returns the failure for a wrong command line. It suggests the help of cmd.
func misused(cmd *cobra.Command, format string, args ...any) *failure {
	return fail(exitUsage, cmd.CommandPath()+" --help", format, args...)
}

// misused returns the failure for a wrong command line of this call.
func (c *call) misused(format string, args ...any) *failure {
	return misused(c.flags.cmd, format, args...)
}

// exclusive returns an error if the command line has several of the named flags.
func (c *call) exclusive(names ...string) error {
	given := slices.DeleteFunc(names, func(name string) bool { return !c.flags.Changed(name) })
	if len(given) > 1 {
		return c.misused("give either --%s or --%s", given[0], given[1])
	}
	return nil
}

// atOrRange returns an error if the command line has both --at and a range. The range follows the
// first n arguments.
func (c *call) atOrRange(n int) error {
	if len(c.args) > n && c.flags.Changed("at") {
		return c.misused("give either --at or a range")
	}
	return nil
}

// wrongFlag rewords an error of package pflag: it names the flag and the accepted values. For a
// number that is too large, it says so.
func wrongFlag(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return misused(cmd, "unknown flag: -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		return misused(cmd, "unknown flag: --%s%s", name, near.Hint("--"+name, flagNames(cmd)))
	case errors.As(err, &empty):
		return misused(cmd, "--%s takes %s; its value is missing", empty.GetFlag().Name, acceptedValues(empty.GetFlag()))
	case errors.As(err, &invalid):
		not := "not " + strconv.Quote(invalid.GetValue())
		if errors.Is(err, strconv.ErrRange) {
			not = invalid.GetValue() + " is too large"
		}
		return misused(cmd, "--%s takes %s, %s", invalid.GetFlag().Name, acceptedValues(invalid.GetFlag()), not)
	}
	return misused(cmd, "%w", err)
}

// acceptedValues describes the values that a flag takes.
func acceptedValues(f *pflag.Flag) string {
	if v, ok := f.Value.(*value); ok && v.takes != "" {
		return v.takes
	}
	switch f.Value.Type() {
	case "bool", "boolfunc":
		return "no value, or true or false"
	case "stringSlice":
		return "comma-separated names; put a name with a comma or a quote in quotes"
	}
	return "a value"
}

// flagNames returns the names of the flags of cmd, in the form --name.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// cobraFailure rewords an error of package cobra. For an unknown command, it suggests a similar
// name.
func cobraFailure(cmd *cobra.Command, err error) *failure {
	var name string // Package cobra has no type for this error.
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &name); n == 1 {
		err = fmt.Errorf("unknown command %q%s", name, near.Hint(name, append(namesBelow(cmd.Root()), "--version")))
	}
	return misused(cmd, "%w", err)
}

// namesBelow returns the names of the commands and topics below cmd.
func namesBelow(cmd *cobra.Command) []string {
	return describe.Listed(cmd.Commands(), (*cobra.Command).Name)
}

// checkHelpTopic makes help on an unknown command an error. Package cobra succeeds in this case.
func checkHelpTopic(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // Every root has this command.
	help.RunE = func(_ *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return misused(root, "no help on %q%s", strings.Join(args, " "), near.Hint(args[0], namesBelow(root)))
		}
		of.InitDefaultHelpFlag()
		return of.Help()
	}
}

// fitHelp wraps help texts to the width of the output.
func (a *app) fitHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(a.Out)
		a.Text(text.String())
	})
}

// checkShell makes completion for an unknown shell an error. Package cobra succeeds in this case.
func checkShell(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // Every root has this command.
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return misused(completion, "no shell %q%s", args[0], near.Hint(args[0], namesBelow(completion)))
		}
		return completion.Help()
	}
}
