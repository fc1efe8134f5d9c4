package dump

import (
	"cmp"
	"encoding/csv"

	"github.com/stet-ecs/stet/internal/query"
)

// The commands panel and plot print values of expressions at each tick, as text or as CSV for other
// programs. In CSV, a value is written in full, a constant is a number, and a missing value is an
// empty cell.

// A sampling has the arguments and flags that panel and plot share.
type sampling struct {
	texts  []string // The expressions.
	span   string   // A..B, or "" if the command line has no range.
	at     string
	every  uint
	format string
}

// flags declares the shared flags. The arguments are the help text of --every and the name of the
// default format.
func (p *sampling) flags(f flags, every, text string) {
	f.number(&p.every, "every", "", 1, every)
	oneOf(f.FlagSet, &p.format, "format", "format", text+" or csv", text, "csv")
	f.point(&p.at)
}

// arguments parses the command line. The last argument is the range if it has the form A..B. CSV
// has no default limit.
func (p *sampling) arguments(c *call) error {
	p.texts = c.args[1:]
	if last := len(p.texts) - 1; last >= 0 && isRange(p.texts[last]) {
		p.texts, p.span = p.texts[:last], p.texts[last]
	}
	switch {
	case len(p.texts) == 0:
		return c.misused("usage: ecsdump %s", c.flags.cmd.Use)
	case p.span != "" && c.flags.Changed("at"):
		return c.misused("give either --at or a range")
	case p.every == 0:
		return c.misused("--every must be at least 1")
	case p.format != "csv":
		return nil
	case c.json:
		return c.misused("give either --format csv or --json")
	}
	return c.flags.unlimited()
}

// writeValues writes rows as CSV, below the names of the columns. The function cells returns the
// first cells of a row, which name the state, and the values of the expressions.
func writeValues[T any](a *app, columns []string, rows walk[T], cells func(row T) (place []string, answers []query.Answer)) error {
	out := csv.NewWriter(a.Out)
	_ = out.Write(columns) // The writer stores its first error.
	err := rows(func(r T) error {
		line, answers := cells(r)
		for _, v := range answers {
			text := ""
			if !v.Nothing() {
				text = v.String()
			}
			line = append(line, text)
		}
		_ = out.Write(line)
		return a.Broken()
	})
	out.Flush()
	return cmp.Or(err, out.Error())
}
