package query

import (
	"iter"
	"slices"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// This file splits lists of expressions at tokens, because a comma or " as " may be in quotes.

// Split splits expressions at commas outside of brackets. It returns invalid text as one
// expression.
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

// depths iterates over the indices of tokens, each with the number of open brackets after the
// token.
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

// SplitName splits "EXPR as NAME". Without "as", the name is the whole text.
func SplitName(text string) (expr, name string) {
	text = strings.TrimSpace(text)
	tokens, err := lexer.Lex(file.NewSource(text))
	// The last three tokens are "as", NAME, and the end token.
	if n := len(tokens) - 3; err == nil && n > 0 && tokens[n].Is(lexer.Identifier, "as") && tokens[n+1].Kind == lexer.Identifier {
		return strings.TrimSpace(string([]rune(text)[:tokens[n].From])), tokens[n+1].Value
	}
	return text, text
}

// SplitAssignment splits "TARGET = EXPR" at the first operator =.
func SplitAssignment(text string) (target, expr string, ok bool) {
	tokens, err := lexer.Lex(file.NewSource(text))
	i := slices.IndexFunc(tokens, func(t lexer.Token) bool { return t.Is(lexer.Operator, "=") })
	if err != nil || i < 1 {
		return "", "", false
	}
	runes := []rune(text)
	return strings.TrimSpace(string(runes[:tokens[i].From])), strings.TrimSpace(string(runes[tokens[i].To:])), true
}
