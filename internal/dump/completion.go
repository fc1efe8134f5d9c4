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
	"github.com/stet-ecs/stet/persist/inspect"
)

// What shells offer while a command line is typed.
//
//	ecsdump show D 12v3.Po<TAB> ──▶ ecsdump __complete show D 12v3.Po ──▶ 12v3.Position
//
// Which completer answers is said by the command for its arguments, and by flagCompleters for
// flags. Whatever goes wrong, nothing is offered and nothing is printed: the line is not finished,
// and the shell is waiting.

const (
	completionTime = 2 * time.Second // After it nothing is offered: the shell waits.
	maxOffers      = 100             // Of entities, ticks and records.
)

// A completion is one question of a shell: what may follow what is typed. The shell calls
// the program anew for each, as "ecsdump __complete WORDS… TYPED", and waits for the answer,
// so that states are only loaded for entities; names and points need none.
type completion struct {
	*source
	at    string // What --at says.
	typed string

	offers []cobra.Completion
}

// A completer offers words. An error of it means that nothing is offered, even if something was
// found before.
type completer func(*completion) error

// flagCompleters are those of flags, by name: it means the same in each command. Flags that take
// one of a few words say so themselves ([value]), and others are not completed: an expression
// begins with anything.
var flagCompleters = map[string]completer{
	"at":        (*completion).points,
	"by":        (*completion).hanging,
	"at2":       (*completion).points,
	"keep":      (*completion).points,
	"component": commas(components(true)),
	"with":      commas(components(false)),
	"without":   commas(components(false)),
	"entity":    commas((*completion).entities),
}

// completeFlags lets shells complete the flags of root and its commands. Only -o is left to the
// shell, which completes it with files; all others get an answer, if only none.
func (a *app) completeFlags(root *cobra.Command) {
	complete := func(c *cobra.Command, flags *pflag.FlagSet) {
		flags.VisitAll(func(f *pflag.Flag) {
			find := cobra.NoFileCompletions
			switch v, _ := f.Value.(*value); {
			case f.Name == "output":
				return // A file, as shells complete what they know nothing of.
			case v != nil && v.words != nil:
				find = cobra.FixedCompletions(v.words, cobra.ShellCompDirectiveNoFileComp)
			case flagCompleters[f.Name] != nil:
				find = a.completing(flagCompleters[f.Name])
			}
			_ = c.RegisterFlagCompletionFunc(f.Name, find) // It fails for a flag that has one.
		})
	}
	complete(root, root.PersistentFlags())
	for _, c := range documented(root) {
		complete(c, c.Flags())
	}
}

// completeArguments completes the arguments of c: the first is a file. Which of the others it is
// follows from how many words stand before it, the file not counted.
func (a *app) completeArguments(c *command) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if _, most := c.arguments(); len(args) == 0 && most > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		at := len(args) - 1
		if run, _ := cmd.Flags().GetBool("run"); run {
			at++ // Bisect has no expression then.
		}
		if at < 0 || at >= len(c.complete) || c.complete[at] == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		offers, directive := a.completing(c.complete[at])(cmd, args, typed)
		if c.name() == "diff" && len(args) == 1 {
			directive = cobra.ShellCompDirectiveDefault // It may be another store as well, a file.
		}
		return offers, directive
	}
}

// documented returns the commands of root but those of cobra, which tell themselves
// what they do.
func documented(root *cobra.Command) (commands []*cobra.Command) {
	for _, c := range root.Commands() {
		if c.Runnable() && c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			commands = append(commands, c)
		}
	}
	return commands
}

