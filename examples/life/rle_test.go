package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// ParseRLE returns the cells and the name of a pattern file.
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
	fmt.Println(pattern.Name, pattern.Rule)
	fmt.Println(pattern.Cells)

	_, err = ParseRLE(strings.NewReader("x = 3, y = 3\nbo$2bo$4o!"))
	fmt.Println(err)
	// Output:
	// Glider B3/S23
	// [{1 0} {2 1} {0 2} {1 2} {2 2}]
	// line 2: row 3 is longer than x = 3
}

func mustParse(t *testing.T, text string) *Pattern {
	t.Helper()
	pattern, err := ParseRLE(strings.NewReader(text))
	if err != nil {
		t.Fatalf("ParseRLE(%q): %v", text, err)
	}
	return pattern
}

// encodeRLE encodes p in a form that ParseRLE decodes to an equal pattern.
func encodeRLE(p *Pattern) string {
	var out strings.Builder
	if p.Name != "" {
		fmt.Fprintf(&out, "#N %s\n", p.Name)
	}
	column, row := 0, 0 // The position of the next cell.
	run := func(n int, tag string) {
		if n > 0 {
			fmt.Fprintf(&out, "%d%s\n", n, tag)
		}
	}
	for _, cell := range p.Cells {
		if y := int(cell.Y); y > row {
			run(y-row, "$")
			column, row = 0, y
		}
		run(int(cell.X)-column, "b")
		run(1, "o")
		column = int(cell.X) + 1
	}
	run(1, "$") // The body must not begin with its end mark.
	return out.String() + "!"
}

func TestParseRLE_ValidVariants(t *testing.T) {
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
		{name: "CR LF", text: "#C Text.\r\nx = 3, y = 3\r\nbo$2bo$\r\n3o!\r\n"},
		{name: "CR", text: "#N Text\r#C Text.\rx = 3, y = 3\rbo$2bo$\r3o!\r"},
		{name: "CR and nothing after it", text: "x = 3, y = 3\rbo$2bo$3o\r!\r"},
		{name: "byte order mark", text: "\uFEFFx = 3, y = 3\nbo$2bo$3o!"},
		{name: "byte order mark before a comment", text: "\uFEFF#C Text.\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "byte order mark before the body", text: "\uFEFFbo$2bo$3o!"},
		{name: "marked cells", text: "x = 3, y = 3\nbx$2by$zxy!"},
		{name: "a marked cell behind the header", text: "x = 3, y = 3\nb\nx$2bx$\nx2x!"},
		{name: "no header before marked cells", text: "bx$2by$3z!"},
		{name: "rule line", text: "#r 23/3\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "rule line with letters", text: "#r B3/S23\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "rule line without a rule", text: "#r\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "position line", text: "#R -1 36\nx = 3, y = 3\nbo$2bo$3o!"},
		{name: "empty lines", text: "\n\n#C Text.\n\nx = 3, y = 3\n\nbo$\n\n2bo$3o\n\n!"},
		{name: "an item a line", text: "x = 3, y = 3\nb\no\n$\n2b\no\n$\n3o\n!\n"},
		{name: "white space between count and tag", text: "x = 3, y = 3\nbo$2 bo$3\to!"},
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
			if got.Rule != "B3/S23" || !slices.Equal(got.Cells, glider(0, 0)) {
				t.Errorf("ParseRLE(%q) = %+v, want a glider", tt.text, got)
			}
		})
	}
}

