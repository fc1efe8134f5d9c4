package dump

import (
	"cmp"
	"errors"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Diff compares two states, of one store or of two. Counts are of all that differs, whatever a limit
// shows. The exit status says whether they differ, as that of diff(1) does; so a difference is a
// failure that is not reported.

// diffDoc is what diff --json prints.
type diffDoc struct {
	*firstDoc                    // With --first; nothing else if no tick differs.
	Old         diffSideDoc      `json:"old"`
	New         diffSideDoc      `json:"new"`
	Same        bool             `json:"same"`
	Schema      []typeDifference `json:"schema"`
	Entities    entitiesDiffDoc  `json:"entities"`
	Components  []rowCounts      `json:"components"`  // Those with rows that differ.
	Total       int              `json:"total"`       // Differences that the filters leave.
	Differences []differenceDoc  `json:"differences"` // Resources, then by entity; as many as --limit allows, none with --stat.
}

// A diffSideDoc names one of the two states.
type diffSideDoc struct {
	Store string `json:"store"`
	stateDoc
}

// A typeDifference is something that the types of the two states say differently.
type typeDifference struct {
	Component string `json:"component"`
	Field     string `json:"field,omitempty"` // Path of the field that is meant, or "": the component.
	Old       string `json:"old,omitempty"`   // Missing where there is none.
	New       string `json:"new,omitempty"`
}

// An entitiesDiffDoc counts entities that differ.
type entitiesDiffDoc struct {
	Created   int `json:"created"`
	Destroyed int `json:"destroyed"`
	Moved     int `json:"moved"` // In another row among all entities.
	Free      int `json:"free"`  // Indices without an entity in either state, with another generation or order.
}

// A rowCounts counts rows that differ.
type rowCounts struct {
	Name    string `json:"name"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Moved   int    `json:"moved"` // In another row; they may count as changed as well.
}

// A differenceDoc is an entity, a component of an entity, or a resource that
// differs.
type differenceDoc struct {
	Entity    string         `json:"entity,omitempty"`    // Missing for a resource.
	Component string         `json:"component,omitempty"` // Missing if the entity itself is meant.
	Change    string         `json:"change"`              // created, destroyed, added, removed, changed or moved.
	OldRow    *int           `json:"old_row,omitempty"`
	NewRow    *int           `json:"new_row,omitempty"`
	Old       any            `json:"old,omitempty"` // Value of a component that was removed or changed.
	New       any            `json:"new,omitempty"` // Value of a component that was added or changed.
	Fields    []fieldDiffDoc `json:"fields,omitempty"`
}

// firstDoc says where two histories part.
type firstDoc struct {
	Compared int            `json:"compared"`   // Ticks that both have.
	Equal    *commonTickDoc `json:"last_equal"` // null: the states differ after all of them.
	First    *commonTickDoc `json:"first"`      // null: they differ after none.
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

Show what is different in state B, as against A: entities, components field by
field, resources, types, and how many rows lie in another order.

  ecsdump diff D             what the newest tick changed
  ecsdump diff D 100         tick 100 and the newest state
  ecsdump diff D 100 200     two ticks; also 100..200
  ecsdump diff D E           two stores or saves, each at its newest state
  ecsdump diff D E --at 100  both at tick 100; --at2 is for the second one
  ecsdump diff D E --first   at the first tick after which they differ

Lines begin with + (only in B), - (only in A), ~ (another value) or > (another
order). Values are compared by their bytes: 0 and -0 differ, as do two NaNs that
are not the same. An argument that can be a point in time is one; write ./100 for
a file of that name.

Exit status: 0 the states hold the same, 1 they differ.`,
	example: `  ecsdump diff D mark:start..@latest --stat
  ecsdump diff D 100 200 --component Position --limit 0
  ecsdump diff D slot1.save
  ecsdump diff server client --first`,
	complete: []completer{(*completion).ranges, (*completion).points},
	run: func(f flags) action {
		var d differ
		f.StringVar(&d.at, "at", "", "point in time of the stores; with --at2 of the first one")
		f.StringVar(&d.at2, "at2", "", "point in time of the second store")
		f.StringSliceVar(&d.components, "component", nil, "only these components and resources (a comma between, or the flag again)")
		f.entities(&d.entities, "only these entities")
		f.BoolVar(&d.stat, "stat", false, "only count what differs, by component")
		f.BoolVar(&d.first, "first", false, "compare the histories, and show the first tick after which they differ")
		f.BoolVar(&d.order, "order", false, "list also what only lies in another row")
		f.limit(&d.limit, "differences")
		return d.run
	},
}

// A differ says what to compare, and how much of it to show. What it compares is found by package
// inspect, without reading pages that the two states share; it then filters, counts all that is
// left, and describes no more than is shown: values are read only for that.
type differ struct {
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

// String returns d as the first lines of a diff name it.
func (d diffSideDoc) String() string { return d.Store + " at " + d.place() }

// run opens what the arguments name. The same store is opened once, so that its two states
// share pages and are compared without reading these.
func (d *differ) run(c *call) error {
	ends := diffEnds(c.args)
	if ends.store == "" && d.at+d.at2 != "" {
		return c.misused("--at and --at2 are for two stores; of one, give the points themselves")
	}
	return c.read(c.args[0], func(s *source) error { // A second store is open while the first is.
		if ends.store == "" {
			return d.compare(&diffSide{source: s, at: ends.a}, &diffSide{source: s, at: ends.b})
		}
		return c.read(ends.store, func(t *source) error {
			return d.compare(&diffSide{source: s, at: d.at}, &diffSide{source: t, at: cmp.Or(d.at2, d.at)})
		})
	})
}

// compare compares t with s. Points are resolved before anything is read, so that a wrong one
// is told at once.
func (d *differ) compare(s, t *diffSide) (err error) {
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
		if first.First == nil {
			return s.tell(first)
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
	if s.json {
		err = stream(s.app, doc, each(len(shown), func(i int) (differenceDoc, error) { return shown[i].doc() }))
	} else {
		err = d.print(s.app, doc, shown)
	}
	if err == nil && !doc.Same {
		err = &failure{code: exitProblem, err: errDiffer}
	}
	return err
}

// onlyComponents takes out of diff what is not about these components: entities too.
func onlyComponents(diff *inspect.Diff, names []string) {
	diff.Registry = inspect.RegistryDiff{} // Who was created is about no component.
	diff.Components = slices.DeleteFunc(diff.Components, func(c *inspect.ComponentDiff) bool { return !slices.Contains(names, c.Name) })
	diff.Schema = slices.DeleteFunc(diff.Schema, func(c inspect.SchemaDiff) bool { return !slices.Contains(names, c.Component) })
}

// filter takes out of diff what is not asked for.
func (d *differ) filter(s *source, diff *inspect.Diff) error {
	if len(d.components) > 0 {
		known := listed(diff.Components, func(c *inspect.ComponentDiff) string { return c.Name })
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
	// What is left is about these entities alone: types, and indices without an entity, are not.
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

// document describes diff, without the differences that are to be shown: these are described one
// by one, for people as lines and for programs as documents.
func (d *differ) document(diff *inspect.Diff) (doc *diffDoc, shown []difference) {
	r := diff.Registry
	doc = &diffDoc{
		Same: diff.Same(), Components: []rowCounts{}, Differences: []differenceDoc{},
		Schema:   listed(diff.Schema, func(s inspect.SchemaDiff) typeDifference { return typeDifference(s) }),
		Entities: entitiesDiffDoc{len(r.Created), len(r.Destroyed), len(r.Moved), r.Free},
	}
	for _, c := range diff.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			doc.Components = append(doc.Components, rowCounts{c.Name, added, removed, changed, moved})
		}
	}
	all := differences(diff, d.order)
	doc.Total = len(all)
	if !d.stat {
		n, _ := d.limit.of(len(all))
		shown = all[:n]
	}
	return doc, shown
}

// A difference is one thing that differs: an entity, or its row of a component.
type difference struct {
	entity    ecs.Entity
	change    string                 // created, destroyed, added, removed, changed or moved.
	component *inspect.ComponentDiff // nil: the entity itself.
	row       inspect.RowDiff
}

// differences returns what differs: resources, then entity by entity, each with
// what became of it first. What only moved is left out unless moved is set.
func differences(diff *inspect.Diff, moved bool) []difference {
	var all []difference
	for _, e := range diff.Registry.Destroyed {
		all = append(all, difference{entity: e, change: "destroyed"})
	}
	for _, e := range diff.Registry.Created {
		all = append(all, difference{entity: e, change: "created"})
	}
	if moved {
		for _, m := range diff.Registry.Moved {
			all = append(all, difference{entity: m.Entity, change: "moved", row: inspect.RowDiff{OldRow: m.OldRow, NewRow: m.NewRow}})
		}
	}
	for _, c := range diff.Components {
		for i := range c.Rows {
			if change := changeOf(c.Rows[i]); moved || change != "moved" {
				all = append(all, difference{c.Rows[i].Entity, change, c, c.Rows[i]})
			}
		}
	}
	// By entity, since what became of one belongs together; the order of components stays. A
	// resource has entity 0, index 0 in generation 0, which none that lives has: it comes first.
	slices.SortStableFunc(all, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.entity.Index(), b.entity.Index()), cmp.Compare(a.entity.Generation(), b.entity.Generation()))
	})
	return all
}

