package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file exports each component as a table. An export format, such as Parquet, writes a table in
// batches of up to 4096 rows. Within a batch, it writes column by column:
//
//   - cellsOf splits the value of a component into fields.
//   - Cells.add appends one or two cells for each field. An entity has two cells: its index and its
//     generation. A constant becomes its name, and a slice or map becomes JSON.
//   - A [Rows] collects the cells of a batch.
//   - Table.Write of the export format writes the batch.
//
// The export formats are in another module, because their libraries are large: see format.go.

// tickColumn, indexColumn and generationColumn are the first columns of a table; a resource has
// only tickColumn.
const (
	tickColumn       = "tick"
	indexColumn      = "index"
	generationColumn = "generation"
)

// tableColumns returns the columns of the table of c, in the order of columnsOf. A column whose
// name is taken gets the suffix _. Names that differ only in letter case count as equal.
func tableColumns(c *inspect.Component) []Column {
	columns := []Column{{Name: tickColumn, Kind: layout.Uint64}}
	if !c.Resource {
		columns = append(columns, Column{Name: indexColumn, Kind: layout.Uint32}, Column{Name: generationColumn, Kind: layout.Uint32})
	}
	taken := map[string]bool{}
	for _, column := range columns {
		taken[column.Name] = true
	}
	add := func(name string, kind layout.Kind, nullable bool, of facet) {
		for taken[strings.ToLower(name)] { // SQL ignores letter case.
			name += "_"
		}
		taken[strings.ToLower(name)] = true
		columns = append(columns, Column{name, kind, nullable, of})
	}
	columnsOf("", c.Layout, func(name string, t *layout.Type) {
		pointer := t.Kind == layout.Pointer
		if pointer { // The column holds the pointed-to value, or null.
			t = t.Elem
		}
		switch {
		case t.Kind == layout.Entity && !pointer:
			add(name+"."+indexColumn, layout.Uint32, true, facetIndex)
			add(name+"."+generationColumn, layout.Uint32, true, facetGeneration)
		// Check constants before kinds, because a constant has the kind of its number.
		case len(t.Constants) > 0:
			add(name, layout.String, pointer, facetName)
		// Kinds below Complex64 are booleans, integers and floats.
		case t.Kind < layout.Complex64 || t.Kind == layout.String:
			add(name, t.Kind, pointer, facetWhole)
		default:
			add(name, layout.String, true, facetJSON)
		}
	})
	return columns
}

// newRows returns empty rows of a table.
func newRows(columns []Column) *Rows { return &Rows{Columns: make([]Cells, len(columns))} }

// clear removes all rows of r and keeps the capacity.
func (r *Rows) clear() {
	r.N = 0
	for i := range r.Columns {
		c := &r.Columns[i]
		c.Bits, c.Texts, c.Null = c.Bits[:0], c.Texts[:0], c.Null[:0]
	}
}

// add appends a row to the table of c: the tick, the entity e and the encoded row. A field of type
// Entity fills two columns: the index and the generation.
func (r *Rows) add(columns []Column, tick uint64, c *inspect.Component, e ecs.Entity, row []byte) error {
	v, err := c.Layout.Value(row)
	if err != nil {
		return err
	}
	r.N++
	r.Columns[0].Bits = append(r.Columns[0].Bits, tick)
	i := 1
	if !c.Resource {
		r.Columns[1].Bits = append(r.Columns[1].Bits, uint64(e.Index()))
		r.Columns[2].Bits = append(r.Columns[2].Bits, uint64(e.Generation()))
		i = 3
	}
	cellsOf(v, func(v layout.Value) {
		r.Columns[i].add(v, columns[i])
		// An entity fills the next column too, with its generation.
		if i++; columns[i-1].facet == facetIndex {
			r.Columns[i].add(v, columns[i])
			i++
		}
	})
	return nil
}

