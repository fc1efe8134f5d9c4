package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// The comments, the rule and the shape all come from the file.
func ExampleParseRLE() {
	pattern, err := ParseRLE(strings.NewReader(`#N Glider
#C The smallest spaceship.
x = 3, y = 3, rule = 23/3
bo$2bo$3o!
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pattern.Name, pattern.Width, pattern.Height, pattern.Rule)
	fmt.Println(pattern.Cells)

	_, err = ParseRLE(strings.NewReader("x = 3, y = 3\nbo$2bo$4o!"))
	fmt.Println(err)
	// Output:
	// Glider 3 3 B3/S23
	// [{1 0} {2 1} {0 2} {1 2} {2 2}]
	// line 2, column 8: row 3 is longer than x = 3
}

func mustParse(t *testing.T, text string) *Pattern {
	t.Helper()
	pattern, err := ParseRLE(strings.NewReader(text))
	if err != nil {
		t.Fatalf("ParseRLE(%q): %v", text, err)
	}
	return pattern
}

// encodeRLE writes p so that ParseRLE reads an equal pattern.
func encodeRLE(p *Pattern) string {
	var out strings.Builder
	if p.Name != "" {
		fmt.Fprintf(&out, "#N %s\n", p.Name)
	}
	for _, comment := range p.Comments {
		fmt.Fprintf(&out, "#C %s\n", comment)
	}
	corner := upperLeft(p.Cells)
	if corner != (Cell{}) {
		fmt.Fprintf(&out, "#R %d %d\n", corner.X, corner.Y)
	}
	fmt.Fprintf(&out, "x = %d, y = %d, rule = %s\n", p.Width, p.Height, p.Rule)
	items := &itemWriter{out: &out}
	var column, row int64 // Of the next cell, from the corner.
	for _, cell := range p.Cells {
		x, y := int64(cell.X)-int64(corner.X), int64(cell.Y)-int64(corner.Y)
		if y > row {
			items.write(y-row, '$')
			column, row = 0, y
		}
		items.write(x-column, 'b')
		items.write(1, 'o')
		column = x + 1
	}
	items.end()
	return out.String()
}

// upperLeft returns the corner of the smallest box around cells.
func upperLeft(cells []Cell) Cell {
	if len(cells) == 0 {
		return Cell{}
	}
	corner := cells[0]
	for _, cell := range cells {
		corner = Cell{X: min(corner.X, cell.X), Y: min(corner.Y, cell.Y)}
	}
	return corner
}

// An itemWriter joins equal tags to runs, and breaks lines after 70 bytes.
type itemWriter struct {
	out    *strings.Builder
	count  int64
	tag    byte
	length int // Of the current line.
}

func (w *itemWriter) write(count int64, tag byte) {
	if count == 0 {
		return
	}
	if tag != w.tag {
		w.flush()
		w.tag = tag
	}
	w.count += count
}

func (w *itemWriter) flush() {
	if w.count == 0 {
		return
	}
	item := string(w.tag)
	if w.count > 1 {
		item = strconv.FormatInt(w.count, 10) + item
	}
	if w.length+len(item) > 70 {
		w.out.WriteByte('\n')
		w.length = 0
	}
	w.out.WriteString(item)
	w.length += len(item)
	w.count = 0
}

func (w *itemWriter) end() {
	w.flush()
	w.out.WriteString("!\n")
}

func TestParseRLEReadsWhatTheFileSays(t *testing.T) {
	tests := []struct {
		name string
		text string
		want Pattern
	}{
		{
			name: "everything",
			text: "#N Glider\n#O Richard Guy, 1969\n#C First.\n#c Second.\n#D Third.\n#C\n#Z ignored\n#\n" +
				"x = 3, y = 3, rule = B3/S23\nbo$2bo$3o!\n",
			want: Pattern{
				Name:     "Glider",
				Comments: []string{"Richard Guy, 1969", "First.", "Second.", "Third.", ""},
				Width:    3, Height: 3,
				Cells: glider(0, 0),
			},
		},
		{
			name: "a larger box than the cells need",
			text: "x = 10, y = 20\n$bo!",
			want: Pattern{Width: 10, Height: 20, Cells: []Cell{{1, 1}}},
		},
		{
			name: "no cells",
			text: "x = 0, y = 0, rule = B3/S23\n!",
			want: Pattern{},
		},
		{
			name: "only dead cells",
			text: "x = 3, y = 2\n3b$3b!",
			want: Pattern{Width: 3, Height: 2},
		},
		{
			name: "no header",
			text: "#N Glider\nbo$2bo$3o!",
			want: Pattern{Name: "Glider", Width: 3, Height: 3, Cells: glider(0, 0)},
		},
		{
			name: "no header: dead cells count, empty rows at the end do not",
			text: "o4b$2$o5$!",
			want: Pattern{Width: 5, Height: 4, Cells: []Cell{{0, 0}, {0, 3}}},
		},
		{
			name: "lines about the pattern inside the body",
			text: "x = 2, y = 2\n2o$\n#C Half.\n  #N Block\n2o!",
			want: Pattern{
				Name: "Block", Comments: []string{"Half."}, Width: 2, Height: 2,
				Cells: []Cell{{0, 0}, {1, 0}, {0, 1}, {1, 1}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Rule = "B3/S23"
			if got := mustParse(t, tt.text); !reflect.DeepEqual(*got, tt.want) {
				t.Errorf("ParseRLE(%q) = %+v, want %+v", tt.text, *got, tt.want)
			}
		})
	}
}

func TestParseRLEAcceptsHowOthersWrite(t *testing.T) {
	tests := []struct{ name, text string }{
		{name: "plain", text: "x = 3, y = 3\nbo$2bo$3o!"},
		{name: "no spaces", text: "x=3,y=3,rule=B3/S23\nbo$2bo$3o!"},
		{name: "many spaces", text: "  x  =  3 ,\ty  = 3  , rule  =  B3/S23  \nbo$2bo$3o!"},
		{name: "comma at the end of the header", text: "x = 3, y = 3, rule = B3/S23,\nbo$2bo$3o!"},
		{name: "comma after y", text: "x = 3, y = 3,\nbo$2bo$3o!"},
		{name: "no commas", text: "x = 3 y = 3 rule = B3/S23\nbo$2bo$3o!"},
		{name: "lower case rule", text: "x = 3, y = 3, rule = b3/s23\nbo$2bo$3o!"},
		{name: "spaces in the rule", text: "x = 3, y = 3, rule = B3 / S23\nbo$2bo$3o!"},
		{name: "survival and birth", text: "x = 3, y = 3, rule = 23/3\nbo$2bo$3o!"},
		{name: "survival first", text: "x = 3, y = 3, rule = S23/B3\nbo$2bo$3o!"},
		{name: "no slash", text: "x = 3, y = 3, rule = b3s23\nbo$2bo$3o!"},
		{name: "rule by name", text: "x = 3, y = 3, rule = Life\nbo$2bo$3o!"},
		{name: "rule line", text: "#r 23/3\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "CR LF", text: "#C Text.\r\nx = 3, y = 3\r\nbo$2bo$\r\n3o!\r\n"},
		{name: "CR", text: "#C Text.\rx = 3, y = 3\rbo$2bo$\r3o!\r"},
		{name: "byte order mark", text: "\ufeff#C Text.\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "byte order mark before the header", text: "\ufeffx = 3, y = 3\nbo$2bo$3o!"},
		{name: "empty lines", text: "\n\n#C Text.\n\nx = 3, y = 3\n\nbo$\n\n2bo$3o\n\n!"},
		{name: "an item a line", text: "x = 3, y = 3\nb\no\n$\n2b\no\n$\n3o\n!\n"},
		{name: "white space between count and tag", text: "x = 3, y = 3\nbo$2 bo$3\n\to!"},
		{name: "zeros before a count", text: "x = 03, y = 003\nbo$02bo$003o!"},
		{name: "every dead cell", text: "x = 3, y = 3\nbob$bbo$ooo!"},
		{name: "end of row after the last row", text: "x = 3, y = 3\nbo$2bo$3o$!"},
		{name: "dots and letters of two states", text: "x = 3, y = 3\n.A$2.A$3A!"},
		{name: "both kinds of tag", text: "x = 3, y = 3\n.o$2bA$2oA!"},
		{name: "runs in parts", text: "x = 3, y = 3\nbo$bbo$2o1o!"},
		{name: "text after the end", text: "x = 3, y = 3\nbo$2bo$3o!4o$ and more\n#r 1/1\n"},
		{name: "text on the line after the end", text: "x = 3, y = 3\nbo$2bo$3o!\nx = what"},
		{name: "one long line", text: "x = 3, y = 3\nbo" + strings.Repeat(" ", 100_000) + "$2bo$3o!"},
		{name: "position zero", text: "#P 0 0\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "generation of Golly", text: "#CXRLE Gen=12345678901234567890\nx = 3, y = 3\nbo$2bo$3o!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustParse(t, tt.text)
			if got.Width != 3 || got.Height != 3 || got.Rule != "B3/S23" || !slices.Equal(got.Cells, glider(0, 0)) {
				t.Errorf("ParseRLE(%q) = %+v, want a glider", tt.text, got)
			}
		})
	}
}

func TestParseRLEShiftsByThePosition(t *testing.T) {
	tests := []struct {
		text string
		x, y int32
	}{
		{text: "#P 10 -20\nx = 3, y = 3\nbo$2bo$3o!", x: 10, y: -20},
		{text: "#R -1 +2\nx = 3, y = 3\nbo$2bo$3o!", x: -1, y: 2},
		{text: "#R 4, 5\nx = 3, y = 3\nbo$2bo$3o!", x: 4, y: 5},
		{text: "#CXRLE Pos=0,-1377 Gen=3480106827776\nx = 3, y = 3\nbo$2bo$3o!", x: 0, y: -1377},
		{text: "#CXRLE Gen=7 Pos=-9,3\nx = 3, y = 3\nbo$2bo$3o!", x: -9, y: 3},
		{text: "#P 1 1\n#R 2 3\nx = 3, y = 3\nbo$2bo$3o!", x: 2, y: 3},
		{text: "#P 6 7\nbo$2bo$3o!", x: 6, y: 7},
		{text: "x = 3, y = 3\nbo$2bo$\n#P 6 7\n3o!", x: 6, y: 7},
		{text: "#P -2147483648 2147483645\nx = 3, y = 3\nbo$2bo$3o!", x: math.MinInt32, y: math.MaxInt32 - 2},
	}
	for _, tt := range tests {
		got := mustParse(t, tt.text)
		if want := glider(tt.x, tt.y); !slices.Equal(got.Cells, want) {
			t.Errorf("ParseRLE(%q).Cells = %v, want %v", tt.text, got.Cells, want)
		}
	}
}

func TestParseRLERejects(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "line 1, column 1: file ends before the pattern"},
		{"only comments", "#C Text.\n", "line 2, column 1: file ends before the pattern"},
		{"a plaintext pattern", "!Name: Glider\n.O.\n", "line 1, column 1: neither header nor cells before '!'"},
		{"a list of positions", "#Life 1.06\n0 -1\n", "line 2, column 1: count is zero"},
		{"a Life 1.05 pattern", "#Life 1.05\n#P -1 -1\n.*.\n", "line 3, column 2: unknown tag '*'"},
		{"UTF-16", "\xff\xfex\x00", "line 1, column 1: unknown tag 0xff"},

		{"header without x", "x 3", `line 1, column 3: header wants "x = " here`},
		{"header without y", "x = 3\no!", `line 1, column 6: header wants "y = " here`},
		{"header in upper case", "x = 3, Y = 3\no!", `line 1, column 8: header wants "y = " here`},
		{"third dimension", "x = 3, y = 3, z = 3\no!", `line 1, column 15: header wants "rule = " or its end here`},
		{"indented header", "\ufeff \tx = 3, y = 3, z = 3\no!", `line 1, column 17: header wants "rule = " or its end here`},
		{"negative length", "x = -3, y = 3\no!", `line 1, column 5: x = "-3" is not a length from 0 to 2147483647`},
		{"no length", "x = 3, y = \no!", `line 1, column 12: y = "" is not a length from 0 to 2147483647`},
		{"huge length", "x = 3, y = 2147483648\no!", `line 1, column 12: y = "2147483648" is not a length from 0 to 2147483647`},
		{"body on the header line", "x = 3, y = 3 3o!", `line 1, column 14: header wants "rule = " or its end here`},

		{"HighLife", "x = 1, y = 1, rule = B36/S23\no!", `line 1, column 22: rule "B36/S23" is not Conway's (B3/S23)`},
		{"birth and survival without letters", "x = 1, y = 1, rule = 3/23\no!", `line 1, column 22: rule "3/23" is not Conway's (B3/S23)`},
		{"bounded grid", "x = 1, y = 1, rule = B3/S23:T100,100\no!", `line 1, column 22: rule "B3/S23:T100,100" is not Conway's (B3/S23)`},
		{"no rule", "x = 1, y = 1, rule = \no!", `line 1, column 22: rule "" is not Conway's (B3/S23)`},
		{"rule line", "#r 1357/1357\nx = 1, y = 1\no!", `line 1, column 1: rule "1357/1357" is not Conway's (B3/S23)`},

		{"one number for a position", "#P 3\nx = 1, y = 1\no!", `line 1, column 1: position "3" is not two integers`},
		{"words for a position", "#C Text.\n#R a b\nx = 1, y = 1\no!", `line 2, column 1: position "a b" is not two integers of 32 bits`},
		{"huge position", "#CXRLE Pos=0,2147483648\nx = 1, y = 1\no!", `line 1, column 1: position "0,2147483648" is not two integers of 32 bits`},
		{"position beyond the right", "#P 2147483646 0\nx = 3, y = 1\n3o!", "line 1, column 1: position puts a cell at (2147483648, 0), outside 32 bits"},
		{"position beyond the bottom", "#P 0 2147483647\nx = 1, y = 2\n$o!", "line 1, column 1: position puts a cell at (0, 2147483648), outside 32 bits"},

		{"no end", "x = 3, y = 3\nbo$2bo$3o\n", "line 3, column 1: body ends without '!'"},
		{"no body", "x = 3, y = 3", "line 1, column 13: body ends without '!'"},
		{"end inside an item", "x = 3, y = 3\nbo$2", "line 2, column 5: body ends without '!'"},
		{"count without a tag", "x = 3, y = 3\nbo$2!", "line 2, column 4: count 2 has no tag"},
		{"count split over lines", "x = 30, y = 3\n1\n2o!", "line 3, column 1: count is split by white space"},
		{"count zero", "x = 3, y = 3\nb0o!", "line 2, column 2: count is zero"},
		{"count of many zeros", "x = 3, y = 3\nb000o!", "line 2, column 2: count is zero"},
		{"count beyond 32 bits", "x = 3, y = 3\n2147483648b!", "line 2, column 1: count is larger than 2147483647"},
		{"count beyond 64 bits", "x = 3, y = 3\n18446744073709551617o!", "line 2, column 1: count is larger than 2147483647"},
		{"negative count", "x = 3, y = 3\n-1o!", "line 2, column 1: unknown tag '-'"},

		{"long row", "x = 3, y = 3\nbo$2b2o!", "line 2, column 6: row 2 is longer than x = 3"},
		{"long row of dead cells", "x = 3, y = 3\nbo$4b!", "line 2, column 4: row 2 is longer than x = 3"},
		{"long row in parts", "x = 3, y = 3\r\n\r\noo\r\n  oo!", "line 4, column 4: row 1 is longer than x = 3"},
		{"very long row", "2147483647b2147483647b!", "line 1, column 12: row 1 is longer than x = 2147483647"},
		{"cells in too many rows", "x = 3, y = 2\no$o$o!", "line 2, column 5: more rows than y = 2"},
		{"dead cells in too many rows", "x = 3, y = 2\no$o$b!", "line 2, column 5: more rows than y = 2"},
		{"ends of too many rows", "x = 3, y = 2\no$o2$!", "line 2, column 4: more rows than y = 2"},
		{"very many rows", "o2147483647$2147483647$!", "line 1, column 13: more rows than y = 2147483647"},
		{"cells in an empty box", "x = 0, y = 0\no!", "line 2, column 1: more rows than y = 0"},
		{"too many cells", "16777217o!", "line 1, column 1: more than 16777216 living cells"},

		{"marked cell", "x = 3, y = 3\n3z!", "line 2, column 2: tag 'z' is a marked cell, which Conway's rule does not have"},
		{"marked cell without a header", "bx!", "line 1, column 2: tag 'x' is a marked cell, which Conway's rule does not have"},
		{"state 2", "x = 3, y = 3\nAB!", "line 2, column 2: tag 'B' is state 2 of a rule with more than two"},
		{"capital o", "x = 3, y = 3\n3O!", "line 2, column 2: tag 'O' is state 15 of a rule with more than two"},
		{"unknown letter", "x = 3, y = 3\nq!", "line 2, column 1: unknown tag 'q'"},
		{"zero byte", "x = 3, y = 3\n\x00!", "line 2, column 1: unknown tag 0x00"},
		{"hash inside a line", "x = 3, y = 3\no #C Text.\n!", "line 2, column 3: unknown tag '#'"},
		{"hash after a count", "x = 3, y = 3\n3\n#C Text.\no!", "line 3, column 1: unknown tag '#'"},
		{"second header", "x = 3, y = 3\nx = 3, y = 3\no!", "line 2, column 1: tag 'x' is a marked cell, which Conway's rule does not have"},
		{"position after CR", "x = 3, y = 3\ro\r\r\n?", "line 4, column 1: unknown tag '?'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pattern, err := ParseRLE(strings.NewReader(tt.text))
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || err.Error() != tt.want {
				t.Errorf("ParseRLE(%q) = %v, %v, want the SyntaxError %q", tt.text, pattern, err, tt.want)
			}
		})
	}
}

