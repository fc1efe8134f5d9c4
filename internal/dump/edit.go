package dump

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
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
)

// Edit makes a new state in three steps: compile all, compute all rows as they are to be, then set
// them.
//
//	--where, 'A.X = EXPR' …   compiled for the state
//	each entity               that the filters leave: its rows with the assignments applied, encoded
//	the copy of the state     gets these rows, and is written as a new save or store
//
// With --dry-run rows are counted and not kept, and the state need not be loaded for that.
//
// Nothing is changed before the last expression was evaluated, so that assignments do not see each
// other, and nothing is written if one of them fails. A row that several assignments change is
// edited once more as it is to be by then: two fields of one struct are two edits of one row.

// editDoc is what edit --json prints.
type editDoc struct {
	stateDoc
	Output   string      `json:"output,omitempty"` // Missing with --dry-run.
	Digest   string      `json:"digest,omitempty"` // Of the state that was made; missing with --dry-run.
	Entities int         `json:"entities"`         // That the filters leave.
	Edits    []editedDoc `json:"edits"`            // In the order of the assignments.
}

// An editedDoc says what an assignment did.
type editedDoc struct {
	Target  string `json:"target"`  // What it assigns to.
	Changed int    `json:"changed"` // Values that are other ones now,
	Same    int    `json:"same"`    // that were so already,
	Lacking int    `json:"lacking"` // and entities that do not have the component.
}

var editCommand = command{
	use: "edit STORE ASSIGNMENT …",
	doc: `Write a new save in which values are other ones

Write a new save of a state, with other values of fields. STORE, which may be a save as
well, is only read.

An assignment is 'Component.Field = EXPR', of a field, a whole component or a resource.
EXPR is evaluated for each entity that the filters leave and that has the component;
all of them see the state as it was, so that 'A.X = A.Y' 'A.Y = A.X' swaps two fields.
Of a struct, as in 'Position = {"X": 1}', fields that are missing stay what they were.
A value that the type cannot hold is an error, and then nothing is written.

Writing loads the whole state, which takes five times the size of a save in memory.
With --dry-run it is not loaded.`,
	example: `  ecsdump edit slot1.save -o fixed.save 'Health.Current = 10' --where 'Health.Current < 0'
  ecsdump edit D --at 1200 -o trial.save 'Job.Stage = "Idle"' 'Job.Wait = Job.Wait * 2' --dry-run`,
	run: func(f flags) action {
		var e editor
		f.output(&e.out, "the save to make; nothing may have that name")
		f.condition(&e.where, "where", "only entities for which this expression is true (and the others, if it is given again)")
		f.BoolVar(&e.dry, "dry-run", false, "only say what would change")
		f.BoolVar(&e.store, "store", false, "make a store: a directory that a program can go on from")
		f.point(&e.at)
		return func(c *call) error {
			if e.out == "" && !e.dry {
				return c.misused("say with -o what to make, or --dry-run")
			}
			// Before all is computed for nothing; SaveImage asks once more.
			if _, err := os.Lstat(e.out); err == nil && e.out != "" {
				return occupied(e.out)
			}
			return c.read(c.args[0], func(s *source) error {
				return s.ask(e.at, func(st *inspect.State) error { return e.edit(s, st) })
			})
		}
	},
}

// An editor changes values of a state.
type editor struct {
	out, at    string
	where      []string
	dry, store bool
}

// An assignment gives a component or a part of it other values.
type assignment struct {
	editedDoc
	component *inspect.Component
	number    int          // Of the component in the sweep. Of a resource it does not count.
	path      []string     // Of fields to what it assigns to.
	layout    *layout.Type // Of that.
	text      string       // The expression.
	value     *query.Swept // Compiled; nil: it is of a resource.
}

// A rowEdit is a row as it is to be.
type rowEdit struct {
	component *inspect.Component
	row       int
	encoded   []byte
}

// edit makes the state and writes it. With --dry-run it only counts.
func (e *editor) edit(s *source, st *inspect.State) error {
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
		// Two that write the same bytes: which of them is last would decide.
		if slices.ContainsFunc(assignments, func(b *assignment) bool { return b.component == a.component && overlap(a.path, b.path) }) {
			return fail(exitUsage, "", "%s is assigned to twice", a.Target)
		}
		assignments = append(assignments, a)
	}
	rows, entities, err := w.edited(where, assignments, !e.dry)
	if err != nil {
		return err
	}
	if e.dry {
		return s.tell(editDocOf(outline(st), entities, assignments))
	}
	im := state{st.Outline().Settled().Clone(), st.Seq} // A state that is read may be shared; this one is ours to change.
	for _, r := range rows {
		n := slices.Index(st.Outline().Components, r.component)
		if _, err := im.Components[n].SetRows(r.row, 1, r.encoded); err != nil {
			return err
		}
	}
	doc := editDocOf(im, entities, assignments)
	doc.Output, doc.Digest = e.out, im.Digest().String()
	write := inspect.SaveImage
	if e.store {
		write = inspect.SaveStore
	}
	if err := write(s.ctx, im.Image, e.out); errors.Is(err, fs.ErrExist) {
		return occupied(e.out)
	} else if err != nil {
		return classify(e.out, err)
	}
	return s.tell(doc)
}

// editDocOf says what assignments did, of a state in which the filters leave so many entities.
func editDocOf(im state, entities int, assignments []*assignment) *editDoc {
	return &editDoc{stateDoc: im.doc(), Entities: entities, Edits: describe.Listed(assignments, func(a *assignment) editedDoc { return a.editedDoc })}
}

