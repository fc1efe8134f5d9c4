package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Entities are listed in the order of their indices, or sorted. To know how many a condition
// leaves, all have to be asked, which takes long in a large world. So a request asks for some
// time only (patience) and tells how far it came; the selection stays at the desk, and the next
// request for the same goes on from there. A state that lies in a snapshot is not loaded for
// that, see pages.go.

// Limits of lists.
const (
	maxRows    = 500
	maxColumns = 24
	quickRows  = 1000 // Of a state in a snapshot whose entities are kept, as everybody begins there.
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

// A selecting says which entities are listed.
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
	return answer(a, d, func() (*entitiesDoc, error) {
		s.since = time.Now()
		if len(named) > 0 {
			return d.pick(a.ctx, s, named)
		}
		if doc, done, err := d.byPages(a.ctx, s, offset, limit); done {
			return doc, err
		}
		return d.list(a.ctx, s, offset, limit)
	})
}

// pick lists those of some entities that are alive, whatever the condition.
func (d *desk) pick(ctx context.Context, s selecting, named []ecs.Entity) (*entitiesDoc, error) {
	im, err := d.state(ctx, s.seq)
	if err != nil {
		return nil, err
	}
	columns, names, sorts, err := columnsOf(im, s.columns)
	if err != nil {
		return nil, err
	}
	named = slices.DeleteFunc(named, func(e ecs.Entity) bool { return !im.IsAlive(e) })
	doc := &entitiesDoc{stateDoc{im.Tick, s.seq}, names, sorts, 0, []rowDoc{}, len(named), true, len(named), im.Alive}
	doc.Rows, err = rowsOf(im, named, columns)
	return doc, err
}

// A roster is the first entities of a state.
type roster struct {
	seq      uint64
	entities []ecs.Entity
}

// list lists them from the state.
func (d *desk) list(ctx context.Context, s selecting, offset, limit int) (*entitiesDoc, error) {
	im, err := d.state(ctx, s.seq)
	if err != nil {
		return nil, err
	}
	if d.chosen == nil || !d.chosen.same(s) || d.chosen.paged {
		if d.chosen, err = selectionOf(im, s); err != nil {
			d.chosen = nil
			return nil, err
		}
	}
	columns, names, sorts, err := columnsOf(im, s.columns)
	if err != nil {
		return nil, err
	}
	chosen := d.chosen
	chosen.since = s.since
	if err := chosen.look(ctx, im, enoughOf(offset, limit)); err != nil {
		d.chosen = nil
		return nil, err
	}
	doc := &entitiesDoc{stateDoc{im.Tick, s.seq}, names, sorts, offset, []rowDoc{}, len(chosen.found), chosen.done, chosen.asked, im.Alive}
	if s.sort != "" && !chosen.done {
		return doc, nil // The first is known when all are.
	}
	doc.Rows, err = rowsOf(im, chosen.found[min(offset, len(chosen.found)):min(offset+limit, len(chosen.found))], columns)
	return doc, err
}

// rowsOf returns what columns give for entities.
func rowsOf(im *inspect.Image, entities []ecs.Entity, columns []*query.Expr) ([]rowDoc, error) {
	rows := []rowDoc{}
	for _, e := range entities {
		cells, err := cellsOf(im, e, columns)
		if err != nil {
			return nil, err
		}
		rows = append(rows, rowDoc{e.String(), cells})
	}
	return rows, nil
}

// enoughOf returns how many must be found to show so many; 0: whoever asks wants them counted.
func enoughOf(offset, limit int) int {
	if limit == 0 {
		return 0
	}
	return offset + limit
}

// columnsOf compiles the columns of a list.
func columnsOf(im *inspect.Image, texts []string) (columns []*query.Expr, names, sorts []string, err error) {
	names, sorts = []string{}, []string{}
	for _, text := range texts {
		text, name := query.SplitName(text)
		x, err := query.Compile(im, "columns", text, query.WantValue)
		if err != nil {
			return nil, nil, nil, err
		}
		columns, names, sorts = append(columns, x), append(names, name), append(sorts, text)
	}
	return columns, names, sorts, nil
}