// names returns the entity and the component that differ. A resource has no entity; what
// differs in no component is the entity itself.
func (x difference) names() (entity, component string) {
	if x.component == nil {
		return x.entity.String(), ""
	}
	return holder(x.entity, x.component.Resource), x.component.Name
}

// changeOf names what became of a row. One that changed and moved counts as changed.
func changeOf(r inspect.RowDiff) string {
	switch {
	case r.Added():
		return "added"
	case r.Removed():
		return "removed"
	case r.Changed:
		return "changed"
	}
	return "moved"
}

// diverge compares the histories of two states.
func (d *differ) diverge(s, t *diffSide) (*firstDoc, error) {
	for _, x := range []*diffSide{s, t} {
		if x.IsSave() {
			return nil, fail(exitUsage, try("diff", s.path, t.path), "%s: a save has no history; --first compares stores", x.path)
		}
	}
	div, err := s.Part(s.ctx, s.doc.Seq, t.View, t.doc.Seq)
	if errors.Is(err, persist.ErrNotFound) {
		return nil, fail(exitNotFound, try("log", t.path), "%s and %s have no tick in common: %w", s.path, t.path, err)
	}
	if err != nil {
		return nil, err
	}
	return &firstDoc{div.Compared, (*commonTickDoc)(div.Equal), (*commonTickDoc)(div.First)}, nil
}