// overlap reports whether one of two paths leads into what the other one leads to. Either may be
// empty, which is the component itself.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// assignment reads "Component.Field = EXPR".
//
// The target is a name, then fields. It is taken apart from its end: as long as no component is
// called so, the last dot begins the path. Only fields of structs can be named; an element of a
// slice cannot, and a tag has nothing to be assigned.
func (w *sweeper) assignment(text string) (*assignment, error) {
	s, im := w.source, outline(w.State)
	target, expr, ok := query.SplitAssignment(text)
	if !ok {
		return nil, fail(exitUsage, "", "%q is no assignment; write 'Component.Field = EXPR'", text)
	}
	// Both names of components and paths have dots: the longest name that there is is meant.
	name, path := target, ""
	for im.Find(name) == nil {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			// It is called for its error, which suggests names that are near.
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
		_, err := s.compile(im, target, expr, query.WantTotal) // What is wrong with it is told before anything is asked.
		return a, err
	}
	var err error
	a.number = w.Number(a.component)
	a.value, err = w.compile(target, expr, query.WantValue)
	return a, err
}

// noField is the failure of assigning to a field that is not there. A path that leads into what is
// no struct asks for a value of all of that.
func (s *source) noField(a *assignment, field string) error {
	if a.layout.Kind != layout.Struct {
		return fail(exitUsage, try("schema", s.path), "%s: no field %q: it is in no struct, but in %s; give a value for all of that", a.Target, field, a.layout)
	}
	names := describe.Listed(a.layout.Fields, func(f layout.Field) string { return f.Name })
	return fail(exitUsage, try("schema", s.path), "%s: no field %q%s", a.Target, field, near.Hint(field, names))
}

// An edition is what the entities of a span become.
type edition struct {
	entities int         // That the filters leave.
	edits    []editedDoc // By assignment: how many are changed, the same and lacking.
	rows     []rowEdit
}

// edited returns the rows that assignments make others of, if they are wanted, and how many entities where
// leaves. No row is changed yet: what is assigned is of the state as it was. Resources come last, each once,
// whatever the filters say: they are no entity's.
func (w *sweeper) edited(where []*query.Swept, assignments []*assignment, wanted bool) (rows []rowEdit, entities int, err error) {
	take := func(found edition, _ int) error {
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
	err = query.Sweep(w.ctx, &w.Sweeper, func(at query.SweptEntity, found *edition) error {
		for _, x := range where {
			if ok, err := x.HoldsAt(at); err != nil || !ok {
				return err
			}
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
	var resources edition
	err = resources.edit(ecs.Vacant, assignments, func(a *assignment) ([]byte, bool, error) { return w.State.Has(a.component, ecs.Vacant) },
		func(a *assignment) (query.Answer, error) {
			return query.World(w.ctx, w.State, a.Target, a.text, query.WantTotal)
		})
	if err == nil {
		err = take(resources, 0)
	}
	return rows, entities, err
}

// edit adds the rows of e that assignments change; those of resources, if e is [ecs.Vacant].
//
// For each assignment it finds the row, evaluates the expression on the state as it was, and
// applies the value to the row as it is to be by then: that of an edit of the same component if one
// is there, else that of the state. A row that comes out as it was is counted as the same, and
// needs no edit.
func (d *edition) edit(e ecs.Entity, assignments []*assignment, rowOf func(*assignment) ([]byte, bool, error), valueOf func(*assignment) (query.Answer, error)) error {
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
		// Rows of e are behind first. If none is of this component, i is first - 1.
		i := first + slices.IndexFunc(d.rows[first:], func(r rowEdit) bool { return r.component == a.component })
		if i >= first {
			before = d.rows[i].encoded
		}
		v, err := valueOf(a)
		if err != nil {
			return err
		}
		after, err := a.component.Layout.AppendPatched(nil, before, a.patch(v))
		if err != nil {
			return a.wrong(e, v, err)
		}
		switch {
		case string(after) == string(before):
			d.edits[n].Same++
			continue
		case i >= first:
			d.rows[i].encoded = after
		default:
			row := 0 // Of a resource.
			if e != ecs.Vacant {
				row = a.component.Find(e) // A component that is not in memory is never asked.
			}
			d.rows = append(d.rows, rowEdit{a.component, row, after})
		}
		d.edits[n].Changed++
	}
	return nil
}

// wrong says that the type of a cannot hold v, which is assigned to e, or to a resource.
func (a *assignment) wrong(e ecs.Entity, v query.Answer, err error) error {
	place, hint := a.Target, ""
	if e != ecs.Vacant {
		place += ": " + e.String()
	}
	if text, ok := v.Text(); ok {
		hint = near.Hint(text, a.layout.Constants)
	}
	return fail(exitUsage, "", "%s: %w%s", place, err, hint)
}

// patch returns v as JSON for the component: with the fields around it. Layouts read JSON, which
// checks v against the type, so there is one place that knows what a type can hold. What JSON
// cannot say has forms of its own: names of constants become numbers, bytes that are no UTF-8
// base64, and what a pointer leads to a list of one.
//
//	'Position.X = 3'          {"X":3}                    what is around the value comes last, inside out
//	'State = "Idle"'          2                          its name becomes the number
//	'Name = "\xff"'           {"base64":"/w=="}
//	'Next = 5', a pointer     [5]; nothing stays null
func (a *assignment) patch(v query.Answer) []byte {
	patch, _ := json.Marshal(v) // An answer always marshals.
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
	a.Line("%s, %s chosen", d.place(), term.Count(d.Entities, "entity", "entities"))
	term.Table(a.Out, d.Edits, func(e editedDoc) []any { return []any{e.Target, some(e.Changed), some(e.Same), some(e.Lacking)} },
		"TARGET", ">CHANGED", ">SAME", ">LACKING")
	if d.Output == "" {
		a.Line("nothing is written: --dry-run")
		return
	}
	a.Line("%s: digest %s", d.Output, d.Digest)
}
