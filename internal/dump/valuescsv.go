package dump

import (
	"cmp"
	"encoding/csv"

	"github.com/stet-ecs/stet/internal/query"
)

// The commands panel and plot print values of expressions at each tick, as text or as CSV for other
// programs. In CSV, a value is written in full, a constant is a number, and a missing value is an
// empty cell.

// valuesFormat declares the flag --format. The argument text is the name of the default format.
func (f flags) valuesFormat(format *string, text string) {
	oneOf(f.FlagSet, format, "format", "format", text+" or csv", text, "csv")
}

// checkValuesFormat validates the flag --format. CSV has no default limit.
func (c *call) checkValuesFormat(format string) error {
	switch {
	case format != "csv":
		return nil
	case c.json:
		return c.misused("give either --format csv or --json")
	}
	return c.flags.unlimited()
}

// A valuesRow is a row of CSV: cells that name the state, and then the values of the expressions.
type valuesRow struct {
	place   []string
	answers []query.Answer
}

// writeValues writes rows as CSV, below the names of the columns.
func writeValues(a *app, columns []string, rows walk[valuesRow]) error {
	out := csv.NewWriter(a.Out)
	_ = out.Write(columns) // The writer stores its first error.
	err := rows(func(r valuesRow) error {
		cells := r.place
		for _, v := range r.answers {
			text := ""
			if !v.Nothing() {
				text = v.String()
			}
			cells = append(cells, text)
		}
		_ = out.Write(cells)
		return a.Broken()
	})
	out.Flush()
	return cmp.Or(err, out.Error())
}