// print says where the histories part, before what differs there.
func (d *firstDoc) print(a *app) {
	switch {
	case d.First == nil:
		a.Line("no differences up to tick %d, the last that both have", d.Equal.Tick)
	case d.Equal == nil:
		a.Line("no tick is the same; tick %d is the first that both have", d.First.Tick)
	default:
		a.Line("the same up to tick %d (records %d and %d); tick %d differs", d.Equal.Tick, d.Equal.Old, d.Equal.New, d.First.Tick)
	}
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

// doc describes x. Rows are told even where no value differs, as order is part of a state.
func (x difference) doc() (doc differenceDoc, err error) {
	doc.Change = x.change
	doc.Entity, doc.Component = x.names()
	if x.change == "created" || x.change == "destroyed" {
		return doc, nil
	}
	doc.OldRow, doc.NewRow = present(x.row.OldRow), present(x.row.NewRow)
	if x.change == "moved" {
		return doc, nil
	}
	before, after, err := x.values()
	if err != nil {
		return doc, err
	}
	doc.Old, doc.New = versusJSON(before, after)
	fields, err := x.component.Fields(x.row)
	doc.Fields = fieldDiffDocs(fields)
	return doc, err
}

// print prints doc for people.
func (d *differ) print(a *app, doc *diffDoc, shown []difference) error {
	if doc.firstDoc != nil {
		doc.firstDoc.print(a)
	}
	a.Line("--- %v", doc.Old)
	a.Line("+++ %v", doc.New)
	g := a.Grid()
	for _, s := range doc.Schema {
		s.print(g)
	}
	for _, x := range shown {
		if err := x.print(g); err != nil {
			return err
		}
	}
	g.Flush()
	if !d.stat {
		a.more(doc.Total-len(shown), doc.Total, "difference", "differences")
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
		g.Row("(entities)", some(e.Created), some(e.Destroyed), "", some(e.Moved))
	}
	for _, c := range doc.Components {
		g.Row(c.Name, some(c.Added), some(c.Removed), some(c.Changed), some(c.Moved))
	}
	if n := doc.Entities.Free; n > 0 {
		g.Text("%s without an entity: in generation, or when it is reused", term.Count(n, "index differs", "indices differ"))
	}
	g.Flush()
	return nil
}

// print prints how a type differs: "~ type Health.Now: int16 → int64".
func (d typeDifference) print(g *term.Grid) {
	diffLine(g, "type "+joined(".", d.Component, d.Field), d.Old, d.New)
}

// print prints the lines of x: one for each field that differs.
func (x difference) print(g *term.Grid) error {
	entity, component := x.names()
	name := joined(".", entity, component)
	switch x.change {
	case "created":
		g.StyledText(term.Added, "+ %s", name)
	case "destroyed":
		g.StyledText(term.Removed, "- %s", name)
	case "moved":
		g.StyledText(term.Faint, "> %s: row %d → %d", name, x.row.OldRow, x.row.NewRow)
	case "added", "removed":
		style, sign := term.Added, "+"
		before, v, err := x.values()
		if x.change == "removed" {
			style, sign, v = term.Removed, "-", before
		}
		if err != nil {
			return err
		}
		g.StyledText(style, "%s %s", sign, labelled(valueDoc{Name: name, Kind: rowKind(v.Type()), Value: v}))
	case "changed":
		fields, err := x.component.Fields(x.row)
		for _, f := range fields {
			before, after := versus(f.Old, f.New)
			if f.Old.Kind() == 0 {
				before, after = "", f.New.String()
			} else if f.New.Kind() == 0 {
				before, after = f.Old.String(), ""
			}
			diffLine(g, name+dotted(f.Path), before, after)
		}
		return err
	}
	return nil
}

// diffLine prints what differs, which one of the states may lack.
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
