package term

import "fmt"

// A Style is how text looks on a terminal: the parameter of its escape sequence
// (ECMA-48, select graphic rendition).
type Style string

// The styles of what is printed. What is plain has none.
const (
	Plain   Style = ""
	Heading Style = "1"  // Of columns: bold.
	Added   Style = "32" // What is new: green.
	Removed Style = "31" // What is gone, or wrong: red.
	Changed Style = "33" // What is different: yellow.
	Current Style = "36" // Where the store is: cyan.
	Faint   Style = "2"  // What matters less.
)

// A Styled is text in a style: a cell of a [Grid].
type Styled struct {
	style Style
	text  string
}

// Of returns v in the style s.
func (s Style) Of(v any) Styled { return Styled{s, fmt.Sprint(v)} }

// String returns the text without its style.
func (t Styled) String() string { return t.text }

// render returns text in a style if colour is set.
func (s Style) render(text string, colour bool) string {
	if !colour || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// A When says when to do what suits a terminal.
type When string

// When to do it. Whoever says nothing means Auto.
const (
	Auto   When = "auto" // On a terminal.
	Always When = "always"
	Never  When = "never"
)

// is reports whether to do it, for a stream that is a terminal or is not.
func (w When) is(terminal bool) bool { return w == Always || w != Never && terminal }

// wantsColour reports whether the environment lets a terminal have colours
// (no-color.org).
func wantsColour(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
