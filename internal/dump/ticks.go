package dump

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A logTick is a record that log lists.
type logTick struct {
	commitDoc
	entry journal.Entry
}

// ticks iterates over the ticks of entries that the filter lets through, in the order
// in which they are listed.
func (l *logger) ticks(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[*logTick, error] {
	if l.reverse {
		return l.backward(ctx, s, entries)
	}
	return l.forward(ctx, s, entries)
}

// backwardBlock is how many ticks are read forward before they are listed backward. A
// cursor only goes forward at the cost of what it reads; each step back may begin at a
// snapshot again.
const backwardBlock = 64

// backward is forward from the last to the first.
func (l *logger) backward(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[*logTick, error] {
	return visited(func(visit func(*logTick) error) error {
		for last := len(entries); last > 0; last -= backwardBlock {
			var block []*logTick
			for t, err := range l.forward(ctx, s, entries[max(0, last-backwardBlock):last]) {
				if err != nil { // What comes behind it was listed before.
					return err
				}
				block = append(block, t)
			}
			for _, t := range slices.Backward(block) {
				if err := visit(t); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// forward iterates over the ticks of entries that the filter lets through. An error is
// the last.
func (l *logger) forward(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[*logTick, error] {
	return visited(func(visit func(*logTick) error) error {
		r := logReader{logger: l, source: s, known: s.rewoundFrom()}
		for _, e := range entries {
			t, err := r.read(ctx, e)
			if err == nil && t != nil {
				err = visit(t)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// A logReader reads ticks, best in the order of the journal. Values need the state before a
// tick and the one behind it, which a cursor goes to; it is opened by the first tick that
// needs one, since most calls do without.
type logReader struct {
	*logger
	*source
	known  uint64 // See rewoundFrom.
	cursor *inspect.Cursor
}

// read returns the tick of e, or nil if the filter leaves it out.
func (r *logReader) read(ctx context.Context, e journal.Entry) (*logTick, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, ops, doc, err := r.commit(e.ID.Seq, r.known)
	if err != nil || c == nil {
		return nil, err
	}
	t := &logTick{doc, e}
	operations := operations(c, ops)
	if !r.filter.mayMatch(&t.commitDoc) {
		return nil, nil
	}
	var values []rowDoc
	if r.patch || r.filter.byValue() {
		if values, err = r.values(ctx, c, &t.commitDoc); err != nil {
			return nil, err
		}
	}
	if !r.filter.matches(&t.commitDoc, operations, values) {
		return nil, nil
	}
	if r.verbose {
		t.Operations, t.Inputs = operations, listed(c.Inputs, func(i inspect.Input) inputDoc { return inputDoc(i) })
	}
	if r.patch {
		t.Values = slices.DeleteFunc(values, func(v rowDoc) bool { return !r.filter.shows(v) })
	}
	return t, nil
}

// values returns what the tick c, which d describes, made of rows, by component: first
// those that are gone. What was written with the value that it had is not among them.
func (r *logReader) values(ctx context.Context, c *inspect.Commit, d *commitDoc) (docs []rowDoc, err error) {
	if err := r.seek(ctx, c.Parent); err != nil {
		return nil, err
	}
	before := make([]oldRows, len(c.Rows))
	for i, change := range c.Rows {
		if was := r.cursor.Image().Find(c.Component(change.Component)); was != nil {
			before[i] = oldRowsOf(was, change)
		}
	}
	if err := r.seek(ctx, c.Seq); err != nil {
		return nil, err
	}
	im := r.cursor.Image()
	for i, change := range c.Rows {
		now := im.Find(c.Component(change.Component))
		if now == nil {
			continue
		}
		became, err := before[i].became(now, change, func(e ecs.Entity) string { return d.goneBy(im, now.Name, e) })
		if err != nil {
			return nil, err
		}
		docs = append(docs, became...)
	}
	return docs, nil
}

// seek moves the cursor.
func (r *logReader) seek(ctx context.Context, seq uint64) (err error) {
	if r.cursor == nil {
		r.cursor, err = r.Cursor(ctx, seq)
		return err
	}
	return r.cursor.Seek(ctx, seq)
}

// goneBy returns what took the component of that name from e.
func (d *commitDoc) goneBy(im *inspect.Image, name string, e ecs.Entity) string {
	wasCleared := func(c changeDoc) bool { return c.Name == name && c.Cleared > 0 }
	switch {
	case d.Cleared > 0:
		return "clear"
	case !im.IsAlive(e):
		return "destroy"
	case slices.ContainsFunc(d.Components, wasCleared):
		return "clear"
	}
	return "remove"
}

// oldRows are the rows of a component that a tick overwrites or drops, as they were
// before it. They are copied: the cursor's image becomes the state behind the tick. They are
// found again by entity, as a tick may have moved them. A resource has one row, of entity 0.
type oldRows struct {
	layout   *layout.Type
	entities []ecs.Entity // As they lay.
	rows     map[ecs.Entity][]byte
}

func oldRowsOf(c *inspect.Component, change inspect.RowChange) oldRows {
	o := oldRows{layout: c.Layout, rows: map[ecs.Entity][]byte{}}
	for _, row := range touched(c, change) {
		if e := entityOf(c, row); e != ecs.Vacant {
			o.entities = append(o.entities, e)
			o.rows[e] = bytes.Clone(c.Row(row))
		}
	}
	return o
}

// touched returns the rows of c, a state before or after the tick of change, that the
// tick gives or drops; all, if its rows are not those that the tick counts.
func touched(c *inspect.Component, change inspect.RowChange) (rows []int) {
	if !c.Rewinds && !c.Resource {
		change.Values = []raw.Range{{First: 0, N: c.Len()}}
	}
	dropped := raw.Range{First: change.After, N: max(0, c.Len()-change.After)}
	for _, r := range slices.Concat(change.Values, change.Entities, []raw.Range{dropped}) {
		for row := r.First; row < min(r.First+r.N, c.Len()); row++ {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// entityOf returns the entity of a row, 0 for a resource.
func entityOf(c *inspect.Component, row int) ecs.Entity {
	if c.Resource {
		return 0
	}
	return c.Entities[row]
}

// became returns what became of the rows in now: first those that are gone, by what gone
// says, then those that are new or have another value.
func (o oldRows) became(now *inspect.Component, change inspect.RowChange, gone func(ecs.Entity) string) (docs []rowDoc, err error) {
	value := func(t *layout.Type, row []byte) *layout.Value {
		v, bad := t.Value(bytes.Clone(row)) // The rows change when the cursor moves.
		err = cmp.Or(err, bad)
		return &v
	}
	add := func(op string, e ecs.Entity) *rowDoc {
		doc := rowDoc{Op: op, Component: now.Name, Entity: holder(e, now.Resource)}
		if old, had := o.rows[e]; had {
			doc.Old = value(o.layout, old)
		}
		docs = append(docs, doc)
		return &docs[len(docs)-1]
	}
	for _, e := range o.entities {
		if !now.Resource && now.Find(e) < 0 {
			add(gone(e), e)
		}
	}
	for _, row := range touched(now, change) {
		e := entityOf(now, row)
		old, had := o.rows[e]
		op := opNames[raw.OpAdd]
		if had {
			op = setOp
		}
		if e != ecs.Vacant && !(had && bytes.Equal(old, now.Row(row))) {
			add(op, e).New = value(now.Layout, now.Row(row))
		}
	}
	return docs, err
}

// lines adds v to g: of a struct that was set a line for each field that differs.
func (v rowDoc) lines(g *term.Grid, under string) {
	name := joined(" ", v.Component, v.Entity)
	switch {
	case v.Old == nil:
		g.StyledText(term.Added, "%s+ %s", under, named(name, v.New))
	case v.New == nil:
		g.StyledText(term.Removed, "%s- %s (%s)", under, named(name, v.Old), v.Op)
	case v.Old.Type().String() != v.New.Type().String():
		g.StyledText(term.Changed, "%s~ %s: %v → %v", under, name, v.Old, v.New)
	default:
		v.fields(g, under+"~ "+name)
	}
}

// named returns a value with its name. Tags have none.
func named(name string, v *layout.Value) string {
	if v.Type().Width() == 0 {
		return name
	}
	return name + ": " + v.String()
}

// fields adds a line for each field of v that differs.
func (v rowDoc) fields(g *term.Grid, name string) {
	var old []string
	for _, text := range fields("", *v.Old) {
		old = append(old, text)
	}
	i := 0
	for field, text := range fields("", *v.New) {
		if text != old[i] {
			g.StyledText(term.Changed, "%s: %s → %s", joined(" ", name, field), old[i], text)
		}
		i++
	}
}
