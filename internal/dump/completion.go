package dump

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file completes a command line in a shell. When the user types "show D 12v3.Po" and a tab,
// the shell runs "ecsdump __complete show D 12v3.Po". The program prints the completed word,
// 12v3.Position.
//
// After an error, completion prints nothing, because the user is still typing.

const (
	completionTime = 2 * time.Second // Time limit, because the shell waits for the answer.
	maxOffers      = 100             // Largest number of offered entities, ticks or records.
)

// A completion is one request of a shell for the words that may follow the typed text. The shell
// runs "ecsdump __complete WORDS… TYPED" and waits. So only the completion of entities loads a
// state.
type completion struct {
	*source
	at    string // Value of --at.
	typed string

	offers []cobra.Completion
}

// A completer finds the words to offer. After an error, no words are offered.
type completer func(*completion) error

// flagCompleters has the completers of flags, by the name of the flag. A flag that accepts only a
// few words completes them without an entry here.
var flagCompleters = map[string]completer{
	"at":        (*completion).points,
	"by":        (*completion).treeFields,
	"at2":       (*completion).points,
	"keep":      (*completion).points,
	"component": commas(components(true)),
	"with":      commas(components(false)),
	"without":   commas(components(false)),
	"entity":    commas((*completion).entities),
}

// completeFlags sets the completion of the flags of root and its commands.
func (a *app) completeFlags(root *cobra.Command) {
	complete := func(c *cobra.Command, flags *pflag.FlagSet) {
		flags.VisitAll(func(f *pflag.Flag) {
			find := cobra.NoFileCompletions
			switch v, _ := f.Value.(*value); {
			case f.Name == "output":
				return // Shells complete this flag with files by default.
			case v != nil && v.words != nil:
				find = cobra.FixedCompletions(v.words, cobra.ShellCompDirectiveNoFileComp)
			case flagCompleters[f.Name] != nil:
				find = a.completeWith(flagCompleters[f.Name])
			}
			// RegisterFlagCompletionFunc fails if the flag already has a completion.
			_ = c.RegisterFlagCompletionFunc(f.Name, find)
		})
	}
	complete(root, root.PersistentFlags())
	for _, c := range documentedCommands(root) {
		complete(c, c.Flags())
	}
}

// completeArguments completes the arguments of c. The first argument is a file. Each later argument
// has a completer, by its position.
func (a *app) completeArguments(c *command) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if _, most := c.arguments(); len(args) == 0 && most > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		at := len(args) - 1
		if run, _ := cmd.Flags().GetBool("run"); run {
			at++ // With --run, bisect takes no expression, so the range comes first.
		}
		if at < 0 || at >= len(c.complete) || c.complete[at] == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		offers, directive := a.completeWith(c.complete[at])(cmd, args, typed)
		if c.name() == "diff" && len(args) == 1 {
			// The argument may also be a second store, so shells offer files too.
			directive = cobra.ShellCompDirectiveDefault
		}
		return offers, directive
	}
}

// documentedCommands returns the commands of root, without the help and completion commands that
// cobra adds.
func documentedCommands(root *cobra.Command) (commands []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.Runnable() && c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			commands = append(commands, c)
		}
	}
	return commands
}

