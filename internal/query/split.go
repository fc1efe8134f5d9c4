package query

import (
	"iter"
	"slices"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// Lists of expressions are cut by the lexer of package expr, not as text: a comma, an = or " as "
// may stand in quotes. Places of tokens count runes.

// Split splits expressions at the commas that are in no brackets. Text that is no
// list of words is one expression, for the compiler to say what is wrong.
func Split(text string) (parts []string) {
	tokens, err := lexer.Lex(file.NewSource(text))
	if err != nil {
		return []string{text}
	}
	runes := []rune(text)
	first := 0
	for i, depth := range depths(tokens) {
		if t := tokens[i]; depth == 0 && t.Is(lexer.Operator, ",") {
			parts = append(parts, string(runes[first:t.From]))
			first = t.To
		}
	}
	return append(parts, string(runes[first:]))
}

// depths iterates over tokens, by their positions, with how many brackets are open behind each.
func depths(tokens []lexer.Token) iter.Seq2[int, int] {
	return func(yield func(i, depth int) bool) {
		depth := 0
		for i, t := range tokens {
			if t.Is(lexer.Bracket, "(", "[", "{") {
				depth++
			} else if t.Is(lexer.Bracket) {
				depth--
			}
			if !yield(i, depth) {
				return
			}
		}
	}
}

// SplitName splits "EXPR as NAME"; without a name, the text is its own.
func SplitName(text string) (expr, name string) {
	text = strings.TrimSpace(text)
	tokens, err := lexer.Lex(file.NewSource(text))
	// The last three tokens are: as, NAME, the end.
	if n := len(tokens) - 3; err == nil && n > 0 && tokens[n].Is(lexer.Identifier, "as") && tokens[n+1].Kind == lexer.Identifier {
		return strings.TrimSpace(string([]rune(text)[:tokens[n].From])), tokens[n+1].Value
	}
	return text, text
}

// SplitAssignment splits "TARGET = EXPR" at the first =, which is part of no other operator.
func SplitAssignment(text string) (target, expr string, ok bool) {
	tokens, err := lexer.Lex(file.NewSource(text))
	i := slices.IndexFunc(tokens, func(t lexer.Token) bool { return t.Is(lexer.Operator, "=") })
	if err != nil || i < 1 {
		return "", "", false
	}
	runes := []rune(text)
	return strings.TrimSpace(string(runes[:tokens[i].From])), strings.TrimSpace(string(runes[tokens[i].To:])), true
}
