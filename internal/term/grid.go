package term

import (
	"fmt"
	"strings"
)

// A Grid prints a table without borders. It holds at most gridRows rows at a
// time, so a table may be as long as it likes; columns only get wider.
//
// It is our own, since tables of a million rows are printed: package table of go-pretty
// takes 15 µs a row.
type Grid struct {
	out    *Out
	widths []int
	right  []bool // Columns of numbers.
	rows   [][]Styled
}

// gridRows is how many rows decide at once how wide columns are.
const gridRows = 1000

// gap is the space between columns.
const gap = "  "

// Grid begins a table. A header that begins with ">" is that of a column of
// numbers; without headers the table has none.
func (o *Out) Grid(headers ...string) *Grid {
	g := &Grid{out: o}
	var names []any
	for _, h := range headers {
		name, right := strings.CutPrefix(h, ">")
		names, g.right = append(names, Heading.Of(name)), append(g.right, right)
	}
	if len(names) > 0 {
		g.Row(names...)
	}
	return g
}

// Table prints a table with a row of cells for each of items.
func Table[T any](o *Out, items []T, cells func(T) []any, headers ...string) {
	g := o.Grid(headers...)
	for _, item := range items {
		g.Row(cells(item)...)
	}
	g.Flush()
}

// Row adds a row. A cell may be [Styled].
func (g *Grid) Row(cells ...any) {
	row := make([]Styled, len(cells))
	for i, c := range cells {
		row[i], _ = c.(Styled)
		row[i].text = Clean(fmt.Sprint(c))
		g.Widen(i, row[i].text)
	}
	if g.rows = append(g.rows, row); len(g.rows) == gridRows {
		g.Flush()
	}
}

// Widen makes column i wide enough for cell.
func (g *Grid) Widen(i int, cell string) {
	for i >= len(g.widths) {
		g.widths = append(g.widths, 0)
	}
	g.widths[i] = max(g.widths[i], Width(cell))
}

// Text adds a line that keeps to no columns.
func (g *Grid) Text(format string, args ...any) { g.StyledText(Plain, format, args...) }

// StyledText is text in a style.
func (g *Grid) StyledText(s Style, format string, args ...any) {
	g.Flush()
	g.write([]Styled{{s, Clean(fmt.Sprintf(format, args...))}})
}

// Flush prints the rows there are: at the end of the table, or before something else.
func (g *Grid) Flush() {
	for _, row := range g.rows {
		var line []Styled
		for i, cell := range row {
			pad := Styled{Plain, strings.Repeat(" ", g.widths[i]-Width(cell.text))}
			if i < len(g.right) && g.right[i] {
				cell, pad = pad, cell
			}
			line = append(line, cell, pad, Styled{Plain, gap})
		}
		g.write(trimRight(line))
	}
	g.rows = g.rows[:0]
}

// trimRight takes the spaces off the end of a line.
func trimRight(line []Styled) []Styled {
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
func (g *Grid) write(pieces []Styled) {
	var b strings.Builder
	for _, p := range cutPieces(g.out.Width, pieces) {
		b.WriteString(p.style.render(p.text, g.out.Colour))
	}
	b.WriteByte('\n')
	g.out.Print(b.String())
}

// cutPieces cuts a line to a width, if it is not 0. Styles are put around pieces behind that, as
// their escape sequences have no width and must not be cut.
func cutPieces(width int, pieces []Styled) []Styled {
	if width == 0 {
		return pieces
	}
	whole := 0
	for _, p := range pieces {
		whole += Width(p.text)
	}
	for i, p := range pieces {
		w := Width(p.text)
		if w > width || w == width && whole > width {
			pieces[i].text = cutTo(width, p.text+"…") // Longer than width, whatever p is.
			return pieces[:i+1]
		}
		width, whole = width-w, whole-w
	}
	return pieces
}