// add appends the value v to a column. The field of the column depends on its type:
//
//	Bits    integers, sign-extended; floats, as the bits of a float64; booleans, as 0 or 1
//	Texts   names of constants, strings, JSON
//	Null    only in nullable columns: a nil pointer, or entity 0, which means no entity
//
// Tables accept only UTF-8, so invalid bytes become U+FFFD.
func (c *Cells) add(v layout.Value, column Column) {
	// A null also has a value in Bits or Texts, so that the row has the same position in all
	// slices.
	if column.Nullable {
		c.Null = append(c.Null, v.IsNil() || column.facet >= facetIndex && v.Uint() == 0)
	}
	if v.Kind() == layout.Pointer && column.facet != facetJSON {
		// Replace the pointer by its target. Then Bits or Texts gets the zero value for a nil
		// pointer.
		var to layout.Value
		if !v.IsNil() {
			to = v.Index(0)
		}
		v = to
	}
	switch k := column.Kind; {
	case column.facet == facetIndex:
		c.Bits = append(c.Bits, uint64(ecs.Entity(v.Uint()).Index()))
	case column.facet == facetGeneration:
		c.Bits = append(c.Bits, uint64(ecs.Entity(v.Uint()).Generation()))
	case column.facet == facetName:
		c.Texts = append(c.Texts, v.String())
	case column.facet == facetJSON:
		c.Texts = append(c.Texts, string(v.AppendExact(nil)))
	case k == layout.String:
		c.Texts = append(c.Texts, strings.ToValidUTF8(v.Text(), "\uFFFD"))
	case k == layout.Bool:
		bit := uint64(0)
		if v.Bool() {
			bit = 1
		}
		c.Bits = append(c.Bits, bit)
	case k == layout.Float32 || k == layout.Float64:
		c.Bits = append(c.Bits, math.Float64bits(v.Float()))
	case k >= layout.Int8 && k <= layout.Int64:
		c.Bits = append(c.Bits, uint64(v.Int()))
	default:
		c.Bits = append(c.Bits, v.Uint())
	}
}

// writesTables reports whether the format of x is written by a [Format].
func (x *exportCmd) writesTables() bool { return x.format == "parquet" || x.format == "sqlite" }

// checkTables validates the flags for tables.
func (x *exportCmd) checkTables(c *call) error {
	switch {
	case x.exportFormat(c.app) == nil:
		return fail(exitUsage, "go -C cmd/ecsdump-tables install . # in the sources of Stet", "this program cannot write %s, which needs large libraries; use ecsdump-tables, which has all commands of ecsdump", x.format)
	case x.out == "":
		return c.misused("give the output with -o")
	case x.every == 0:
		return c.misused("--every must be at least 1")
	case c.flags.Changed("every") && len(c.args) < 2:
		return c.misused("--every is for a range")
	}
	return nil
}

// exportFormat returns the format of x, or nil if the program lacks the format.
func (x *exportCmd) exportFormat(a *app) *Format {
	for i := range a.formats {
		if a.formats[i].Name == x.format {
			return &a.formats[i]
		}
	}
	return nil
}