func TestParseRLETakesAllCellsUpToTheLimit(t *testing.T) {
	for _, text := range []string{"5o!", "3o$2o!", "oooo$10b1o!"} {
		if _, err := parseRLE(strings.NewReader(text), 5); err != nil {
			t.Errorf("parseRLE(%q, 5) = %v, want no error", text, err)
		}
		if _, err := parseRLE(strings.NewReader(text), 4); err == nil {
			t.Errorf("parseRLE(%q, 4) = no error, want one", text)
		}
	}
}

// TestParseRLERefusesBeforeAllocating feeds files that promise much and hold
// little.
func TestParseRLERefusesBeforeAllocating(t *testing.T) {
	tests := []struct {
		name string
		text string
		ok   bool
	}{
		{name: "living cells", text: "2147483647o!"},
		{name: "living cells in a header", text: "x = 2147483647, y = 2147483647\n2147483647o!"},
		{name: "cells that do not fit", text: "x = 3, y = 3\n16777216o!"},
		{name: "a large empty plane", text: "x = 2147483647, y = 2147483647\n2147483646$2147483647b!", ok: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ParseRLE(strings.NewReader(tt.text))
			runtime.ReadMemStats(&after)
			if (err == nil) != tt.ok {
				t.Errorf("ParseRLE(%q) = %v", tt.text, err)
			}
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
				t.Errorf("ParseRLE(%q) allocated %d bytes, want at most 1 MiB", tt.text, bytes)
			}
		})
	}
}

