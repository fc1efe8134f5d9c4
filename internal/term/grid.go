package term

import (
	"fmt"
	"strings"
)

// A Grid prints a table without borders. It buffers up to gridRows rows and computes the column
// widths from them. So a table can have any length. A column may become wider later, but never
// narrower.
//
// A column without text is left out. If a later row has text in this column, the headings are
// printed again, with this column.
//
// If a table is too wide, some columns are cut or folded; see [Out.Grid]. If that is not enough,
// the remaining columns are printed below the first ones, after a copy of the first column.
type Grid struct {
	out     *Out
	columns []column
	rows    [][]Styled
	begun   bool // Whether a row was added.
}

// A column is a column of a Grid.
type column struct {
	heading string
	width   int  // Width of the widest cell. 0 means that the column is empty.
	right   bool // True if the cells are aligned to the right, as numbers are.
	cut     bool // True if cells that do not fit are cut.
	fold    bool // True if cells that do not fit continue on the next lines.
	headed  bool // True if the heading was printed.
}

// gridRows is the number of rows that are buffered to compute the column widths.
const gridRows = 1000

// gap is the space between columns.
const gap = "  "

// leastWidth is the smallest width to which a column is narrowed.
const leastWidth = 12

// Grid begins a table. Without arguments, it has no headings. The first character of a heading can
// be a flag:
//
//	>  align the column to the right
//	<  cut the cells if the table is too wide
//	~  fold the cells if the table is too wide
func (o *Out) Grid(headings ...string) *Grid {
	g := &Grid{out: o}
	for _, h := range headings {
		name := strings.TrimLeft(h[:min(1, len(h))], "><~") + h[min(1, len(h)):]
		kind := strings.TrimSuffix(h, name)
		g.columns = append(g.columns, column{heading: Clean(name), right: kind == ">", cut: kind == "<", fold: kind == "~"})
	}
	return g
}

// Table prints a table with a row for each of items.
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

// Widen makes column i at least as wide as cell.
func (g *Grid) Widen(i int, cell string) {
	for i >= len(g.columns) {
		g.columns = append(g.columns, column{})
	}
	g.columns[i].width = max(g.columns[i].width, Width(cell))
}

// Text adds a line outside the columns.
func (g *Grid) Text(format string, args ...any) { g.StyledText(Plain, format, args...) }

// StyledText is Text in a style.
func (g *Grid) StyledText(s Style, format string, args ...any) {
	g.Flush()
	for _, line := range foldLine(Clean(fmt.Sprintf(format, args...)), g.out.Width, true) {
		g.write([]Styled{{s, line}})
	}
}

// Flush prints the buffered rows, with the headings if necessary. Call it at the end of the table,
// and before other output.
func (g *Grid) Flush() {
	var shown []int // Indices of the columns to print.
	// True if a column is printed for the first time, so the headings are printed.
	more := false
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

// fit returns the widths of all columns. The argument has the indices of the shown columns. fit
// narrows these columns until they fit into a line, or cannot be narrower.
func (g *Grid) fit(shown []int) (widths []int) {
	widths = make([]int, len(g.columns))
	over := -g.out.Width - len(gap)
	for _, i := range shown {
		c := &g.columns[i]
		if widths[i] = max(c.width, Width(c.heading)); g.out.Width > 0 && (c.cut || c.fold) {
			// The loop below takes one step for each column of the terminal that is too much. So
			// limit the width of very long cells first.
			widths[i] = min(widths[i], max(g.out.Width, Width(c.heading), leastWidth))
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

// blocks splits the columns with the given indices into blocks. If possible, each block fits into a
// line. Every block begins with the first column, because that column names the row.
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

// headings prints the headings of the columns in block, if the table has headings.
func (g *Grid) headings(block, widths []int) {
	row, has := make([]Styled, len(g.columns)), false
	for i, c := range g.columns {
		row[i], has = Heading.Of(c.heading), has || c.heading != ""
	}
	if has {
		g.row(row, block, widths)
	}
}

// row prints the cells of a row in the columns of block. A folded cell takes several lines.
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

// trimRight removes trailing spaces from a line.
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

// write prints a line.
func (g *Grid) write(pieces []Styled) {
	var b strings.Builder
	for _, p := range cutPieces(g.out.Width, pieces) {
		b.WriteString(p.style.render(p.text, g.out.Colour))
	}
	b.WriteByte('\n')
	g.out.Print(b.String())
}

// cutPieces cuts a line to a width; 0 is unlimited. Styles are added after the cut, because escape
// sequences have no width and must not be cut.
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
			// This piece may fit exactly, while a later piece does not. Append "…", so that cutTo
			// cuts the piece.
			pieces[i].text = cutTo(width, p.text+"…")
			return pieces[:i+1]
		}
		width, whole = width-w, whole-w
	}
	return pieces
}
