// Package term prints for people: text, tables, colours, a pager, progress. It knows
// no store.
package term

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// An Out is where results go. It keeps the first error of its writer, so that nothing
// that prints returns one: [Out.Close] does.
type Out struct {
	*bufio.Writer      // To the screen.
	Width         int  // Columns that lines of tables are cut to; 0: they are not.
	Colour        bool // Styles are shown.

	screen *screen
}

// NewOut returns an Out that prints to w. It calls failed when w takes no more.
func NewOut(w io.Writer, failed func()) *Out {
	s := &screen{out: w, failed: failed}
	return &Out{Writer: bufio.NewWriter(s), Width: lineWidth(w), screen: s}
}

// Suit makes o what suits where it prints to: with colours, which plain forbids, and
// with a pager, if that is a terminal.
func (o *Out) Suit(colour When, plain, paged bool) {
	t := terminalOf(o.screen.out)
	o.Colour = colour.is(t.is && wantsColour(os.Getenv)) && !plain
	if t.is && paged {
		o.screen.pageBeyond(t.height, pagerOf(os.Getenv, hasProgram))
	}
}

// Unpaged prints from now on what comes at once, and what was held for a pager.
func (o *Out) Unpaged() error { return o.screen.unpaged() }

// Close prints what is left, waits for the pager and returns the first error.
func (o *Out) Close() error {
	err := o.Flush()
	if e := o.screen.Close(); err == nil {
		err = e
	}
	return err
}

// Broken returns why nothing more can be printed, or nil.
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

// StyledLine prints a line of text in a style.
func (o *Out) StyledLine(s Style, format string, args ...any) {
	o.Print(s.render(Clean(fmt.Sprintf(format, args...)), o.Colour), "\n")
}