func TestParseRLEBoundsTheTextItKeeps(t *testing.T) {
	line := "#C" + strings.Repeat("c", 1022)
	fits := strings.Repeat(line+"\n", 1024) + "o!"
	if _, err := ParseRLE(strings.NewReader(fits)); err != nil {
		t.Errorf("1 MiB of comments: %v", err)
	}
	const want = "line 1025, column 1: header and '#' lines hold more than 1048576 bytes"
	for _, last := range []string{"#", "x = 3, y = 3\no!"} {
		long := strings.Repeat(line+"\n", 1024) + last
		if _, err := ParseRLE(strings.NewReader(long)); err == nil || err.Error() != want {
			t.Errorf("1 MiB of comments and %q: %v, want %s", last, err, want)
		}
	}
}

func TestParseRLEPassesReadErrorsOn(t *testing.T) {
	const text = "\ufeff#N Glider\r\nx = 3, y = 3\r\nbo$2bo$3o"
	broken := errors.New("broken")
	for cut := range len(text) + 1 {
		r := io.MultiReader(strings.NewReader(text[:cut]), iotest.ErrReader(broken))
		if pattern, err := ParseRLE(r); !errors.Is(err, broken) {
			t.Errorf("read error after %d bytes: ParseRLE = %v, %v", cut, pattern, err)
		}
	}
}

