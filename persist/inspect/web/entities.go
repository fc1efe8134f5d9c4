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

// errFound stops a search early. It is never returned to a client.
var errFound = errors.New("found")

// This file lists the entities of a state, by index or sorted. There are three kinds of lists:
//
//   - If the request names entities, those that are alive are listed.
//   - Without a condition, all entities are listed by index. Only the requested rows are read.
//   - A selection has the entities that match a condition, or is sorted. All entities must be
//     evaluated.
//
// A selection takes long in a large world. So one request searches for a limited time (patience),
// and returns what it has found so far. The session stores the selection, and the next request
// continues it, span by span. If a snapshot has the state, the search does not load the state: see
// session.read. So the first entities of a store of gigabytes appear at once.
//
// The memory of a selection is bounded. A selection by index stores where in the list the entities
// of each span begin, and evaluates a span again when needed. A sorted one stores a window of
// windowRows entities. If the page scrolls past the window, all entities are evaluated again. The
// next window begins after the last entity of the current window.
//
// Columns are evaluated only for the rows that the page shows.

// The maximum number of rows in one answer, and of columns in a list.
const (
	maxRows    = 500
	maxColumns = 24
)

// entitiesDoc is a section of the list of entities that match a condition.
type entitiesDoc struct {
	stateDoc
	Columns []string `json:"columns"`
	Sorts   []string `json:"sorts"` // The expressions of the columns, for sorting.
	Offset  int      `json:"offset"`
	Rows    []rowDoc `json:"rows"`
	// Found is the number of entities found so far.
	Found int `json:"found"`
	// Done says that the search is complete. Otherwise the next request continues it.
	Done bool `json:"done"`
	// Asked is the number of entities evaluated so far.
	Asked int `json:"asked"`
	Alive int `json:"alive"`
}

// A rowDoc is an entity with the values of the columns.
type rowDoc struct {
	Entity string   `json:"entity"`
	Cells  []string `json:"cells"`
}

// A listQuery describes which entities are listed, and in which order.
type listQuery struct {
	seq   uint64
	where string
	// with is a component that the entities must have. "" means any entity.
	with    string
	sort    string
	desc    bool
	columns []string
	// since is the start time of the current request.
	since time.Time
}

// patience limits how long one request searches for entities. The request then returns the
// entities found so far, and the next request continues. Tests change this value.
var patience = 150 * time.Millisecond

// entities lists entities in the state after a record.
func (h *server) entities(a *params) (any, error) {
	seq := a.record("record")
	offset := a.count("offset", 0, 1<<31-1)
	limit := a.count("limit", 50, maxRows)
	s := listQuery{seq, strings.TrimSpace(a.text("where")), a.text("with"), strings.TrimSpace(a.text("sort")), a.flag("desc"), nil, time.Time{}}
	if text := strings.TrimSpace(a.text("columns")); text != "" {
		if s.columns = query.Split(text); len(s.columns) > maxColumns {
			a.invalid("at most %d columns are allowed", maxColumns)
		}
	}
	named := a.entities(maxRows)
	d := a.session(h)
	return answerAt(a, d, seq, func() (doc *entitiesDoc, err error) {
		s.since = time.Now()
		err = d.read(a.ctx, seq, func(st *inspect.State) (err error) {
			doc, err = d.list(a.ctx, st, s, named, offset, limit)
			return err
		})
		return doc, err
	})
}

// list lists entities of a state. If specific entities are given, it lists those that are alive.
// Otherwise it lists the entities that match s.
func (d *session) list(ctx context.Context, st *inspect.State, s listQuery, named []ecs.Entity, offset, limit int) (*entitiesDoc, error) {
	columns, names, sorts, err := columnsOf(st, s.columns)
	if err == nil {
		err = st.Count(ctx)
	}
	if err != nil {
		return nil, err
	}
	im := st.Outline()
	doc := &entitiesDoc{describe.State(im.Tick, s.seq), names, sorts, offset, []rowDoc{}, im.Living, true, im.Living, im.Living}
	var shown []ecs.Entity
	switch {
	case len(named) > 0:
		shown = slices.DeleteFunc(named, func(e ecs.Entity) bool { return !st.IsAlive(e) })
		doc.Offset, doc.Found, doc.Asked = 0, len(shown), len(shown)
	// All entities are listed and their number is known, so the session stores no selection.
	case s.isAll():
		all := &selection{listQuery: s}
		var skipped int
		if all.next, skipped, err = st.Skip(ctx, offset); err == nil {
			err = all.search(ctx, st, offset-skipped+limit)
		}
		shown = part(all.first, offset-skipped, limit)
	default:
		shown, err = d.continueSelection(ctx, st, doc, s, limit)
	}
	for i := 0; i < len(shown) && err == nil; i++ {
		var cells []string
		cells, err = cellsOf(st, shown[i], columns)
		doc.Rows = append(doc.Rows, rowDoc{shown[i].String(), cells})
	}
	return doc, err
}

