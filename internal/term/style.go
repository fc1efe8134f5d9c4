package term

import "fmt"

// A Style is the look of text on a terminal. It is the parameter of an escape sequence (ECMA-48,
// select graphic rendition).
type Style string

// The styles of output. Plain is the style without escape sequences.
const (
	Plain   Style = ""
	Heading Style = "1"  // Headings of columns: bold.
	Added   Style = "32" // New: green.
	Removed Style = "31" // Removed, or wrong: red.
	Changed Style = "33" // Different: yellow.
	Current Style = "36" // The current state of the store: cyan.
	Faint   Style = "2"  // Less important.
)

// A Styled is text with a style, for a cell of a [Grid].
type Styled struct {
	style Style
	text  string
}

// Of returns v with the style s.
func (s Style) Of(v any) Styled { return Styled{s, fmt.Sprint(v)} }

// String returns the text without its style.
func (t Styled) String() string { return t.text }

// render returns text with the escape sequences of s if colour is set.
func (s Style) render(text string, colour bool) string {
	if !colour || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// A When is the condition for a feature of terminals, such as colours.
type When string

// The values of When. An empty When means Auto.
const (
	Auto   When = "auto" // Only on a terminal.
	Always When = "always"
	Never  When = "never"
)

// is reports whether a feature is on. The argument tells whether the output is a terminal.
func (w When) is(terminal bool) bool { return w == Always || w != Never && terminal }

// wantsColour reports whether the environment permits colours (no-color.org).
func wantsColour(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
