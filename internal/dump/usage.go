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

// What is said of a wrong call. Packages pflag and cobra find most of it; their errors are put into
// the words of this program: which word is wrong, what would be right, and if there is one, the
// name that is near. The exit status is always that of usage.

// misused is the failure of a call that is wrong, whatever the store holds. The next step is
// the help of the command.
func misused(cmd *cobra.Command, format string, args ...any) *failure {
	return fail(exitUsage, cmd.CommandPath()+" --help", format, args...)
}

// misused is the failure of this call.
func (c *call) misused(format string, args ...any) *failure {
	return misused(c.flags.cmd, format, args...)
}

// exclusive returns an error if several of these flags are given: one of them would be ignored
// without a word.
func (c *call) exclusive(names ...string) error {
	given := slices.DeleteFunc(names, func(name string) bool { return !c.flags.Changed(name) })
	if len(given) > 1 {
		return c.misused("give either --%s or --%s", given[0], given[1])
	}
	return nil
}

// atOrRange returns an error if both --at and a range, which follows n other arguments, are
// given.
func (c *call) atOrRange(n int) error {
	if len(c.args) > n && c.flags.Changed("at") {
		return c.misused("give either --at or a range")
	}
	return nil
}

// wrongFlag puts what package pflag finds wrong with a flag into our words: which flag it is,
// and what that takes. Why a text is refused is not said, but for numbers that are too large:
// what would be right says more, and package strconv speaks to programmers.
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
		return misused(cmd, "--%s takes %s, and nothing follows it", empty.GetFlag().Name, takes(empty.GetFlag()))
	case errors.As(err, &invalid):
		not := "not " + strconv.Quote(invalid.GetValue())
		if errors.Is(err, strconv.ErrRange) {
			not = invalid.GetValue() + " is too large"
		}
		return misused(cmd, "--%s takes %s, %s", invalid.GetFlag().Name, takes(invalid.GetFlag()), not)
	}
	return misused(cmd, "%w", err)
}

// takes says what a flag takes.
func takes(f *pflag.Flag) string {
	if v, ok := f.Value.(*value); ok && v.takes != "" {
		return v.takes
	}
	switch f.Value.Type() {
	case "bool", "boolfunc":
		return "no value, or true or false"
	case "stringSlice":
		return "names with commas between; one that has a comma or a quote stands in quotes"
	}
	return "a value"
}

// flagNames returns the flags of cmd as they are written.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// unnamed puts what package cobra finds wrong before any command runs into our words: of all
// that it may be, the only thing that people meet is a command that there is not.
func unnamed(cmd *cobra.Command, err error) *failure {
	var name string // Package cobra has no type for this error.
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &name); n == 1 {
		err = fmt.Errorf("unknown command %q%s", name, near.Hint(name, append(namesBelow(cmd.Root()), "--version")))
	}
	return misused(cmd, "%w", err)
}

// namesBelow returns the commands and topics below cmd.
func namesBelow(cmd *cobra.Command) []string {
	return describe.Listed(cmd.Commands(), (*cobra.Command).Name)
}

// knownHelp makes it an error to ask for help on a command that does not exist. Package cobra would
// answer with the help of the program, and success.
func knownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // It is there.
	help.RunE = func(_ *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return misused(root, "no help on %q%s", strings.Join(args, " "), near.Hint(args[0], namesBelow(root)))
		}
		of.InitDefaultHelpFlag()
		return of.Help()
	}
}

// fittingHelp makes help no wider than results are. Package cobra writes it to a text, which is then
// printed as other texts.
func (a *app) fittingHelp(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(a.Out)
		a.Text(text.String())
	})
}

// knownShells makes it an error to ask for completion in a shell that cobra does not know. It would
// answer with the help of completion, and success.
func knownShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"}) // It is there.
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return misused(completion, "no shell %q%s", args[0], near.Hint(args[0], namesBelow(completion)))
		}
		return completion.Help()
	}
}

// alternatives returns words as people say them: "auto, always or never".
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