func TestParseRLE_InvalidText(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", "line 1: the file ends before the pattern does, with '!'"},
		{"only comments", "#C Text.\n", "line 2: the file ends before the pattern does, with '!'"},
		{"a plaintext pattern", "!Name: Glider\n.O.\n", "line 1: neither header nor cells before '!'"},
		{"a list of positions", "#Life 1.06\n0 -1\n", `line 2: no count and tag of two states at "0 -1"`},
		{"a Life 1.05 pattern", "#Life 1.05\n#P -1 -1\n.*.\n", `line 3: no count and tag of two states at "*."`},
		{"UTF-16", "\xff\xfex\x00", `line 1: no count and tag of two states at "\xff\xfex\x00"`},
		{"header without y", "x = 3\no!", `line 1: "x = 3" is no header like x = 3, y = 3, rule = B3/S23`},
		{"third dimension", "x = 3, y = 3, z = 3\no!", `line 1: "x = 3, y = 3, z = 3" is no header like x = 3, y = 3, rule = B3/S23`},
		{"negative length", "x = -3, y = 3\no!", `line 1: "x = -3, y = 3" is no header like x = 3, y = 3, rule = B3/S23`},
		{"huge length", "x = 3, y = 2147483648\no!", "line 1: 2147483648 is larger than 2147483647"},
		{"HighLife", "x = 1, y = 1, rule = B36/S23\no!", `line 1: rule "B36/S23" is not Conway's (B3/S23)`},
		{"birth and survival without letters", "x = 1, y = 1, rule = 3/23\no!", `line 1: rule "3/23" is not Conway's (B3/S23)`},
		{"bounded grid", "x = 1, y = 1, rule = B3/S23:T100,100\no!", `line 1: rule "B3/S23:T100,100" is not Conway's (B3/S23)`},
		{"no rule", "x = 1, y = 1, rule = \no!", `line 1: rule "" is not Conway's (B3/S23)`},
		{"HighLife as survival and birth", "#r 23/36\nx = 3, y = 3\nbo$2bo$3o!", `line 1: rule "23/36" is not Conway's (B3/S23)`},
		{"two rules", "#r 23/36\nx = 3, y = 3, rule = B3/S23\nbo$2bo$3o!", `line 1: rule "23/36" is not Conway's (B3/S23)`},
		{"rule line behind the header", "x = 3, y = 3\n#r b36s23\nbo$2bo$3o!", `line 2: rule "b36s23" is not Conway's (B3/S23)`},
		{"marked cells with a fourth letter", "x = 3, y = 1\nxyw!", `line 2: no count and tag of two states at "w!"`},
		{"byte order mark inside", "x = 3, y = 3\n\uFEFFo!", `line 2: no count and tag of two states at "\ufeffo!"`},
		{"CR and CR LF", "#C\r#C\r\n#C\n\r#C\rx\r", "line 7: the file ends before the pattern does, with '!'"},
		{"no end of an empty row", "x = 3, y = 1\n", "line 2: the file ends before the pattern does, with '!'"},
		{"no end", "x = 3, y = 3\nbo$2bo$3o\n", "line 3: the file ends before the pattern does, with '!'"},
		{"end inside an item", "x = 3, y = 3\nbo$2", `line 2: no count and tag of two states at "2"`},
		{"count split over lines", "x = 30, y = 3\n1\n2o!", `line 2: no count and tag of two states at "1"`},
		{"count zero", "x = 3, y = 3\nb000o!", "line 2: count is zero"},
		{"count beyond 32 bits", "x = 3, y = 3\n2147483648b!", "line 2: 2147483648 is larger than 2147483647"},
		{"count beyond 64 bits", "x = 3, y = 3\n18446744073709551617o!", "line 2: 18446744073709551617 is larger than 2147483647"},
		{"long row", "x = 3, y = 3\nbo$2b2o!", "line 2: row 2 is longer than x = 3"},
		{"long row of dead cells", "x = 3, y = 3\nbo$4b!", "line 2: row 2 is longer than x = 3"},
		{"very long row", "2147483647b2147483647b!", "line 1: row 1 is longer than x = 2147483647"},
		{"cells in too many rows", "x = 3, y = 2\no$o$o!", "line 2: more rows than y = 2"},
		{"ends of too many rows", "x = 3, y = 2\no$o2$!", "line 2: more rows than y = 2"},
		{"very many rows", "o2147483647$2147483647$!", "line 1: more rows than y = 2147483647"},
		{"cells in an empty box", "x = 0, y = 0\no!", "line 2: more rows than y = 0"},
		{"too many cells", "16777217o!", "line 1: more than 16777216 living cells"},
		{"state 2", "x = 3, y = 3\nAB!", `line 2: no count and tag of two states at "B!"`},
		{"hash inside a line", "x = 3, y = 3\no #C Text.\n!", `line 2: no count and tag of two states at "#C Text."`},
		{"second header", "x = 3, y = 3\nx = 3, y = 3\no!", `line 2: no count and tag of two states at "= 3, y = 3"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pattern, err := ParseRLE(strings.NewReader(tt.text))
			if err == nil || err.Error() != tt.want {
				t.Errorf("ParseRLE(%q) = %v, %v, want the error %q", tt.text, pattern, err, tt.want)
			}
		})
	}
}

func TestParseRLE_EmptyPattern(t *testing.T) {
	for _, text := range []string{
		"x = 0, y = 0",
		"x = 0, y = 0, rule = B3/S23\n",
		"x = 0, y = 0, rule = B3/S23\n!\n",
		"#N Nothing\r\nx = 0, y = 0\r\n\r\n",
		"x = 0, y = 5\n5$!",
		"x = 5, y = 5\n!",
	} {
		if got := mustParse(t, text); len(got.Cells) != 0 {
			t.Errorf("ParseRLE(%q) has the cells %v, want none", text, got.Cells)
		}
	}
}

// TestParseRLE_TooLarge reads files with large counts and few cells.
func TestParseRLE_TooLarge(t *testing.T) {
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

func TestParseRLE_ReadError(t *testing.T) {
	const text = "#N Glider\r\nx = 3, y = 3\r\nbo$2bo$\n"
	broken := errors.New("broken")
	// Each text ends with a whole line, and the next read fails. After part of a line, ParseRLE may
	// return a syntax error instead.
	for _, end := range []int{0, 11, 25, len(text)} {
		r := io.MultiReader(strings.NewReader(text[:end]), iotest.ErrReader(broken))
		if pattern, err := ParseRLE(r); !errors.Is(err, broken) {
			t.Errorf("read error after %d bytes: ParseRLE = %v, %v", end, pattern, err)
		}
	}
}

// FuzzParseRLE checks that ParseRLE either returns an error or a valid pattern. A valid pattern is
// equal after encoding and decoding.
func FuzzParseRLE(f *testing.F) {
	for _, seed := range []string{
		"#N Glider\n#O Author\n#C Text.\n#r 23/3\nx = 3, y = 3, rule = B3/S23\nbo$2bo$3o!\nafter",
		"#P -5 7\r\nx=3,y=3,rule=b3/s23\r\nbo$2\r\nbo$3o$!",
		"#CXRLE Pos=0,-1377 Gen=3480106827776\nx = 3, y = 3\n.A$2.A$3A!",
		"x = 2147483647, y = 2147483647\n2147483646$2147483646bo!",
		"o2147483646$o!",
		"\uFEFF#r 23/3\rx = 3, y = 3\rbx$2by$3z!\r", "#r 23/36\n3o!", "x = 0, y = 0\r",
		"4096o!", "0o!", "99999999999999999999o!", "1 2o!", "3!", "x = 0, y = 0\n!", "!", "#", "x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		pattern, err := ParseRLE(strings.NewReader(string(data)))
		if err != nil || len(pattern.Cells) > 1<<12 { // Large patterns take too long.
			return
		}
		for i, cell := range pattern.Cells {
			if cell.X < 0 || cell.Y < 0 || i > 0 && !before(pattern.Cells[i-1], cell) {
				t.Fatalf("cell %v after %v", cell, pattern.Cells[:i])
			}
		}
		text := encodeRLE(pattern)
		if again, err := ParseRLE(strings.NewReader(text)); err != nil || !reflect.DeepEqual(again, pattern) {
			t.Fatalf("read again from %q: %+v, %v, want %+v", text, again, err, pattern)
		}
	})
}

// before reports whether a precedes b, ordered by row and then by column.
func before(a, b Cell) bool { return a.Y < b.Y || a.Y == b.Y && a.X < b.X }

func TestBuiltInPatterns_Populations(t *testing.T) {
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
		if pattern.Name == "" {
			t.Errorf("%s has no name", name)
		}
		if again := mustParse(t, encodeRLE(pattern)); !reflect.DeepEqual(again, pattern) {
			t.Errorf("%s: read again as %+v, want %+v", name, again, pattern)
		}
	}
}

func TestLoadPattern_UnknownName(t *testing.T) {
	for _, name := range []string{"", "glider", "../rle", "acorn.rle"} {
		if _, err := LoadPattern(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("LoadPattern(%q) = %v, want fs.ErrNotExist", name, err)
		}
	}
}
