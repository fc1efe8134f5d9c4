package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

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
	Old  uint64 `json:"old_seq"`
	New  uint64 `json:"new_seq"`
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
		f.StringSliceVar(&d.entities, "entity", nil, "only these entities")
		f.BoolVar(&d.stat, "stat", false, "only count what differs, by component")
		f.BoolVar(&d.first, "first", false, "compare the histories, and show the first tick after which they differ")
		f.BoolVar(&d.order, "order", false, "list also what only lies in another row")
		f.limit(&d.limit, 100, "differences")
		return func(c *call) error {
			return d.run(c.ctx, c.app, c.args)
		}
	},
}

// A differ says what to compare, and how much of it to show.
type differ struct {
	at, at2     string
	components  []string
	entities    []string
	stat, order bool
	first       bool
	limit       limit

	only map[ecs.Entity]bool // From entities; nil: all.
}

// A diffSide is one of the two states.
type diffSide struct {
	*source
	seq  uint64
	tick uint64
}

func (s diffSide) String() string {
	return fmt.Sprintf("%s at tick %d, record %d", s.path, s.tick, s.seq)
}

func (d *differ) run(ctx context.Context, a *app, args []string) error {
	for _, text := range d.entities {
		e, err := parseEntity(args[0], text)
		if err != nil {
			return err
		}
		if d.only == nil {
			d.only = map[ecs.Entity]bool{}
		}
		d.only[e] = true
	}
	ends := diffEnds(args)
	return a.read(ctx, args[0], func(s *source) error {
		if ends.store == "" {
			return d.compare(ctx, a, s, ends.a, s, ends.b)
		}
		return a.read(ctx, ends.store, func(t *source) error {
			at2 := d.at2
			if at2 == "" {
				at2 = d.at
			}
			return d.compare(ctx, a, s, d.at, t, at2)
		})
	})
}

// ends are what the arguments of diff name.
type ends struct {
	a, b  string // Points of the one store.
	store string // Else the second one.
}

func diffEnds(args []string) ends {
	switch {
	case len(args) == 1:
		return ends{a: "@latest~1"}
	case len(args) == 3:
		return ends{a: args[1], b: args[2]}
	}
	if first, last, ok := strings.Cut(args[1], ".."); ok && (isPoint(first) || first == "") && (isPoint(last) || last == "") {
		if first == "" {
			first = "@first"
		}
		return ends{a: first, b: last}
	}
	if isPoint(args[1]) { // After ranges: a name may hold dots, as in snap:2..9.
		return ends{a: args[1]}
	}
	return ends{store: args[1]}
}

// isPoint reports whether text is written like a point in time, not like a path.
func isPoint(text string) bool {
	text, _, _ = strings.Cut(text, "~")
	digits := strings.Trim(text, "0123456789") == ""
	kind, _, ok := strings.Cut(text, ":")
	return text != "" && (digits || text[0] == '@' || ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && kind != "")
}

// compare compares t at b with s at a.
func (d *differ) compare(ctx context.Context, a *app, s *source, from string, t *source, to string) error {
	older, err := s.Resolve(from)
	if err != nil {
		return classify(s.path, err)
	}
	newer, err := t.Resolve(to)
	if err != nil {
		return classify(t.path, err)
	}
	var first *firstDoc
	if d.first {
		if first, err = d.diverge(ctx, s, older, t, newer); err != nil {
			return err
		}
		if first.First == nil {
			return first.print(a)
		}
		older, newer = first.First.Old, first.First.New
	}
	diff, err := persist.DiffViews(ctx, s.View, older, t.View, newer)
	if err != nil {
		return err
	}
	if err := d.filter(s, diff); err != nil {
		return err
	}
	sides := [2]diffSide{{s, older, diff.OldTick}, {t, newer, diff.NewTick}}
	if a.json {
		err = d.json(a, sides, diff, first)
	} else {
		err = errors.Join(first.print(a), d.print(a, sides, diff))
	}
	if err == nil && !diff.Same() {
		err = &failure{exitProblem, errDiffer, ""}
	}
	return err
}

// filter takes out of diff what is not asked for.
func (d *differ) filter(s *source, diff *persist.Diff) error {
	if len(d.components) > 0 {
		if err := d.filterComponents(s, diff); err != nil {
			return err
		}
	}
	if d.only == nil {
		return nil
	}
	others := func(e ecs.Entity) bool { return !d.only[e] }
	diff.Schema = nil
	diff.Registry.Created = slices.DeleteFunc(diff.Registry.Created, others)
	diff.Registry.Destroyed = slices.DeleteFunc(diff.Registry.Destroyed, others)
	diff.Registry.Moved = slices.DeleteFunc(diff.Registry.Moved, func(m persist.EntityMove) bool { return others(m.Entity) })
	diff.Registry.Free = 0
	for _, c := range diff.Components {
		c.Rows = slices.DeleteFunc(c.Rows, func(r persist.RowDiff) bool { return others(r.Entity) })
	}
	return nil
}