// cellsOf returns what columns give for e; without any, its components.
func cellsOf(im *inspect.Image, e ecs.Entity, columns []*query.Expr) ([]string, error) {
	cells := []string{}
	for _, x := range columns {
		v, err := x.Of(e)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cut(x.Text("", v), 256))
	}
	if len(columns) > 0 {
		return cells, nil
	}
	for _, c := range im.Components {
		if row := rowOf(c, e); row >= 0 {
			v, err := c.Value(row)
			if err != nil {
				return nil, err
			}
			cells = append(cells, labelled(c.Name, v))
		}
	}
	return cells, nil
}

// rowOf returns the row of e; -1 if it has none, as no entity has of a resource.
func rowOf(c *inspect.Component, e ecs.Entity) int {
	if c.Resource {
		return -1
	}
	return c.Find(e)
}

// A selection is the entities of a state that a condition leaves, as far as they were looked for.
type selection struct {
	selecting
	where, order *query.Expr // nil: all; by index.
	having       *inspect.Component
	paged        bool // It is of a state that is read by pages, and not loaded.

	next  int // The first index that was not asked.
	asked int // Entities.
	found []ecs.Entity
	keys  []query.Answer // Of these, if there is an order.
	done  bool
}

// same reports whether s is about the same entities. Columns may differ: they are computed for
// what is shown only.
func (c *selection) same(s selecting) bool {
	return c.seq == s.seq && c.selecting.where == s.where && c.with == s.with && c.sort == s.sort && c.desc == s.desc
}

func selectionOf(im *inspect.Image, s selecting) (c *selection, err error) {
	c = &selection{selecting: s}
	if s.with != "" {
		if c.having = im.Find(s.with); c.having == nil || c.having.Resource {
			return nil, fail(codeNotFound, "no component %q", s.with)
		}
	}
	if s.where != "" {
		if c.where, err = query.Compile(im, "where", s.where, query.WantCondition); err != nil {
			return nil, err
		}
	}
	if s.sort != "" {
		c.order, err = query.Compile(im, "sort", s.sort, query.WantValue)
	}
	return c, err
}

// look goes on until all are asked or it has taken long enough: less long, if enough are found
// to be shown. im is at the record of c.
func (c *selection) look(ctx context.Context, im *inspect.Image, enough int) error {
	if c.done {
		return nil
	}
	if err := c.bind(im); err != nil {
		return err
	}
	for n := 0; c.next < len(im.Index); n++ {
		if n%256 == 255 {
			if err := ctx.Err(); err != nil || c.isEnough(enough) {
				return err
			}
		}
		row := int(im.Index[c.next])
		c.next++
		if row >= im.Alive || int(im.Registry[row].Index()) != c.next-1 {
			continue // Free or retired: rows behind those alive.
		}
		c.asked++
		if err := c.ask(im.Registry[row]); err != nil {
			return err
		}
	}
	c.done = true
	c.arrange()
	return nil
}

// isEnough reports whether the look has taken long enough.
func (c *selection) isEnough(enough int) bool {
	took := time.Since(c.since)
	shown := enough > 0 && c.order == nil && len(c.found) >= enough
	return took > patience || shown && took > patience/8
}

// bind makes the expressions read im: the state of c, but in an image that may have been
// loaded again since.
func (c *selection) bind(im *inspect.Image) error {
	for _, x := range []*query.Expr{c.where, c.order} {
		if x != nil {
			if err := x.Bind(im); err != nil {
				return err
			}
		}
	}
	if c.having != nil {
		c.having = im.Find(c.with)
	}
	return nil
}

// ask adds e if it is one of those that are looked for.
func (c *selection) ask(e ecs.Entity) error {
	if c.having != nil && c.having.Find(e) < 0 {
		return nil
	}
	if c.where != nil {
		if holds, err := c.where.Holds(e); err != nil || !holds {
			return err
		}
	}
	if c.order != nil {
		key, err := c.order.Of(e)
		if err != nil {
			return err
		}
		c.keys = append(c.keys, key)
	}
	c.found = append(c.found, e)
	return nil
}

// arrange puts what was found in order. Nothing comes last either way.
func (c *selection) arrange() {
	if c.order == nil {
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
