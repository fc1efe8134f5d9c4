package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command log lists records of the journal, in four steps:
//
//   - recordsIn finds the records of the range, on all branches.
//   - applyLimit keeps the newest records that pass the filter, at most --limit.
//   - ticks() reads each record with a logReader, oldest or newest first, and describes it as a
//     recordDoc.
//   - Each recordDoc is printed as a row with lines below it, or as an element of the JSON list.
//
// With a filter, each printed tick is read twice: by applyLimit, and for the list.

// logDoc is what log --json prints.
type logDoc struct {
	Earlier int         `json:"earlier"` // Number of records of the range that --limit left out.
	Commits []recordDoc `json:"records"` // In journal order.
}

var logCommand = command{
	use: "log STORE [A..B]",
	doc: `List what every tick changed

List what every tick changed, oldest first. PARENT is shown if it is not the record
before. For a component, +2 means that 2 rows were added, and -1 that 1 row was removed,
also with its entity. "wrote 3" counts the rows that were added, set or moved.

A filter flag lists only matching ticks. With several filters, one change must match all
of them: --entity 12v3 --op add,set lists the ticks that added a component to 12v3 or
set one. Add --component Position to match only changes of Position.

The journal may begin before the oldest state of the store. The values of these ticks
are unknown: -p does not list them, and a filter matches only what --verbose lists.`,
	example: `  ecsdump log D
  ecsdump log D 10..20 --verbose
  ecsdump log D --graph --limit 40
  ecsdump log D --entity 12v3 -p
  ecsdump log D --component Health --op set,remove --reverse`,
	complete: []completer{(*completion).ranges},
	run: func(f flags) action {
		var l logCmd
		f.limit(&l.limit, "records, the newest")
		l.flags(f)
		f.BoolVar(&l.graph, "graph", false, "draw the branches")
		f.BoolVar(&l.reverse, "reverse", false, "newest first")
		return withSource(l.run)
	},
}

// A logCmd has the flags that select and describe ticks. A tick is read in up to three steps. Each
// step costs more than the step before it. The steps find out:
//
//	1   which components changed, from the record (mayMatch)
//	2   what was added and removed, from the operations
//	3   which values were set, from the states before and after the tick (values)
//
// If a step shows that the filter excludes the tick, the next steps are skipped. Step 3 runs only
// for --patch, or if the filter needs the values.
type logCmd struct {
	*source
	limit                          limit
	filter                         logFilter
	verbose, patch, graph, reverse bool
	unknownValues                  bool // True if the values of a tick were unknown.
}

// flags declares the flags of every command that lists ticks.
func (l *logCmd) flags(f flags) {
	l.filter.flags(f)
	f.BoolVarP(&l.verbose, "verbose", "v", false, "list the operations with their entities, and the inputs")
	f.BoolVarP(&l.patch, "patch", "p", false, "list the values that were added, removed and set")
}

// run lists the ticks. After damage, it still lists the readable ticks, and returns the
// error at the end.
func (l *logCmd) run(s *source) error {
	l.source = s
	if s.IsSave() {
		return s.noJournal(describe.Command("info", s.path), "there are no ticks to list")
	}
	entries, err := s.recordsIn(s.args[1:])
	if err != nil {
		return err
	}
	entries, earlier, unread := l.applyLimit(entries)
	if s.json {
		err = stream(s.app, logDoc{Earlier: earlier}, l.ticks(entries))
	} else {
		err = l.print(entries, earlier)
	}
	return cmp.Or(unread, err)
}

// print lists the ticks of entries as text.
func (l *logCmd) print(entries []journal.Entry, earlier int) error {
	if len(l.Log().Entries) == 0 {
		l.Line("the journal has no records")
		return nil
	}
	l.printEarlier(earlier, "record", "records")
	var lines branches
	if l.graph {
		lines = branchesOf(entries, l.Log())
	}
	g := l.table(entries, lines)
	n, err := rows(l.app, l.ticks(entries), g, func(d *recordDoc) { l.row(g, d, lines) })
	if n == 0 && err == nil {
		err = l.printNoMatch()
	}
	return err
}

// applyLimit returns the newest records that pass the filter, at most as many as the limit. It also
// returns the number of earlier records in the range, which includes records that do not pass the
// filter. After an error, the results are still valid.
//
// Without a limit, applyLimit returns all records, because ticks() applies the filter. But a graph
// needs the filtered records before it is drawn. So for --graph, applyLimit always applies the
// filter.
func (l *logCmd) applyLimit(entries []journal.Entry) (left []journal.Entry, earlier int, err error) {
	if !l.filter.any() || l.limit == 0 && !l.graph {
		_, earlier = l.limit.of(len(entries))
		return entries[earlier:], earlier, nil
	}
	err = l.backward(entries, func(d *recordDoc) error {
		e, _ := l.Log().Find(d.Seq)
		if left = append(left, e); len(left) < int(l.limit) || l.limit == 0 {
			return nil
		}
		for earlier < len(entries) && entries[earlier].ID.Seq < d.Seq {
			earlier++
		}
		return errEnough
	})
	slices.Reverse(left)
	return left, earlier, ignoreEnough(err)
}

