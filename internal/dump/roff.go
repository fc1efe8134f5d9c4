package dump

import (
	"fmt"
	"strings"
)

// A roff is a page in the language that man reads, by the macros that all of its
// readers know.
type roff struct{ strings.Builder }

// newRoff begins a page.
func newRoff(name string, section int, short string) *roff {
	r := new(roff)
	r.raw(fmt.Sprintf(".TH %s %d \"\" ecsdump", roffEscape(strings.ToUpper(name)), section))
	r.raw(".nh\n.ad l") // No word is divided: names and flags are among them.
	r.section("NAME")
	r.raw(roffEscape(name) + ` \- ` + roffEscape(short))
	return r
}

// raw adds a line that is in the language already.
func (r *roff) raw(line string) { r.WriteString(line + "\n") }

func (r *roff) section(title string) { r.raw(`.SH "` + title + `"`) }

// item adds a paragraph with a tag, which is in the language already.
func (r *roff) item(tag, text string) { r.raw(".TP\n" + tag + "\n" + roffLine(text)) }

// prose adds the text of a help: paragraphs, which are filled, and indented lines,
// which stay as they are.
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

// reference returns the name of a page, as pages refer to it.
func (*roff) reference(name string, section int) string {
	return fmt.Sprintf("%s(%d)", bold(name), section)
}

func bold(text string) string   { return `\fB` + roffEscape(text) + `\fR` }
func italic(text string) string { return `\fI` + roffEscape(text) + `\fR` }

// roffEscaper makes characters mean themselves. Without it, - ' ` ^ ~ come out as
// typographic ones, which no shell takes.
var roffEscaper = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

func roffEscape(text string) string { return roffEscaper.Replace(text) }

// roffLine returns a line of text; one that begins with a dot is none of macros.
func roffLine(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + roffEscape(line)
	}
	return roffEscape(line)
}
