package term

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStyle_KeepsColumnWidths(t *testing.T) {
	table := func(width int, colour bool) string {
		var out bytes.Buffer
		a := NewOut(&out, nil)
		a.Width, a.Colour = width, colour
		g := a.Grid("NAME", ">N", "NOTE")
		g.Row("a", Added.Of(10), Removed.Of("gone"))
		g.Row(Faint.Of("longer"), 7, "\x1b[31m")
		g.StyledText(Current, "a line of its own")
		g.Row("b", Changed.Of(1), "")
		g.Flush()
		a.StyledLine(Heading, "the %s", "end")
		require.NoError(t, a.Close())
		return out.String()
	}
	for width := range 30 {
		coloured := table(width, true)
		for _, s := range []Style{Heading, Added, Removed, Changed, Current, Faint} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+string(s)+"m", "")
		}
		assert.Equal(t, table(width, false), strings.ReplaceAll(coloured, "\x1b[0m", ""), "width %d", width)
	}
	assert.Equal(t, "\x1b[1mNAME\x1b[0m     \x1b[1mN\x1b[0m  \x1b[1mNOTE\x1b[0m\n"+
		"a       \x1b[32m10\x1b[0m  \x1b[31mgone\x1b[0m\n"+
		"\x1b[2mlonger\x1b[0m   7  \\x1b[31m\n"+
		"\x1b[36ma line of its own\x1b[0m\n"+
		"b        \x1b[33m1\x1b[0m\n"+
		"\x1b[1mthe end\x1b[0m\n", table(0, true))
}

func TestGrid_FitsWidth(t *testing.T) {
	for width := 1; width < 40; width++ {
		var out bytes.Buffer
		a := NewOut(&out, nil)
		a.Width = width
		g := a.Grid("NAME", ">N", "NOTE")
		g.Row("wide 世界", 10, "and more")
		g.Row("b", 123456, "")
		g.Flush()
		require.NoError(t, a.Close())
		for line := range strings.Lines(out.String()) {
			assert.LessOrEqual(t, Width(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
}

func TestWhen_OnTerminalAndElsewhere(t *testing.T) {
	for _, test := range []struct {
		when            When
		terminal, other bool
	}{{Auto, true, false}, {Always, true, true}, {Never, false, false}, {"", true, false}} {
		assert.Equal(t, test.terminal, test.when.is(true), test.when)
		assert.Equal(t, test.other, test.when.is(false), test.when)
	}
}

func TestStyle_NoColour(t *testing.T) {
	for _, test := range []struct {
		env  env
		want bool
	}{{env{}, true}, {env{"TERM": "xterm"}, true}, {env{"TERM": "dumb"}, false}, {env{"NO_COLOR": "1"}, false}, {env{"NO_COLOR": ""}, true}} {
		assert.Equal(t, test.want, wantsColour(test.env.get), "%v", test.env)
	}
}

// env is an environment for tests.
type env map[string]string

func (e env) get(name string) string { return e[name] }