func TestParseRLEStopsReadingAtTheEndOfTheBody(t *testing.T) {
	r := io.MultiReader(strings.NewReader("3o!"), iotest.ErrReader(errors.New("broken")))
	if _, err := ParseRLE(r); err != nil {
		t.Errorf("read error after '!': %v, want none", err)
	}
}

func TestParseRLEReadsByteByByte(t *testing.T) {
	const text = "\ufeff#N Glider\r\nx = 3, y = 3\r\nbo$2\r\nbo$3o!"
	got, err := ParseRLE(iotest.OneByteReader(strings.NewReader(text)))
	if want := mustParse(t, text); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ParseRLE = %v, %v, want %v", got, err, want)
	}
}

// FuzzParseRLE checks that a file is either refused at a place inside it or
// gives a pattern that keeps its promises and survives being written and read.
func FuzzParseRLE(f *testing.F) {
	for _, seed := range []string{
		"#N Glider\n#O Author\n#C Text.\n#r 23/3\nx = 3, y = 3, rule = B3/S23\nbo$2bo$3o!\nafter",
		"\ufeff#P -5 7\r\nx=3,y=3,rule=b3/s23\r\nbo$2\r\nbo$3o$!",
		"#CXRLE Pos=0,-1377 Gen=3480106827776\nx = 3, y = 3\n.A$2.A$3A!",
		"#R 2147483645 -2147483648\rbo$2bo$\r#C inside\r3o!",
		"x = 2147483647, y = 2147483647\n2147483646$2147483646bo!",
		"o2147483646$o!",
		"4096o!", "4097o!", "0o!", "99999999999999999999o!", "1 2o!", "3!", "x = 0, y = 0\n!", "!", "#", "x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 12
		pattern, err := parseRLE(strings.NewReader(string(data)), limit)
		if err != nil {
			checkPlace(t, data, err)
			return
		}
		checkPattern(t, pattern, data, limit)
		text := encodeRLE(pattern)
		again, err := parseRLE(strings.NewReader(text), limit)
		if err != nil || !reflect.DeepEqual(again, pattern) {
			t.Fatalf("read again from %q: %+v, %v, want %+v", text, again, err, pattern)
		}
	})
}

