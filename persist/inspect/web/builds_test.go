package web

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	buildinfo "github.com/stet-ecs/stet/internal/build"
)

// builtAs replaces the build description of this program until the test ends.
func builtAs(t testing.TB, text string) {
	was := buildinfo.Here
	buildinfo.Here = func() string { return text }
	t.Cleanup(func() { buildinfo.Here = was })
}

// The test compares two states, and searches for the first tick of a condition. If two builds wrote
// the store, both results must name the builds.
func TestDiff_NamesBuilds(t *testing.T) {
	const pc, mac = "go1.26.0 linux/amd64 unfused math:a043", "go1.26.0 darwin/arm64 fused math:e83c"
	dir := t.TempDir()
	for _, text := range []string{pc, mac} {
		builtAs(t, text)
		s := begin(t, dir)
		s.commit(t)
		s.commit(t)
		require.NoError(t, s.store.Close(t.Context()))
	}
	c := serve(t, dir)
	floats := "; results of floats may differ, see docs/MACHINES.md"
	assert.Equal(t, "different builds: A by "+pc+", B by "+mac+floats, c.ask("diff?from=2&to=3")["builds"])
	assert.Equal(t, "different builds: A by "+mac+", B by "+pc+floats, c.ask("diff?from=4&to=1")["builds"])
	assert.NotContains(t, c.ask("diff?from=1&to=2"), "builds", "one build wrote both")
	assert.NotContains(t, c.ask("diff?from=3&to=3"), "builds", "they are the same")
	assert.Equal(t, "different builds: the state before by "+pc+", this one by "+mac+floats, c.ask("first?record=4&expr=" + q("tick > 2"))["builds"])
	assert.NotContains(t, c.ask("first?record=4&expr="+q("tick > 3")), "builds")
}
