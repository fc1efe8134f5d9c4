package dump

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// logDoc is what log --json prints.
type logDoc struct {
	Earlier int         `json:"earlier"` // Records in the range that --limit left out.
	Commits []commitDoc `json:"commits"` // In the order of the journal.
}

// A commitDoc is a record of the journal: a tick that was committed.
type commitDoc struct {
	Seq        uint64         `json:"seq"`
	Tick       uint64         `json:"tick"`
	Parent     uint64         `json:"parent"` // Seq of the record that it continues; 0: of none.
	Time       time.Time      `json:"time"`   // By the clock of the writer.
	Bytes      int            `json:"bytes"`
	Head       bool           `json:"head"`    // It leads to the newest state.
	Rewound    bool           `json:"rewound"` // The newest state does not come from it.
	Created    int            `json:"created"` // Entities.
	Destroyed  int            `json:"destroyed"`
	Cleared    int            `json:"cleared"`              // How many times the whole world was.
	Components []changeDoc    `json:"components"`           // Those that changed.
	Operations []operationDoc `json:"operations,omitempty"` // With --verbose: in the order of the calls.
	Values     []rowDoc       `json:"values,omitempty"`     // With --patch: of the components and entities that the filters name.
	Marks      []string       `json:"marks,omitempty"`      // What the program called the tick.
	Inputs     []inputDoc     `json:"inputs,omitempty"`     // With --verbose: what it journaled with it.
}

// A changeDoc says what a tick did to a component or resource. A destroyed
// entity's components do not count as removed.
type changeDoc struct {
	Name       string `json:"name"`
	Added      int    `json:"added"`
	Removed    int    `json:"removed"`
	Cleared    int    `json:"cleared"` // How many times.
	RowsBefore int    `json:"rows_before"`
	RowsAfter  int    `json:"rows_after"`
	Written    int    `json:"written"` // Rows that were added, set or moved.

}

// An operationDoc is one call.
type operationDoc struct {
	Op        string `json:"op"` // create, destroy, add, remove or clear.
	Component string `json:"component,omitempty"`
	Entity    string `json:"entity,omitempty"`
}

func newLog(a *app) *cobra.Command {
	var l logger
	cmd := &cobra.Command{
		Use:   "log STORE [A..B]",
		Short: "List what every tick changed",
		Long: `List what every tick changed, oldest first.

With filters, only ticks are listed in which one thing happened that all of them
name: --entity 12v3 --op add,set lists the ticks that gave 12v3 a component or
another value, with --component Position only this one.`,
		Example: `  ecsdump log D
  ecsdump log D 10..20 --verbose
  ecsdump log D --graph --limit 40
  ecsdump log D --entity 12v3 -p
  ecsdump log D --component Health --op set,remove --reverse`,
		Args: positional(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.filter.parse(args[0]); err != nil {
				return err
			}
			return a.read(cmd.Context(), args[0], func(s *source) error { return l.run(cmd.Context(), a, s, args[1:]) })
		},
	}
	l.limit.flag(cmd, 0, "records, the newest")
	l.filter.flags(cmd)
	cmd.Flags().BoolVarP(&l.verbose, "verbose", "v", false, "list the operations with their entities, and the inputs")
	cmd.Flags().BoolVarP(&l.patch, "patch", "p", false, "list the values that were added, removed and set")
	cmd.Flags().BoolVar(&l.graph, "graph", false, "draw the branches")
	cmd.Flags().BoolVar(&l.reverse, "reverse", false, "newest first")
	return cmd
}

// A logger says which ticks to list, and how.
type logger struct {
	limit                          limit
	filter                         logFilter
	verbose, patch, graph, reverse bool
}

