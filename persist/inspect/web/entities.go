package web

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Entities are listed in the order of their indices, or sorted. To know how many a condition
// leaves, all have to be asked, which takes long in a large world. So a request asks for some
// time only (patience) and tells how far it came; the selection stays at the desk, and the next
// request for the same goes on from there. A state that lies in a snapshot is not loaded for
// that, see desk.read: a newcomer opens a store of gigabytes and sees its first entities at once.
//
//	named        those that are asked for by name and are alive
//	all          by index: a span is skipped to, and few are asked
//	a selection  looked for span by span, until enough or patience ends; sorted when all are asked
//
// Columns are evaluated for the rows that are shown, never for all that were found.

// Limits of lists.
const (
	maxRows    = 500
	maxColumns = 24
)

// entitiesDoc is a part of the entities that a condition leaves.
type entitiesDoc struct {
	stateDoc
	Columns []string `json:"columns"`
	Sorts   []string `json:"sorts"` // The expressions of the columns, to sort by.
	Offset  int      `json:"offset"`
	Rows    []rowDoc `json:"rows"`
	Found   int      `json:"found"` // By now;
	Done    bool     `json:"done"`  // there are no others. If not, whoever asks again has them counted further.
	Asked   int      `json:"asked"` // Of so many
	Alive   int      `json:"alive"`
}

// A rowDoc is an entity with what the columns give for it.
type rowDoc struct {
	Entity string   `json:"entity"`
	Cells  []string `json:"cells"`
}

// A selecting says which entities are listed, and in what order: by an expression, or by index.
type selecting struct {
	seq     uint64
	where   string
	with    string // A component that they have; "": any.
	sort    string
	desc    bool
	columns []string
	since   time.Time // When it was begun to look for them.
}

// patience is how long one request looks for entities. What it has found by then is shown; it
// goes on where the next one asks.
const patience = 150 * time.Millisecond

// entities lists some of the entities at a record.
func (h *shown) entities(a *ask) (any, error) {
	seq := a.record("record")
	offset := a.count("offset", 0, 1<<31-1)
	limit := a.count("limit", 50, maxRows)
	s := selecting{seq, strings.TrimSpace(a.text("where")), a.text("with"), strings.TrimSpace(a.text("sort")), a.flag("desc"), nil, time.Time{}}
	if text := strings.TrimSpace(a.text("columns")); text != "" {
		if s.columns = query.Split(text); len(s.columns) > maxColumns {
			a.wrong("at most %d columns", maxColumns)
		}
	}
	named := a.entities(maxRows)
	d := a.desk(h)
	return answer(a, d, func() (doc *entitiesDoc, err error) {
		s.since = time.Now()
		err = d.read(a.ctx, seq, func(st *inspect.State) (err error) {
			doc, err = d.list(a.ctx, st, s, named, offset, limit)
			return err
		})
		return doc, err
	})
}

// list lists the entities of a state: those named that are alive, whatever the condition, or those that
// s leaves.
func (d *desk) list(ctx context.Context, st *inspect.State, s selecting, named []ecs.Entity, offset, limit int) (*entitiesDoc, error) {
	columns, names, sorts, err := columnsOf(st, s.columns)
	if err == nil {
		err = st.Count(ctx)
	}
	if err != nil {
		return nil, err
	}
	im := st.Outline()
	doc := &entitiesDoc{stateDoc{im.Tick, s.seq}, names, sorts, offset, []rowDoc{}, im.Alive, true, im.Alive, im.Alive}
	var shown []ecs.Entity
	switch {
	case len(named) > 0:
		shown = slices.DeleteFunc(named, func(e ecs.Entity) bool { return !st.IsAlive(e) })
		doc.Offset, doc.Found, doc.Asked = 0, len(shown), len(shown)
	case s.isAll(): // How many there are is known, so nothing is kept at the desk.
		all := &selection{selecting: s}
		var skipped int
		if all.next, skipped, err = st.Skip(ctx, offset); err == nil {
			err = all.look(ctx, st, offset-skipped+limit)
		}
		shown = part(all.found, offset-skipped, limit)
	default:
		shown, err = d.choose(ctx, st, doc, s, limit)
	}
	for i := 0; i < len(shown) && err == nil; i++ {
		var cells []string
		cells, err = cellsOf(st, shown[i], columns)
		doc.Rows = append(doc.Rows, rowDoc{shown[i].String(), cells})
	}
	return doc, err
}

// choose goes on with the selection of s, and returns the entities to show.
func (d *desk) choose(ctx context.Context, st *inspect.State, doc *entitiesDoc, s selecting, limit int) ([]ecs.Entity, error) {
	c := d.chosen
	if d.chosen = nil; c == nil || !c.same(s) { // It is none where an error ends it.
		c = &selection{selecting: s}
	}
	c.since = s.since
	// A selection goes on in another State than it began in: it keeps indices and entities only.
	if err := c.look(ctx, st, enoughOf(doc.Offset, limit)); err != nil {
		return nil, err
	}
	d.chosen = c
	doc.Found, doc.Done, doc.Asked = len(c.found), c.done, c.asked
	if s.sort != "" && !c.done {
		return nil, nil // The first is known when all are.
	}
	return part(c.found, doc.Offset, limit), nil
}

// part returns at most limit of entities, behind the first offset.
func part(entities []ecs.Entity, offset, limit int) []ecs.Entity {
	return entities[min(offset, len(entities)):min(offset+limit, len(entities))]
}

// enoughOf returns how many must be found to show so many; 0: whoever asks wants them counted.
func enoughOf(offset, limit int) int {
	if limit == 0 {
		return 0
	}
	return offset + limit
}

