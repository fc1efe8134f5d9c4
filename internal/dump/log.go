package dump

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Log lists records of the journal, from a range and a limit to lines.
//
//	A..B ──▶ chosen: the records of the range, on all branches
//	     ──▶ cut: the newest of them that the filter lets through, as many as --limit says
//	     ──▶ ticks: forward or backward, each read by a logReader and described as a recordDoc
//	     ──▶ a row with lines below it, or an element of the JSON list
//
// With a filter, a tick is read twice: once by cut, which counts from the end, and once to be
// listed. Without one, cut counts records and reads none.

// logDoc is what log --json prints.
type logDoc struct {
	Earlier int         `json:"earlier"` // Records in the range that --limit left out.
	Commits []recordDoc `json:"records"` // In the order of the journal.
}

var logCommand = command{
	use: "log STORE [A..B]",
	doc: `List what every tick changed

List what every tick changed, oldest first. PARENT is told where it is not the record
before. Of a component, +2 rows came, -1 went (also with their entities), and so many
were written: those that came, were set or moved.

With filters, only ticks are listed in which one thing happened that all of them
name: --entity 12v3 --op add,set lists the ticks that gave 12v3 a component or
another value, with --component Position only this one.`,
	example: `  ecsdump log D
  ecsdump log D 10..20 --verbose
  ecsdump log D --graph --limit 40
  ecsdump log D --entity 12v3 -p
  ecsdump log D --component Health --op set,remove --reverse`,
	complete: []completer{(*completion).ranges},
	run: func(f flags) action {
		var l logger
		f.limit(&l.limit, "records, the newest")
		l.flags(f)
		f.BoolVar(&l.graph, "graph", false, "draw the branches")
		f.BoolVar(&l.reverse, "reverse", false, "newest first")
		return reading(l.run)
	},
}

// A logger says which ticks to list, and how. A tick goes through it in three steps, of which each
// costs more than the one before:
//
//	the record says which components changed      mayMatch
//	its operations say what was added and removed
//	two states say which values were set          values, if --patch or the filter needs them
//
// A limit counts ticks that the filter lets through, from the newest back; what is left is then
// read again, from the oldest on.
type logger struct {
	*source
	limit                          limit
	filter                         logFilter
	verbose, patch, graph, reverse bool
}

// flags declares the flags of every command that lists ticks.
func (l *logger) flags(f flags) {
	l.filter.flags(f)
	f.BoolVarP(&l.verbose, "verbose", "v", false, "list the operations with their entities, and the inputs")
	f.BoolVarP(&l.patch, "patch", "p", false, "list the values that were added, removed and set")
}

// run lists the ticks. If what comes before the limit cannot be read, the rest is listed
// all the same, and the error told at the end. So it is the error of cut that is returned, if both
// have one: what it says lies before the other.
func (l *logger) run(s *source) error {
	l.source = s
	if s.IsSave() {
		return s.noJournal(try("info", s.path), "there are no ticks to list")
	}
	entries, err := s.chosen(s.args[1:])
	if err != nil {
		return err
	}
	entries, earlier, unread := l.cut(entries)
	if s.json {
		err = stream(s.app, logDoc{Earlier: earlier}, l.ticks(entries))
	} else {
		err = l.print(entries, earlier)
	}
	return cmp.Or(unread, err)
}

// print lists the ticks of entries for people.
func (l *logger) print(entries []journal.Entry, earlier int) error {
	if len(l.Log().Entries) == 0 {
		l.Line("the journal has no records")
		return nil
	}
	l.earlier(earlier, "record", "records")
	var lines branches
	if l.graph {
		lines = branchesOf(entries, l.Log())
	}
	g := l.table(entries, lines)
	n, err := rows(l.app, l.ticks(entries), g, func(d *recordDoc) { l.row(g, d, lines) })
	if n == 0 && err == nil {
		err = l.nothing()
	}
	return err
}

// cut applies the limit: left are the newest records that the filter lets through, and earlier
// counts those of the range before them, whether or not the filter would let them through. The
// newest are wanted, so with a filter it reads backward until there are enough.
//
// Without a limit nothing is left out and the filter is applied when the ticks are listed; but a
// graph is drawn of records that are known beforehand, so for one it reads all. What comes beside
// an error can be listed all the same.
func (l *logger) cut(entries []journal.Entry) (left []journal.Entry, earlier int, err error) {
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
	return left, earlier, ended(err)
}

// nothing says that no tick passed the filter. If the filter names a component that is not
// there, that is an error.
func (l *logger) nothing() error {
	if err := l.mustHave("", l.filter.components); err != nil {
		return err
	}
	l.Line("no tick in the range is like that")
	return nil
}

