//go:build !js

package play

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

func TestParseKeys_Repeats(t *testing.T) {
	script, err := parseKeys("left*2 wait up")
	require.NoError(t, err)
	require.Equal(t, []string{"left", "left", "", "up"}, script)
	_, err = parseKeys("left*two")
	require.ErrorContains(t, err, "-keys left*two")
}

func TestClockDue_AtMostMaxDue(t *testing.T) {
	start := time.Now()
	c := clock{100 * time.Millisecond, start}
	for _, at := range []struct{ milliseconds, due int }{{40, 0}, {99, 0}, {100, 1}, {150, 0}, {410, 3}, {5000, maxDue}, {5050, 0}, {5100, 1}} {
		require.Equal(t, at.due, c.due(start.Add(time.Duration(at.milliseconds)*time.Millisecond)), "after %d ms", at.milliseconds)
	}
}

// A key is held until the next key, or until it is not repeated.
func TestHeldKey_Release(t *testing.T) {
	start := time.Now()
	after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var h heldKey
	require.Equal(t, Keys(""), h.keys(start))
	h.press("left", start)
	require.Equal(t, Keys("left"), h.keys(after(500)))
	h.press("left", after(550))
	require.Equal(t, Keys("left"), h.keys(after(650)))
	require.Equal(t, Keys(""), h.keys(after(750)))
	h.press("left", after(800))
	h.press("up", after(810))
	require.Equal(t, Keys("up"), h.keys(after(820)))
}

func TestPrint_KeysAndActions(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	var called string
	g := Game{
		World:   w,
		Tick:    func(keys Keys) error { called += string(keys) + "."; w.Commit(); return nil },
		Draw:    func() string { return called },
		Actions: []Action{{"Save", func() error { called += "saved"; return nil }}, {"Fail", func() error { return errors.New("full") }}},
	}
	var out strings.Builder
	require.NoError(t, g.print(&out, 3, []string{"up", "1"}))
	require.Equal(t, "tick 1\nup.\ntick 2\nup.saved.\ntick 3\nup.saved..\n", out.String())
	require.EqualError(t, g.print(&out, 1, []string{"2"}), "full")
}
