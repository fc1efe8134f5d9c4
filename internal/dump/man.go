package dump

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/internal/term"
)

// manDoc is what man --json prints.
type manDoc struct {
	Output string   `json:"output"`
	Pages  []string `json:"pages"` // Their files, in output.
}

func newMan(a *app) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "man -o DIR",
		Short: "Write man pages of all commands",
		Long: `Write a man page of each command to DIR/man1, and of each help topic to DIR/man7. Pages
that are there already are written again. They have no date: the same program
writes the same pages.`,
		Example: `  ecsdump man -o ~/.local/share/man
  ecsdump man -o man`,
		Args: positional(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return &failure{exitUsage, errors.New("say with -o where to write the pages"), "ecsdump man --help"}
			}
			return a.man(cmd.Root(), out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "directory to write to; it is made if it is not there")
	return cmd
}

// man writes the pages of root to dir.
func (a *app) man(root *cobra.Command, dir string) error {
	doc := manDoc{Output: dir}
	for _, page := range pagesOf(root) {
		file := filepath.Join(dir, filepath.FromSlash(page.file()))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // For all users.
			return &failure{exitSystem, err, ""}
		}
		if err := os.WriteFile(file, []byte(page.text), 0o644); err != nil { //nolint:gosec // For all users.
			return &failure{exitSystem, err, ""}
		}
		doc.Pages = append(doc.Pages, page.file())
	}
	if a.json {
		return a.document(doc)
	}
	a.Line("%s in %s; man -M %s ecsdump shows the first", term.Count(len(doc.Pages), "page", "pages"), dir, shell.Quote(dir))
	return nil
}

// A manPage is one file.
type manPage struct {
	name    string
	section int
	text    string
}

func (p manPage) file() string { return fmt.Sprintf("man%d/%s.%d", p.section, p.name, p.section) }

// pagesOf returns the page of root, those of its commands, and those of the topics.
func pagesOf(root *cobra.Command) []manPage {
	pages := []manPage{rootPage(root)}
	for _, c := range documented(root) {
		pages = append(pages, commandPage(c))
	}
	for _, t := range topics {
		pages = append(pages, topicPage(t))
	}
	return pages
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

func pageName(name string) string { return "ecsdump-" + name }

func rootPage(root *cobra.Command) manPage {
	r := newRoff(root.Name(), 1, root.Short)
	r.synopsis(root)
	r.section("DESCRIPTION")
	r.prose(root.Long)
	r.section("COMMANDS")
	for _, c := range documented(root) {
		r.item(r.reference(pageName(c.Name()), 1), c.Short)
	}
	r.item(bold("ecsdump completion"), "Write what makes a shell complete commands, flags, components, entities and points in time")
	r.flags("OPTIONS OF EVERY COMMAND", root.PersistentFlags())
	r.examples(root)
	r.section("SEE ALSO")
	for _, t := range topics {
		r.item(r.reference(pageName(t.name), 7), t.title)
	}
	return manPage{root.Name(), 1, r.String()}
}

func commandPage(c *cobra.Command) manPage {
	name := pageName(c.Name())
	r := newRoff(name, 1, c.Short)
	r.synopsis(c)
	r.section("DESCRIPTION")
	r.prose(cmp.Or(c.Long, c.Short+"."))
	r.flags("OPTIONS", c.LocalNonPersistentFlags())
	r.flags("OPTIONS OF EVERY COMMAND", c.Root().PersistentFlags())
	r.section("EXIT STATUS")
	r.prose(topicNamed("exit").text)
	r.examples(c)
	r.section("SEE ALSO")
	also := []string{r.reference(c.Root().Name(), 1)}
	for _, t := range topics {
		also = append(also, r.reference(pageName(t.name), 7))
	}
	r.raw(strings.Join(also, ",\n"))
	return manPage{name, 1, r.String()}
}

func topicPage(t topic) manPage {
	name := pageName(t.name)
	r := newRoff(name, 7, t.title)
	r.section("DESCRIPTION")
	r.prose(t.text)
	r.section("SEE ALSO")
	r.raw(r.reference("ecsdump", 1))
	return manPage{name, 7, r.String()}
}

// topicNamed returns the topic of that name, which is there.
func topicNamed(name string) topic {
	for _, t := range topics {
		if t.name == name {
			return t
		}
	}
	panic("no topic " + name)
}

// synopsis adds how c is called: each of the ways between bars.
func (r *roff) synopsis(c *cobra.Command) {
	r.section("SYNOPSIS")
	line := strings.TrimSuffix(c.UseLine(), " [flags]")
	for i, way := range strings.Split(line, " | "+c.Name()+" ") {
		if i > 0 {
			way = c.CommandPath() + " " + way
			r.raw(".br")
		}
		r.raw(bold(c.CommandPath()) + roffEscape(strings.TrimPrefix(way, c.CommandPath())) + " [flags]")
	}
}

func (r *roff) flags(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	r.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		tag := bold("--" + f.Name)
		if f.Shorthand != "" {
			tag = bold("-"+f.Shorthand) + ", " + tag
		}
		if kind != "" {
			tag += " " + italic(kind)
		}
		switch f.DefValue {
		case "", "false", "0", "[]":
		default:
			usage += " (default " + f.DefValue + ")"
		}
		r.item(tag, usage)
	})
}

func (r *roff) examples(c *cobra.Command) {
	if c.HasExample() {
		r.section("EXAMPLES")
		r.prose(c.Example)
	}
}
