package describe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBuildsLine_OnlyForDifferentBuilds(t *testing.T) {
	const mac, pc = "go1.26.8 darwin/arm64 fused math:e83c game@v1", "go1.26.8 linux/amd64 unfused math:a043 game@v1"
	for _, c := range []struct{ before, after, want string }{
		{mac, mac, ""}, {mac, "", ""}, {"", pc, ""},
		{mac, pc, "different builds: A by " + mac + ", B by " + pc + "; results of floats may differ, see docs/MACHINES.md"},
		{pc, pc + "2", "different builds: A by " + pc + ", B by " + pc + "2; results of floats are the same, see docs/MACHINES.md"},
	} {
		assert.Equal(t, c.want, BuildsOf(c.before, c.after).Line("A", "B"), "%q and %q", c.before, c.after)
	}
}
