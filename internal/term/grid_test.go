package term

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGridKeepsItsColumnsBeyondOneBlock(t *testing.T) {
	var out bytes.Buffer
	o := NewOut(&out, nil)
	g := o.Grid(">N", "NAME")
	const rows = 2*gridRows + 500
	for i := range rows {
		g.Row(1000*i, fmt.Sprint("row ", i))
	}
	g.Flush()
	require.NoError(t, o.Close())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, rows+1)
	assert.Equal(t, "     N  NAME", lines[0])
	for i, line := range lines[1:] {
		last := min((i+1)/gridRows*gridRows+gridRows-2, rows-1) // In its block; the header is a row.
		width := len(fmt.Sprint(1000 * last))
		require.Equal(t, fmt.Sprintf("%*d  row %d", width, 1000*i, i), line)
	}
}

func TestCleanTakesTheTricksOutOfText(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"Grüße, 世界 →", "Grüße, 世界 →"},
		{"a\x1b[31mred", `a\x1b[31mred`},
		{"two\nlines\tand a tab", `two\nlines\tand a tab`},
		{"bad \xff byte", `bad � byte`},
		{"right\u202eleft", `right\u202eleft`},
	} {
		assert.Equal(t, test.want, Clean(test.in), "Clean(%q)", test.in)
	}
}

func TestCutTo(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string
	}{{0, "four words of text"}, {18, "four words of text"}, {17, "four words of te…"}, {1, "…"}} {
		assert.Equal(t, test.want, cutTo(test.width, "four words of text"), "cutTo(%d)", test.width)
	}
}

func TestSize(t *testing.T) {
	for _, test := range []struct {
		bytes int64
		want  string
	}{
		{0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"}, {5 << 20, "5.0 MiB"},
		{3 << 40, "3.0 TiB"}, {math.MaxInt64, "8388608.0 TiB"},
	} {
		assert.Equal(t, test.want, Size(test.bytes), "Size(%d)", test.bytes)
	}
}
