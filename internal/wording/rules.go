package main

import (
	"fmt"
	"iter"
	"regexp"
	"strings"
	"unicode"
)

// Limits of comments, pages and test names.
const (
	maxColumns  = 100 // The maximum columns of a line with a comment. A tab counts as 4.
	tabColumns  = 4
	maxWords    = 25 // The maximum number of words of a sentence.
	maxTestName = 45 // The maximum number of letters after "Test".
)

// banned matches words that make a sentence hard to read: words for persons where the program acts,
// archaic words, and indirect descriptions of what exists.
var banned = regexp.MustCompile(`(?i)\b(who|whom|whoever|whomever|nobody|somebody|anybody|everybody|` +
	`anew|beside|hardly|thereof|therein|whereof|persevere[sd]?|lies|lain|lay|of none|of none of|` +
	`all that is|all that there is|what there is|what is there|such as is)\b`)

// A fault is a text that breaks a rule.
type fault struct {
	file string
	line int
	rule string // "word", "sentence", "columns", "level" or "test name".
	text string // The words that break the rule.
}

func (f fault) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.rule, f.text)
}

// A passage is text that is checked as a unit: a comment, a string, a paragraph or a list item.
type passage struct {
	line int // The first line of the passage.
	text string
}

// checkWords finds banned words.
func checkWords(file string, p passage) (faults []fault) {
	for _, at := range banned.FindAllStringIndex(p.text, -1) {
		line := p.line + strings.Count(p.text[:at[0]], "\n")
		faults = append(faults, fault{file, line, "word", excerpt(p.text, at[0], at[1])})
	}
	return faults
}

// checkSentences finds sentences with more than maxWords words.
func checkSentences(file string, p passage) (faults []fault) {
	for start, sentence := range sentences(p.text) {
		if words := wordCount(sentence); words > maxWords {
			lead := len(sentence) - len(strings.TrimLeft(sentence, " \n"))
			line := p.line + strings.Count(p.text[:start+lead], "\n")
			faults = append(faults, fault{file, line, "sentence", fmt.Sprintf("%d words: %s", words, excerpt(sentence, lead, lead+50))})
		}
	}
	return faults
}

// sentences iterates over the sentences of a text, with their offsets.
func sentences(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		start := 0
		for _, end := range append(sentenceEnds(text), len(text)) {
			if !yield(start, text[start:end]) {
				return
			}
			start = end
		}
	}
}

func wordCount(sentence string) (words int) {
	for _, w := range strings.Fields(sentence) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return words
}

// sentenceEnd matches the end of a sentence, with the space after it.
var sentenceEnd = regexp.MustCompile("[.!?][\")*_`]*\\s+")

// sentenceEnds returns the offsets after the end of each sentence. The full stops of abbreviations
// such as "e.g." end no sentence.
func sentenceEnds(text string) (ends []int) {
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		before := text[:at[0]]
		if strings.HasSuffix(before, "e.g") || strings.HasSuffix(before, "i.e") || strings.HasSuffix(before, "vs") {
			continue
		}
		ends = append(ends, at[1])
	}
	return ends
}

// excerpt returns text from start to end with some words around it, on one line.
func excerpt(text string, start, end int) string {
	from, to := max(0, start-25), min(len(text), end+25)
	for from > 0 && text[from-1] != ' ' && text[from-1] != '\n' {
		from--
	}
	for to < len(text) && text[to] != ' ' && text[to] != '\n' {
		to++
	}
	return strings.Join(strings.Fields(text[from:to]), " ")
}

var (
	testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z0-9]\w*$`)
	// Matches test names that begin with an article or a pronoun, because they are sentences.
	sentenceName = regexp.MustCompile(`^(Test|Fuzz)(A|An|The|What|Whatever|Who|Whoever|Each|Every|All|Nothing|Nobody|None|Only|It|Its|That|These|Those|They|Many|Some|Two|Both)[A-Z]`)
	camelWord    = regexp.MustCompile(`[A-Z][a-z0-9]*`)
)

// maxPhrase is the maximum number of words of a test name without an underscore. In
// TestOpen_Locked, the case Locked follows the underscore.
const maxPhrase = 4

// checkTestName finds names that are sentences instead of a subject and a case.
func checkTestName(file string, line int, name string) (faults []fault) {
	add := func(why string) { faults = append(faults, fault{file, line, "test name", name + ": " + why}) }
	short := strings.TrimPrefix(strings.TrimPrefix(name, "Test"), "Fuzz")
	switch {
	case strings.HasPrefix(name, "Benchmark"), !testName.MatchString(name):
	case sentenceName.MatchString(name):
		add("the subject comes first, then the case, as in TestOpen_Locked")
	case !strings.Contains(short, "_") && len(camelWord.FindAllString(short, -1)) > maxPhrase:
		add(fmt.Sprintf("more than %d words: name a subject and a case, as in TestOpen_Locked", maxPhrase))
	case len(short) > maxTestName:
		add(fmt.Sprintf("more than %d letters", maxTestName))
	}
	for _, part := range camelWord.FindAllString(short, -1) {
		if banned.MatchString(part) {
			add("has a banned word")
		}
	}
	return faults
}

// columns returns the width of a line.
func columns(line string) (n int) {
	for _, r := range line {
		if n++; r == '\t' {
			n += tabColumns - 1
		}
	}
	return n
}
