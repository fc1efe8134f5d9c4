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
// Nothing is changed before the last expression was evaluated, so that assignments do not see each
// other, and nothing is written if one of them fails. A row that several assignments change is
// edited once more as it is to be by then: two fields of one struct are two edits of one row.

// editDoc is what edit --json prints.
type editDoc struct {
	stateDoc
	Output   string      `json:"output,omitempty"` // Missing with --dry-run.
	Digest   string      `json:"digest"`           // Of the state that was made.
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
A value that the type cannot hold is an error, and then nothing is written.`,
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
			return c.read(c.args[0], e.edit)
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
	path      []string     // Of fields to what it assigns to.
	layout    *layout.Type // Of that.
	value     *query.Expr
}

// A rowEdit is a row as it is to be.
type rowEdit struct {
	component *inspect.Component
	row       int
	encoded   []byte
}

// edit makes the state and writes it. What is printed is the same with --dry-run: the digest is
// that of the state that was made, whether or not it was written.
func (e *editor) edit(s *source) error {
	was, err := s.state(e.at)
	if err != nil {
		return err
	}
	im := state{was.Settled().Clone(), was.seq} // A state that is read may be shared; this one is ours to change.
	var where []*query.Expr
	for _, text := range e.where {
		x, err := s.compile(im, "--where", text, query.WantCondition)
		if err != nil {
			return err
		}
		where = append(where, x)
	}
	var assignments []*assignment
	for _, text := range s.args[1:] {
		a, err := s.assignment(im, text)
		if err != nil {
			return err
		}
		// Two that write the same bytes: which of them is last would decide.
		if slices.ContainsFunc(assignments, func(b *assignment) bool { return b.component == a.component && overlap(a.path, b.path) }) {
			return fail(exitUsage, "", "%s is assigned to twice", a.Target)
		}
		assignments = append(assignments, a)
	}
	rows, entities, err := s.edited(im, where, assignments)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := r.component.SetRows(r.row, 1, r.encoded); err != nil {
			return err
		}
	}
	doc := &editDoc{im.doc(), e.out, im.Digest().String(), entities, []editedDoc{}}
	for _, a := range assignments {
		doc.Edits = append(doc.Edits, a.editedDoc)
	}
	if e.dry {
		doc.Output = ""
		return s.tell(doc)
	}
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
func (s *source) assignment(im state, text string) (*assignment, error) {
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
	want := query.WantValue
	if a.component.Resource {
		want = query.WantTotal
	}
	var err error
	a.value, err = s.compile(im, target, expr, want)
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

// edited returns the rows that assignments make others of, and how many entities where leaves. No row is
// changed yet: what is assigned is of the state as it was. Resources come last, each once, whatever
// the filters say: they are no entity's.
func (s *source) edited(im state, where []*query.Expr, assignments []*assignment) (rows []rowEdit, entities int, err error) {
	for _, e := range byIndex(im) {
		if err := s.ctx.Err(); err != nil {
			return nil, 0, err
		}
		if ok, err := holdAll(where, e); err != nil {
			return nil, 0, err
		} else if !ok {
			continue
		}
		entities++
		if rows, err = appendEdits(rows, e, assignments); err != nil {
			return nil, 0, err
		}
	}
	rows, err = appendEdits(rows, ecs.Vacant, assignments)
	return rows, entities, err
}

// holdAll reports whether all conditions hold for e; none is true of every entity.
func holdAll(where []*query.Expr, e ecs.Entity) (bool, error) {
	for _, x := range where {
		if ok, err := x.Holds(e); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// appendEdits appends the rows of e that assignments change; those of resources, if e is [ecs.Vacant].
//
// For each assignment it finds the row, evaluates the expression on the state as it was, and
// applies the value to the row as it is to be by then: that of an edit of the same component if one
// is there, else that of the state. A row that comes out as it was is counted as the same, and
// needs no edit.
func appendEdits(rows []rowEdit, e ecs.Entity, assignments []*assignment) ([]rowEdit, error) {
	first := len(rows)
	for _, a := range assignments {
		if a.component.Resource != (e == ecs.Vacant) {
			continue
		}
		// Of a resource: its only row, 0, or -1 if it was never saved.
		row := a.component.Len() - 1
		if e != ecs.Vacant {
			row = a.component.Find(e)
		}
		if row < 0 {
			a.Lacking++
			continue
		}
		// Rows of e are behind first. If none is of this component, i is first - 1.
		i := first + slices.IndexFunc(rows[first:], func(r rowEdit) bool { return r.component == a.component })
		before := a.component.Row(row)
		if i >= first {
			before = rows[i].encoded
		}
		v, err := a.value.Of(e)
		if err != nil {
			return nil, err
		}
		after, err := a.component.Layout.AppendPatched(nil, before, a.patch(v))
		if err != nil {
			return nil, a.wrong(e, v, err)
		}
		switch {
		case string(after) == string(before):
			a.Same++
			continue
		case i >= first:
			rows[i].encoded = after
		default:
			rows = append(rows, rowEdit{a.component, row, after})
		}
		a.Changed++
	}
	return rows, nil
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