// printNoMatch prints that no tick passed the filter. If the filter names an unknown component, it
// returns an error instead.
func (l *logCmd) printNoMatch() error {
	if err := l.requireComponents("", l.filter.components); err != nil {
		return err
	}
	l.Line("no tick in the range matches")
	return nil
}

// table begins the table. It sets the width of each column in advance, so that all rows
// are aligned, even with other lines between them.
func (l *logCmd) table(entries []journal.Entry, lines branches) *term.Grid {
	g := l.Grid("", ">TICK", ">RECORD", ">PARENT", "TIME", ">BYTES", "NOTE", "~CHANGES")
	in, way := l.standing(), map[uint64]bool{}
	// Collect the path to the head. Commit.OnHead has the same information but needs a read of each
	// record.
	for e := range l.Log().Ancestors(l.Log().Head) {
		way[e.ID.Seq] = true
	}
	for _, e := range entries {
		g.Widen(0, lines[e.ID.Seq].row)
		d := recordDoc{Seq: e.ID.Seq, Parent: e.Parent, standingDoc: in.of(e.ID.Seq, way[e.ID.Seq])}
		for i, cell := range []any{e.Tick, e.ID.Seq, d.parent(), "", e.Length, d.note()} {
			g.Widen(1+i, fmt.Sprint(cell))
		}
	}
	return g
}

// row adds the row of d and the lines below the row. With --graph, each line begins with a part of
// the graph:
//
//	|\    the fork: a line above the row at which a branch begins
//	| *   the row
//	| |   the lines below the row, with the branches that continue there
//
// In reverse order, the graph is upside down. The fork is then mirrored and below the row.
func (l *logCmd) row(g *term.Grid, d *recordDoc, lines branches) {
	under, b := "        ", lines[d.Seq]
	if l.graph {
		if b.apart && !l.reverse {
			g.Text("%s", b.fork)
		}
		if l.reverse {
			under = b.before + under
		} else {
			under = b.after + under
		}
		if b.apart && l.reverse { // In reverse order, the fork is below its record.
			defer g.Text("%s", strings.ReplaceAll(b.fork, "\\", "/"))
		}
	}
	g.Row(b.row, d.Tick, d.Seq, d.parent(), timeText(d.Time), d.Bytes, d.note(), d.changes())
	for _, said := range append(describe.Listed(d.Operations, operationDoc.String), describe.Listed(d.Inputs, inputDoc.String)...) {
		g.Text("%s%s", under, said)
	}
	for _, v := range d.Values {
		v.lines(g, under)
	}
}

// A logFilter selects ticks by entities, components and ops. A tick passes if one of its changes
// matches all three. An empty list matches everything.
type logFilter struct {
	entities, components, ops []string
}

// flags declares the flags of a filter.
func (f *logFilter) flags(of flags) {
	of.entities(&f.entities, "only ticks that changed one of these entities")
	of.StringSliceVar(&f.components, "component", nil, "only ticks that changed one of these components or resources")
	of.someOf(&f.ops, "op", "only ticks with one of these operations: "+strings.Join(filterOps, ", "), filterOps)
}

// any reports whether f can exclude a tick.
func (f *logFilter) any() bool { return len(f.entities)+len(f.components)+len(f.ops) > 0 }

// byValue reports whether f needs the rows before and after a tick. It needs them for three ops,
// because the journal does not record all of their changes as operations:
//
//	set       The journal records no operation for it.
//	clear     The operation does not name the entities.
//	destroy   The operation does not name the components.
func (f *logFilter) byValue() bool {
	switch {
	case len(f.ops)+len(f.entities) == 0:
		return false
	case f.op(setOp), f.op(raw.OpClear.String()) && len(f.entities)+len(f.components) > 0:
		return true
	}
	return f.op(raw.OpDestroy.String()) && len(f.components) > 0
}

// op, component and entity report whether f selects this name.
func (f *logFilter) op(name string) bool        { return selected(f.ops, name) }
func (f *logFilter) component(name string) bool { return selected(f.components, name) }
func (f *logFilter) entity(name string) bool    { return selected(f.entities, name) }

