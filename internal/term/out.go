// Package term prints for people: text, tables, colours, a pager, progress. It knows
// no store.
//
//	Line, Print ─┐
//	             ├──▶ Out (buffered) ──▶ cleaner, if raw ──▶ screen ──▶ pager, or the file
//	Grid.Row ────┘
//
// Text is made safe for a terminal where it is printed: a line and a cell by [Clean], a format
// like JSON, which must stay as it is in a file, by the cleaner.
package term

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Out is where results go. It keeps the first error of its writer, so that nothing
// that prints returns one: [Out.Close] does.
type Out struct {
	*bufio.Writer      // To the screen.
	Width         int  // Cells that a line may have; 0: any.
	Colour        bool // Styles are shown.

	screen *screen
}

// NewOut returns an Out that prints to w. It calls failed when w takes no more.
func NewOut(w io.Writer, failed func()) *Out {
	s := &screen{out: w, failed: failed}
	return &Out{Writer: bufio.NewWriter(s), Width: lineWidth(w), screen: s}
}

// Suit makes o what suits where it prints to: with colours, which raw forbids, and
// with a pager, if that is a terminal. See [Out.Raw].
func (o *Out) Suit(colour When, raw, paged bool) {
	t := terminalOf(o.screen.out)
	o.Colour = colour.is(t.is && wantsColour(os.Getenv)) && !raw
	if raw {
		o.Raw()
	}
	if t.is && paged {
		o.screen.pageBeyond(t.height, pagerOf(os.Getenv, hasProgram))
	}
}

// Raw is for text of a format, as JSON and CSV, which names and values out of files stand
// in as they are. In a file or a pipe it stays so, byte by byte; on a terminal everything that
// is printed from now on is made safe as by [Clean], but for tabs and the ends of lines.
func (o *Out) Raw() {
	if terminalOf(o.screen.out).is && o.Flush() == nil {
		o.Writer = bufio.NewWriter(&cleaner{to: o.screen})
	}
}

// A cleaner makes what is written through it safe for a terminal.
type cleaner struct {
	to   io.Writer
	rest []byte // The beginning of a rune. The last line has an end, so nothing stays here.
}

func (c *cleaner) Write(p []byte) (int, error) {
	var b strings.Builder
	text := append(c.rest, p...)
	for utf8.FullRune(text) { // Also of bytes that are none: these cannot become one.
		r, size := utf8.DecodeRune(text)
		if r == '\n' || r == '\t' {
			b.WriteRune(r)
		} else {
			b.WriteString(Clean(string(text[:size])))
		}
		text = text[size:]
	}
	c.rest = slices.Clone(text)
	_, err := io.WriteString(c.to, b.String())
	return len(p), err
}

// Unpaged prints from now on what comes at once, and what was held for a pager.
func (o *Out) Unpaged() error { return o.screen.unpaged() }

// Close prints what is left, waits for the pager and returns the first error.
func (o *Out) Close() error {
	return cmp.Or(o.Flush(), o.screen.Close())
}

// Broken returns why nothing more can be printed, or nil. To write nothing is how a writer of
// package bufio is asked for the error that it keeps.
func (o *Out) Broken() error {
	_, err := o.Write(nil)
	return err
}

// Print prints text as it is.
func (o *Out) Print(text ...string) {
	for _, t := range text {
		_, _ = o.WriteString(t) // It keeps its first error: see Broken.
	}
}

// Line prints a line of text.
func (o *Out) Line(format string, args ...any) { o.StyledLine(Plain, format, args...) }

// StyledLine prints a line of text in a style. One that is too long is folded between words.
func (o *Out) StyledLine(s Style, format string, args ...any) {
	for _, line := range foldLine(Clean(fmt.Sprintf(format, args...)), o.Width, false) {
		o.Print(s.render(line, o.Colour), "\n")
	}
}

// Text prints text of paragraphs, lists and tables, as help is. Of a line that is too long, what
// hangs over goes below; its paragraph is filled anew, if it is one.
func (o *Out) Text(text string) {
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n\n") {
		for _, line := range filled(strings.Split(block, "\n"), o.Width) {
			for _, part := range foldEntry(line, o.Width) {
				o.Print(part, "\n")
			}
		}
		o.Print("\n")
	}
}
