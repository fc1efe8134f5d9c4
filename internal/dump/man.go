package dump

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/internal/term"
)

// Man pages are generated from the help texts of the commands.

// manDoc is what man --json prints.
type manDoc struct {
	Output string   `json:"output"`
	Pages  []string `json:"pages"` // Paths of the pages, relative to output.
}

var manCommand = command{
	use: "man -o DIR",
	doc: `Write man pages of all commands

Write a man page of each command to DIR/man1, and of each help topic to DIR/man7.
Existing pages are replaced. The pages have no date, so the same program always writes
the same pages.`,
	example: `  ecsdump man -o ~/.local/share/man
  ecsdump man -o man`,
	run: func(f flags) action {
		var out string
		f.output(&out, "directory to write to; it is created if it does not exist")
		return func(c *call) error {
			if out == "" {
				return c.misused("give the output directory with -o")
			}
			return c.man(c.flags.cmd.Root(), out)
		}
	},
}

// man writes the pages of root to dir.
func (a *app) man(root *cobra.Command, dir string) error {
	doc := &manDoc{Output: dir}
	for _, page := range pagesOf(root) {
		file := filepath.Join(dir, filepath.FromSlash(page.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // Readable for all users.
			return systemError(err)
		}
		if err := os.WriteFile(file, []byte(page.text), 0o644); err != nil { //nolint:gosec // Readable for all users.
			return systemError(err)
		}
		doc.Pages = append(doc.Pages, page.file)
	}
	return a.printReport(doc)
}

func (d *manDoc) print(a *app) {
	a.Line("%s in %s; man -M %s ecsdump shows the first", term.Count(len(d.Pages), "page", "pages"), d.Output, shell.Quote(d.Output))
}

// A manPage is one file.
type manPage struct{ file, text string }

// pagesOf returns the pages of root, its commands and the topics. Each page refers to the page of
// the program. The page of a command also refers to the topics.
func pagesOf(root *cobra.Command) (pages []manPage) {
	others := []string{pageRef(root.Name(), 1)}
	for _, t := range topics {
		others = append(others, pageRef("ecsdump-"+t.name, 7))
	}
	for _, c := range append([]*cobra.Command{root}, documentedCommands(root)...) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		r := newRoff(name, 1, c.Short)
		r.synopsis(c)
		r.section("DESCRIPTION")
		r.prose(cmp.Or(c.Long, c.Short+"."))
		also := others
		if c == root {
			r.section("COMMANDS")
			for _, c := range documentedCommands(root) {
				r.item(pageRef("ecsdump-"+c.Name(), 1), c.Short)
			}
			r.item(bold("ecsdump completion"), "Write a script for shell completion of commands, flags, components, entities and points in time")
			also = others[1:]
		} else {
			r.flags("OPTIONS", c.LocalNonPersistentFlags())
		}
		r.flags("OPTIONS OF EVERY COMMAND", root.PersistentFlags())
		if c != root { // The description of root has the exit statuses already.
			r.section("EXIT STATUS")
			r.prose(exitTopic.text)
		}
		if c.HasExample() {
			r.section("EXAMPLES")
			r.prose(c.Example)
		}
		pages = append(pages, r.page(name, 1, also))
	}
	for _, t := range topics {
		name := "ecsdump-" + t.name
		r := newRoff(name, 7, t.title)
		r.section("DESCRIPTION")
		r.prose(t.text)
		pages = append(pages, r.page(name, 7, others[:1]))
	}
	return pages
}

// synopsis adds the forms of c. A bar separates two forms, unless it is inside brackets.
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

// A roff is a man page in the basic macros, which all readers support. The generator of cobra would
// change expressions, because * and _ are emphasis in Markdown.
type roff struct{ strings.Builder }

// newRoff begins a page.
func newRoff(name string, section int, short string) *roff {
	r := new(roff)
	r.raw(fmt.Sprintf(".TH %s %d \"\" ecsdump", roffEscape(strings.ToUpper(name)), section))
	r.raw(".nh\n.ad l") // No hyphenation: a name or flag must stay on one line.
	r.section("NAME")
	r.raw(roffEscape(name) + ` \- ` + roffEscape(short))
	return r
}

// page returns the finished page. It adds the section SEE ALSO, with the references in also.
func (r *roff) page(name string, section int, also []string) manPage {
	r.section("SEE ALSO")
	r.raw(strings.Join(also, ",\n"))
	return manPage{fmt.Sprintf("man%d/%s.%d", section, name, section), r.String()}
}

// raw adds a line of roff source.
func (r *roff) raw(line string) { r.WriteString(line + "\n") }

func (r *roff) section(title string) { r.raw(`.SH "` + title + `"`) }

// item adds a paragraph with a heading. The heading (tag) is roff source.
func (r *roff) item(tag, text string) { r.raw(".TP\n" + tag + "\n" + roffLine(text)) }

// prose adds help text. Paragraphs are filled, and indented lines are copied unchanged.
func (r *roff) prose(text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		r.raw(".PP")
		asItIs := false
		for line := range strings.SplitSeq(strings.Trim(paragraph, "\n"), "\n") {
			if indented := strings.HasPrefix(line, "  "); indented != asItIs {
				asItIs = indented
				r.raw(map[bool]string{true: ".nf", false: ".fi"}[indented])
			}
			r.raw(roffLine(line))
		}
		if asItIs {
			r.raw(".fi")
		}
	}
}

// pageRef returns the name of a page in the form of a reference.
func pageRef(name string, section int) string { return fmt.Sprintf("%s(%d)", bold(name), section) }

func bold(text string) string   { return `\fB` + roffEscape(text) + `\fR` }
func italic(text string) string { return `\fI` + roffEscape(text) + `\fR` }

// roffEscaper escapes special characters. Without it, characters such as - and ' become typographic
// characters, which shells reject.
var roffEscaper = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

func roffEscape(text string) string { return roffEscaper.Replace(text) }

// roffLine escapes a line of text; a leading dot must not begin a macro.
func roffLine(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + roffEscape(line)
	}
	return roffEscape(line)
}