func (d *differ) filterComponents(s *source, diff *persist.Diff) error {
	var known []string
	for _, c := range diff.Components {
		known = append(known, c.Name)
	}
	for _, name := range d.components {
		if !slices.Contains(known, name) {
			return s.noComponent(name, known)
		}
	}
	diff.Registry = persist.RegistryDiff{}
	diff.Components = slices.DeleteFunc(diff.Components, func(c *persist.ComponentDiff) bool { return !slices.Contains(d.components, c.Name) })
	diff.Schema = slices.DeleteFunc(diff.Schema, func(c persist.SchemaDiff) bool { return !slices.Contains(d.components, c.Component) })
	return nil
}

// A difference is one thing that differs: an entity, or its row of a component.
type difference struct {
	entity    ecs.Entity
	change    string                 // created, destroyed, added, removed, changed or moved.
	component *persist.ComponentDiff // nil: the entity itself.
	row       persist.RowDiff
}

// differences returns what differs: resources, then entity by entity, each with
// what became of it first. What only moved is left out unless moved is set.
func differences(diff *persist.Diff, moved bool) []difference {
	var all []difference
	for _, e := range diff.Registry.Destroyed {
		all = append(all, difference{entity: e, change: "destroyed"})
	}
	for _, e := range diff.Registry.Created {
		all = append(all, difference{entity: e, change: "created"})
	}
	if moved {
		for _, m := range diff.Registry.Moved {
			all = append(all, difference{entity: m.Entity, change: "moved", row: persist.RowDiff{OldRow: m.OldRow, NewRow: m.NewRow}})
		}
	}
	for _, c := range diff.Components {
		for i := range c.Rows {
			if change := changeOf(c.Rows[i]); moved || change != "moved" {
				all = append(all, difference{c.Rows[i].Entity, change, c, c.Rows[i]})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.entity.Index(), b.entity.Index()), cmp.Compare(a.entity.Generation(), b.entity.Generation()))
	})
	return all
}

// order puts resources before entities.
func (x difference) order() int {
	if x.component != nil && x.component.Resource {
		return 0
	}
	return 1
}

func changeOf(r persist.RowDiff) string {
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
func (d *differ) diverge(ctx context.Context, s *source, older uint64, t *source, newer uint64) (*firstDoc, error) {
	for _, x := range []*source{s, t} {
		if x.IsSave() {
			return nil, fail(exitUsage, try("diff", s.path, t.path), "%s: a save has no history; --first compares stores", x.path)
		}
	}
	div, err := persist.Part(ctx, s.View, older, t.View, newer)
	if errors.Is(err, persist.ErrNotFound) {
		return nil, fail(exitNotFound, try("log", t.path), "%s and %s have no tick in common: %w", s.path, t.path, err)
	}
	if err != nil {
		return nil, err
	}
	return &firstDoc{div.Compared, commonTickDocOf(div.Equal), commonTickDocOf(div.First)}, nil
}

func commonTickDocOf(c *persist.CommonTick) *commonTickDoc {
	if c == nil {
		return nil
	}
	return &commonTickDoc{c.Tick, c.Old, c.New}
}

// print prints d, if there is one.
func (d *firstDoc) print(a *app) error {
	switch {
	case d == nil:
	case a.json:
		return a.document(d)
	case d.First == nil:
		a.Line("no differences up to tick %d, the last that both have", d.Equal.Tick)
	case d.Equal == nil:
		a.Line("no tick is the same; tick %d is the first that both have", d.First.Tick)
	default:
		a.Line("the same up to tick %d (records %d and %d); tick %d differs", d.Equal.Tick, d.Equal.Old, d.Equal.New, d.First.Tick)
	}
	return nil
}

func (d *differ) json(a *app, sides [2]diffSide, diff *persist.Diff, first *firstDoc) error {
	doc := diffDoc{
		firstDoc: first,
		Old:      sides[0].doc(), New: sides[1].doc(), Same: diff.Same(),
		Schema: []typeDifference{}, Components: []rowCounts{}, Differences: []differenceDoc{},
		Entities: entitiesDiffDoc{len(diff.Registry.Created), len(diff.Registry.Destroyed), len(diff.Registry.Moved), diff.Registry.Free},
	}
	for _, s := range diff.Schema {
		doc.Schema = append(doc.Schema, typeDifference(s))
	}
	for _, c := range diff.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			doc.Components = append(doc.Components, rowCounts{c.Name, added, removed, changed, moved})
		}
	}
	all := differences(diff, d.order)
	doc.Total = len(all)
	shown, _ := d.limit.of(len(all))
	if d.stat {
		shown = 0
	}
	for _, x := range all[:shown] {
		e, err := x.doc()
		if err != nil {
			return err
		}
		doc.Differences = append(doc.Differences, e)
	}
	return a.document(doc)
}

func (s diffSide) doc() diffSideDoc { return diffSideDoc{s.path, stateDoc{s.tick, s.seq}} }

