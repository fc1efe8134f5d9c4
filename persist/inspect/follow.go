package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A follower has what a state has of one entity, and goes on to the next states by
// the row patches of the ticks between, of which it reads what concerns the entity:
//
//	tick      | registry patch      | patch of each component
//	          |   row of the index? |   entity ranges: its row   value ranges: its value
//	follower  | row, holder         | row, value
//
// That of [ecs.Vacant], which is no entity, has what the world itself has: the resources.
//
// A tick costs reading it, and memory is that of one entity. Values are never written again,
// so a copy of a follower is cheap: step returns one of the state before.
type follower struct {
	view   *catalog.Catalog
	entity ecs.Entity
	whole  func(ctx context.Context, seq uint64) (*Image, error) // Loads a state.

	id      journal.ID // Of the record that leads to the state, and its tick and time.
	tick    uint64
	time    time.Time
	schema  *format.Schema // Of its components.
	adopted *format.Schema // The last one that was compared with it.

	row                int // Of the index in the registry; -1: it was never in use.
	holder             ecs.Entity
	alive, free, total int
	rows               []followedRow // By component number.
}

// A followedRow is where a component has its value for the entity. n is known for all components, since
// a patch says what it expects; the rest only where the entity has it.
type followedRow struct {
	n     int    // Rows of the component.
	row   int    // Of the entity; -1: none.
	value []byte // Encoded; never written again.
	wrote uint64 // Seq of the last tick followed that gave the row.
}

// isWorld reports whether f follows the resources.
func (f *follower) isWorld() bool { return f.entity == ecs.Vacant }

// isAlive reports whether the entity is alive.
func (f *follower) isAlive() bool { return f.row >= 0 && f.row < f.alive && f.holder == f.entity }

// has returns the row of component number n, which is -1 if the entity lacks it.
// What does not rewind can have rows of entities that are not alive; they do not
// count.
func (f *follower) has(n int) int {
	if n >= len(f.rows) || !f.isAlive() && !f.isWorld() {
		return -1
	}
	return f.rows[n].row
}

// state returns what f has as an EntityState.
func (f *follower) state() (*EntityState, error) {
	s := &EntityState{
		Entity: f.entity, Seq: f.id.Seq, Tick: f.tick, Alive: f.isAlive(), Row: f.row, Holder: f.holder,
		Living: f.alive, Free: f.free, Indices: f.total,
	}
	for n, c := range f.schema.Components {
		if n >= len(f.rows) {
			break
		}
		p := EntityComponent{Name: c.Name, Layout: c.Layout, Resource: c.Resource, Row: f.has(n)}
		if p.Row >= 0 {
			var err error
			if p.Value, err = c.Layout.Value(f.rows[n].value); err != nil {
				return nil, fmt.Errorf("component %s: %w", naming.Shown(c.Name), err)
			}
		}
		s.Components = append(s.Components, p)
	}
	return s, nil
}

// each calls do with the records that lead on to record seq. Path refuses a record that f does not lead
// to, so whoever follows need not ask.
func (f *follower) each(ctx context.Context, seq uint64, do func(context.Context, *catalog.Record) error) error {
	path, err := f.view.Path(f.id.Seq, seq)
	if err != nil {
		return err
	}
	return f.view.Records(ctx, path, do)
}

// follow goes on to record seq.
func (f *follower) follow(ctx context.Context, seq uint64) error {
	return f.each(ctx, seq, func(ctx context.Context, r *catalog.Record) error {
		_, err := f.step(ctx, r)
		return err
	})
}

// step goes on by r, and returns what f was before.
func (f *follower) step(ctx context.Context, r *catalog.Record) (before *follower, err error) {
	if err := f.view.Describe(r, f.id, func() *format.Schema { return f.schema }); err != nil {
		return nil, err
	}
	if err := f.adopt(r.Schema); err != nil {
		return nil, f.view.EntryError(r.Entry, err)
	}
	was := *f // With the new schema: components that it adds are in neither state before.
	was.rows = slices.Clone(f.rows)
	if err := f.apply(ctx, r.Says, r.ID); err != nil {
		return nil, f.view.EntryError(r.Entry, fmt.Errorf("tick %d: %w", r.Tick, err))
	}
	return &was, nil
}

// adopt adds the components that s has beyond those of f. The others must be the
// same. A schema is compared once: most ticks have that of the tick before, the same pointer.
func (f *follower) adopt(s *format.Schema) error {
	if f.adopted == s {
		return nil
	}
	if err := f.schema.Differs(s); err != nil {
		return err
	}
	if len(s.Components) > len(f.schema.Components) {
		f.schema = s
	}
	for len(f.rows) < len(s.Components) {
		f.rows = append(f.rows, followedRow{row: -1})
	}
	f.adopted = s
	return nil
}

