package dump

import (
	"cmp"
	"errors"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command diff compares two states of one store or of two stores, in four steps:
//
//   - diffEnds parses the arguments: two points, or a second store.
//   - With --first, diverge() moves the points to the first tick that differs.
//   - Package inspect compares the states.
//   - The differences are filtered, counted, and printed as JSON or lines.
//
// As in diff(1), the exit status is 1 if the states differ. Counts include the differences that a
// limit leaves out.

// diffDoc is what diff --json prints.
type diffDoc struct {
	// Only with --first. If no tick differs, the document has no other members.
	*firstDoc
	Old  diffSideDoc `json:"old"`
	New  diffSideDoc `json:"new"`
	Same bool        `json:"same"`
	// The builds that wrote the two states, if the builds differ.
	Builds     *describe.Builds `json:"builds,omitempty"`
	Schema     []typeDifference `json:"schema"`
	Entities   entitiesDiffDoc  `json:"entities"`
	Components []rowCounts      `json:"components"` // Components with rows that differ.
	// Number of differences that pass the filters.
	Total int `json:"total"`
	// Resources, then entities in order; at most --limit, and none with --stat.
	Differences []differenceDoc `json:"differences"`
}

// A diffSideDoc names one of the two states.
type diffSideDoc struct {
	Store string `json:"store"`
	stateDoc
}

// A typeDifference is a difference between the types of the two states.
type typeDifference struct {
	Component string `json:"component"`
	Field     string `json:"field,omitempty"` // Path of the field, or "" for the component.
	Old       string `json:"old,omitempty"`   // Missing if the old state lacks the field.
	New       string `json:"new,omitempty"`
}

// An entitiesDiffDoc counts entities that differ.
type entitiesDiffDoc struct {
	Created   int `json:"created"`
	Destroyed int `json:"destroyed"`
	Moved     int `json:"moved"` // Entities in another row of the entity array.
	// Indices that are free in both states, but with another generation or in another order.
	Free int `json:"free"`
}

type rowCounts = describe.RowCounts

// A differenceDoc is an entity, a component of an entity, or a resource that differs.
type differenceDoc struct {
	Entity    string `json:"entity,omitempty"`    // Missing for a resource.
	Component string `json:"component,omitempty"` // Missing if the entity itself differs.
	// Kind of change: created, destroyed, added, removed, changed or moved.
	Change string         `json:"change"`
	OldRow *int           `json:"old_row,omitempty"`
	NewRow *int           `json:"new_row,omitempty"`
	Old    any            `json:"old,omitempty"` // Value of a removed or changed component.
	New    any            `json:"new,omitempty"` // Value of an added or changed component.
	Fields []fieldDiffDoc `json:"fields,omitempty"`
}

// firstDoc says where two histories diverge.
type firstDoc struct {
	Compared int            `json:"compared"`   // Number of ticks that both histories have.
	Equal    *commonTickDoc `json:"last_equal"` // The last equal tick; null if all ticks differ.
	// The first tick that differs; null if no tick differs.
	First *commonTickDoc `json:"first"`
}

// A commonTickDoc is a tick that both histories have.
type commonTickDoc struct {
	Tick uint64 `json:"tick"`
	Old  uint64 `json:"old_record"`
	New  uint64 `json:"new_record"`
}

var diffCommand = command{
	use: "diff STORE [A [B] | A..B | STORE2]",
	doc: `Show how two states differ, in one store or in two

Show what changed from state A to state B: entities, components field by field,
resources, types, and the number of rows in another order.

  ecsdump diff D             what the newest tick changed
  ecsdump diff D 100         tick 100 and the newest state
  ecsdump diff D 100 200     two ticks; also 100..200
  ecsdump diff D E           two stores or saves, each at its newest state
  ecsdump diff D E --at 100  both at tick 100; --at2 selects another tick of E
  ecsdump diff D E --first   at the first tick after which they differ

Lines begin with + (only in B), - (only in A), ~ (another value) or > (another row).
Values are compared by their bytes: 0 and -0 differ, and so do two NaNs with different
bits. An argument that can be a point in time is taken as one; write ./100 for a file
of that name.

If different builds or machines wrote the two states, diff names both: results of
floating-point operations may depend on them (docs/MACHINES.md).

Exit status: 0 if the states are equal, 1 if they differ.`,
	example: `  ecsdump diff D mark:start..@latest --stat
  ecsdump diff D 100 200 --component Position --limit 0
  ecsdump diff D game1.save
  ecsdump diff server client --first`,
	complete: []completer{(*completion).ranges, (*completion).points},
	run: func(f flags) action {
		var d diffCmd
		f.StringVar(&d.at, "at", "", "point in time in both stores, or with --at2 in the first one")
		f.StringVar(&d.at2, "at2", "", "point in time in the second store")
		f.StringSliceVar(&d.components, "component", nil, "only these components and resources (comma-separated, or repeat the flag)")
		f.entities(&d.entities, "only these entities")
		f.BoolVar(&d.stat, "stat", false, "only count what differs, by component")
		f.BoolVar(&d.first, "first", false, "compare the histories, and show the first tick after which the states differ")
		f.BoolVar(&d.order, "order", false, "also list entities that only moved to another row")
		f.limit(&d.limit, "differences")
		return d.run
	},
}

// A diffCmd has the flags of a comparison. All differences are filtered and counted, but values are
// read only for the printed differences.
type diffCmd struct {
	at, at2     string
	components  []string
	entities    []string
	stat, order bool
	first       bool
	limit       limit
}

// A diffSide is one of the two states.
type diffSide struct {
	*source
	at  string
	doc diffSideDoc
}

// String returns the description of d in the first lines of a diff.
func (d diffSideDoc) String() string { return d.Store + " at " + d.Place() }

// run opens one or two stores and compares them. With one store, the arguments name the points.
// With two stores, the flags name the points, and --at alone sets both.
func (d *diffCmd) run(c *call) error {
	ends := diffEnds(c.args)
	if ends.store == "" && d.at+d.at2 != "" {
		return c.misused("--at and --at2 are for two stores; for one store, give the points as arguments")
	}
	// The first store stays open while the second is compared with it.
	return c.read(c.args[0], func(s *source) error {
		if ends.store == "" {
			// Both sides share one view, so DiffTo does not read pages that the two states share.
			return d.compare(&diffSide{source: s, at: ends.a}, &diffSide{source: s, at: ends.b})
		}
		return c.read(ends.store, func(t *source) error {
			return d.compare(&diffSide{source: s, at: d.at}, &diffSide{source: t, at: cmp.Or(d.at2, d.at)})
		})
	})
}

// compare compares the old state s with the new state t. With --first, it compares the histories
// that lead to s and t. It then prints the difference of the two states after the first tick that
// differs. If no tick differs, it only prints the result of diverge().
//
// The exit status counts only differences that pass the filters.
func (d *diffCmd) compare(s, t *diffSide) (err error) {
	for _, side := range []*diffSide{s, t} {
		side.doc.Store = side.path
		if side.doc.Seq, err = side.Resolve(side.at); err != nil {
			return classify(side.path, err)
		}
	}
	var first *firstDoc
	if d.first {
		if first, err = d.diverge(s, t); err != nil {
			return err
		}
		// No tick differs: print only this document, with exit status 0.
		if first.First == nil {
			return s.printReport(first)
		}
		s.doc.Seq, t.doc.Seq = first.First.Old, first.First.New
	}
	diff, err := s.DiffTo(s.ctx, s.doc.Seq, t.View, t.doc.Seq)
	if err != nil {
		return err
	}
	s.doc.Tick, t.doc.Tick = diff.OldTick, diff.NewTick
	if err := d.filter(s.source, diff); err != nil {
		return err
	}
	doc, shown := d.document(diff)
	doc.firstDoc, doc.Old, doc.New = first, s.doc, t.doc
	if !doc.Same {
		doc.Builds = describe.BuildsOf(s.Build(s.doc.Seq), t.Build(t.doc.Seq))
	}
	if s.json {
		// As JSON, values are read while the list is printed.
		err = stream(s.app, doc, each(len(shown), func(i int) (differenceDoc, error) { return differenceDocOf(shown[i]) }))
	} else {
		err = d.print(s.app, doc, shown)
	}
	if err == nil && !doc.Same {
		// Report the exit status for different states only if printing succeeded.
		err = &failure{code: exitProblem, err: errDiffer}
	}
	return err
}

// onlyComponents removes from diff all differences outside the named components. It also removes
// created and destroyed entities.
func onlyComponents(diff *inspect.Diff, names []string) {
	// Created and destroyed entities belong to no component.
	diff.Registry = inspect.RegistryDiff{}
	diff.Components = slices.DeleteFunc(diff.Components, func(c *inspect.ComponentDiff) bool { return !slices.Contains(names, c.Name) })
	diff.Schema = slices.DeleteFunc(diff.Schema, func(c inspect.SchemaDiff) bool { return !slices.Contains(names, c.Component) })
}

// filter removes from diff what the flags do not select. It returns an error for a name that
// neither state has.
func (d *diffCmd) filter(s *source, diff *inspect.Diff) error {
	if len(d.components) > 0 {
		known := describe.Listed(diff.Components, func(c *inspect.ComponentDiff) string { return c.Name })
		for _, name := range d.components {
			if !slices.Contains(known, name) {
				return s.noComponent(name, known)
			}
		}
		onlyComponents(diff, d.components)
	}
	if len(d.entities) == 0 {
		return nil
	}
	// Schema differences and free indices have no entity, so --entity removes them too.
	others := func(e ecs.Entity) bool { return !slices.Contains(d.entities, e.String()) }
	diff.Schema, diff.Registry.Free = nil, 0
	diff.Registry.Created = slices.DeleteFunc(diff.Registry.Created, others)
	diff.Registry.Destroyed = slices.DeleteFunc(diff.Registry.Destroyed, others)
	diff.Registry.Moved = slices.DeleteFunc(diff.Registry.Moved, func(m inspect.RowDiff) bool { return others(m.Entity) })
	for _, c := range diff.Components {
		c.Rows = slices.DeleteFunc(c.Rows, func(r inspect.RowDiff) bool { return others(r.Entity) })
	}
	return nil
}

// document returns the document of diff without its list, and the differences to list. With --stat,
// no difference is listed.
func (d *diffCmd) document(diff *inspect.Diff) (doc *diffDoc, shown []describe.Difference) {
	r := diff.Registry
	doc = &diffDoc{
		Same: diff.Same(), Components: describe.CountsOf(diff), Differences: []differenceDoc{},
		Schema:   describe.Listed(diff.Schema, func(s inspect.SchemaDiff) typeDifference { return typeDifference(s) }),
		Entities: entitiesDiffDoc{len(r.Created), len(r.Destroyed), len(r.Moved), r.Free},
	}
	// Rows that only moved are always counted, but listed only with --order.
	all := describe.Differences(diff, d.order, nil)
	doc.Total = len(all)
	if !d.stat {
		n, _ := d.limit.of(len(all))
		shown = all[:n]
	}
	return doc, shown
}

// diverge finds the first tick that differs between the histories of two states. For two branches
// of one store, it begins at their common ancestor.
func (d *diffCmd) diverge(s, t *diffSide) (*firstDoc, error) {
	for _, x := range []*diffSide{s, t} {
		if x.IsSave() {
			return nil, fail(exitUsage, describe.Command("diff", s.path, t.path), "%s: a save has no history; --first compares stores", x.path)
		}
	}
	div, err := s.FindDivergence(s.ctx, s.doc.Seq, t.View, t.doc.Seq)
	if errors.Is(err, persist.ErrNotFound) {
		return nil, fail(exitNotFound, describe.Command("log", t.path), "%s and %s have no tick in common: %w", s.path, t.path, err)
	}
	if err != nil {
		return nil, err
	}
	return &firstDoc{div.Compared, (*commonTickDoc)(div.Equal), (*commonTickDoc)(div.First)}, nil
}

// print prints where the histories diverge, before the differences at that tick.
func (d *firstDoc) print(a *app) {
	switch {
	case d.First == nil:
		a.Line("no differences up to tick %d, the last that both have", d.Equal.Tick)
	case d.Equal == nil:
		a.Line("no tick is equal; tick %d is the first that both have", d.First.Tick)
	default:
		a.Line("equal up to tick %d (records %d and %d); tick %d differs", d.Equal.Tick, d.Equal.Old, d.Equal.New, d.First.Tick)
	}
}

// differenceDocOf describes x.
func differenceDocOf(x describe.Difference) (doc differenceDoc, err error) {
	doc.Change = x.Change
	doc.Entity, doc.Component = x.Names()
	if x.Change == "created" || x.Change == "destroyed" {
		return doc, nil
	}
	doc.OldRow, doc.NewRow = rowPointer(x.Row.OldRow), rowPointer(x.Row.NewRow)
	// Only the row changed, so the document has no values.
	if x.Change == "moved" {
		return doc, nil
	}
	before, after, err := x.Values()
	if err != nil {
		return doc, err
	}
	doc.Old, doc.New = differingJSON(before, after)
	fields, err := x.Component.Fields(x.Row)
	doc.Fields = fieldDiffDocs(fields)
	return doc, err
}

// print prints doc as text.
func (d *diffCmd) print(a *app, doc *diffDoc, shown []describe.Difference) error {
	if doc.firstDoc != nil {
		doc.firstDoc.print(a)
	}
	a.Line("--- %v", doc.Old)
	a.Line("+++ %v", doc.New)
	if line := doc.Builds.Line("---", "+++"); line != "" {
		a.Line("%s", line)
	}
	g := a.Grid()
	for _, s := range doc.Schema {
		s.print(g)
	}
	for _, x := range shown {
		if err := printDifference(g, x); err != nil {
			return err
		}
	}
	g.Flush()
	if !d.stat {
		a.printMore(doc.Total-len(shown), doc.Total, "difference", "differences")
	}
	if doc.Same {
		a.Line("no differences")
		return nil
	}
	if !d.stat {
		a.Line("")
	}
	g = a.Grid("COMPONENT", ">ADDED", ">REMOVED", ">CHANGED", ">MOVED")
	if e := doc.Entities; e.Created+e.Destroyed+e.Moved > 0 {
		g.Row("(entities)", nonZero(e.Created), nonZero(e.Destroyed), "", nonZero(e.Moved))
	}
	for _, c := range doc.Components {
		g.Row(c.Name, nonZero(c.Added), nonZero(c.Removed), nonZero(c.Changed), nonZero(c.Moved))
	}
	if n := doc.Entities.Free; n > 0 {
		g.Text("%s without an entity: in generation or reuse order", term.Count(n, "index differs", "indices differ"))
	}
	g.Flush()
	return nil
}

// print prints how a type differs: "~ type Health.Now: int16 → int64".
func (d typeDifference) print(g *term.Grid) {
	diffLine(g, "type "+joined(".", d.Component, d.Field), d.Old, d.New)
}

// printDifference prints x, one line for each field that differs.
func printDifference(g *term.Grid, x describe.Difference) error {
	entity, component := x.Names()
	name := joined(".", entity, component)
	switch x.Change {
	case "created":
		g.StyledText(term.Added, "+ %s", name)
	case "destroyed":
		g.StyledText(term.Removed, "- %s", name)
	case "moved":
		g.StyledText(term.Faint, "> %s: row %d → %d", name, x.Row.OldRow, x.Row.NewRow)
	case "added", "removed":
		// Values returns only the new value of an added row, and only the old value of a removed
		// row.
		style, sign := term.Added, "+"
		before, v, err := x.Values()
		if x.Change == "removed" {
			style, sign, v = term.Removed, "-", before
		}
		if err != nil {
			return err
		}
		g.StyledText(style, "%s %s", sign, describe.Labelled(name, v))
	case "changed":
		fields, err := x.Component.Fields(x.Row)
		for _, f := range fields {
			// The old or the new map or slice may lack an element. diffLine expects "" for a
			// missing element.
			before, after := differingTexts(f.Old, f.New)
			if f.Old.Kind() == 0 {
				before, after = "", f.New.String()
			} else if f.New.Kind() == 0 {
				before, after = f.Old.String(), ""
			}
			diffLine(g, name+describe.Dotted(f.Path), before, after)
		}
		return err
	}
	return nil
}

// diffLine prints a difference. If before is "", the old state lacks the value; if after is "", the
// new state lacks it.
func diffLine(g *term.Grid, what, before, after string) {
	switch {
	case before == "":
		g.StyledText(term.Added, "+ %s: %s", what, after)
	case after == "":
		g.StyledText(term.Removed, "- %s: %s", what, before)
	default:
		g.StyledText(term.Changed, "~ %s: %s → %s", what, before, after)
	}
}
