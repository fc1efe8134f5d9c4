package dump

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
)

// print prints text as it is.
func (a *app) print(text ...string) {
	for _, t := range text {
		_, _ = a.stdout.WriteString(t) // It keeps its first error: see broken.
	}
}

// broken returns why standard output takes no more, or nil.
func (a *app) broken() error {
	_, err := a.stdout.Write(nil)
	return err
}

// line prints a line of text.
func (a *app) line(format string, args ...any) { a.styledLine(plain, format, args...) }

// A grid prints a table without borders. It holds at most gridRows rows at a
// time, so a table may be as long as it likes; columns only get wider.
//
// Package text knows how wide characters are; its sister package table takes 15
// µs a row, which is too much for tables of a million.
type grid struct {
	w      io.Writer
	cut    int
	colour bool
	widths []int
	right  []bool // Columns of numbers.
	rows   [][]styled
	err    error
}

const gridRows = 1000

// gap is the space between columns.
const gap = "  "

// grid begins a table. A header that begins with ">" is that of a column of
// numbers; without headers the table has none.
func (a *app) grid(headers ...string) *grid {
	g := &grid{w: a.stdout, cut: a.width, colour: a.colour}
	var names []any
	for _, h := range headers {
		name, right := strings.CutPrefix(h, ">")
		names, g.right = append(names, heading.of(name)), append(g.right, right)
	}
	if len(names) > 0 {
		g.row(names...)
	}
	return g
}

// row adds a row. A cell may be [styled].
func (g *grid) row(cells ...any) {
	row := make([]styled, len(cells))
	for i, c := range cells {
		row[i], _ = c.(styled)
		row[i].text = clean(fmt.Sprint(c))
		g.widen(i, row[i].text)
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
func (g *grid) text(format string, args ...any) { g.styledText(plain, format, args...) }

// styledText is text in a style.
func (g *grid) styledText(s style, format string, args ...any) {
	g.flush()
	g.write([]styled{{s, clean(fmt.Sprintf(format, args...))}})
}

// end prints what is left and returns the first error. Of no grid there is none.
func (g *grid) end() error {
	if g == nil {
		return nil
	}
	g.flush()
	return g.err
}

// flush prints the rows there are.
func (g *grid) flush() {
	for _, row := range g.rows {
		var line []styled
		for i, cell := range row {
			pad := styled{plain, strings.Repeat(" ", g.widths[i]-textWidth(cell.text))}
			if i < len(g.right) && g.right[i] {
				cell, pad = pad, cell
			}
			line = append(line, cell, pad, styled{plain, gap})
		}
		g.write(trimRight(line))
	}
	g.rows = g.rows[:0]
}

// trimRight takes the spaces off the end of a line.
func trimRight(line []styled) []styled {
	for len(line) > 0 {
		last := &line[len(line)-1]
		if last.text = strings.TrimRight(last.text, " "); last.text != "" {
			break
		}
		line = line[:len(line)-1]
	}
	return line
}

// write prints a line of pieces.
func (g *grid) write(pieces []styled) {
	var b strings.Builder
	for _, p := range cutPieces(g.cut, pieces) {
		b.WriteString(p.style.render(p.text, g.colour))
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(g.w, b.String()); err != nil && g.err == nil {
		g.err = err
	}
}

// cutPieces cuts a line to a width, if it is not 0.
func cutPieces(width int, pieces []styled) []styled {
	if width == 0 {
		return pieces
	}
	whole := 0
	for _, p := range pieces {
		whole += textWidth(p.text)
	}
	for i, p := range pieces {
		w := textWidth(p.text)
		if w > width || w == width && whole > width {
			pieces[i].text = cutTo(width, p.text+"…") // Longer than width, whatever p is.
			return pieces[:i+1]
		}
		width, whole = width-w, whole-w
	}
	return pieces
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