func (x difference) doc() (doc differenceDoc, err error) {
	doc.Change = x.change
	if x.component == nil || !x.component.Resource {
		doc.Entity = x.entity.String()
	}
	if x.change == "created" || x.change == "destroyed" {
		return doc, nil
	}
	if x.row.OldRow >= 0 {
		doc.OldRow = &x.row.OldRow
	}
	if x.row.NewRow >= 0 {
		doc.NewRow = &x.row.NewRow
	}
	if x.component == nil {
		return doc, nil
	}
	doc.Component = x.component.Name
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

// print prints diff for people.
func (d *differ) print(a *app, sides [2]diffSide, diff *persist.Diff) error {
	a.Line("--- %v", sides[0])
	a.Line("+++ %v", sides[1])
	g := a.Grid()
	for _, s := range diff.Schema {
		diffLine(g, "%s", schemaLine(s))
	}
	var more int
	if !d.stat {
		all := differences(diff, d.order)
		shown, left := d.limit.of(len(all))
		for _, x := range all[:shown] {
			if err := x.print(g); err != nil {
				return err
			}
		}
		more = left
	}
	g.Flush()
	if more > 0 {
		a.Line("%d more of %s; --limit 0 prints all", more, term.Count(more+int(d.limit), "difference", "differences"))
	}
	return d.summary(a, diff)
}

// summary counts what differs, or says that nothing does.
func (d *differ) summary(a *app, diff *persist.Diff) error {
	if diff.Same() {
		a.Line("no differences")
		return nil
	}
	if !d.stat {
		a.Line("")
	}
	g := a.Grid("COMPONENT", ">ADDED", ">REMOVED", ">CHANGED", ">MOVED")
	if r := diff.Registry; len(r.Created)+len(r.Destroyed)+len(r.Moved) > 0 {
		g.Row("(entities)", len(r.Created), len(r.Destroyed), "", len(r.Moved))
	}
	for _, c := range diff.Components {
		if len(c.Rows) > 0 {
			added, removed, changed, moved := c.Count()
			g.Row(c.Name, added, removed, changed, moved)
		}
	}
	if n := diff.Registry.Free; n > 0 {
		g.Text("%s without an entity: in generation, or when it is reused", term.Count(n, "index differs", "indices differ"))
	}
	g.Flush()
	return nil
}

// schemaLine returns how a type differs: "~ Health.Now: int16 → int64".
func schemaLine(s persist.SchemaDiff) string {
	what := "type " + s.Component
	if s.Field != "" {
		what += "." + s.Field
	}
	switch {
	case s.Old == "":
		return "+ " + what + ": " + s.New
	case s.New == "":
		return "- " + what + ": " + s.Old
	}
	return "~ " + what + ": " + s.Old + " → " + s.New
}

// print prints the lines of x: one for each field that differs.
func (x difference) print(g *term.Grid) error {
	switch {
	case x.change == "created":
		diffLine(g, "+ %v", x.entity)
		return nil
	case x.change == "destroyed":
		diffLine(g, "- %v", x.entity)
		return nil
	case x.component == nil:
		diffLine(g, "> %v: row %d → %d", x.entity, x.row.OldRow, x.row.NewRow)
		return nil
	case x.change == "moved":
		diffLine(g, "> %s: row %d → %d", x.name(), x.row.OldRow, x.row.NewRow)
		return nil
	case x.change == "changed":
		return x.printFields(g)
	}
	before, after, err := x.values()
	if err != nil {
		return err
	}
	if x.change == "added" {
		diffLine(g, "+ %s", x.whole(after))
	} else {
		diffLine(g, "- %s", x.whole(before))
	}
	return nil
}

// name returns what x is about: "12v3.Position", or the name of a resource.
func (x difference) name() string {
	if x.component.Resource {
		return x.component.Name
	}
	return x.entity.String() + "." + x.component.Name
}

// whole returns the row of x on one line: 12v3.Position{X:1 Y:2}, 12v3.Health=5,
// 12v3.Frozen.
func (x difference) whole(v layout.Value) string {
	return labelled(valueDoc{Name: x.name(), Kind: rowKind(v), Value: v})
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

func (x difference) printFields(g *term.Grid) error {
	fields, err := x.component.Fields(x.row)
	if err != nil {
		return err
	}
	for _, f := range fields {
		name := x.name() + dotted(f.Path)
		switch {
		case f.Old.Kind() == 0:
			diffLine(g, "+ %s: %v", name, f.New)
		case f.New.Kind() == 0:
			diffLine(g, "- %s: %v", name, f.Old)
		default:
			before, after := versus(f.Old, f.New)
			diffLine(g, "~ %s: %s → %s", name, before, after)
		}
	}
	return nil
}

// diffLine prints a line in the colour of the sign it begins with.
func diffLine(g *term.Grid, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	g.StyledText(map[byte]term.Style{'+': term.Added, '-': term.Removed, '~': term.Changed, '>': term.Faint}[text[0]], "%s", text)
}