// checkPlace fails unless err is a SyntaxError at a byte of data or at its end.
func checkPlace(t *testing.T, data []byte, err error) {
	t.Helper()
	var syntax *SyntaxError
	if !errors.As(err, &syntax) {
		t.Fatalf("error %v (%T), want a *SyntaxError", err, err)
	}
	text := strings.NewReplacer("\r\n", " \n", "\r", "\n").Replace(strings.TrimPrefix(string(data), "\ufeff"))
	lines := strings.Split(text, "\n")
	if syntax.Line < 1 || syntax.Line > len(lines) {
		t.Fatalf("%v: the file has %d lines", syntax, len(lines))
	}
	if length := len(lines[syntax.Line-1]); syntax.Column < 1 || syntax.Column > length+1 {
		t.Fatalf("%v: the line has %d bytes", syntax, length)
	}
}

// checkPattern fails unless p, read from data, is as [Pattern] and [ParseRLE]
// describe it.
func checkPattern(t *testing.T, p *Pattern, data []byte, limit int) {
	t.Helper()
	if len(p.Cells) > limit || cap(p.Cells) > 2*limit {
		t.Fatalf("%d cells in space for %d, want at most %d", len(p.Cells), cap(p.Cells), limit)
	}
	if kept := len(p.Name) + len(strings.Join(p.Comments, "")); kept > len(data) {
		t.Fatalf("%d bytes of text from a file of %d", kept, len(data))
	}
	if p.Rule != "B3/S23" {
		t.Fatalf("rule %q", p.Rule)
	}
	corner := upperLeft(p.Cells)
	for i, cell := range p.Cells {
		if int(cell.X)-int(corner.X) >= p.Width || int(cell.Y)-int(corner.Y) >= p.Height {
			t.Fatalf("cell %v from %v is outside %d by %d", cell, corner, p.Width, p.Height)
		}
		if i > 0 && !before(p.Cells[i-1], cell) {
			t.Fatalf("cell %v after %v", cell, p.Cells[i-1])
		}
	}
}

