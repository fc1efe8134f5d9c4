package dump

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command edit creates a new state in three steps:
//
//   - Compile all expressions.
//   - For each selected entity, compute the new rows.
//   - Set these rows in a copy of the state, and write the copy as a new save or store.
//
// Expressions see the state without any assignment. If one expression fails, nothing is written.
// With --dry-run, rows are only counted, and the state is not loaded.

// editDoc is what edit --json prints.
type editDoc struct {
	stateDoc
	Output string `json:"output,omitempty"` // Missing with --dry-run.
	// Digest of the new state; missing with --dry-run.
	Digest   string      `json:"digest,omitempty"`
	Entities int         `json:"entities"` // Number of entities that the filters select.
	Edits    []editedDoc `json:"edits"`    // In the order of the assignments.
}

// An editedDoc counts the values that an assignment of the edit command changed.
type editedDoc struct {
	// The component, resource or field on the left of the assignment.
	Target  string `json:"target"`
	Changed int    `json:"changed"` // Number of values that changed.
	Same    int    `json:"same"`    // Number of values that were already equal.
	Lacking int    `json:"lacking"` // Number of entities without the component.
}

var editCommand = command{
	use: "edit STORE ASSIGNMENT …",
	doc: `Write a new save with changed values

Write a new save of a state in which some fields have other values. STORE can be a save
too, and is only read.

An assignment is 'Component.Field = EXPR'. Its left side is a field, a whole component
or a resource. EXPR is evaluated for each selected entity that has the component. All
expressions use the old values, so 'A.X = A.Y' 'A.Y = A.X' swaps two fields. In a
struct value such as 'Position = {"X": 1}', fields that are missing keep their values.
If the type cannot represent a value, edit reports an error and writes nothing.

Writing loads the whole state, which takes five times the size of a save in memory.
With --dry-run, the state is not loaded.`,
	example: `  ecsdump edit game1.save -o fixed.save 'Health.Current = 10' --where 'Health.Current < 0'
  ecsdump edit D --at 1200 -o trial.save 'Job.Stage = "Idle"' 'Job.Wait = Job.Wait * 2' --dry-run`,
	run: func(f flags) action {
		var e editCmd
		f.output(&e.out, "the save to write; it must not exist")
		f.condition(&e.where, "where", "only entities for which this expression is true; repeat the flag to add a condition")
		f.BoolVar(&e.dry, "dry-run", false, "only print what would change")
		f.BoolVar(&e.store, "store", false, "write a store: a directory that a program can open and continue")
		f.point(&e.at)
		return func(c *call) error {
			if e.out == "" && !e.dry {
				return c.misused("give the output with -o, or use --dry-run")
			}
			// Fail early, before computing the state; writeImage checks again.
			if _, err := os.Lstat(e.out); err == nil && e.out != "" {
				return outputExists(e.out)
			}
			return c.read(c.args[0], func(s *source) error {
				return s.readState(e.at, func(st *inspect.State) error { return e.edit(s, st) })
			})
		}
	},
}

// An editCmd changes values of a state.
type editCmd struct {
	out, at    string
	where      []string
	dry, store bool
}

// An assignment gives a component, or a part of it, new values.
type assignment struct {
	editedDoc
	component *inspect.Component
	number    int          // Number of the component in the sweeper; unused for a resource.
	path      []string     // Path of fields below the component.
	layout    *layout.Type // Layout of the assigned part.
	text      string       // The expression.
	value     *query.Swept // The compiled expression; nil for a resource.
}

// edit creates the new state and writes it. With --dry-run, it only counts the edited rows.
func (e *editCmd) edit(s *source, st *inspect.State) error {
	if !e.dry {
		if err := st.NeedWhole(); err != nil {
			return err
		}
	}
	w := s.sweeper(st)
	where, err := w.compileAll("--where", e.where, query.WantCondition)
	if err != nil {
		return err
	}
	var assignments []*assignment
	for _, text := range s.args[1:] {
		a, err := w.assignment(text)
		if err != nil {
			return err
		}
		// Two assignments to the same field would depend on their order.
		if slices.ContainsFunc(assignments, func(b *assignment) bool { return b.component == a.component && overlap(a.path, b.path) }) {
			return fail(exitUsage, "", "%s is assigned to twice", a.Target)
		}
		assignments = append(assignments, a)
	}
	rows, entities, err := w.computeEdits(where, assignments, !e.dry)
	if err != nil {
		return err
	}
	doc := &editDoc{
		stateDoc: outline(st).doc(), Entities: entities,
		Edits: describe.Listed(assignments, func(a *assignment) editedDoc { return a.editedDoc }),
	}
	if e.dry {
		return s.printReport(doc)
	}
	im, err := repair.Edit(st.Outline(), rows)
	if err != nil {
		return err
	}
	doc.Output, doc.Digest = e.out, im.Digest().String()
	if err := s.writeImage(im, e.out, e.store); err != nil {
		return err
	}
	return s.printReport(doc)
}