// tables writes tables of one state, or of the states of a range. For one state, it reads one
// column after the other, and never holds a whole column in memory. For a range, it moves a cursor
// from tick to tick.
//
// After damage in a range, tables removes the output, because a reader cannot detect missing rows.
func (x *exportCmd) tables(s *source) (err error) {
	if len(s.args) < 2 {
		// If a page cannot be read, readState calls this function again, with the whole state in
		// memory. This works because writeTables removes its output after an error.
		return s.readState(x.at, func(st *inspect.State) error {
			return x.writeTables(s, outline(st), func(w *tableWriter) error { return w.state(st) })
		})
	}
	states, err := s.statePath(s.args[1], "")
	if err != nil {
		return err
	}
	cursor, err := s.Cursor(s.ctx, states[0])
	if err != nil {
		return err
	}
	return x.writeTables(s, state{cursor.Image(), states[0]}, func(w *tableWriter) error {
		for i, seq := range states {
			if !states.sampled(i, x.every) {
				continue
			}
			if err := cursor.Seek(s.ctx, seq); err != nil {
				return err
			}
			if err := w.image(state{cursor.Image(), seq}); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeTables creates the output, and calls the function write, which fills the output. After an
// error, writeTables removes the output. The components that the flags name must exist in im.
func (x *exportCmd) writeTables(s *source, im state, write func(*tableWriter) error) error {
	if _, err := s.components(im, x.components, true); err != nil {
		return err
	}
	to, err := x.exportFormat(s.app).Create(x.out)
	if errors.Is(err, fs.ErrExist) {
		return outputExists(x.out)
	}
	if err != nil {
		return systemError(err)
	}
	w := &tableWriter{exportCmd: x, source: s, to: to, begun: map[string]*begunTable{}}
	err = write(w)
	// Close before removal, because some systems can only remove a closed file.
	err = cmp.Or(err, systemError(to.Close()))
	if err != nil {
		err = cmp.Or(err, os.RemoveAll(x.out))
	}
	return err
}

// A tableWriter writes the tables of states.
type tableWriter struct {
	*exportCmd
	*source
	to    Tables
	begun map[string]*begunTable // By component name.
}

// A begunTable is a table of the output, with its columns and a buffer for rows.
type begunTable struct {
	Table
	columns []Column
	layout  *layout.Type
	rows    *Rows
}

// table returns the table of c, or nil if the flags do not select c. It creates the table at the
// first state that has the component. If the layout of a component changes within a range, table
// returns an error.
func (w *tableWriter) table(im state, c *inspect.Component) (*begunTable, error) {
	if len(w.exportCmd.components) > 0 && !slices.Contains(w.exportCmd.components, c.Name) {
		return nil, nil
	}
	t := w.begun[c.Name]
	switch {
	case t == nil:
		t = &begunTable{columns: tableColumns(c), layout: c.Layout}
		t.rows = newRows(t.columns)
		var err error
		if t.Table, err = w.to.Begin(c.Name, t.columns); err != nil {
			return nil, systemError(err)
		}
		w.begun[c.Name] = t
	case !t.layout.Equal(c.Layout):
		return nil, fail(exitUsage, describe.Command("log", w.path), "the fields of %s changed at %v, when the store was converted: export a range that ends before it or begins there", c.Name, im)
	}
	return t, nil
}

// write writes rows and clears the buffer.
func (t *begunTable) write(rows *Rows) error {
	if rows.N == 0 {
		return nil
	}
	err := systemError(t.Write(rows))
	rows.clear()
	return err
}

// tableRows is the number of rows in a batch.
const tableRows = 4096

// image adds the rows of a state in memory, in row order.
func (w *tableWriter) image(im state) error {
	for _, c := range im.Components {
		t, err := w.table(im, c)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		for row := range c.Len() {
			e := ecs.Vacant
			if !c.Resource {
				if e = c.Entities()[row]; e == ecs.Vacant || !im.IsAlive(e) {
					// The row is a gap in an Indexed component. Or its entity is dead, and the
					// component does not rewind.
					continue
				}
			}
			if err := t.rows.add(t.columns, im.Tick, c, e, c.Row(row)); err != nil {
				return err
			}
			// Write now, because buffering all rows would double the memory of the component.
			if t.rows.N == tableRows {
				if err := cmp.Or(w.ctx.Err(), t.write(t.rows)); err != nil {
					return err
				}
			}
		}
		if err := t.write(t.rows); err != nil {
			return err
		}
	}
	return nil
}

// state adds the rows of a state, one column after the other, ordered by entity index. Progress
// counts rows.
func (w *tableWriter) state(st *inspect.State) error {
	im := outline(st)
	done, total := int64(0), int64(0)
	for _, c := range im.Components {
		total += int64(c.Len())
	}
	for _, c := range im.Components {
		t, err := w.table(im, c)
		switch {
		case err != nil:
			return err
		case t == nil:
		case c.Resource:
			err = t.resource(st, im, c)
		default:
			err = t.sweep(w.ctx, st, im, c, func(n int) {
				if done += int64(n); w.bar != nil {
					w.bar.Show("writing tables", done, total)
				}
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resource adds the row of a resource, if the state has a value for it.
func (t *begunTable) resource(st *inspect.State, im state, c *inspect.Component) error {
	if c.Len() == 0 {
		return nil
	}
	row, err := st.Row(c, 0)
	if err == nil {
		err = t.rows.add(t.columns, im.Tick, c, ecs.Vacant, row)
	}
	return cmp.Or(err, t.write(t.rows))
}

// sweep adds the rows of a component, ordered by entity index. Several goroutines convert spans of
// 4096 indices to rows. One goroutine writes the results in order.
func (t *begunTable) sweep(ctx context.Context, st *inspect.State, im state, c *inspect.Component, wrote func(n int)) error {
	return st.Sweep(ctx, 0, []*inspect.Component{c}, func() func(*inspect.Span) (any, error) {
		return func(of *inspect.Span) (any, error) {
			rows := newRows(t.columns)
			for i, e := range of.Entities {
				row, has, err := of.Row(0, i)
				if has && err == nil {
					err = rows.add(t.columns, im.Tick, c, e, row)
				}
				if err != nil {
					return nil, fmt.Errorf("%s of %v: %w", c.Name, e, err)
				}
			}
			return rows, nil
		}
	}, func(found any) error {
		rows := found.(*Rows)
		wrote(rows.N)
		return t.write(rows)
	})
}
