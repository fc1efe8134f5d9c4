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

func TestGrid_LaterRowsWidenColumn(t *testing.T) {
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
		// The last row that is buffered together with row i.
		last := min(i/gridRows*gridRows+gridRows-1, rows-1)
		width := len(fmt.Sprint(1000 * last))
		require.Equal(t, fmt.Sprintf("%*d  row %d", width, 1000*i, i), line)
	}
}

// printed returns the output of draw() for a line width.
func printed(t *testing.T, width int, draw func(o *Out)) string {
	t.Helper()
	var out bytes.Buffer
	o := NewOut(&out, nil)
	o.Width = width
	draw(o)
	require.NoError(t, o.Close())
	return out.String()
}

func TestGrid_EmptyColumn(t *testing.T) {
	table := func(o *Out) {
		g := o.Grid(">TICK", "NOTE", "CHANGES")
		g.Row(1, "", "created 1")
		g.Row(20, "", "created 2")
		g.Text("    and more")
		g.Row(3, "head", "created 3")
		g.Row(4, "", "")
		g.Flush()
	}
	assert.Equal(t, `TICK  CHANGES
   1  created 1
  20  created 2
    and more
TICK  NOTE  CHANGES
   3  head  created 3
   4
`, printed(t, 0, table))
	assert.Equal(t, "TICK  NOTE\n", printed(t, 0, func(o *Out) { o.Grid(">TICK", "~NOTE").Flush() }), "no rows")
}

func TestGrid_WideColumns(t *testing.T) {
	table := func(kind string) func(o *Out) {
		return func(o *Out) {
			g := o.Grid("FIELD", kind+"VALUE", "CHANGED")
			g.Row("Name", "a name of several words", "tick 3")
			g.Row("Key", "0123456789abcdef", "tick 14")
			g.Row("Age", 7, "")
			g.Flush()
		}
	}
	assert.Equal(t, `FIELD  VALUE           CHANGED
Name   a name of sev…  tick 3
Key    0123456789abc…  tick 14
Age    7
`, printed(t, 30, table("<")))
	assert.Equal(t, `FIELD  VALUE                    CHANGED
Name   a name of several words  tick 3
Key    0123456789abcdef         tick 14
Age    7
`, printed(t, 0, table("~")), "lines may be as long as they are")
	assert.Equal(t, `FIELD  VALUE           CHANGED
Name   a name of       tick 3
       several words
Key    0123456789abcd  tick 14
       ef
Age    7
`, printed(t, 30, table("~")))
}

func TestGrid_AllColumnsVisible(t *testing.T) {
	table := func(o *Out) {
		Table(o, []int{1, 22}, func(n int) []any { return []any{n, 1000 * n, 1000000 * n, "a word"} }, ">N", ">THOUSANDS", ">MILLIONS", "NOTE")
	}
	assert.Equal(t, ` N  THOUSANDS  MILLIONS  NOTE
 1       1000   1000000  a word
22      22000  22000000  a word
`, printed(t, 31, table))
	assert.Equal(t, ` N  THOUSANDS  MILLIONS
 1       1000   1000000
22      22000  22000000

 N  NOTE
 1  a word
22  a word
`, printed(t, 30, table))
	assert.Equal(t, "  a line of\n    words\n| text that\n|   hangs\n", printed(t, 13, func(o *Out) {
		o.Line("  a line of words")
		o.Grid().Text("| text that hangs")
	}))
}

func TestClean_EscapesControlCharacters(t *testing.T) {
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

func TestCutTo_EndsWithEllipsis(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string
	}{{0, "four words of text"}, {18, "four words of text"}, {17, "four words of te…"}, {1, "…"}} {
		assert.Equal(t, test.want, cutTo(test.width, "four words of text"), "cutTo(%d)", test.width)
	}
}

func TestSize_ChoosesUnit(t *testing.T) {
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
