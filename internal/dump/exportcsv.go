package dump

import (
	"context"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// flattest is the longest array that has a column for each element.
const flattest = 16

// exportCSV writes a table of the rows of c: the entity, then a column for each
// field, structs and short arrays taken apart.
func exportCSV(ctx context.Context, w io.Writer, c *persist.Component) error {
	out := csv.NewWriter(w)
	if err := out.Write(append([]string{"entity"}, columnNames(nil, "", c.Layout)...)); err != nil {
		return err
	}
	for row := range c.Len() {
		if err := ctx.Err(); err != nil {
			return err
		}
		entity := ""
		if !c.Resource {
			if c.Entities[row] == ecs.Vacant {
				continue
			}
			entity = c.Entities[row].String()
		}
		v, err := c.Value(row)
		if err != nil {
			return err
		}
		if err := out.Write(cells([]string{entity}, v)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// flat reports whether the parts of t have columns of their own.
func flat(t *layout.Type) bool {
	return t.Kind == layout.Struct || t.Kind == layout.Array && t.Len <= flattest
}

// columnNames appends the names of the columns of t: X, Info.Range, Slots[1].
func columnNames(names []string, path string, t *layout.Type) []string {
	switch {
	case t.Kind == layout.Struct:
		for _, f := range t.Fields {
			name := f.Name
			if path != "" {
				name = path + "." + name
			}
			names = columnNames(names, name, f.Type)
		}
		return names
	case flat(t):
		for i := range t.Len {
			names = columnNames(names, path+"["+strconv.Itoa(i)+"]", t.Elem)
		}
		return names
	case path == "":
		path = "value"
	}
	return append(names, path)
}

// cells appends the columns of v. Strings are as they are, nil is empty, and what
// has parts but no columns for them is JSON.
func cells(row []string, v layout.Value) []string {
	switch k := v.Kind(); {
	case flat(v.Type()):
		for i := range v.Len() {
			row = cells(row, v.Index(i))
		}
		return row
	case v.IsNil():
		return append(row, "")
	case k == layout.String:
		return append(row, v.Text())
	case k < layout.Complex64 || k == layout.Entity:
		return append(row, v.String())
	}
	return append(row, string(v.AppendExact(nil)))
}
