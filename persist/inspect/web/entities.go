package web

import (
	"cmp"
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
// A selection keeps few of what it found, whatever the world holds. Of many it keeps where the span of
// each begins in the list, and asks that span again. Of a sorted list it keeps a window of windowRows:
// who scrolls behind it has all entities asked again, for those behind the last of the window.
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
// goes on where the next one asks. Tests set it.
var patience = 150 * time.Millisecond

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
		shown = part(all.first, offset-skipped, limit)
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
	if limit > 0 { // Without a limit, the caller wants the search to go on.
		c.want(doc.Offset, limit)
	}
	if err := c.look(ctx, st, enoughOf(doc.Offset, limit)); err != nil {
		return nil, err
	}
	shown, err := c.part(ctx, st, doc.Offset, limit)
	if err != nil {
		return nil, err
	}
	d.chosen = c
	doc.Found, doc.Done, doc.Asked = c.count, c.done, c.asked
	if limit > 0 && c.sort != "" && c.done {
		doc.Done = c.has(doc.Offset, limit)
	}
	return shown, nil
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
	count int // Of those that the condition leaves.
	done  bool

	// By index: the first of them, and where in the list each span begins that has some.
	first []ecs.Entity
	marks []mark

	// In an order: the window that was asked for last, and the last entity of each one before.
	window int
	sorted []ecs.Entity
	ends   []query.Place
	best   *query.Best // That is being filled for the window.
}

// A mark says that a span which begins with an index has entities from a place in the list on.
type mark struct{ index, place int }

// Tests set these.
var (
	firstRows  = 1 << 18 // Of the first entities of a list by index, so many are kept.
	windowRows = 1 << 17 // A window of a sorted list has so many, and maxRows of the next one.
)

// isAll reports whether no condition leaves anybody out, by index.
func (s selecting) isAll() bool { return s.where+s.with+s.sort == "" }

// same reports whether s is about the same entities. Columns may differ: they are computed for
// what is shown only.
func (c *selection) same(s selecting) bool {
	return c.seq == s.seq && c.where == s.where && c.with == s.with && c.sort == s.sort && c.desc == s.desc
}

// looked is what a look found in a span: in an order, or by index.
type looked struct {
	asked int
	found []ecs.Entity
	best  *query.Best
}

// want makes the window with a place in a sorted list the one that is looked for. Windows are gone through
// one after the other, as the last entity of one tells where the next begins.
func (c *selection) want(offset, limit int) {
	if c.sort != "" && c.done && !c.has(offset, limit) {
		c.begin(min(offset/windowRows, len(c.ends)))
	}
}

// has reports whether the window has the rows of a sorted list from a place on, or all that there are. It
// has some of the next window too, so that rows around the end of one do not need both by turns.
func (c *selection) has(offset, limit int) bool {
	offset = min(offset, c.count)
	first := c.window * windowRows
	return first <= offset && min(offset+limit, c.count) <= first+len(c.sorted)
}

// begin begins to look for a window of a sorted list.
func (c *selection) begin(window int) {
	c.window, c.next, c.asked, c.done, c.sorted = window, 0, 0, false, nil
	c.best = c.newBest()
}

// newBest returns what keeps the entities of the window.
func (c *selection) newBest() *query.Best {
	b := &query.Best{Desc: c.desc, Limit: windowRows + maxRows}
	if c.window > 0 {
		b.After = &c.ends[c.window-1]
	}
	return b
}

// look goes on until all are asked or it has taken long enough: less long, if enough are found
// to be shown. st is the state of c. Expressions are compiled anew each time, as they belong to the
// State that they are compiled for.
func (c *selection) look(ctx context.Context, st *inspect.State, enough int) error {
	if c.done {
		return nil
	}
	if c.sort != "" && c.best == nil {
		c.best = c.newBest()
	}
	err := c.sweep(ctx, st, c.next, func(l looked, from, next int) error {
		c.next, c.asked = next, c.asked+l.asked
		c.take(l, from)
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

// take adds what was found in the span that begins with an index.
func (c *selection) take(l looked, from int) {
	switch {
	case l.best != nil:
		c.best.Join(l.best)
		c.count = max(c.count, c.best.Total) // Once they were all counted, it stays.
	case c.sort == "" && len(l.found) > 0:
		c.marks = append(c.marks, mark{from, c.count})
		c.count += len(l.found)
		c.first = append(c.first, l.found[:min(len(l.found), firstRows-len(c.first))]...)
	}
}

// sweep asks the entities from an index on, and calls take with what was found in each span, the index that
// it begins with and the next one.
func (c *selection) sweep(ctx context.Context, st *inspect.State, from int, take func(l looked, from, next int) error) error {
	w := &query.Sweeper{State: st, Begin: from}
	holds, key, err := c.compile(w)
	if err != nil {
		return err
	}
	// The first function is called by several goroutines, and writes to what is its span's only; the
	// second by one, in the order of spans.
	return query.Sweep(ctx, w, func(at query.SweptEntity, l *looked) error {
		l.asked++
		if ok, err := holds(at); err != nil || !ok {
			return err
		}
		if key == nil {
			l.found = append(l.found, at.Entity())
			return nil
		}
		k, err := key.At(at)
		if err != nil {
			return err
		}
		if l.best == nil {
			l.best = c.best.Part()
		}
		l.best.Add(at.Entity(), k)
		return nil
	}, func(l looked, next int) error {
		begin := from
		from = next
		return take(l, begin, next)
	})
}

// part returns at most limit of the entities, behind the first offset, if they were found.
func (c *selection) part(ctx context.Context, st *inspect.State, offset, limit int) ([]ecs.Entity, error) {
	switch {
	case c.sort != "" && !c.done:
		return nil, nil // The first is known when all are.
	case c.sort != "":
		return part(c.sorted, offset-c.window*windowRows, limit), nil
	case offset+limit <= len(c.first) || len(c.first) == c.count:
		return part(c.first, offset, limit), nil
	}
	end := min(offset+limit, c.count)
	i, _ := slices.BinarySearchFunc(c.marks, offset+1, func(m mark, place int) int { return cmp.Compare(m.place, place) })
	if i == 0 || offset >= end {
		return nil, nil
	}
	at := c.marks[i-1] // The last span that begins at offset or before.
	var found []ecs.Entity
	err := c.sweep(ctx, st, at.index, func(l looked, _, _ int) error {
		if found = append(found, l.found...); at.place+len(found) >= end {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return part(found, offset-at.place, limit), nil
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
		return c.count >= enough
	}
	took := time.Since(c.since)
	shown := enough > 0 && c.sort == "" && c.count >= enough
	return took > patience || shown && took > patience/8
}

// arrange puts the window that was found in order, and lets go of its keys. If it ends before the list
// does, its last entity is where the next one begins. If the window that was wanted is a later one, that is
// looked for when it is asked for again.
func (c *selection) arrange() {
	if c.sort == "" {
		return
	}
	for place := range c.best.Sorted() {
		c.sorted = append(c.sorted, place.Entity())
		if len(c.sorted) == windowRows && c.window == len(c.ends) {
			c.ends = append(c.ends, place)
		}
	}
	c.best = nil
}
