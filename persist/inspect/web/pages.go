package web

import (
	"context"
	"errors"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The list of entities without loading the state: a newcomer opens a store of gigabytes and sees
// its first entities at once. The same questions are asked as in entities.go, of the pages of a
// snapshot. Whatever cannot be told from them gives up (errLoad), and the list is made from the
// state as a whole.

// errLoad is given where the state has to be loaded.
var errLoad = errors.New("web: the whole state is needed")

// byPages lists entities of a state in a snapshot without loading it. It is false where the state
// is loaded already or has to be: it lies in no snapshot, an expression reads of other entities, or a
// page is damaged.
func (d *desk) byPages(ctx context.Context, s selecting, offset, limit int) (doc *entitiesDoc, done bool, err error) {
	loaded := d.cursor != nil && d.cursor.Seq() == s.seq && d.cursor.Image() != nil
	inSnapshot := slices.ContainsFunc(d.view.Snapshots(), func(of inspect.SnapshotInfo) bool { return of.Err == nil && of.ID.Seq == s.seq })
	if loaded || !inSnapshot {
		return nil, false, nil
	}
	err = d.view.Read(ctx, s.seq, func(st *inspect.State) (err error) {
		if st.Whole() {
			return errLoad
		}
		doc, err = d.listPages(ctx, st, s, offset, limit)
		return err
	})
	return doc, !errors.Is(err, errLoad), err
}

// listPages is [desk.list] of a state that is read by pages.
func (d *desk) listPages(ctx context.Context, st *inspect.State, s selecting, offset, limit int) (*entitiesDoc, error) {
	im := st.Outline()
	columns, names, sorts, err := columnsOf(im, s.columns)
	if err != nil {
		return nil, err
	}
	if len(columns) > 0 { // One of them may ask who is alive.
		err = st.Count(ctx)
	}
	for _, x := range columns {
		if x.Refers() {
			err = errLoad
		}
		x.Among(st.IsAlive)
	}
	if err != nil {
		return nil, err
	}
	doc := &entitiesDoc{stateDoc{im.Tick, s.seq}, names, sorts, offset, []rowDoc{}, im.Alive, true, im.Alive, im.Alive}
	var found []ecs.Entity
	if s.where+s.with+s.sort == "" && offset+limit <= quickRows {
		found, err = d.first(ctx, s.seq)
	} else if err = d.sweep(ctx, st, s, enoughOf(offset, limit)); err == nil {
		found, doc.Found, doc.Done, doc.Asked = d.chosen.found, len(d.chosen.found), d.chosen.done, d.chosen.asked
	}
	if err != nil || s.sort != "" && !doc.Done {
		return doc, err // The first is known when all are.
	}
	for _, e := range found[min(offset, len(found)):min(offset+limit, len(found))] {
		cells, err := cellsOfPages(st, e, columns)
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, rowDoc{e.String(), cells})
	}
	return doc, nil
}

// first returns the first entities of a state in a snapshot, by index: quickRows of them.
func (d *desk) first(ctx context.Context, seq uint64) ([]ecs.Entity, error) {
	if d.roster == nil || d.roster.seq != seq {
		_, _, entities, err := d.view.Roster(ctx, seq, 0, quickRows)
		if err != nil {
			return nil, err
		}
		d.roster = &roster{seq, entities}
	}
	return d.roster.entities, nil
}

// cellsOfPages is [cellsOf] of a state that is read by pages.
func cellsOfPages(st *inspect.State, e ecs.Entity, columns []*query.Expr) ([]string, error) {
	cells := []string{}
	for _, x := range columns {
		of := x.Reads()
		v, err := x.OfRows(e, func(n int) ([]byte, bool, error) { return st.Has(of[n], e) })
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
			cells = append(cells, labelled(c.Name, v))
		}
	}
	return cells, nil
}

// sweep makes d.chosen what s says and looks on from where it is, as [selection.look] does, span by
// span.
func (d *desk) sweep(ctx context.Context, st *inspect.State, s selecting, enough int) (err error) {
	if d.chosen == nil || !d.chosen.same(s) || !d.chosen.paged {
		if d.chosen, err = selectionOf(st.Outline(), s); err != nil {
			d.chosen = nil
			return err
		}
		d.chosen.paged = true
	}
	d.chosen.since = s.since
	if err := d.chosen.lookByPages(ctx, st, enough); err != nil {
		d.chosen = nil
		return err
	}
	return nil
}

// looked is what a sweep found in a span.
type looked struct {
	next, asked int
	found       []ecs.Entity
	keys        []query.Answer
}

// lookByPages is [selection.look] for a state that is read by pages.
func (c *selection) lookByPages(ctx context.Context, st *inspect.State, enough int) error {
	if c.done {
		return nil
	}
	if err := c.bind(st.Outline()); err != nil {
		return err
	}
	if err := st.Count(ctx); err != nil {
		return err
	}
	var components []*inspect.Component // That are read.
	if c.having != nil {
		components = append(components, c.having)
	}
	numbers := map[*query.Expr]int{} // Of the first component of each.
	for _, x := range []*query.Expr{c.where, c.order} {
		if x == nil {
			continue
		}
		if x.Refers() {
			return errLoad
		}
		x.Among(st.IsAlive)
		numbers[x] = len(components)
		components = append(components, x.Reads()...)
	}
	// Spans are asked by several goroutines, each with expressions of its own: an expression
	// keeps what it read last. What they found is taken in the order of indices, by this one.
	err := st.Sweep(ctx, c.next, components, func() func(*inspect.Span) (any, error) {
		var span *inspect.Span
		var i int
		own := func(x *query.Expr) (*query.Expr, query.Rows) {
			if x == nil {
				return nil, nil
			}
			return x.Clone(), func(n int) ([]byte, bool, error) { return span.Row(numbers[x]+n, i) }
		}
		where, ofWhere := own(c.where)
		order, ofOrder := own(c.order)
		return func(of *inspect.Span) (any, error) {
			span = of
			l := &looked{next: of.Next, asked: len(of.Entities)}
			for k, e := range of.Entities {
				i = k
				if c.having != nil && !of.Has(0, i) {
					continue
				}
				if where != nil {
					if holds, err := where.HoldsRows(e, ofWhere); err != nil {
						return nil, err
					} else if !holds {
						continue
					}
				}
				if order != nil {
					key, err := order.OfRows(e, ofOrder)
					if err != nil {
						return nil, err
					}
					l.keys = append(l.keys, key)
				}
				l.found = append(l.found, e)
			}
			return l, nil
		}
	}, func(found any) error {
		l := found.(*looked)
		c.next, c.asked = l.next, c.asked+l.asked
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