// selected reports whether names is empty or contains name.
func selected(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// mayMatch reports whether f can match a tick, without reading the state. The record does not name
// the components of a destroy or of a clear of the world. So a tick with one of these may always
// match.
func (f *logFilter) mayMatch(d *recordDoc) bool {
	if len(f.components) == 0 || d.Cleared > 0 || d.Destroyed > 0 {
		return true
	}
	return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
}

// matches reports whether a single change of the tick matches all lists of f. For example, --op set
// --component Health excludes a tick that sets Position and adds Health. The last argument is empty
// unless byValue() returns true.
func (f *logFilter) matches(d *recordDoc, ops []operationDoc, values []rowDoc) bool {
	if !f.any() {
		return true
	}
	// With only --component, a tick also passes if it wrote a row without changing the value.
	if len(f.entities)+len(f.ops) == 0 {
		return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
	}
	// A create has an entity but no component, so --component excludes it.
	byOp := func(o operationDoc) bool { return f.op(o.Op) && f.component(o.Component) && f.entity(o.Entity) }
	byRow := func(v rowDoc) bool { return f.op(v.Op) && f.selects(v) }
	return slices.ContainsFunc(ops, byOp) || slices.ContainsFunc(values, byRow)
}

// selects reports whether f matches the component and the entity of v.
func (f *logFilter) selects(v rowDoc) bool { return f.component(v.Component) && f.entity(v.Entity) }

// ticks visits the ticks of entries that pass the filter, oldest first or, with --reverse, newest
// first.
func (l *logCmd) ticks(entries []journal.Entry) walk[*recordDoc] {
	return func(visit func(*recordDoc) error) error {
		if l.reverse {
			return l.backward(entries, visit)
		}
		return l.forward(entries, visit)
	}
}

// backwardBlock is the number of ticks in a block. A backward listing also reads the ticks of a
// block forward, because moving a cursor back may load a snapshot.
const backwardBlock = 64

// backward visits the same ticks as forward(), but newest first. It reads block by block, the
// newest block first. After damage it continues, and returns the error of the newest damaged block
// at the end.
func (l *logCmd) backward(entries []journal.Entry, visit func(*recordDoc) error) (unread error) {
	for last := len(entries); last > 0; last -= backwardBlock {
		var block []*recordDoc
		err := l.forward(entries[max(0, last-backwardBlock):last], func(d *recordDoc) error {
			block = append(block, d)
			return nil
		})
		if err != nil && !damaged(err) {
			return err
		}
		unread = cmp.Or(unread, err)
		for _, d := range slices.Backward(block) {
			if err := visit(d); err != nil {
				return err
			}
		}
	}
	return unread
}

// forward visits the ticks of entries that pass the filter, oldest first. It skips damaged ticks
// and returns the first damage at the end. An error of visit() ends the walk.
func (l *logCmd) forward(entries []journal.Entry, visit func(*recordDoc) error) (unread error) {
	r := logReader{logCmd: l, in: l.standing()}
	for _, e := range entries {
		d, err := r.read(e)
		if damaged(err) {
			unread = cmp.Or(unread, err)
			continue
		}
		if err == nil && d != nil {
			err = visit(d)
		}
		if err != nil {
			return err
		}
	}
	return unread
}

// A logReader reads ticks. It opens a cursor when a tick first needs the states.
type logReader struct {
	*logCmd
	in     standing
	cursor *inspect.Cursor
}

// read returns the document of entry e, or nil if the filter excludes the tick.
func (r *logReader) read(e journal.Entry) (*recordDoc, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	c, ops, d, err := r.commit(e.ID.Seq, r.in)
	if err != nil || c == nil || !r.filter.mayMatch(&d) {
		return nil, err
	}
	operations := operations(c, ops)
	var values []rowDoc
	if r.patch || r.filter.byValue() {
		values, err = r.values(c, &d)
		if errors.Is(err, persist.ErrNotFound) && !damaged(err) {
			r.reportUnknownValues()
		} else if err != nil {
			return nil, err
		}
	}
	if !r.filter.matches(&d, operations, values) {
		return nil, nil
	}
	if r.verbose {
		d.Operations, d.Inputs = operations, describe.Listed(c.Inputs, func(i inspect.Input) inputDoc { return inputDoc(i) })
	}
	// The filter also restricts the printed values.
	if r.patch {
		d.Values = slices.DeleteFunc(values, func(v rowDoc) bool { return !r.filter.selects(v) })
	}
	return &d, nil
}

// reportUnknownValues prints once that the journal begins before the oldest state.
func (l *logCmd) reportUnknownValues() {
	if !l.unknownValues {
		l.printNote("%s: the values of the oldest ticks are unknown, because the store has no state before them", l.path)
	}
	l.unknownValues = true
}

// values returns the rows that the tick c changed, grouped by component. Removed rows come first.
//
// A tick does not record the old values of rows, or the entities of removed rows. So values first
// copies the changed rows from the state before the tick. It then moves the cursor to the state
// after the tick, and compares the rows of both states by entity.
//
// If the tick is the first with a component, the component has no old rows.
func (r *logReader) values(c *inspect.Commit, d *recordDoc) (docs []rowDoc, err error) {
	if err := r.seek(c.Parent); err != nil {
		return nil, err
	}
	before := make([]oldRows, len(c.Rows))
	for i, change := range c.Rows {
		if was := r.cursor.Image().Find(c.Component(change.Component)); was != nil {
			before[i] = oldRowsOf(was, change)
		}
	}
	if err := r.seek(c.Seq); err != nil {
		return nil, err
	}
	im := r.cursor.Image()
	for i, change := range c.Rows {
		now := im.Find(c.Component(change.Component))
		if now == nil {
			continue
		}
		became, err := before[i].changes(now, change, func(e ecs.Entity) string { return d.removalOp(im, now.Name, e) })
		if err != nil {
			return nil, err
		}
		docs = append(docs, became...)
	}
	return docs, nil
}

// seek moves the cursor to record seq. Moving forward on one branch needs no snapshot.
func (r *logReader) seek(seq uint64) (err error) {
	if r.cursor == nil {
		r.cursor, err = r.Cursor(r.ctx, seq)
		return err
	}
	return r.cursor.Seek(r.ctx, seq)
}

// removalOp returns the op that removed the named component from e: clear, destroy or remove. The
// tick may have several of them. Then a clear of the world comes first, then destroy, then a clear
// of the component.
func (d *recordDoc) removalOp(im *inspect.Image, name string, e ecs.Entity) string {
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

// oldRows are copies of the rows of a component before a tick, by entity. A resource has one row,
// with entity 0.
type oldRows struct {
	layout   *layout.Type
	entities []ecs.Entity // The keys of rows, in row order.
	rows     map[ecs.Entity][]byte
}

func oldRowsOf(c *inspect.Component, change inspect.RowChange) oldRows {
	o := oldRows{layout: c.Layout, rows: map[ecs.Entity][]byte{}}
	for _, row := range touchedRows(c, change) {
		if e := entityOf(c, row); e != ecs.Vacant {
			o.entities = append(o.entities, e)
			o.rows[e] = bytes.Clone(c.Row(row))
		}
	}
	return o
}

// touchedRows returns the rows of c that a tick writes or drops. The parameter c is the component
// before or after the tick.
//
// For a component that does not rewind, touchedRows returns all rows. A loaded state lacks the rows
// of dead entities. So the row numbers of the tick do not apply to it.
func touchedRows(c *inspect.Component, change inspect.RowChange) (rows []int) {
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

// entityOf returns the entity of a row, or 0 for a resource.
func entityOf(c *inspect.Component, row int) ecs.Entity {
	if c.Resource {
		return 0
	}
	return c.Entities()[row]
}

// changes compares the old rows with those of the component after the tick. It returns the removed
// rows, then the added and changed rows. gone(e) returns the op that removed the row of e.
func (o oldRows) changes(now *inspect.Component, change inspect.RowChange, gone func(ecs.Entity) string) (docs []rowDoc, err error) {
	value := func(t *layout.Type, row []byte) *layout.Value {
		// Copy the row, because the cursor will overwrite it.
		v, bad := t.Value(bytes.Clone(row))
		err = cmp.Or(err, bad)
		return &v
	}
	add := func(op string, e ecs.Entity) *rowDoc {
		doc := rowDoc{Op: op, Component: now.Name, Entity: describe.Holder(e, now.Resource)}
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
	for _, row := range touchedRows(now, change) {
		e := entityOf(now, row)
		old, had := o.rows[e]
		op := raw.OpAdd.String()
		if had {
			op = setOp
		}
		if e != ecs.Vacant && !(had && bytes.Equal(old, now.Row(row))) {
			add(op, e).New = value(now.Layout, now.Row(row))
		}
	}
	return docs, err
}

// lines adds v to g, with a line for each field that differs. Each line begins with the text under.
// If the type of the value changed, lines prints both values in full.
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

// named returns a value with its name; a tag has only a name.
func named(name string, v *layout.Value) string {
	if v.Type().Width() == 0 {
		return name
	}
	return name + ": " + v.String()
}

// fields adds a line for each field of v that differs.
func (v rowDoc) fields(g *term.Grid, name string) {
	var old []string
	for _, leaf := range describe.Leaves(*v.Old) {
		old = append(old, leafText(leaf))
	}
	// Both values have the same type, so they have the same fields in the same order.
	i := 0
	for field, leaf := range describe.Leaves(*v.New) {
		if text := leafText(leaf); text != old[i] {
			g.StyledText(term.Changed, "%s: %s → %s", joined(" ", name, field), old[i], text)
		}
		i++
	}
}
