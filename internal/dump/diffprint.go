package dump

import (
	"fmt"
	"strconv"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// print prints diff for people.
func (d *differ) print(a *app, sides [2]diffSide, diff *persist.Diff) error {
	a.Line("--- %v", sides[0])
	a.Line("+++ %v", sides[1])
	g := a.Grid()
	for _, s := range diff.Schema {
		diffLine(g, "%s", schemaLine(s))
	}
	var more int
	if !d.stat {
		all := differences(diff, d.order)
		shown, left := d.limit.of(len(all))
		for _, x := range all[:shown] {
			if err := x.print(g); err != nil {
				return err
			}
		}
		more = left
	}
	g.Flush()
	if more > 0 {
		a.Line("%d more of %s; --limit 0 prints all", more, term.Count(more+int(d.limit), "difference", "differences"))
	}
	return d.summary(a, diff)
}

// summary counts what differs, or says that nothing does.
func (d *differ) summary(a *app, diff *persist.Diff) error {
	if diff.Same() {
		a.Line("no differences")
		return nil
	}
	if !d.stat {
		a.Line("")
	}
	g := a.Grid("COMPONENT", ">ADDED", ">REMOVED", ">CHANGED", ">MOVED")
	if r := diff.Registry; len(r.Created)+len(r.Destroyed)+len(r.Moved) > 0 {
		g.Row("(entities)", len(r.Created), len(r.Destroyed), "", len(r.Moved))
	}
	for _, c := range diff.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			g.Row(c.Name, added, removed, changed, moved)
		}
	}
	if n := diff.Registry.Free; n > 0 {
		g.Text("%s without an entity: in generation, or when it is reused", term.Count(n, "index differs", "indices differ"))
	}
	g.Flush()
	return nil
}

// schemaLine returns how a type differs: "~ Health.Now: int16 → int64".
func schemaLine(s persist.SchemaDiff) string {
	what := "type " + s.Component
	if s.Field != "" {
		what += "." + s.Field
	}
	switch {
	case s.Old == "":
		return "+ " + what + ": " + s.New
	case s.New == "":
		return "- " + what + ": " + s.Old
	}
	return "~ " + what + ": " + s.Old + " → " + s.New
}

// print prints the lines of x: one for each field that differs.
func (x difference) print(g *term.Grid) error {
	switch {
	case x.change == "created":
		diffLine(g, "+ %v", x.entity)
		return nil
	case x.change == "destroyed":
		diffLine(g, "- %v", x.entity)
		return nil
	case x.component == nil:
		diffLine(g, "> %v: row %d → %d", x.entity, x.row.OldRow, x.row.NewRow)
		return nil
	case x.change == "moved":
		diffLine(g, "> %s: row %d → %d", x.name(), x.row.OldRow, x.row.NewRow)
		return nil
	case x.change == "changed":
		return x.printFields(g)
	}
	before, after, err := x.values()
	if err != nil {
		return err
	}
	if x.change == "added" {
		diffLine(g, "+ %s", x.whole(after))
	} else {
		diffLine(g, "- %s", x.whole(before))
	}
	return nil
}

// name returns what x is about: "12v3.Position", or the name of a resource.
func (x difference) name() string {
	if x.component.Resource {
		return x.component.Name
	}
	return x.entity.String() + "." + x.component.Name
}

// whole returns the row of x on one line: 12v3.Position{X:1 Y:2}, 12v3.Health=5,
// 12v3.Frozen.
func (x difference) whole(v layout.Value) string {
	return labelled(valueDoc{Name: x.name(), Kind: rowKind(v), Value: v})
}

// rowKind returns "tag" for values of no size.
func rowKind(v layout.Value) string {
	if v.Type().Width() == 0 {
		return "tag"
	}
	return "component"
}

// values returns the rows of x; a zero Value where there is none.
func (x difference) values() (before, after layout.Value, err error) {
	if !x.row.Added() {
		if before, err = x.component.Old.Value(x.component.OldRow(x.row)); err != nil {
			return before, after, err
		}
	}
	if !x.row.Removed() {
		after, err = x.component.New.Value(x.component.NewRow(x.row))
	}
	return before, after, err
}

func (x difference) printFields(g *term.Grid) error {
	fields, err := x.component.Fields(x.row)
	if err != nil {
		return err
	}
	for _, f := range fields {
		name := x.name() + dotted(f.Path)
		switch {
		case f.Old.Kind() == 0:
			diffLine(g, "+ %s: %v", name, f.New)
		case f.New.Kind() == 0:
			diffLine(g, "- %s: %v", name, f.Old)
		default:
			before, after := versus(f.Old, f.New)
			diffLine(g, "~ %s: %s → %s", name, before, after)
		}
	}
	return nil
}

// dotted returns path as it follows a name.
func dotted(path string) string {
	if path == "" || path[0] == '[' {
		return path
	}
	return "." + path
}

// versus returns two values that differ as texts that do.
func versus(a, b layout.Value) (before, after string) {
	before, after = a.String(), b.String()
	if before != after {
		return before, after
	}
	if a.Kind() != b.Kind() {
		return before + " " + a.Kind().String(), after + " " + b.Kind().String()
	}
	if a.Kind() == layout.Bytes {
		return versusBytes(before, a.Text(), b.Text())
	}
	return string(a.AppendExact(nil)), string(b.AppendExact(nil))
}

// versusBytes tells apart long bytes that begin with the same, which is shown.
func versusBytes(shown, a, b string) (before, after string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	show := func(s string) string {
		if at == len(s) {
			return shown + " that end there"
		}
		return "0x" + strconv.FormatUint(uint64(s[at]), 16)
	}
	return shown + " with byte " + strconv.Itoa(at) + " " + show(a), show(b)
}

// diffLine prints a line in the colour of the sign it begins with.
func diffLine(g *term.Grid, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	g.StyledText(map[byte]term.Style{'+': term.Added, '-': term.Removed, '~': term.Changed, '>': term.Faint}[text[0]], "%s", text)
}