// table begins the table. Lines between its rows must not make columns jump, so they
// are made wide enough for all of entries. Columns are as wide as what record headers say needs;
// only the time and the changes, which come last or are of one width, are left to the rows.
func (l *logger) table(entries []journal.Entry, lines branches) *term.Grid {
	g := l.Grid("", ">TICK", ">RECORD", ">PARENT", "TIME", ">BYTES", "NOTE", "~CHANGES")
	in, way := l.standing(), map[uint64]bool{}
	// Who leads to the end of the journal: it would take a read of each record to ask for OnHead.
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

// row adds what is to be seen of d.
//
//	|\          fork, before the row where its branch begins
//	| *  row     columns of the record
//	| |   lines  under: the lines of branches that go on below the row
//
// Read from the newest back, what leads to a record comes below it, so before and after change
// places and the fork is drawn with the other slant.
func (l *logger) row(g *term.Grid, d *recordDoc, lines branches) {
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
		if b.apart && l.reverse { // Upside down, the fork is below the record that it leads to.
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

// A logFilter says which ticks to list: those in which one thing happened that all of
// its parts name. Empty parts name everything.
type logFilter struct {
	entities, components, ops []string
}

// flags declares the flags of a filter.
func (f *logFilter) flags(of flags) {
	of.entities(&f.entities, "only ticks that did something to one of these entities")
	of.StringSliceVar(&f.components, "component", nil, "only ticks that did something to one of these components or resources")
	of.someOf(&f.ops, "op", "only ticks that did one of these: "+strings.Join(filterOps, ", "), filterOps)
}

// any reports whether f leaves anything out.
func (f *logFilter) any() bool { return len(f.entities)+len(f.components)+len(f.ops) > 0 }

// byValue reports whether f can only be answered by comparing rows before and after a tick.
// Operations do not tell which rows were set, from which entities a clear took theirs, and
// which components a destroyed entity had.
//
//	set      no operation says it: rows that differ do
//	clear    the operation names the component at most, not who lost it
//	destroy  the operation names the entity, not what it had
//
// Only a filter that could match one of these needs values; ops that are not filtered match all.
func (f *logFilter) byValue() bool {
	switch {
	case len(f.ops)+len(f.entities) == 0:
		return false
	case f.op(setOp), f.op(opNames[raw.OpClear]) && len(f.entities)+len(f.components) > 0:
		return true
	}
	return f.op(opNames[raw.OpDestroy]) && len(f.components) > 0
}

// op, component and entity report whether f lets one through.
func (f *logFilter) op(name string) bool        { return chosen(f.ops, name) }
func (f *logFilter) component(name string) bool { return chosen(f.components, name) }
func (f *logFilter) entity(name string) bool    { return chosen(f.entities, name) }

// chosen reports whether name is among those chosen; nothing chosen is everything.
func chosen(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// mayMatch reports whether a tick can be one that f lets through, by what can be known
// of it without the state that it changed. What a clear of the world or a destroy took is not
// counted by component, so such ticks always may match.
func (f *logFilter) mayMatch(d *recordDoc) bool {
	if len(f.components) == 0 || d.Cleared > 0 || d.Destroyed > 0 {
		return true
	}
	return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
}

// matches reports whether f lets a tick through, whose values are needed if byValue
// says so. All parts must be true of one operation or one value: a tick that sets Position of
// one entity and adds Health to another does not set Health of either.
func (f *logFilter) matches(d *recordDoc, ops []operationDoc, values []rowDoc) bool {
	if !f.any() {
		return true
	}
	if len(f.entities)+len(f.ops) == 0 { // Then what was merely written counts as well.
		return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
	}
	// Empty members of an operation match no name: a create has no component.
	byOp := func(o operationDoc) bool { return f.op(o.Op) && f.component(o.Component) && f.entity(o.Entity) }
	byRow := func(v rowDoc) bool { return f.op(v.Op) && f.shows(v) }
	return slices.ContainsFunc(ops, byOp) || slices.ContainsFunc(values, byRow)
}

// shows reports whether f asks for the component and the entity of v.
func (f *logFilter) shows(v rowDoc) bool { return f.component(v.Component) && f.entity(v.Entity) }

// ticks walks over the ticks of entries that the filter lets through, in the order in which
// they are listed.
func (l *logger) ticks(entries []journal.Entry) walk[*recordDoc] {
	return func(visit func(*recordDoc) error) error {
		if l.reverse {
			return l.backward(entries, visit)
		}
		return l.forward(entries, visit)
	}
}

// backwardBlock is how many ticks are read forward before they are listed backward. A
// cursor only goes forward at the cost of what it reads; each step back may begin at a
// snapshot again.
const backwardBlock = 64

// backward walks over the same ticks as forward, the newest first: block by block from the end,
// each read forward, kept and visited in reverse. Memory is that of a block. Damage in one does not
// end it; the first that is met is the error, which is that of the newest block.
func (l *logger) backward(entries []journal.Entry, visit func(*recordDoc) error) (unread error) {
	for last := len(entries); last > 0; last -= backwardBlock {
		var block []*recordDoc
		err := l.forward(entries[max(0, last-backwardBlock):last], func(d *recordDoc) error {
			block = append(block, d)
			return nil
		})
		if err != nil && !damaged(err) { // What comes behind it was listed before.
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

// forward walks over the ticks of entries that the filter lets through. Those that are damaged,
// or of which damage hides what is asked for, are left out, and the first error told at the end. An
// error of visit ends the walk, also errEnough.
func (l *logger) forward(entries []journal.Entry, visit func(*recordDoc) error) (unread error) {
	r := logReader{logger: l, in: l.standing()}
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

// A logReader reads ticks, best in the order of the journal. Values need the state before a
// tick and the one behind it, which a cursor goes to; it is opened by the first tick that
// needs one, since most calls do without.
type logReader struct {
	*logger
	in     standing
	cursor *inspect.Cursor
}

// read returns the tick of e, or nil if the filter leaves it out. Each step that can leave the tick
// out comes before the next one that costs more.
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
		if values, err = r.values(c, &d); err != nil {
			return nil, err
		}
	}
	if !r.filter.matches(&d, operations, values) {
		return nil, nil
	}
	if r.verbose {
		d.Operations, d.Inputs = operations, describe.Listed(c.Inputs, func(i inspect.Input) inputDoc { return inputDoc(i) })
	}
	// The filter may let a tick through for one entity; of the others nothing is shown.
	if r.patch {
		d.Values = slices.DeleteFunc(values, func(v rowDoc) bool { return !r.filter.shows(v) })
	}
	return &d, nil
}

// values returns what the tick c, which d describes, made of rows, by component: first
// those that are gone. What was written with the value that it had is not among them.
//
// A tick has the rows that it wrote, not what was there before, and drops rows without saying
// whose they were. So the old rows are copied from the state before it, then the cursor goes
// on, and what the same entities have then is compared.
//
//	state before c     touched rows ──▶ oldRows, copied by entity
//	   │ seek(c.Seq)
//	state after c      touched rows ──▶ became: compared with the old rows of the same entity
//
// A component that the state before lacks has no old rows; one that the state after lacks is passed
// over.
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
		became, err := before[i].became(now, change, func(e ecs.Entity) string { return d.goneBy(im, now.Name, e) })
		if err != nil {
			return nil, err
		}
		docs = append(docs, became...)
	}
	return docs, nil
}

// seek moves the cursor. Ticks are asked for in the order of the journal, so on one branch the
// cursor goes from each to the next without a snapshot.
func (r *logReader) seek(seq uint64) (err error) {
	if r.cursor == nil {
		r.cursor, err = r.Cursor(r.ctx, seq)
		return err
	}
	return r.cursor.Seek(r.ctx, seq)
}

// goneBy returns what took the component of that name from e. A tick may do several of these; the
// first that explains it is told. A world that was cleared took everything, whatever else the tick
// did.
func (d *recordDoc) goneBy(im *inspect.Image, name string, e ecs.Entity) string {
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
//
// What a tick says of a component that does not rewind counts rows as the journal has them, with
// those of dead entities; a state that is shown has dropped these and moved others into their
// places. So there all rows are compared.
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
// says, then those that are new or have another value. A row that was written with the bytes that
// it had is not told: nothing changed. An entity whose row only moved is found by its number among
// the old ones, and its bytes are the same.
func (o oldRows) became(now *inspect.Component, change inspect.RowChange, gone func(ecs.Entity) string) (docs []rowDoc, err error) {
	value := func(t *layout.Type, row []byte) *layout.Value {
		v, bad := t.Value(bytes.Clone(row)) // The rows change when the cursor moves.
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

// lines adds v to g: of a struct that was set a line for each field that differs. If the type is
// another one than before, the fields need not be the same, so both values are shown whole.
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
	// Both values have the same type, and so the same fields in the same order.
	i := 0
	for field, text := range fields("", *v.New) {
		if text != old[i] {
			g.StyledText(term.Changed, "%s: %s → %s", joined(" ", name, field), old[i], text)
		}
		i++
	}
}
