package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
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
	var l limit
	var verbose bool
	cmd := &cobra.Command{
		Use:   "log STORE [A..B]",
		Short: "List what every tick changed",
		Args:  positional(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.read(cmd.Context(), args[0], func(s *source) error {
				entries, err := s.chosen(args[1:])
				if err != nil {
					return err
				}
				_, earlier := l.of(len(entries))
				entries = entries[earlier:]
				if a.json {
					return a.logJSON(cmd.Context(), s, entries, earlier, verbose)
				}
				return a.log(cmd.Context(), s, entries, earlier, verbose)
			})
		},
	}
	l.flag(cmd, 0, "records, the newest")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "list the operations with their entities")
	return cmd
}

// chosen returns the records that the optional range in args names.
func (s *source) chosen(args []string) ([]journal.Entry, error) {
	if len(args) == 0 {
		return s.Log().Entries, nil
	}
	r, err := s.span(args[0])
	if err != nil {
		return nil, err
	}
	var chosen []journal.Entry
	for _, e := range s.Log().Entries {
		if r.holds(e) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no record in %s; there are %s", persist.ErrNotFound, args[0], s.journal())
	}
	return chosen, nil
}

// commits calls f with what entries hold, in their order.
func (s *source) commits(ctx context.Context, entries []journal.Entry, f func(commitDoc, []persist.Op, *persist.Commit)) error {
	known := s.rewoundFrom()
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		commits, err := s.Commits(e.ID.Seq, e.ID.Seq)
		if err != nil {
			return err
		}
		for i := range commits {
			ops, err := commits[i].Ops()
			if err != nil {
				return err
			}
			doc := commitDocOf(&commits[i], ops)
			doc.Head, doc.Rewound = e.ID.Seq == s.Head(), !commits[i].OnHead && e.ID.Seq >= known
			f(doc, ops, &commits[i])
		}
	}
	return nil
}

// commitDocOf describes c, without its operations and its place in the tree.
func commitDocOf(c *persist.Commit, ops []persist.Op) commitDoc {
	doc := commitDoc{
		Seq: c.Seq, Tick: c.Tick, Parent: c.Parent, Time: c.Time, Bytes: c.Bytes,
		Components: []changeDoc{},
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

func (a *app) logJSON(ctx context.Context, s *source, entries []journal.Entry, earlier int, verbose bool) error {
	doc := logDoc{earlier, []commitDoc{}}
	err := s.commits(ctx, entries, func(d commitDoc, ops []persist.Op, c *persist.Commit) {
		if verbose {
			d.Operations = operations(c, ops)
		}
		doc.Commits = append(doc.Commits, d)
	})
	return errors.Join(err, a.document(doc))
}

func (a *app) log(ctx context.Context, s *source, entries []journal.Entry, earlier int, verbose bool) error {
	switch {
	case s.IsSave():
		a.line("a save has no journal")
		return nil
	case len(entries) == 0:
		a.line("the journal has no records")
		return nil
	case earlier > 0:
		a.line("%s before these; --limit 0 prints all", count(earlier, "record", "records"))
	}
	g := a.grid(">RECORD", ">TICK", ">PARENT", "TIME", ">BYTES", "NOTE", "CHANGES")
	g.widen(5, rewound) // Operations between rows must not make columns jump.
	for _, e := range entries {
		for i, n := range []uint64{e.ID.Seq, e.Tick, e.Parent, 0, uint64(e.Length)} {
			g.widen(i, strconv.FormatUint(n, 10))
		}
	}
	err := s.commits(ctx, entries, func(d commitDoc, ops []persist.Op, c *persist.Commit) {
		g.row(d.Seq, d.Tick, d.Parent, d.Time.Format("2006-01-02T15:04:05.000Z07:00"), d.Bytes, d.note(), d.changes())
		if verbose {
			for _, op := range operations(c, ops) {
				g.text("        %s", op)
			}
		}
	})
	return errors.Join(err, g.end())
}

// rewound notes a record that the newest state does not come from.
const rewound = "rewound"

func (d commitDoc) note() styled {
	switch {
	case d.Head:
		return current.of("head")
	case d.Rewound:
		return faint.of(rewound)
	}
	return styled{}
}

// changes returns what d counts on one line: "created 2; Position +2 wrote 3".
func (d commitDoc) changes() string {
	var parts []string
	part := func(n int, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
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