// completeWith answers a shell with the words that the function find offers. It hides errors.
func (a *app) completeWith(find completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (offers []cobra.Completion, directive cobra.ShellCompDirective) {
		directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		// Only the command may read standard input.
		if len(args) == 0 || args[0] == standardInput {
			return nil, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		v, err := a.open(ctx, args[0])
		if err != nil {
			return nil, directive
		}
		defer v.Close()
		c := &completion{source: &source{&call{app: a, ctx: ctx}, v, args[0]}, typed: typed}
		if f := cmd.Flags().Lookup("at"); f != nil {
			c.at = f.Value.String()
		}
		if find(c) == nil {
			offers = c.offers
		}
		return offers, directive
	}
}

// offer offers a word if it begins with the typed text. It skips words with control characters,
// because a tab or a line end would end the answer early.
func (c *completion) offer(word, description string) {
	if strings.HasPrefix(word, c.typed) && !strings.ContainsFunc(word, unicode.IsControl) {
		c.offers = append(c.offers, cobra.CompletionWithDesc(word, description))
	}
}

// afterPrefix completes only the part of the typed text after its first n bytes. The function find
// offers words for this part. afterPrefix puts the first n bytes in front of each offer. It leaves
// out the words in the last argument, which are typed already.
func (c *completion) afterPrefix(n int, find completer, without ...string) error {
	inner := *c
	inner.typed, inner.offers = c.typed[n:], nil
	err := find(&inner)
	for _, offer := range inner.offers {
		if word, _, _ := strings.Cut(offer, "\t"); !slices.Contains(without, word) {
			c.offers = append(c.offers, c.typed[:n]+offer)
		}
	}
	return err
}

// commas completes the last word of a comma-separated list. Words that the list already has are
// not offered again.
func commas(find completer) completer {
	return func(c *completion) error {
		n := strings.LastIndexByte(c.typed, ',') + 1
		return c.afterPrefix(n, find, strings.Split(c.typed[:n], ",")...)
	}
}

// ranges offers points and, after "..", the points that can end the range.
func (c *completion) ranges() error {
	if i := strings.Index(c.typed, ".."); i >= 0 {
		return c.afterPrefix(i+len(".."), (*completion).points)
	}
	return c.points()
}

// points offers named points in time. If the typed text begins a tick or record number, it offers
// the newest ticks or records.
func (c *completion) points() error {
	c.offer("@latest", "the newest state")
	c.offer("@first", "the oldest state")
	marks, err := c.Marks(c.ctx)
	for _, m := range marks {
		c.offer("mark:"+m.Name, describe.State(m.Tick, m.Seq).Place())
	}
	for _, s := range c.Snapshots() {
		if s.Err != nil {
			continue
		}
		description := describe.State(s.Tick, s.ID.Seq).Place()
		c.offer(fmt.Sprintf("snap:%d", s.Number), description)
		if s.Label != "" {
			c.offer("snap:"+s.Label, description)
		}
	}
	for i, e := range c.Tips() {
		c.offer(fmt.Sprintf("tip:%d", i+1), describe.State(e.Tick, e.ID.Seq).Place())
	}
	c.newest()
	return err
}

// newest offers the newest records, or the newest ticks on the path to the newest state, that begin
// with the typed number. It offers at most maxOffers.
func (c *completion) newest() {
	switch {
	case strings.HasPrefix(c.typed, "record:"):
		for _, e := range slices.Backward(c.Log().Entries) {
			if len(c.offers) < maxOffers {
				c.offer(fmt.Sprintf("record:%d", e.ID.Seq), fmt.Sprintf("tick %d", e.Tick))
			}
		}
	case c.typed != "" && unicode.IsDigit(rune(c.typed[0])):
		for e := range c.Log().Ancestors(c.latest()) {
			if len(c.offers) < maxOffers && !e.Lost() {
				c.offer(strconv.FormatUint(e.Tick, 10), fmt.Sprintf("record %d", e.ID.Seq))
			}
		}
	}
}

// peek returns the components and the status of e in the state of --at, without loading the state.
func (c *completion) peek(e ecs.Entity) (*inspect.EntityState, error) {
	seq, err := c.Resolve(c.at)
	if err != nil {
		return nil, err
	}
	return c.Peek(c.ctx, e, seq)
}

// components offers components. If the argument resources is true, it offers resources too.
func components(resources bool) completer {
	return func(c *completion) error {
		// Peek at any entity. The result lists all components, even if the entity is not alive.
		state, err := c.peek(ecs.NewEntity(0, 1))
		if err != nil {
			return err
		}
		for _, component := range state.Components {
			if resources || !component.Resource {
				c.offer(component.Name, component.Layout.String())
			}
		}
		return nil
	}
}

// entities offers the first living entities by index, with their components. It loads the state.
func (c *completion) entities() error {
	im, err := c.state(c.at)
	if err != nil {
		return err
	}
	for _, e := range byIndex(im) {
		if len(c.offers) == maxOffers {
			break
		}
		if !strings.HasPrefix(e.String(), c.typed) {
			continue
		}
		var has []string
		for _, component := range im.Components {
			if !component.Resource && component.Find(e) >= 0 {
				has = append(has, component.Name)
			}
		}
		c.offer(e.String(), strings.Join(has, " "))
	}
	return nil
}

// holders offers entities and resources.
func (c *completion) holders() error {
	if err := c.resources(); err != nil {
		return err
	}
	return c.entities()
}

// subjects offers entities and resources. After a dot, it offers components and fields, without
// loading the state.
func (c *completion) subjects() error {
	text, _, narrowed := strings.Cut(c.typed, ".")
	if !narrowed {
		return c.holders()
	}
	e, err := ecs.ParseEntity(text)
	if err != nil {
		return c.resources()
	}
	return c.parts(e, text+".")
}

// resources offers resources and their fields.
func (c *completion) resources() error { return c.parts(ecs.Vacant, "") }

// parts offers the components of e and their fields, with a prefix before each name. For
// [ecs.Vacant], it offers the resources, also those without a value.
func (c *completion) parts(e ecs.Entity, prefix string) error {
	state, err := c.peek(e)
	if err != nil {
		return err
	}
	for _, component := range state.Components {
		if component.Row >= 0 || component.Resource && e == ecs.Vacant {
			c.fields(prefix+component.Name, component.Layout)
		}
	}
	return nil
}

// fields offers a path to a value of type t. If the typed text leads into the value, it also offers
// the fields below the path, one level at a time.
func (c *completion) fields(path string, t *layout.Type) {
	c.offer(path, t.String())
	if !strings.HasPrefix(c.typed, path+".") {
		return
	}
	for _, f := range t.Fields {
		c.fields(path+"."+f.Name, f.Type)
	}
}

// treeFields completes --by.
func (c *completion) treeFields() error {
	state, err := c.peek(ecs.NewEntity(0, 1))
	if err != nil {
		return err
	}
	for _, f := range entityFields(state.Components) {
		c.offer(f.short(), "holds an entity")
	}
	return nil
}
