package dump

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
)

// logDoc is what log --json prints.
type logDoc struct {
	Earlier int         `json:"earlier"` // Records in the range that --limit left out.
	Commits []commitDoc `json:"commits"` // In the order of the journal.
}

var logCommand = command{
	use: "log STORE [A..B]",
	doc: `List what every tick changed

List what every tick changed, oldest first.

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
		f.limit(&l.limit, 0, "records, the newest")
		l.flags(f)
		f.BoolVar(&l.graph, "graph", false, "draw the branches")
		f.BoolVar(&l.reverse, "reverse", false, "newest first")
		return reading(func(c *call, s *source) error { return l.run(c.ctx, c.app, s, c.args[1:]) })
	},
}

// A logger says which ticks to list, and how.
type logger struct {
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
// all the same, and the error told at the end.
func (l *logger) run(ctx context.Context, a *app, s *source, args []string) error {
	if s.IsSave() {
		return s.noJournal(try("info", s.path), "there are no ticks to list")
	}
	entries, err := s.chosen(args)
	if err != nil {
		return err
	}
	entries, earlier, unread := l.cut(ctx, s, entries)
	if a.json {
		err = stream(a, logDoc{Earlier: earlier}, mapped(l.ticks(ctx, s, entries), func(t *logTick) (commitDoc, error) { return t.commitDoc, nil }))
	} else {
		err = l.print(ctx, a, s, entries, earlier)
	}
	return cmp.Or(unread, err)
}

// cut applies the limit: before the records that it leaves come so many earlier ones.
// With a filter, only records that it lets through count and are left. What comes
// beside an error can be listed all the same.
func (l *logger) cut(ctx context.Context, s *source, entries []journal.Entry) (left []journal.Entry, earlier int, err error) {
	if !l.filter.any() || l.limit == 0 && !l.graph {
		_, earlier = l.limit.of(len(entries))
		return entries[earlier:], earlier, nil
	}
	for t, bad := range l.backward(ctx, s, entries) {
		if err = bad; err != nil {
			break
		}
		if left = append(left, t.entry); len(left) == int(l.limit) {
			for earlier < len(entries) && entries[earlier].ID.Seq < t.entry.ID.Seq {
				earlier++
			}
			break
		}
	}
	slices.Reverse(left)
	return left, earlier, err
}

// print lists the ticks of entries for people.
func (l *logger) print(ctx context.Context, a *app, s *source, entries []journal.Entry, earlier int) error {
	switch {
	case len(s.Log().Entries) == 0:
		a.Line("the journal has no records")
		return nil
	case earlier > 0:
		a.Line("%s before these; --limit 0 prints all", term.Count(earlier, "record", "records"))
	}
	var g *term.Grid
	lines := l.branches(s, entries)
	for t, err := range l.ticks(ctx, s, entries) {
		if err != nil {
			if g != nil {
				g.Flush()
			}
			return err
		}
		if g == nil {
			g = l.table(a, entries, lines)
		}
		l.row(g, t, lines)
	}
	if g == nil {
		return l.nothing(ctx, a, s)
	}
	g.Flush()
	return nil
}

// nothing says that no tick passed the filter. If the filter names a component that is not
// there, that is an error.
func (l *logger) nothing(ctx context.Context, a *app, s *source) error {
	if err := s.mustHave(ctx, point{}, l.filter.components); err != nil {
		return err
	}
	a.Line("no tick in the range is like that")
	return nil
}

// branches returns the lines that --graph draws, or none.
func (l *logger) branches(s *source, entries []journal.Entry) branches {
	if !l.graph {
		return nil
	}
	return branchesOf(entries, s.Log())
}

// table begins the table. Lines between its rows must not make columns jump, so they
// are made wide enough for all of entries.
func (l *logger) table(a *app, entries []journal.Entry, lines branches) *term.Grid {
	headers, first := []string{"", ">RECORD", ">TICK", ">PARENT", "TIME", ">BYTES", "NOTE", "CHANGES"}, 1
	if !l.graph {
		headers, first = headers[1:], 0
	}
	g := a.Grid(headers...)
	g.Widen(first+5, rewound)
	for _, e := range entries {
		if l.graph {
			g.Widen(0, lines[e.ID.Seq].row)
		}
		for i, n := range []uint64{e.ID.Seq, e.Tick, e.Parent, 0, uint64(e.Length)} {
			g.Widen(first+i, strconv.FormatUint(n, 10))
		}
	}
	return g
}

// row adds what is to be seen of t.
func (l *logger) row(g *term.Grid, t *logTick, lines branches) {
	cells := []any{t.Seq, t.Tick, t.Parent, timeText(t.Time), t.Bytes, t.note(), t.changes()}
	under := "        "
	if l.graph {
		b := lines[t.Seq]
		if b.apart && !l.reverse {
			g.Text("%s", b.fork)
		}
		cells = append([]any{b.row}, cells...)
		if l.reverse {
			under = b.before + under
		} else {
			under = b.after + under
		}
		if b.apart && l.reverse {
			defer g.Text("%s", strings.ReplaceAll(b.fork, "\\", "/"))
		}
	}
	g.Row(cells...)
	for _, said := range append(listed(t.Operations, operationDoc.String), listed(t.Inputs, inputDoc.String)...) {
		g.Text("%s%s", under, said)
	}
	for _, v := range t.Values {
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
func (f *logFilter) op(name string) bool        { return among(f.ops, name) }
func (f *logFilter) component(name string) bool { return among(f.components, name) }
func (f *logFilter) entity(name string) bool    { return among(f.entities, name) }

// among reports whether name is chosen; nothing chosen is everything.
func among(chosen []string, name string) bool {
	return len(chosen) == 0 || slices.Contains(chosen, name)
}

// mayMatch reports whether a tick can be one that f lets through, by what can be known
// of it without the state that it changed.
func (f *logFilter) mayMatch(d *commitDoc) bool {
	if len(f.components) == 0 || d.Cleared > 0 || d.Destroyed > 0 {
		return true
	}
	return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
}

// matches reports whether f lets a tick through, whose values are needed if byValue
// says so.
func (f *logFilter) matches(d *commitDoc, ops []operationDoc, values []rowDoc) bool {
	if !f.any() {
		return true
	}
	if len(f.entities)+len(f.ops) == 0 { // Then what was merely written counts as well.
		return slices.ContainsFunc(d.Components, func(c changeDoc) bool { return f.component(c.Name) })
	}
	byOp := func(o operationDoc) bool { return f.op(o.Op) && f.component(o.Component) && f.entity(o.Entity) }
	byRow := func(v rowDoc) bool { return f.op(v.Op) && f.shows(v) }
	return slices.ContainsFunc(ops, byOp) || slices.ContainsFunc(values, byRow)
}

// shows reports whether f asks for the component and the entity of v.
func (f *logFilter) shows(v rowDoc) bool { return f.component(v.Component) && f.entity(v.Entity) }