// apply makes f what the state after t has. An error leaves f unusable.
func (f *follower) apply(ctx context.Context, t *format.Tick, id journal.ID) error {
	if t.Parent != f.id {
		return fmt.Errorf("it continues state %v, not %v", t.Parent, f.id)
	}
	if t.Registry != nil {
		if err := f.applyRegistry(t.Registry); err != nil {
			return fmt.Errorf("entities: %w", err)
		}
	}
	for i := range t.Storages {
		p := &t.Storages[i]
		if p.Number >= len(f.rows) {
			return fmt.Errorf("component number %d of %d", p.Number, len(f.rows))
		}
		if err := f.applyStorage(ctx, p, id.Seq); err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(f.schema.Components[p.Number].Name), err)
		}
	}
	f.id, f.tick, f.time = id, t.Tick, t.Time
	return nil
}

// applyRegistry follows the index of the entity to its row. Whether the entity is alive follows from
// where that is and who holds it, see isAlive.
func (f *follower) applyRegistry(p *format.RegistryPatch) error {
	if err := image.CheckRegistry(p, f.total); err != nil {
		return err
	}
	f.alive, f.free, f.total = p.Alive, p.Free, p.Total
	if f.row >= p.Total {
		f.row, f.holder = -1, 0
	}
	index := f.entity.Index()
	// The rows of the registry are a permutation of the indices. If another index takes the
	// row of this one, this one gets another row in the same patch, before it or behind it.
	eachRow(p.Ranges, p.Rows, func(row int, e ecs.Entity) {
		switch {
		case e.Index() == index:
			f.row, f.holder = row, e
		case row == f.row:
			f.row, f.holder = -1, 0 // It is given another row.
		}
	})
	return nil
}

// eachRow calls f with the rows of ranges and the entities that src gives them: 8 bytes each. That src
// is long enough was checked, with the patch.
func eachRow(ranges []raw.Range, src []byte, f func(row int, e ecs.Entity)) {
	for _, r := range ranges {
		for row := r.First; row < r.First+r.N; row, src = row+1, src[8:] {
			f(row, ecs.Entity(binary.LittleEndian.Uint64(src)))
		}
	}
}

// applyStorage follows the entity through what the tick seq did to a component.
func (f *follower) applyStorage(ctx context.Context, p *format.StoragePatch, seq uint64) error {
	c, to := &f.schema.Components[p.Number], &f.rows[p.Number]
	width := c.Layout.Width()
	if err := image.CheckStorage(c, p, to.n, width); err != nil {
		return err
	}
	to.n = p.After
	if c.Resource != f.isWorld() { // The world has the resources, an entity the others.
		return nil
	}
	was := to.row
	if c.Resource {
		to.row = 0
	} else {
		to.place(p, f.entity)
	}
	if to.row < 0 {
		to.value = nil
		return nil
	}
	// The tick gives the row, or edits it, or neither: then it holds what it held, which is known if it
	// is the row of before.
	i := placeAmong(p.ValueRanges, to.row)
	edits := p.EditsOf(to.row)
	var err error
	switch {
	case width == 0:
		to.value = []byte{}
	case i >= 0:
		to.value, err = cutRow(c.Layout, width, p.Values, i)
	case edits != nil: // An edited row keeps its entity, so these are edits of the value here.
		to.value, _, err = format.AppendEdited(nil, c.Layout, to.value, edits)
	case to.row != was:
		to.value, err = f.valueAt(ctx, p.Number, to.row)
	}
	if err != nil {
		return fmt.Errorf("row %d: %w", to.row, err)
	}
	if i >= 0 || edits != nil {
		to.wrote = seq
	}
	return nil
}

// place sets the row of e to the one it has after p. A row that is given to another entity is
// lost to e, unless the same patch gives e one as well: whichever comes first.
func (r *followedRow) place(p *format.StoragePatch, e ecs.Entity) {
	if r.row >= p.After {
		r.row = -1
	}
	eachRow(p.EntityRanges, p.Entities, func(row int, given ecs.Entity) {
		switch {
		case given == e:
			r.row = row
		case row == r.row:
			r.row = -1
		}
	})
}

// placeAmong returns at which place the rows of ranges, which ascend, have a row, or -1.
func placeAmong(ranges []raw.Range, row int) (i int) {
	for _, r := range ranges {
		if row < r.First {
			break
		}
		if row < r.First+r.N {
			return i + row - r.First
		}
		i += r.N
	}
	return -1
}

// valueAt returns what a row of component number n holds, of any entity. An entity
// that is given a row without a value has that one, which is the only way to need
// it; the programs of this package give the value as well.
func (f *follower) valueAt(ctx context.Context, n, row int) ([]byte, error) {
	im, err := f.whole(progress.Quiet(ctx), f.id.Seq)
	if err != nil {
		return nil, err
	}
	if n >= len(im.Components) || row >= im.Components[n].Len() {
		return nil, fmt.Errorf("row %d is given no value", row)
	}
	return slices.Clone(im.Components[n].Row(row)), nil
}