// continueSelection continues the search for s and returns the entities to show.
func (d *session) continueSelection(ctx context.Context, st *inspect.State, doc *entitiesDoc, s listQuery, limit int) ([]ecs.Entity, error) {
	c := d.selection
	// d.selection stays nil if an error occurs below.
	if d.selection = nil; c == nil || !c.same(s) {
		c = &selection{listQuery: s}
	}
	c.since = s.since
	// With limit 0, the request only continues to count, so it needs no window.
	if limit > 0 {
		c.selectWindow(doc.Offset, limit)
	}
	if err := c.search(ctx, st, enoughOf(doc.Offset, limit)); err != nil {
		return nil, err
	}
	shown, err := c.part(ctx, st, doc.Offset, limit)
	if err != nil {
		return nil, err
	}
	d.selection = c
	doc.Found, doc.Done, doc.Asked = c.count, c.done, c.asked
	if limit > 0 && c.sort != "" && c.done {
		doc.Done = c.has(doc.Offset, limit)
	}
	return shown, nil
}

// part returns at most limit entities, starting at position offset.
func part(entities []ecs.Entity, offset, limit int) []ecs.Entity {
	return entities[min(offset, len(entities)):min(offset+limit, len(entities))]
}

// enoughOf returns how many entities must be found to show the requested rows. 0 means that the
// request only wants counts.
func enoughOf(offset, limit int) int {
	if limit == 0 {
		return 0
	}
	return offset + limit
}

// columnsOf compiles the columns of a list. Each column has the form "EXPR as NAME". The columns
// are evaluated for single entities, so no sweep over all entities runs.
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

// cellsOf returns the values of the columns for e. Without columns it returns the components of e,
// each prefixed with its name.
func cellsOf(st *inspect.State, e ecs.Entity, columns []*query.Swept) ([]string, error) {
	if len(columns) > 0 {
		return describe.TryListed(columns, func(x *query.Swept) (string, error) {
			v, err := x.LookUp(e)
			return cut(x.Text("", v), 256), err
		})
	}
	cells := []string{}
	for c, err := range describe.ComponentsOf(st, e) {
		if err != nil {
			return nil, err
		}
		cells = append(cells, cut(describe.Labelled(c.Name, c.Value), len(c.Name)+256))
	}
	return cells, nil
}

// A selection is the result of a search so far: entities of a state that match a condition.
type selection struct {
	listQuery
	next int // First index that is not evaluated yet.
	// asked is the number of evaluated entities.
	asked int
	count int // Number of matching entities.
	done  bool

	// A list by index uses first and marks. first has the first entities of the list. marks has an
	// element for each span with entities.
	first []ecs.Entity
	marks []mark

	// A sorted list uses the fields below. sorted is the current window. ends has the last entity
	// of each earlier window.
	window int
	sorted []ecs.Entity
	ends   []query.Place
	best   *query.Best // The current window while it is being filled.
}

// A mark says at which place in the list the entities of a span begin. index is the first index of
// the span.
type mark struct{ index, place int }

// Tests change these values.
var (
	// Maximum number of entities stored for a list by index.
	firstRows = 1 << 18
	// Rows per window of a sorted list. A window has up to maxRows more entities, which are also in
	// the next window.
	windowRows = 1 << 17
)

// isAll reports whether s lists all entities by index, without a condition.
func (s listQuery) isAll() bool { return s.where+s.with+s.sort == "" }

// same reports whether s lists the same entities as c. Columns may differ, because they are
// evaluated only for the rows that the page shows.
func (c *selection) same(s listQuery) bool {
	return c.seq == s.seq && c.where == s.where && c.with == s.with && c.sort == s.sort && c.desc == s.desc
}

// spanResult is the search result of one span. The entities are sorted, or ordered by index.
type spanResult struct {
	asked int
	found []ecs.Entity
	best  *query.Best
}

// selectWindow selects the window of a sorted list that contains position offset. Windows are
// computed in order, because each window starts after the last entity of the previous window.
func (c *selection) selectWindow(offset, limit int) {
	if c.sort != "" && c.done && !c.has(offset, limit) {
		c.startWindow(min(offset/windowRows, len(c.ends)))
	}
}

// has reports whether the current window contains the requested rows of a sorted list. Two windows
// overlap by maxRows entities. So the page can scroll around the end of a window without switching
// between the two.
func (c *selection) has(offset, limit int) bool {
	offset = min(offset, c.count)
	first := c.window * windowRows
	return first <= offset && min(offset+limit, c.count) <= first+len(c.sorted)
}

