package query

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"github.com/expr-lang/expr/file"

	"github.com/stet-ecs/stet/ecs"
)

// Errors of package expr are about a text that nobody wrote: names were marked, components replaced.
// Here they become errors about the text as it was written, with the place in it. Places stay right
// since marks take as many characters as what they stand for.

// An Error says what is wrong with an expression, or with what it gives.
type Error struct {
	Entity  string // It was evaluated for, or "".
	What    string // Which argument the expression is: "--where".
	Message string
	Text    string // The expression.
	At      int    // Runes of it before what is wrong; -1: it is not about a place.
}

// Error returns what is wrong, for whom and in which argument. Where in the text is for Excerpt.
func (e *Error) Error() string {
	text := e.What + ": " + e.Message
	if e.Entity != "" {
		text = e.Entity + ": " + text
	}
	return text
}

// error returns an error that is not about a place in x.
func (x *Expr) error(format string, args ...any) *Error {
	return &Error{What: x.what, Message: fmt.Sprintf(format, args...), Text: x.text, At: -1}
}

// Wrong returns an error that is about what x gives for e.
func (x *Expr) Wrong(e ecs.Entity, err error) error { return x.error("%v: %v", e, err) }

// uncompiled is for expressions that package expr refuses without saying why, or panics on.
func (x *Expr) uncompiled() *Error {
	line, _ := (&Error{Text: x.text}).Excerpt()
	return x.error("%s cannot be compiled", string(line))
}

// excerptWidth is how much of an expression an error shows.
const excerptWidth = 100

// Excerpt returns the part of the expression around what is wrong, on one line, and
// how many runes of it come before that. Blanks stand for tabs and ends of lines, so that a mark
// on the next line is below what it marks.
func (e *Error) Excerpt() (line []rune, before int) {
	runes := []rune(e.Text)
	for i, r := range runes {
		if r == '\n' || r == '\t' || r == '\r' {
			runes[i] = ' '
		}
	}
	at, first := max(0, min(e.At, len(runes))), 0
	if at > excerptWidth/2 && len(runes) > excerptWidth {
		first = at - excerptWidth/2
	}
	return runes[first:min(len(runes), first+excerptWidth)], at - first
}

// failed makes an error of package expr one that tells where in x it is.
func (x *Expr) failed(err error) *Error {
	if ours, ok := errors.AsType[*Error](err); ok {
		return ours
	}
	var e *file.Error
	if !errors.As(err, &e) {
		return x.error("%s", plainType(err.Error()))
	}
	return &Error{What: x.what, Message: plainType(e.Message), Text: x.text, At: e.From}
}

var (
	structType   = regexp.MustCompile(`\*?struct ?\{.*\}`)
	markedName   = regexp.MustCompile(string(marker) + `\w+`)
	internalName = regexp.MustCompile(`[\x01-\x05]`) // Marks of values, flags, functions, aggregates and references.
)

// reworded are messages of package expr, and how people are told them. What is in parentheses takes the
// places of %s, the types of Go among it in words.
var reworded = []struct {
	message *regexp.Regexp
	plain   string
}{
	{regexp.MustCompile(`unexpected token EOF`), "it ends too early"},
	{regexp.MustCompile(`unexpected token Operator\("="\)`), "= is no comparison: write =="},
	{regexp.MustCompile(`unexpected token \w+\("(.*)"\)`), "%s is not expected here"},
	{regexp.MustCompile(`literal not terminated`), "the quote has no end"},
	{regexp.MustCompile(`invalid operation: (\S+) \(mismatched types (.+) and (.+)\)`), "%s cannot stand between %s and %s"},
	{regexp.MustCompile(`builtin (\w+) takes only array \(got (.+)\)`), "%s takes a list, not %s"},
	{regexp.MustCompile(`invalid argument for (\w+) \(type (.+)\)`), "%s does not take %s"},
	{regexp.MustCompile(`strconv.ParseInt: `), ""},
}

// inWords are types of Go, as messages of package expr name them.
var inWords = map[string]string{"int": "a number", "float64": "a number", "string": "a text", "bool": "a condition", "struct": "a struct"}

// plainType returns a message of package expr in plain words, without the Go types that stand for
// structs, and without the marks on names.
func plainType(message string) string {
	message = structType.ReplaceAllString(message, "struct")
	for _, r := range reworded {
		message = r.message.ReplaceAllStringFunc(message, func(found string) string {
			var parts []any
			for _, part := range r.message.FindStringSubmatch(found)[1:] {
				parts = append(parts, cmp.Or(inWords[part], part))
			}
			return fmt.Sprintf(r.plain, parts...)
		})
	}
	message = markedName.ReplaceAllStringFunc(message, unmarked)
	return internalName.ReplaceAllString(message, "")
}