// overlap reports whether one of two field paths is a prefix of the other.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// assignment parses "Component.Field = EXPR". The component is the longest known name at the start
// of the target. The fields must be fields of structs. A tag cannot be assigned to.
func (w *sweeper) assignment(text string) (*assignment, error) {
	s, im := w.source, outline(w.State)
	target, expr, ok := query.SplitAssignment(text)
	if !ok {
		return nil, fail(exitUsage, "", "%q is not an assignment; write 'Component.Field = EXPR'", text)
	}
	// Component names may contain dots, as paths do. The longest known name wins.
	name, path := target, ""
	for im.Find(name) == nil {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			// The error of component() suggests similar names.
			_, err := s.component(im, name)
			return nil, err
		}
		name, path = name[:i], joined(".", name[i+1:], path)
	}
	a := &assignment{editedDoc: editedDoc{Target: target}, component: im.Find(name)}
	if a.layout = a.component.Layout; path != "" {
		a.path = strings.Split(path, ".")
	}
	for _, field := range a.path {
		i := slices.IndexFunc(a.layout.Fields, func(f layout.Field) bool { return f.Name == field })
		if i < 0 {
			return nil, s.noField(a, field)
		}
		a.layout = a.layout.Fields[i].Type
	}
	if describe.Kind(a.component.Layout, a.component.Resource) == "tag" {
		return nil, fail(exitUsage, "", "%s is a tag: it has no value", name)
	}
	a.text = expr
	if a.component.Resource {
		// Compile the expression only to find mistakes early. computeEdits evaluates it at the end.
		_, err := s.compile(im, target, expr, query.WantTotal)
		return a, err
	}
	var err error
	a.number = w.Number(a.component)
	a.value, err = w.compile(target, expr, query.WantValue)
	return a, err
}

// noField returns the error of an assignment to an unknown field.
func (s *source) noField(a *assignment, field string) error {
	if a.layout.Kind != layout.Struct {
		return fail(exitUsage, describe.Command("schema", s.path), "%s: no field %q: %s has no fields; assign a whole value", a.Target, field, a.layout)
	}
	names := describe.Listed(a.layout.Fields, func(f layout.Field) string { return f.Name })
	return fail(exitUsage, describe.Command("schema", s.path), "%s: no field %q%s", a.Target, field, near.Hint(field, names))
}

// An editResult has the edited rows and the counts of some entities.
type editResult struct {
	entities int // Number of entities that the filters select.
	// For each assignment: the number of changed, equal and missing values.
	edits []editedDoc
	rows  []repair.RowEdit
}

// computeEdits computes the new rows of the entities that the conditions select. It returns the
// number of these entities, and the rows if the argument wanted is true. The rows of resources come
// last. The conditions do not apply to resources.
func (w *sweeper) computeEdits(where []*query.Swept, assignments []*assignment, wanted bool) (rows []repair.RowEdit, entities int, err error) {
	take := func(found editResult, _ int) error {
		entities += found.entities
		for i, n := range found.edits {
			a := assignments[i]
			a.Changed, a.Same, a.Lacking = a.Changed+n.Changed, a.Same+n.Same, a.Lacking+n.Lacking
		}
		if wanted {
			rows = append(rows, found.rows...)
		}
		return nil
	}
	filter := query.Filter{Where: where}
	err = query.Sweep(w.ctx, &w.Sweeper, func(at query.SweptEntity, found *editResult) error {
		if ok, err := filter.Holds(at); err != nil || !ok {
			return err
		}
		found.entities++
		if !wanted {
			found.rows = found.rows[:0]
		}
		return found.edit(at.Entity(), assignments, func(a *assignment) ([]byte, bool, error) { return at.Row(a.number) },
			func(a *assignment) (query.Answer, error) { return a.value.At(at) })
	}, take)
	if err != nil {
		return nil, 0, err
	}
	var resources editResult
	err = resources.edit(ecs.Vacant, assignments, func(a *assignment) ([]byte, bool, error) { return w.State.Has(a.component, ecs.Vacant) },
		func(a *assignment) (query.Answer, error) {
			return query.World(w.ctx, w.State, a.Target, a.text, query.WantTotal)
		})
	if err == nil {
		err = take(resources, 0)
	}
	return rows, entities, err
}