// completing answers a shell with what find finds. Whatever is wrong, it says nothing:
// the command will.
func (a *app) completing(find completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (offers []cobra.Completion, directive cobra.ShellCompDirective) {
		directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(args) == 0 || args[0] == standardInput { // Which is for the command to read.
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

// offer offers a word if it goes on from what is typed. A line of an answer is a
// word, a tab ends it: a name with one of these is not offered. Names come from files that
// anybody may have written, and what is offered ends up in a command line.
func (c *completion) offer(word, description string) {
	if strings.HasPrefix(word, c.typed) && !strings.ContainsFunc(word, unicode.IsControl) {
		c.offers = append(c.offers, cobra.CompletionWithDesc(word, description))
	}
}

// behind completes what follows the first n bytes that are typed, but by none of the
// words without. It asks a copy of c, which believes that only the rest was typed, and puts what
// was cut off back in front.
func (c *completion) behind(n int, find completer, without ...string) error {
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

// commas completes the last of words with commas between. Words that are in the list already are
// not offered again.
func commas(find completer) completer {
	return func(c *completion) error {
		n := strings.LastIndexByte(c.typed, ',') + 1
		return c.behind(n, find, strings.Split(c.typed[:n], ",")...)
	}
}

// ranges offers points, and behind ".." the end of a range.
func (c *completion) ranges() error {
	if i := strings.Index(c.typed, ".."); i >= 0 {
		return c.behind(i+len(".."), (*completion).points)
	}
	return c.points()
}

// points offers points in time: those that have names, and once somebody begins to
// type a tick or a record, the newest of these.
func (c *completion) points() error {
	c.offer("@latest", "the newest state")
	c.offer("@first", "the oldest state")
	marks, err := c.Marks(c.ctx)
	for _, m := range marks {
		c.offer("mark:"+m.Name, stateDoc{m.Tick, m.Seq}.place())
	}
	for _, s := range c.Snapshots() {
		if s.Err != nil {
			continue
		}
		description := stateDoc{s.Tick, s.ID.Seq}.place()
		c.offer(fmt.Sprintf("snap:%d", s.Number), description)
		if s.Label != "" {
			c.offer("snap:"+s.Label, description)
		}
	}
	for i, e := range c.Tips() {
		c.offer(fmt.Sprintf("tip:%d", i+1), stateDoc{e.Tick, e.ID.Seq}.place())
	}
	c.newest()
	return err
}

// newest offers the newest records or ticks, once somebody begins to type one: a journal
// may have millions. A number alone means a tick on the way to the newest state. They come from the
// newest back, and maxOffers of those that fit are enough.
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

// peek returns what the state of --at has of e. It does not load the state.
func (c *completion) peek(e ecs.Entity) (*inspect.EntityState, error) {
	seq, err := c.Resolve(c.at)
	if err != nil {
		return nil, err
	}
	return c.source.peek(e, seq)
}

// components offers components, and resources as well or not.
func components(resources bool) completer {
	return func(c *completion) error {
		state, err := c.peek(ecs.NewEntity(0, 1)) // Any entity, there or not, knows all of them.
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

// entities offers the first of those alive, by index. This is the one completer that loads a state,
// to say what each entity has.
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

// subjects offers entities, behind the dot their components, and fields of these; and resources, with
// their fields. Behind the dot one entity is looked up, which loads no state; a word with a dot
// that begins with no entity may be a resource.
func (c *completion) subjects() error {
	text, _, narrowed := strings.Cut(c.typed, ".")
	if !narrowed {
		return c.holders()
	}
	e, err := ecs.ParseEntity(text)
	if err != nil {
		return c.resources()
	}
	state, err := c.peek(e)
	if err != nil {
		return err
	}
	for _, component := range state.Components {
		if component.Row >= 0 {
			c.named(text+"."+component.Name, component)
		}
	}
	return nil
}

// resources offers resources, and their fields.
func (c *completion) resources() error {
	state, err := c.peek(ecs.Vacant)
	if err != nil {
		return err
	}
	for _, component := range state.Components {
		if component.Resource {
			c.named(component.Name, component)
		}
	}
	return nil
}

// named offers a component or resource by what it is called here, and its fields.
func (c *completion) named(name string, of inspect.EntityComponent) {
	c.offer(name, of.Layout.String())
	c.fields(name, of.Layout)
}

// fields offers the fields of what is typed already, level by level. It goes a level deeper only
// where what is typed does: a type that refers to many others is not listed whole.
func (c *completion) fields(path string, t *layout.Type) {
	if !strings.HasPrefix(c.typed, path+".") {
		return
	}
	for _, f := range t.Fields {
		c.offer(path+"."+f.Name, f.Type.String())
		c.fields(path+"."+f.Name, f.Type)
	}
}