func (l *logger) run(ctx context.Context, a *app, s *source, args []string) error {
	entries, err := s.chosen(args)
	if err != nil {
		return err
	}
	entries, earlier, unread := l.cut(ctx, s, entries)
	if a.json {
		err = stream(a, logDoc{Earlier: earlier}, l.docs(ctx, s, entries))
	} else {
		err = l.print(ctx, a, s, entries, earlier)
	}
	return firstError(unread, err)
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

// docs iterates over the documents of the ticks of entries.
func (l *logger) docs(ctx context.Context, s *source, entries []journal.Entry) iter.Seq2[commitDoc, error] {
	return func(yield func(commitDoc, error) bool) {
		for t, err := range l.ticks(ctx, s, entries) {
			if !yield(t.commitDoc, err) {
				return
			}
		}
	}
}

// commitDocOf describes c, without its operations and its place in the tree.
func commitDocOf(c *persist.Commit, ops []persist.Op) commitDoc {
	doc := commitDoc{
		Seq: c.Seq, Tick: c.Tick, Parent: c.Parent, Time: c.Time, Bytes: c.Bytes,
		Components: []changeDoc{}, Marks: c.Marks,
	}
	changes := map[int]*changeDoc{}
	for _, r := range c.Rows {
		changes[r.Component] = &changeDoc{RowsBefore: r.Before, RowsAfter: r.After, Written: r.Written}
	}
	for _, op := range ops {
		if op.Component >= 0 && changes[op.Component] == nil {
			changes[op.Component] = new(changeDoc)
		}
		doc.count(op, changes[op.Component])
	}
	for _, n := range slices.Sorted(maps.Keys(changes)) {
		changes[n].Name = c.Component(n)
		doc.Components = append(doc.Components, *changes[n])
	}
	return doc
}

// count counts op, which concerns the component of change if it concerns one.
func (d *commitDoc) count(op persist.Op, change *changeDoc) {
	switch {
	case op.Kind == ecs.OpCreate:
		d.Created++
	case op.Kind == ecs.OpDestroy:
		d.Destroyed++
	case op.Kind == ecs.OpClear && change == nil:
		d.Cleared++
	case change == nil: // An operation on no component: the format does not keep it out.
	case op.Kind == ecs.OpClear:
		change.Cleared++
	case op.Kind == ecs.OpAdd:
		change.Added++
	case op.Kind == ecs.OpRemove:
		change.Removed++
	}
}

var opNames = map[ecs.OpKind]string{
	ecs.OpCreate: "create", ecs.OpDestroy: "destroy", ecs.OpAdd: "add", ecs.OpRemove: "remove", ecs.OpClear: "clear",
}

// operations describes ops one by one.
func operations(c *persist.Commit, ops []persist.Op) []operationDoc {
	var docs []operationDoc
	for _, op := range ops {
		d := operationDoc{Op: opNames[op.Kind], Component: c.Component(op.Component)}
		if op.Kind != ecs.OpClear {
			d.Entity = op.Entity.String()
		}
		docs = append(docs, d)
	}
	return docs
}

// print lists the ticks of entries for people.
func (l *logger) print(ctx context.Context, a *app, s *source, entries []journal.Entry, earlier int) error {
	switch {
	case s.IsSave():
		a.Line("a save has no journal")
		return nil
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

// nothing says that the filter left no tick. A component that there is not is an
// error.
func (l *logger) nothing(ctx context.Context, a *app, s *source) error {
	if len(l.filter.components) > 0 {
		im, err := s.state(ctx, point{})
		if err != nil {
			return err
		}
		for _, name := range l.filter.components {
			if _, err := s.component(im, name); err != nil {
				return err
			}
		}
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
	headers := []string{">RECORD", ">TICK", ">PARENT", "TIME", ">BYTES", "NOTE", "CHANGES"}
	if l.graph {
		headers = append([]string{""}, headers...)
	}
	g := a.Grid(headers...)
	first := len(headers) - 7
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
	cells := []any{t.Seq, t.Tick, t.Parent, t.Time.Format("2006-01-02T15:04:05.000Z07:00"), t.Bytes, t.note(), t.changes()}
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
	for _, op := range t.Operations {
		g.Text("%s%s", under, op)
	}
	for _, in := range t.Inputs {
		g.Text("%s%s", under, in)
	}
	for _, v := range t.Values {
		v.lines(g, under)
	}
}

// rewound notes a record that the newest state does not come from.
const rewound = "rewound"

func (d commitDoc) note() term.Styled {
	switch {
	case d.Head:
		return term.Current.Of("head")
	case d.Rewound:
		return term.Faint.Of(rewound)
	}
	return term.Styled{}
}

// changes returns what d counts on one line: "created 2; Position +2 wrote 3".
func (d commitDoc) changes() string {
	var parts []string
	part := func(n int, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	for _, name := range d.Marks {
		parts = append(parts, "mark:"+name)
	}
	part(d.Cleared, "cleared the world %d×")
	part(d.Created, "created %d")
	part(d.Destroyed, "destroyed %d")
	for _, c := range d.Components {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, "; ")
}

// String returns what c counts: "Position +2 -1 cleared 1× wrote 3".
func (c changeDoc) String() string {
	s := c.Name
	for _, n := range []struct {
		n      int
		format string
	}{{c.Added, " +%d"}, {c.Removed, " -%d"}, {c.Cleared, " cleared %d×"}, {c.Written, " wrote %d"}} {
		if n.n > 0 {
			s += fmt.Sprintf(n.format, n.n)
		}
	}
	if c.RowsAfter != c.RowsBefore+c.Added-c.Removed {
		s += fmt.Sprintf(" (%d → %d rows)", c.RowsBefore, c.RowsAfter)
	}
	return s
}

// String returns o on one line: "add Position 12v3".
func (o operationDoc) String() string {
	return strings.Join(slices.DeleteFunc([]string{o.Op, o.Component, o.Entity}, func(s string) bool { return s == "" }), " ")
}
