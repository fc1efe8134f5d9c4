// Package term prints text for people: lines, tables, colours, a pager and progress. It does not
// depend on stores.
//
// Line, Print and Grid.Row write to the buffer of an [Out]. From there, text goes to a pager, or
// directly to the destination.
//
// Stored names and values may contain bytes that control a terminal. Line and Grid.Row replace such
// characters, see [Clean]. A format such as JSON must be exact, so Print writes it unchanged. For
// this case, [Out.Raw] inserts a cleaner after the buffer if the destination is a terminal.
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

// An Out prints results. It records the first error of its writer, and [Out.Close] returns that
// error. Most other methods return no error.
type Out struct {
	*bufio.Writer      // Writes to screen.
	Width         int  // Columns of a line; 0 means unlimited.
	Colour        bool // True if styles are printed.

	screen *screen
}

// NewOut returns an Out that prints to w. It calls the function failed when a write to w fails.
func NewOut(w io.Writer, failed func()) *Out {
	s := &screen{out: w, failed: failed}
	return &Out{Writer: bufio.NewWriter(s), Width: lineWidth(w), screen: s}
}

// Suit configures o for its destination. On a terminal, it enables colours unless raw is set, and
// enables a pager if paged is set. If raw is set, it calls [Out.Raw].
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

// Raw prepares o for a format such as JSON or CSV, in which stored names and values are printed
// unchanged. A file or a pipe gets the exact bytes. On a terminal, later output is cleaned as by
// [Clean], except for tabs and line ends.
func (o *Out) Raw() {
	if terminalOf(o.screen.out).is && o.Flush() == nil {
		o.Writer = bufio.NewWriter(&cleaner{to: o.screen})
	}
}

// A cleaner is a writer that makes text safe for a terminal.
type cleaner struct {
	to   io.Writer
	rest []byte // The first bytes of an incomplete rune.
}

func (c *cleaner) Write(p []byte) (int, error) {
	var b strings.Builder
	text := append(c.rest, p...)
	for utf8.FullRune(text) { // Invalid bytes count as full runes.
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

// Unpaged prints the output that is buffered for a pager. Later output is printed directly, without
// a pager.
func (o *Out) Unpaged() error { return o.screen.unpaged() }

// Close flushes o, waits for the pager, and returns the first error.
func (o *Out) Close() error {
	return cmp.Or(o.Flush(), o.screen.Close())
}

// Broken returns the error that ended printing, or nil. It writes nothing, because a [bufio.Writer]
// returns its first error again at each write.
func (o *Out) Broken() error {
	_, err := o.Write(nil)
	return err
}

// Print prints text unchanged.
func (o *Out) Print(text ...string) {
	for _, t := range text {
		_, _ = o.WriteString(t) // The writer records its first error; see Broken.
	}
}

// Line prints a line of text.
func (o *Out) Line(format string, args ...any) { o.StyledLine(Plain, format, args...) }

// StyledLine prints a line of text in a style. A line that is too long is folded between words.
func (o *Out) StyledLine(s Style, format string, args ...any) {
	for _, line := range foldLine(Clean(fmt.Sprintf(format, args...)), o.Width, false) {
		o.Print(s.render(line, o.Colour), "\n")
	}
}

// Text prints paragraphs, lists and tables, as in help texts. It folds long lines. A paragraph with
// a long line is joined and folded as a whole.
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
