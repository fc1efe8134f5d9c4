package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Limits of the pages that new users read: README.md and the guide.
const (
	meanWords      = 20 // The maximum mean number of words of a sentence.
	passivePercent = 10 // The maximum share of sentences in the passive voice.
	minSentences   = 10 // Pages with fewer sentences are not measured.
)

// passive matches the passive voice: a form of "be", and then a participle.
var passive = regexp.MustCompile(`(?i)\b(am|is|are|was|were|be|been|being)\s+` +
	`((not|also|only|then|always|never|often|still|now|\w+ly)\s+)?` +
	`(\w+ed|built|begun|broken|brought|chosen|cut|done|drawn|driven|found|given|held|hidden|kept|known|left|lost|made|` +
	`met|overwritten|put|read|rebuilt|rewritten|seen|sent|set|shown|split|stored|taken|thrown|told|undone|understood|written)\b`)

// forNewUsers reports whether new users read the page.
func forNewUsers(file string) bool { return file == "README.md" || path.Dir(file) == "docs/guide" }

// checkLevel finds pages that are hard to read: the sentences are long on average, or too many are
// in the passive voice.
func checkLevel(file string, passages []passage) (faults []fault) {
	count, words, passives := 0, 0, 0
	var examples []string
	for _, p := range passages {
		for _, sentence := range sentences(p.text) {
			n := wordCount(sentence)
			if n < 2 { // A link or a name, not a sentence.
				continue
			}
			count++
			words += n
			if at := passive.FindStringIndex(sentence); at != nil {
				passives++
				if len(examples) < 3 {
					examples = append(examples, fmt.Sprintf("line %d: %s", p.line, excerpt(sentence, at[0], at[1])))
				}
			}
		}
	}
	if count < minSentences {
		return nil
	}
	if words > meanWords*count {
		faults = append(faults, fault{file, 1, "level", fmt.Sprintf("sentences have %.1f words on average, and may have %d", float64(words)/float64(count), meanWords)})
	}
	if passives*100 > passivePercent*count {
		faults = append(faults, fault{file, 1, "level", fmt.Sprintf("%d of %d sentences are passive, and %d %% may be; for example %s", passives, count, passivePercent, strings.Join(examples, "; "))})
	}
	return faults
}
