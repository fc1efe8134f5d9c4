package dump

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// otherWords maps each term to its synonyms. No text may contain a synonym.
var otherWords = map[string]*regexp.Regexp{
	"record":    regexp.MustCompile(`(?i)\b(seqs?|sequence numbers?|log entr(y|ies)|journal entr(y|ies))\b`),
	"tick":      regexp.MustCompile(`(?i)\b(frames?|time ?steps?|turns? number)\b`),
	"time":      regexp.MustCompile(`(?i)\b(timestamps?|date and time)\b`),
	"save":      regexp.MustCompile(`(?i)\b(savegames?|save[- ]files?|saved games?)\b`),
	"snapshot":  regexp.MustCompile(`(?i)\b(checkpoints?)\b`),
	"store":     regexp.MustCompile(`(?i)\b(databases?|repositor(y|ies)|store directory)\b`),
	"mark":      regexp.MustCompile(`(?i)\b(bookmarks?)\b`),
	"branch":    regexp.MustCompile(`(?i)\b(time ?lines?|fork(s|ed)?)\b`),
	"component": regexp.MustCompile(`(?i)\b(component types?|attributes?)\b`),
	"resource":  regexp.MustCompile(`(?i)\b(singletons?)\b`),
	"field":     regexp.MustCompile(`(?i)\b(propert(y|ies))\b`),
	"alive":     regexp.MustCompile(`(?i)\b(living|existing entities)\b`),
}

// All output, help texts, the reference and the members of documents use one term for each concept.
func TestOutput_UsesOneTermPerThing(t *testing.T) {
	check := func(where, text string) {
		for word, other := range otherWords {
			for _, found := range other.FindAllStringIndex(text, -1) {
				assert.Fail(t, "another word for "+word, "%s: …%s…", where, text[max(0, found[0]-40):min(len(text), found[1]+40)])
			}
		}
	}
	for _, file := range []string{reference, membersList} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		check(file, string(text))
	}
	eachCall(t, func(args []string, stdout, stderr string) { check(strings.Join(args, " "), stdout+stderr) })
}

// columnOrder is the order of the columns after the first column.
var columnOrder = []string{"TICK", "RECORD", "PARENT", "TIME", "ENTITY", "COMPONENT", "KIND", "ROW", "FIELD", "VALUE", "CHANGED", "BYTES", "NOTE", "CHANGES"}

var headingLine = regexp.MustCompile(`^ *[A-Z]+( +[A-Z]+)+ *$`)

// Columns have the same order in all tables.
func TestTables_ColumnOrder(t *testing.T) {
	tables := 0
	eachCall(t, func(args []string, stdout, _ string) {
		for line := range strings.SplitSeq(stdout, "\n") {
			if !headingLine.MatchString(line) {
				continue
			}
			tables++
			last, before := -1, ""
			for _, heading := range strings.Fields(line)[1:] {
				if at := slices.Index(columnOrder, heading); at >= 0 {
					assert.GreaterOrEqual(t, at, last, "%q: %s behind %s", args, heading, before)
					last, before = at, heading
				}
			}
		}
	})
	require.Greater(t, tables, 25)
}
