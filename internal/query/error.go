package query

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"github.com/expr-lang/expr/file"

	"github.com/stet-ecs/stet/ecs"
)

// This file translates errors of package expr, which have positions in the text that prepare
// returns. This text has the same length as the original. So the positions also apply to the
// original.

// An Error is an error in an expression, or in its result.
type Error struct {
	// The entity for which the expression was evaluated, or "".
	Entity  string
	What    string // The argument that contains the expression, such as "--where".
	Message string
	Text    string // The expression.
	At      int    // Position of the error in Text, in runes. -1 means unknown.
}

// Error returns the message, with the entity and the name of the argument. See Excerpt for the
// position.
func (e *Error) Error() string {
	text := e.What + ": " + e.Message
	if e.Entity != "" {
		text = e.Entity + ": " + text
	}
	return text
}

// error returns an error about x without a position.
func (x *Expr) error(format string, args ...any) *Error {
	return &Error{What: x.what, Message: fmt.Sprintf(format, args...), Text: x.text, At: -1}
}

// Wrong returns err as an error about the result of x for entity e.
func (x *Expr) Wrong(e ecs.Entity, err error) error { return x.error("%v: %v", e, err) }

// uncompiled returns the error for an expression that package expr cannot compile, without a
// reason.
func (x *Expr) uncompiled() *Error {
	line, _ := (&Error{Text: x.text}).Excerpt()
	return x.error("%s cannot be compiled", string(line))
}

// excerptWidth is the maximum length of an excerpt, in characters.
const excerptWidth = 100

// Excerpt returns the text around the error on one line, and the position of the error in this
// line. Tabs and line ends become blanks, so that a caret on the next line is at the right column.
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

// failed converts an error of package expr to an Error with its position in x.
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
	structType = regexp.MustCompile(`\*?struct ?\{.*\}`)
	markedName = regexp.MustCompile(string(marker) + `\w+`)
	// Marks of values, flags, functions, aggregates and references.
	internalName = regexp.MustCompile(`[\x01-\x05]`)
)

// reworded maps messages of package expr to plain messages. The groups in parentheses replace %s in
// the plain message. A group that is a Go type is replaced by its text in inWords.
var reworded = []struct {
	message *regexp.Regexp
	plain   string
}{
	{regexp.MustCompile(`unexpected token EOF`), "it ends too early"},
	{regexp.MustCompile(`unexpected token Operator\("="\)`), "= is not a comparison: write =="},
	{regexp.MustCompile(`unexpected token \w+\("(.*)"\)`), "%s is not expected here"},
	{regexp.MustCompile(`literal not terminated`), "the quote has no end"},
	{regexp.MustCompile(`invalid operation: (\S+) \(mismatched types (.+) and (.+)\)`), "%s does not apply to %s and %s"},
	{regexp.MustCompile(`builtin (\w+) takes only array \(got (.+)\)`), "%s takes a list, not %s"},
	{regexp.MustCompile(`invalid argument for (\w+) \(type (.+)\)`), "%s does not take %s"},
	{regexp.MustCompile(`strconv.ParseInt: `), ""},
}

// inWords are words for the Go types in messages of package expr.
var inWords = map[string]string{"int": "a number", "float64": "a number", "string": "a text", "bool": "a condition", "struct": "a struct"}

// plainType returns a message of package expr in plain words, without Go types and marks.
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
