//go:build linux

package natslog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJudge_FindsBrokenPromises checks that the judge finds each kind of broken promise. Tick n of
// the history has the sum 100 + n.
func TestJudge_FindsBrokenPromises(t *testing.T) {
	ticks := func(j *judge, machine, word string, from, to int) {
		for n := from; n <= to; n++ {
			before := 100 + n - 1
			if n == 1 {
				before = 0
			}
			j.hear(machine, fmt.Sprint("commit ", n, " ", 100+n, " ", before))
			j.hear(machine, fmt.Sprint(word, " ", n, " ", 100+n))
		}
	}
	for _, test := range []struct {
		name   string
		said   func(*judge)
		head   uint64
		broken string // A substring of the violation. Empty if no violation is expected.
	}{
		{"all confirmed ticks are in the history", func(j *judge) { ticks(j, "a", "confirmed", 1, 5) }, 105, ""},
		{"a lost tick", func(j *judge) { ticks(j, "a", "confirmed", 1, 5) }, 104, "tick 5 was confirmed and is not in the history"},
		{"a fork", func(j *judge) { ticks(j, "a", "confirmed", 1, 5); j.hear("b", "confirmed 5 77") }, 105, "confirmed twice"},
		{"an owner that begins too early", func(j *judge) { ticks(j, "a", "confirmed", 1, 5); j.hear("b", "own 4 104 2") }, 105, "b begins at tick 4"},
		{"a tick that no machine made", func(j *judge) { ticks(j, "a", "confirmed", 1, 5) }, 999, "no machine made"},
		{"a shown tick of another history", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.hear("a", "commit 5 77 104")
			j.hear("b", "shown 5 77")
		}, 105, "b showed tick 5 with a sum that differs"},
		{"a follower that goes back", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.hear("b", "shown 5 105")
			j.hear("b", "shown 4 104")
		}, 105, "b shows tick 4 after tick 5"},
		{"a follower that follows again", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.hear("b", "shown 5 105")
			j.hear("b", "follows 9 0")
			j.hear("b", "shown 4 104")
		}, 105, ""},
		{"a false report", func(j *judge) { ticks(j, "a", "confirmed", 1, 5); j.hear("b", "shorter x") }, 105, "b: x"},
		{"ticks that the owner appended again", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.forget()
			j.hear("a", "again x")
			ticks(j, "a", "confirmed", 6, 6)
		}, 106, ""},
		{"a lost tick that the owner reports", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.forget()
			j.hear("a", "lost x")
			j.hear("b", "own 4 104 2")
		}, 104, ""},
		{"a lost tick that the owner does not report", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.forget()
			j.hear("b", "own 4 104 2")
		}, 104, "[a] confirmed a tick that the log lost"},
		{"a lost tick that its follower does not report", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.hear("b", "shown 5 105")
			j.killed("a")
			j.forget()
		}, 104, "1 machines had a tick that the log lost"},
		{"a confirmed tick that is missing after a loss", func(j *judge) {
			ticks(j, "a", "confirmed", 1, 5)
			j.forget()
			j.hear("a", "lost x")
			j.hear("b", "commit 5 77 104")
			j.hear("b", "confirmed 5 77")
		}, 104, "tick 5 was confirmed and is not in the history"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := newJudge()
			for _, name := range []string{"a", "b"} {
				j.began(name)
			}
			test.said(j)
			j.verdict(5, test.head)
			broken := fmt.Sprint(j.takeViolations())
			if test.broken == "" {
				assert.Equal(t, "[]", broken)
			} else {
				assert.Contains(t, broken, test.broken)
			}
		})
	}
}

func TestChosenKinds_ByName(t *testing.T) {
	all, err := chosenKinds("")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, k := range all {
		require.False(t, names[k.name], "kind %s exists twice", k.name)
		names[k.name] = true
		chosen, err := chosenKinds("kill," + k.name)
		require.NoError(t, err)
		require.Len(t, chosen, 2)
		require.Equal(t, k.name, chosen[1].name)
	}
	_, err = chosenKinds("kill,none")
	require.ErrorContains(t, err, `"none"`)
}