// startWindow starts the search for one window of a sorted list.
func (c *selection) startWindow(window int) {
	c.window, c.next, c.asked, c.done, c.sorted = window, 0, 0, false, nil
	c.best = c.newBest()
}

// newBest returns a collector for the entities of the current window.
func (c *selection) newBest() *query.Best {
	b := &query.Best{Desc: c.desc, Limit: windowRows + maxRows}
	if c.window > 0 {
		b.After = &c.ends[c.window-1]
	}
	return b
}

// search continues the search until all entities are evaluated or the time is up. It stops
// earlier if enough entities are found. st must be the state that c searches. search compiles the
// expressions again for each State.
func (c *selection) search(ctx context.Context, st *inspect.State, enough int) error {
	if c.done {
		return nil
	}
	if c.sort != "" && c.best == nil {
		c.best = c.newBest()
	}
	err := c.sweep(ctx, st, c.next, func(l spanResult, from, next int) error {
		c.next, c.asked = next, c.asked+l.asked
		c.addSpan(l, from)
		if c.isEnough(enough) {
			return errFound
		}
		return nil
	})
	if errors.Is(err, errFound) && c.next < st.Indices() {
		// Stop for now. The next request starts at c.next.
		return nil
	}
	if err != nil && !errors.Is(err, errFound) {
		return err
	}
	c.done = true
	c.sortWindow()
	return nil
}

// addSpan adds the result of the span that starts at index from.
func (c *selection) addSpan(l spanResult, from int) {
	switch {
	case l.best != nil:
		c.best.Join(l.best)
		// The search for a later window counts all entities again, from 0. The shown count must not
		// go down.
		c.count = max(c.count, c.best.Total)
	case c.sort == "" && len(l.found) > 0:
		c.marks = append(c.marks, mark{from, c.count})
		c.count += len(l.found)
		c.first = append(c.first, l.found[:min(len(l.found), firstRows-len(c.first))]...)
	}
}

// sweep evaluates the entities from an index on. It calls take() for each span, with the result,
// the first index of the span, and the first index after the span.
func (c *selection) sweep(ctx context.Context, st *inspect.State, from int, take func(l spanResult, from, next int) error) error {
	w := &query.Sweeper{State: st, Begin: from}
	filter, key, err := c.compile(w)
	if err != nil {
		return err
	}
	// Several goroutines call the first function, each for a span of its own with the result l. The
	// second function is called in the order of spans, never concurrently.
	return query.Sweep(ctx, w, func(at query.SweptEntity, l *spanResult) error {
		l.asked++
		if ok, err := filter.Holds(at); err != nil || !ok {
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
	}, func(l spanResult, next int) error {
		begin := from
		from = next
		return take(l, begin, next)
	})
}

// part returns at most limit of the found entities, starting at position offset.
func (c *selection) part(ctx context.Context, st *inspect.State, offset, limit int) ([]ecs.Entity, error) {
	switch {
	case c.sort != "" && !c.done:
		// The order is known only after all entities are evaluated.
		return nil, nil
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
	// Use the last span that begins at or before the requested position.
	at := c.marks[i-1]
	var found []ecs.Entity
	err := c.sweep(ctx, st, at.index, func(l spanResult, _, _ int) error {
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

// compile returns the filter, and the expression to sort by. key is nil for a list by index.
func (c *selection) compile(w *query.Sweeper) (filter query.Filter, key *query.Swept, err error) {
	if c.with != "" {
		of := w.State.Outline().Find(c.with)
		if of == nil || of.Resource {
			return filter, nil, fail(codeNotFound, "no component %q", c.with)
		}
		filter.With = []int{w.Number(of)}
	}
	if c.where != "" {
		x, err := w.Compile("where", c.where, query.WantCondition)
		if err != nil {
			return filter, nil, err
		}
		filter.Where = []*query.Swept{x}
	}
	if c.sort != "" {
		key, err = w.Compile("sort", c.sort, query.WantValue)
	}
	return filter, key, err
}

// isEnough reports whether the request should stop searching:
//
//   - A list of all entities by index stops when the rows to show are found.
//   - A sorted list stops when patience is over.
//   - A selection by index stops when patience is over. If the rows to show are found, it stops
//     after an eighth of patience.
func (c *selection) isEnough(enough int) bool {
	if c.isAll() {
		return c.count >= enough
	}
	took := time.Since(c.since)
	shown := enough > 0 && c.sort == "" && c.count >= enough
	return took > patience || shown && took > patience/8
}

// sortWindow stores the entities of the window in sorted order, and drops their keys. If the list
// continues after the window, it stores the start of the next window.
func (c *selection) sortWindow() {
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