// before reports whether a stands before b, by row and then by column.
func before(a, b Cell) bool { return a.Y < b.Y || a.Y == b.Y && a.X < b.X }

func TestBuiltInPatterns(t *testing.T) {
	populations := map[string]int{"acorn": 7, "gosper-gun": 36, "r-pentomino": 5}
	names, err := PatternNames()
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Keys(populations)); !slices.Equal(names, want) {
		t.Fatalf("PatternNames() = %q, want %q", names, want)
	}
	for _, name := range names {
		pattern, err := LoadPattern(name)
		if err != nil {
			t.Errorf("LoadPattern(%q): %v", name, err)
			continue
		}
		if got := len(pattern.Cells); got != populations[name] {
			t.Errorf("%s has %d cells, want %d", name, got, populations[name])
		}
		if pattern.Name == "" || len(pattern.Comments) == 0 {
			t.Errorf("%s has no name or no comments", name)
		}
		checkTightBox(t, name, pattern)
		if again := mustParse(t, encodeRLE(pattern)); !reflect.DeepEqual(again, pattern) {
			t.Errorf("%s: read again as %+v, want %+v", name, again, pattern)
		}
	}
}

// checkTightBox fails unless the header gives the box around the cells.
func checkTightBox(t *testing.T, name string, p *Pattern) {
	t.Helper()
	var width, height int
	for _, cell := range p.Cells {
		width, height = max(width, int(cell.X)+1), max(height, int(cell.Y)+1)
	}
	if upperLeft(p.Cells) != (Cell{}) || width != p.Width || height != p.Height {
		t.Errorf("%s: cells fill %d by %d from %v, the header says %d by %d",
			name, width, height, upperLeft(p.Cells), p.Width, p.Height)
	}
}

func TestLoadPatternDoesNotFindOtherNames(t *testing.T) {
	for _, name := range []string{"", "glider", "../rle", "acorn.rle"} {
		if _, err := LoadPattern(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("LoadPattern(%q) = %v, want fs.ErrNotExist", name, err)
		}
	}
}
