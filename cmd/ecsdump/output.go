package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// document prints doc as JSON.
func (a *app) document(doc any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

// line prints a line of text.
func (a *app) line(format string, args ...any) {
	// A bufio.Writer keeps its first error for Flush.
	_, _ = fmt.Fprintln(a.stdout, clean(fmt.Sprintf(format, args...)))
}

// A grid prints a table without borders. It holds at most gridRows rows at a
// time, so a table may be as long as it likes; columns only get wider.
//
// Package text knows how wide characters are; its sister package table takes 15
// µs a row, which is too much for tables of a million.
type grid struct {
	w      io.Writer
	cut    int
	widths []int
	right  []bool // Columns of numbers.
	rows   [][]string
	err    error
}

const gridRows = 1000

// gap is the space between columns.
const gap = "  "

// grid begins a table. A header that begins with ">" is that of a column of
// numbers; without headers the table has none.
func (a *app) grid(headers ...string) *grid {
	g := &grid{w: a.stdout, cut: a.width}
	var names []any
	for _, h := range headers {
		name, right := strings.CutPrefix(h, ">")
		names, g.right = append(names, name), append(g.right, right)
	}
	if len(names) > 0 {
		g.row(names...)
	}
	return g
}

// row adds a row.
func (g *grid) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = clean(fmt.Sprint(c))
		g.widen(i, row[i])
	}
	if g.rows = append(g.rows, row); len(g.rows) == gridRows {
		g.flush()
	}
}

// widen makes column i wide enough for cell.
func (g *grid) widen(i int, cell string) {
	for i >= len(g.widths) {
		g.widths = append(g.widths, 0)
	}
	g.widths[i] = max(g.widths[i], textWidth(cell))
}

// text adds a line that keeps to no columns.
func (g *grid) text(format string, args ...any) {
	g.flush()
	g.write(clean(fmt.Sprintf(format, args...)))
}

// end prints what is left and returns the first error.
func (g *grid) end() error {
	g.flush()
	return g.err
}

// flush prints the rows there are.
func (g *grid) flush() {
	var b strings.Builder
	for _, row := range g.rows {
		b.Reset()
		for i, cell := range row {
			pad := strings.Repeat(" ", g.widths[i]-textWidth(cell))
			if i < len(g.right) && g.right[i] {
				cell, pad = pad, cell
			}
			b.WriteString(cell + pad + gap)
		}
		g.write(strings.TrimRight(b.String(), " "))
	}
	g.rows = g.rows[:0]
}

// write prints a line.
func (g *grid) write(line string) {
	if _, err := io.WriteString(g.w, cutTo(g.cut, line)+"\n"); err != nil && g.err == nil {
		g.err = err
	}
}

// textWidth returns how many columns of a terminal s takes.
func textWidth(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return text.StringWidth(s)
		}
	}
	return len(s)
}

// cutTo cuts s to a width, if it is not 0.
func cutTo(width int, s string) string {
	if width == 0 || textWidth(s) <= width {
		return s
	}
	return text.Trim(s, width-1) + "…"
}

// clean replaces what could play tricks on a terminal. Names come from files
// that anybody may have written.
func clean(s string) string {
	plain := func(r rune) bool { return r == ' ' || r != utf8.RuneError && unicode.IsPrint(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// size returns a size for people: "1.5 KiB".
func size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	x, unit := float64(bytes)/1024, 0
	for ; x >= 1024 && unit < 3; unit++ {
		x /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", x, "KMGT"[unit])
}

// count returns n with its noun: "1 row", "2 rows".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// lineWidth returns how many columns a line printed to w may have; 0: any.
func lineWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(*os.File); ok {
		return terminalWidth(f)
	}
	return 0
}
