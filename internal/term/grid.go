package term

import (
	"fmt"
	"strings"
)

// A Grid prints a table without borders. It holds at most gridRows rows at a
// time, so a table may be as long as it likes; columns only get wider.
//
// A column in which nothing stands is left out, with its heading; where something stands in it
// later, the headings come again. A table that is wider than the lines may be has columns that
// give way, see [Out.Grid]; if these do not suffice, the columns that are left over come below, behind
// the first one again. So no column is ever out of sight.
//
// It is our own, since tables of a million rows are printed: package table of go-pretty
// takes 15 µs a row.
type Grid struct {
	out     *Out
	columns []column
	rows    [][]Styled
	begun   bool // There was a row.
}

// A column is one of a Grid.
type column struct {
	heading string
	width   int  // Of its widest cell; 0: nothing stands in it.
	right   bool // It has numbers.
	cut     bool // It gives way: what has no room is cut off,
	fold    bool // or stands on the next lines.
	headed  bool // Its heading was printed.
}

// gridRows is how many rows decide at once how wide columns are.
const gridRows = 1000

// gap is the space between columns.
const gap = "  "

// leastWidth is how far a column gives way at most.
const leastWidth = 12

// Grid begins a table. Before a heading, ">" says that the column has numbers, "<" that it is cut if
// the table is too wide, and "~" that it is folded. Without headings the table has none.
func (o *Out) Grid(headings ...string) *Grid {
	g := &Grid{out: o}
	for _, h := range headings {
		name := strings.TrimLeft(h[:min(1, len(h))], "><~") + h[min(1, len(h)):]
		kind := strings.TrimSuffix(h, name)
		g.columns = append(g.columns, column{heading: Clean(name), right: kind == ">", cut: kind == "<", fold: kind == "~"})
	}
	return g
}

// Table prints a table with a row of cells for each of items.
func Table[T any](o *Out, items []T, cells func(T) []any, headings ...string) {
	g := o.Grid(headings...)
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
	g.begun = true
	if g.rows = append(g.rows, row); len(g.rows) == gridRows {
		g.Flush()
	}
}

// Widen makes column i wide enough for cell.
func (g *Grid) Widen(i int, cell string) {
	for i >= len(g.columns) {
		g.columns = append(g.columns, column{})
	}
	g.columns[i].width = max(g.columns[i].width, Width(cell))
}

// Text adds a line that keeps to no columns.
func (g *Grid) Text(format string, args ...any) { g.StyledText(Plain, format, args...) }

// StyledText is text in a style.
func (g *Grid) StyledText(s Style, format string, args ...any) {
	g.Flush()
	for _, line := range foldLine(Clean(fmt.Sprintf(format, args...)), g.out.Width, true) {
		g.write([]Styled{{s, line}})
	}
}

// Flush prints the rows there are, below headings: at the end of the table, or before something else.
func (g *Grid) Flush() {
	var shown []int // Columns.
	more := false   // Of them than there were.
	for i := range g.columns {
		if c := &g.columns[i]; c.width > 0 || c.headed || !g.begun {
			shown, more, c.headed = append(shown, i), more || !c.headed, true
		}
	}
	widths := g.fit(shown)
	blocks := g.blocks(shown, widths)
	for n, block := range blocks {
		if more || len(blocks) > 1 && len(g.rows) > 0 {
			if n > 0 {
				g.out.Print("\n")
			}
			g.headings(block, widths)
		}
		for _, row := range g.rows {
			g.row(row, block, widths)
		}
	}
	g.rows = g.rows[:0]
}

// fit returns how wide columns are, by their numbers: those of shown as far as there is room.
func (g *Grid) fit(shown []int) (widths []int) {
	widths = make([]int, len(g.columns))
	over := -g.out.Width - len(gap)
	for _, i := range shown {
		c := &g.columns[i]
		if widths[i] = max(c.width, Width(c.heading)); g.out.Width > 0 && (c.cut || c.fold) {
			widths[i] = min(widths[i], max(g.out.Width, Width(c.heading), leastWidth)) // Some cells are very long.
		}
		over += widths[i] + len(gap)
	}
	for ; over > 0 && g.out.Width > 0; over-- {
		widest := -1
		for _, i := range shown {
			if c := &g.columns[i]; (c.cut || c.fold) && widths[i] > max(Width(c.heading), leastWidth) && (widest < 0 || widths[i] >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// blocks parts columns so that each block fits into a line, if it can. All begin with the first
// column, which says what a row is about.
func (g *Grid) blocks(shown, widths []int) (blocks [][]int) {
	room := 0
	for n, i := range shown {
		if room -= widths[i] + len(gap); n == 0 || g.out.Width > 0 && room < 0 && len(blocks[len(blocks)-1]) > 1 {
			blocks, room = append(blocks, nil), g.out.Width+len(gap)-widths[i]-len(gap)
			if n > 0 {
				blocks[len(blocks)-1] = []int{shown[0]}
				room -= widths[shown[0]] + len(gap)
			}
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], i)
	}
	return blocks
}

// headings prints the headings of some columns, if the table has any.
func (g *Grid) headings(block, widths []int) {
	row, has := make([]Styled, len(g.columns)), false
	for i, c := range g.columns {
		row[i], has = Heading.Of(c.heading), has || c.heading != ""
	}
	if has {
		g.row(row, block, widths)
	}
}

// row prints what some columns have of a row: on several lines where one is folded.
func (g *Grid) row(row []Styled, block, widths []int) {
	for n, lines := 0, 1; n < lines; n++ {
		var line []Styled
		for _, i := range block {
			cell := Styled{}
			if i < len(row) {
				cell = row[i]
			}
			if Width(cell.text) > widths[i] && g.columns[i].fold {
				folded := fold(cell.text, widths[i], true)
				lines, cell.text = max(lines, len(folded)), strings.Join(folded[min(n, len(folded)):min(n+1, len(folded))], "")
			} else if n > 0 {
				cell.text = ""
			} else if Width(cell.text) > widths[i] {
				cell.text = cutTo(widths[i], cell.text)
			}
			pad := Styled{Plain, strings.Repeat(" ", widths[i]-Width(cell.text))}
			if g.columns[i].right {
				cell, pad = pad, cell
			}
			line = append(line, cell, pad, Styled{Plain, gap})
		}
		g.write(trimRight(line))
	}
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

// cutPieces cuts the pieces of a line to a width; with width 0 it returns all of them. The caller
// adds styles afterwards, because escape sequences have no width and must not be cut.
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