// edit computes the rows of entity e after all assignments, and adds the changed rows to d. If e is
// [ecs.Vacant], it computes the rows of resources. If two assignments change fields of one
// component, their changes are in one row.
func (d *editResult) edit(e ecs.Entity, assignments []*assignment, rowOf func(*assignment) ([]byte, bool, error), valueOf func(*assignment) (query.Answer, error)) error {
	if d.edits == nil {
		d.edits = make([]editedDoc, len(assignments))
	}
	first := len(d.rows)
	for n, a := range assignments {
		if a.component.Resource != (e == ecs.Vacant) {
			continue
		}
		before, has, err := rowOf(a)
		if err != nil {
			return err
		}
		if !has {
			d.edits[n].Lacking++
			continue
		}
		// i is the index of the row that an earlier assignment edited. It is first-1 if there is no
		// such row.
		i := first + slices.IndexFunc(d.rows[first:], func(r repair.RowEdit) bool { return r.Component == a.component })
		if i >= first {
			before = d.rows[i].Value
		}
		v, err := valueOf(a)
		if err != nil {
			return err
		}
		after, err := a.component.Layout.AppendPatched(nil, before, a.patch(v))
		if err != nil {
			return a.badValue(e, v, err)
		}
		switch {
		case string(after) == string(before):
			d.edits[n].Same++
			continue
		case i >= first:
			d.rows[i].Value = after
		default:
			row := 0 // Row of a resource.
			if e != ecs.Vacant {
				// A dry run never uses the row. It may be wrong then, because the component may not
				// be in memory.
				row = a.component.Find(e)
			}
			d.rows = append(d.rows, repair.RowEdit{Component: a.component, Row: row, Value: after})
		}
		d.edits[n].Changed++
	}
	return nil
}

// badValue returns the error for a value v that the assigned field cannot store. The entity e is
// [ecs.Vacant] for a resource.
func (a *assignment) badValue(e ecs.Entity, v query.Answer, err error) error {
	place, hint := a.Target, ""
	if e != ecs.Vacant {
		place += ": " + e.String()
	}
	if text, ok := v.Text(); ok {
		hint = near.Hint(text, a.layout.Constants)
	}
	return fail(exitUsage, "", "%s: %w%s", place, err, hint)
}

// patch returns v as JSON for the whole component, with the enclosing fields. The layout of the
// component then checks the value against the field's type. Each row has an assignment, its JSON
// and a rule:
//
//	'Position.X = 3'      {"X":3}             enclosing fields are added
//	'State = "Idle"'      2                   a name of a constant becomes a number
//	'Name = "\xff"'       {"base64":"/w=="}   a string that is invalid UTF-8 is in base64
//	'Next = 5'            [5]                 a pointer is in brackets; a null value becomes null
func (a *assignment) patch(v query.Answer) []byte {
	patch, _ := json.Marshal(v) // An answer can always be marshalled.
	if text, ok := v.Text(); ok {
		if number, ok := a.layout.NumberOf(text); ok {
			patch, _ = json.Marshal(number)
		} else if !utf8.ValidString(text) && a.layout.Kind == layout.String {
			patch = []byte(`{"base64":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `"}`)
		}
	}
	if a.layout.Kind == layout.Pointer && !v.Nothing() {
		patch = slices.Concat([]byte("["), patch, []byte("]"))
	}
	for _, field := range slices.Backward(a.path) {
		name, _ := json.Marshal(field)
		patch = slices.Concat([]byte("{"), name, []byte(":"), patch, []byte("}"))
	}
	return patch
}

func (d *editDoc) print(a *app) {
	a.Line("%s, %s selected", d.Place(), term.Count(d.Entities, "entity", "entities"))
	term.Table(a.Out, d.Edits, func(e editedDoc) []any {
		return []any{e.Target, nonZero(e.Changed), nonZero(e.Same), nonZero(e.Lacking)}
	},
		"TARGET", ">CHANGED", ">SAME", ">LACKING")
	if d.Output == "" {
		a.Line("nothing was written, because of --dry-run")
		return
	}
	a.Line("%s: digest %s", d.Output, d.Digest)
}
