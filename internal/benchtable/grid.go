package main

import (
	"slices"
	"strings"
)

// A grid is a table of the results with one unit. The last element of a result's name is the
// column, and the rest is the row. Rows and columns have the order of the results.
type grid struct {
	unit    string
	rows    []string
	columns []string
	cells   map[[2]string][]float64 // The values by row and column.
}

// grids sorts results into a grid for every unit.
func grids(results []result) (all []*grid) {
	for _, r := range results {
		for _, m := range r.metrics {
			at := slices.IndexFunc(all, func(g *grid) bool { return g.unit == m.unit })
			if at < 0 {
				at = len(all)
				all = append(all, newGrid(m.unit))
			}
			all[at].add(r.name, m.value)
		}
	}
	return all
}

func newGrid(unit string) *grid {
	return &grid{unit: unit, cells: make(map[[2]string][]float64)}
}

func (g *grid) add(name string, v float64) {
	row, column := name, ""
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		row, column = name[:i], name[i+1:]
	}
	if !slices.Contains(g.rows, row) {
		g.rows = append(g.rows, row)
	}
	if !slices.Contains(g.columns, column) {
		g.columns = append(g.columns, column)
	}
	cell := [2]string{row, column}
	g.cells[cell] = append(g.cells[cell], v)
}

// cell returns the median of the values at a row and a column, or "" without values.
func (g *grid) cell(row, column string) string {
	values := slices.Sorted(slices.Values(g.cells[[2]string{row, column}]))
	if len(values) == 0 {
		return ""
	}
	return number(values[len(values)/2])
}

// renderGrids returns the grids as Markdown.
func (t *table) renderGrids() string {
	var tables []string
	for _, g := range grids(t.results) {
		tables = append(tables, g.render())
	}
	return strings.Join(tables, "\n\n")
}

func (g *grid) render() string {
	line := func(first string, others []string) string {
		return "| " + strings.Join(append([]string{first}, others...), " | ") + " |"
	}
	lines := []string{line(g.unit, g.columns), "| --- |" + strings.Repeat(" ---:|", len(g.columns))}
	for _, name := range g.rows {
		var cells []string
		for _, column := range g.columns {
			cells = append(cells, g.cell(name, column))
		}
		lines = append(lines, line(name, cells))
	}
	return strings.Join(lines, "\n")
}
