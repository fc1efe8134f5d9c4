package dump

import "fmt"

// A style is how text looks on a terminal: the parameter of its escape sequence
// (ECMA-48, select graphic rendition).
type style string

// The styles of what is printed. What is plain has none.
const (
	plain   style = ""
	heading style = "1"  // Of columns: bold.
	added   style = "32" // What is new: green.
	removed style = "31" // What is gone, or wrong: red.
	changed style = "33" // What is different: yellow.
	current style = "36" // Where the store is: cyan.
	faint   style = "2"  // What matters less.
)

// A styled is text in a style: a cell of a [grid].
type styled struct {
	style style
	text  string
}

// of returns v in the style s.
func (s style) of(v any) styled { return styled{s, fmt.Sprint(v)} }

// String returns the text without its style.
func (t styled) String() string { return t.text }

// render returns text in a style if colour is set.
func (s style) render(text string, colour bool) string {
	if !colour || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// A when is a flag that says when to do what suits a terminal: auto, always or
// never.
type when string

func (w *when) String() string { return string(*w) }

// Type names the values in help texts.
func (w *when) Type() string { return "when" }

// Set takes the value of the flag.
func (w *when) Set(s string) error {
	switch s {
	case "auto", "always", "never":
		*w = when(s)
		return nil
	}
	return fmt.Errorf("%q is none of auto, always, never", s)
}

// is answers for what is a terminal, or not.
func (w when) is(terminal bool) bool { return w == "always" || w != "never" && terminal }

// wantsColour reports whether the environment lets a terminal have colours
// (no-color.org).
func wantsColour(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// styledLine prints a line of text in a style.
func (a *app) styledLine(s style, format string, args ...any) {
	a.print(s.render(clean(fmt.Sprintf(format, args...)), a.colour), "\n")
}