// columnsOf compiles the columns of a list: "EXPR as NAME" each. They are asked of one entity at a time, so
// the sweeper never sweeps.
func columnsOf(st *inspect.State, texts []string) (columns []*query.Swept, names, sorts []string, err error) {
	names, sorts = []string{}, []string{}
	w := query.Sweeper{State: st}
	for _, text := range texts {
		text, name := query.SplitName(text)
		x, err := w.Compile("columns", text, query.WantValue)
		if err != nil {
			return nil, nil, nil, err
		}
		columns, names, sorts = append(columns, x), append(names, name), append(sorts, text)
	}
	return columns, names, sorts, nil
}

// cellsOf returns what columns give for e; without any, its components, each with its name before it.
func cellsOf(st *inspect.State, e ecs.Entity, columns []*query.Swept) ([]string, error) {
	cells := []string{}
	for _, x := range columns {
		v, err := x.LookUp(e)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cut(x.Text("", v), 256))
	}
	if len(columns) > 0 {
		return cells, nil
	}
	for _, c := range st.Outline().Components {
		row, err := st.Find(c, e)
		if err != nil {
			return nil, err
		}
		if row >= 0 {
			v, err := st.Value(c, row)
			if err != nil {
				return nil, err
			}
			cells = append(cells, cut(describe.Labelled(c.Name, v), len(c.Name)+256))
		}
	}
	return cells, nil
}

// A selection is the entities of a state that a condition leaves, as far as they were looked for.
type selection struct {
	selecting
	next  int // The first index that was not asked.
	asked int // Entities.
	found []ecs.Entity
	keys  []query.Answer // Of these, if there is an order.
	done  bool
}

// isAll reports whether no condition leaves anybody out, by index.
func (s selecting) isAll() bool { return s.where+s.with+s.sort == "" }

// same reports whether s is about the same entities. Columns may differ: they are computed for
// what is shown only.
func (c *selection) same(s selecting) bool {
	return c.seq == s.seq && c.where == s.where && c.with == s.with && c.sort == s.sort && c.desc == s.desc
}

// looked is what a look found in a span: keys has as many as found, if there is an order.
type looked struct {
	asked int
	found []ecs.Entity
	keys  []query.Answer
}

// look goes on until all are asked or it has taken long enough: less long, if enough are found
// to be shown. st is the state of c. Expressions are compiled anew each time, as they belong to the
// State that they are compiled for.
func (c *selection) look(ctx context.Context, st *inspect.State, enough int) error {
	if c.done {
		return nil
	}
	w := &query.Sweeper{State: st, Begin: c.next}
	holds, key, err := c.compile(w)
	if err != nil {
		return err
	}
	// The first function is called by several goroutines, and writes to what is its span's only; the
	// second by one, in the order of spans.
	err = query.Sweep(ctx, w, func(at query.SweptEntity, l *looked) error {
		l.asked++
		if ok, err := holds(at); err != nil || !ok {
			return err
		}
		if key != nil {
			k, err := key.At(at)
			if err != nil {
				return err
			}
			l.keys = append(l.keys, k)
		}
		l.found = append(l.found, at.Entity())
		return nil
	}, func(l looked, next int) error {
		c.next, c.asked = next, c.asked+l.asked
		c.found, c.keys = append(c.found, l.found...), append(c.keys, l.keys...)
		if c.isEnough(enough) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) && c.next < st.Indices() {
		return nil // Enough for now; c.next is where the next request begins.
	}
	if err != nil && !errors.Is(err, errFound) {
		return err
	}
	c.done = true
	c.arrange()
	return nil
}

// compile returns what tells whether an entity is one of those that are looked for, and the
// expression to sort them by; nil: by index.
func (c *selection) compile(w *query.Sweeper) (holds func(query.SweptEntity) (bool, error), key *query.Swept, err error) {
	having, where := -1, (*query.Swept)(nil)
	if c.with != "" {
		of := w.State.Outline().Find(c.with)
		if of == nil || of.Resource {
			return nil, nil, fail(codeNotFound, "no component %q", c.with)
		}
		having = w.Number(of)
	}
	if c.where != "" {
		if where, err = w.Compile("where", c.where, query.WantCondition); err != nil {
			return nil, nil, err
		}
	}
	if c.sort != "" {
		key, err = w.Compile("sort", c.sort, query.WantValue)
	}
	return func(at query.SweptEntity) (bool, error) {
		if having >= 0 && !at.Has(having) {
			return false, nil
		}
		if where == nil {
			return true, nil
		}
		return where.HoldsAt(at)
	}, key, err
}

// isEnough reports whether the look has taken long enough: all of its patience; or an eighth, if
// what is to be shown is found and nothing behind can come before it. Without a condition nobody
// needs to be counted.
func (c *selection) isEnough(enough int) bool {
	if c.isAll() {
		return len(c.found) >= enough
	}
	took := time.Since(c.since)
	shown := enough > 0 && c.sort == "" && len(c.found) >= enough
	return took > patience || shown && took > patience/8
}

// arrange puts what was found in order, equal ones by index. Nothing comes last either way.
func (c *selection) arrange() {
	if c.sort == "" {
		return
	}
	places := make([]int, len(c.found))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(i, j int) int {
		a, b := c.keys[i], c.keys[j]
		n := a.Compare(b)
		if c.desc && !a.Nothing() && !b.Nothing() {
			return -n
		}
		return n
	})
	sorted := make([]ecs.Entity, len(places))
	for i, place := range places {
		sorted[i] = c.found[place]
	}
	c.found, c.keys = sorted, nil
}
