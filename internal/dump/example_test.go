package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHelpExamples_AreValid(t *testing.T) {
	for _, cmd := range documentedCommands(new(app).root(commands)) {
		require.True(t, cmd.HasExample(), "%s has no example", cmd.CommandPath())
		own := false
		for line := range strings.Lines(cmd.Example) {
			words, ok := shellWords(line)
			require.True(t, ok, "%s: a quote without its end: %s", cmd.CommandPath(), line)
			for _, call := range callsIn(words) {
				called, err := parseCall(call)
				assert.NoError(t, err, "%s: %s", cmd.CommandPath(), line)
				own = own || called == cmd.CommandPath()
			}
		}
		assert.True(t, own, "%s is in none of its examples", cmd.CommandPath())
	}
}

func TestHelpExamples_CheckFindsMistakes(t *testing.T) {
	for _, line := range []string{
		"ecsdump inof D",
		"ecsdump info D --limit 3",
		"ecsdump info D E",
		"ecsdump ls D --limit few",
		"ecsdump export D | ecsdump import",
	} {
		words, ok := shellWords(line)
		require.True(t, ok)
		var err error
		for _, call := range callsIn(words) {
			if _, e := parseCall(call); e != nil {
				err = e
			}
		}
		assert.Error(t, err, line)
	}
	_, ok := shellWords("ecsdump ls D --where 'Health")
	assert.False(t, ok)
}

// parseCall parses the arguments of a call without running the command. It returns the path of the
// command.
func parseCall(args []string) (path string, err error) {
	root := new(app).root(commands)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return "", err
	}
	if cmd == root {
		return "", fmt.Errorf("no command in %q", args)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return "", err
	}
	return cmd.CommandPath(), cmd.ValidateArgs(cmd.Flags().Args())
}

// callsIn returns the arguments of each ecsdump call in a pipeline, without redirections.
func callsIn(words []string) (calls [][]string) {
	for len(words) > 0 {
		end := slices.Index(words, "|")
		if end < 0 {
			end = len(words)
		}
		call := words[:end]
		if to := slices.IndexFunc(call, func(word string) bool { return strings.HasPrefix(word, ">") }); to >= 0 {
			call = call[:to]
		}
		if len(call) > 0 && call[0] == "ecsdump" {
			calls = append(calls, call[1:])
		}
		words = words[min(end+1, len(words)):]
	}
	return calls
}

// shellWords splits a line at blanks outside single quotes.
func shellWords(line string) (words []string, ok bool) {
	word, quoted := "", false
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			if word != "" {
				words = append(words, word)
			}
			word = ""
		default:
			word += string(r)
		}
	}
	return words, !quoted
}
