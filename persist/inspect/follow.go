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

// A follower holds the values of one entity in a state. It advances tick by tick, and reads only
// the data of the entity:
//
//   - From the registry patch of a tick, it reads the registry row of the entity's index. It
//     updates row and holder.
//   - From the patch of each component, it reads whether the entity has a row, and the value in
//     this row. It updates the row and the value.
//
// A follower can also hold the resources of the world. Its entity is then [ecs.Vacant]. Callers of
// this package pass [ecs.None] or ecs.Vacant for the resources, and get ecs.None back.
//
// A step costs as much as reading the tick. A follower never overwrites the bytes of a value, so a
// copy of a follower can share them. This makes it cheap to keep the follower from before a step.
type follower struct {
	view   *View
	entity ecs.Entity
	// whole loads the state after record seq.
	whole func(ctx context.Context, seq uint64) (*image.Image, error)

	// id, tick and time describe the record that leads to the state.
	id   journal.ID
	tick uint64
	time time.Time
	// schema is the schema of the components in rows.
	schema *format.Schema
	// adopted is the last schema that adopt() accepted. Consecutive ticks mostly share a schema, so
	// adopt() compares the pointers first.
	adopted *format.Schema

	// row is the row of the entity's index in the registry; -1 means that the index was never in
	// use.
	row                int
	holder             ecs.Entity
	alive, free, total int
	rows               []followedRow // Rows of the entity, by component number.
}

// A followedRow holds the row and the value that the entity has in one component. Without the
// component, only n is set.
type followedRow struct {
	n     int    // Number of rows of the component.
	row   int    // Row of the entity; -1 means that it does not have the component.
	value []byte // The encoded value; never overwritten.
	wrote uint64 // Seq of the last tick that wrote the row.
}

// isWorld reports whether f follows the resources.
func (f *follower) isWorld() bool { return f.entity == ecs.Vacant }

// checkExisted returns an error if the entity never existed up to the state of f. The caller has
// found no event of the entity, from record 0 on. An index gets higher generations over time. So
// the entity existed if its generation is not higher than that of the current holder.
func (f *follower) checkExisted() error {
	if generation := f.entity.Generation(); f.isWorld() || f.row >= 0 && generation > 0 && generation <= f.holder.Generation() {
		return nil
	}
	return fmt.Errorf("%w: entity %v never existed up to tick %d", format.ErrNotFound, f.entity, f.tick)
}

// isAlive reports whether the entity is alive.
func (f *follower) isAlive() bool { return f.row >= 0 && f.row < f.alive && f.holder == f.entity }

// has returns the row of component number n, or -1 if the entity does not have the component. A row
// of a dead entity in a no-rewind component counts as missing.
func (f *follower) has(n int) int {
	if n >= len(f.rows) || !f.isAlive() && !f.isWorld() {
		return -1
	}
	return f.rows[n].row
}

// state returns the values of f as an EntityState.
func (f *follower) state() (*EntityState, error) {
	e := f.entity
	if f.isWorld() {
		e = ecs.None
	}
	s := &EntityState{
		Entity: e, Seq: f.id.Seq, Tick: f.tick, Alive: f.isAlive(), Row: f.row, Holder: f.holder,
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

// each calls do() with the records after the state of f, up to record seq, in order. It fails if
// record seq does not descend from the state of f.
func (f *follower) each(ctx context.Context, seq uint64, do func(context.Context, *catalog.Record) error) error {
	path, err := f.view.cat.Path(f.id.Seq, seq)
	if err != nil {
		return err
	}
	return f.view.cat.Records(ctx, path, do)
}

// follow advances f to record seq.
func (f *follower) follow(ctx context.Context, seq uint64) error {
	return f.each(ctx, seq, func(ctx context.Context, r *catalog.Record) error {
		_, err := f.step(ctx, r)
		return err
	})
}

// step advances f by r. It returns a copy of f from before the step.
func (f *follower) step(ctx context.Context, r *catalog.Record) (before *follower, err error) {
	if err := f.view.cat.Describe(r, f.id, func() *format.Schema { return f.schema }); err != nil {
		return nil, err
	}
	if err := f.adopt(r.Schema); err != nil {
		return nil, f.view.cat.EntryError(r.Entry, err)
	}
	// Keep a copy from before the tick. The added components are in the copy too, without rows.
	was := *f
	was.rows = slices.Clone(f.rows)
	if err := f.apply(ctx, r.Decoded, r.ID); err != nil {
		return nil, f.view.cat.EntryError(r.Entry, fmt.Errorf("tick %d: %w", r.Tick, err))
	}
	return &was, nil
}

// adopt adds the components of s that f does not have. It returns an error if s differs from f in a
// component that both have.
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

// apply applies t to f. After an error f is unusable.
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

// applyRegistry updates the registry row of the entity's index, and the entity in that row.
// isAlive uses these two fields.
func (f *follower) applyRegistry(p *format.RegistryPatch) error {
	if err := image.CheckRegistry(p, f.total); err != nil {
		return err
	}
	f.alive, f.free, f.total = p.Alive, p.Free, p.Total
	if f.row >= p.Total {
		f.row, f.holder = -1, 0
	}
	index := f.entity.Index()
	// Each index has exactly one row. If the patch writes another index into row f.row, it also
	// writes the entity's index into another row, before or after that.
	eachRow(p.Ranges, p.Rows, func(row int, e ecs.Entity) {
		switch {
		case e.Index() == index:
			f.row, f.holder = row, e
		case row == f.row:
			// Another entity took the row. The patch writes the new row of the followed entity
			// later.
			f.row, f.holder = -1, 0
		}
	})
	return nil
}

// eachRow calls f with each row of ranges and its entity from src, 8 bytes each. The caller must
// have checked the length of src.
func eachRow(ranges []raw.Range, src []byte, f func(row int, e ecs.Entity)) {
	for _, r := range ranges {
		for row := r.First; row < r.First+r.N; row, src = row+1, src[8:] {
			f(row, ecs.Entity(binary.LittleEndian.Uint64(src)))
		}
	}
}

// applyStorage updates the entity's row and value according to the patch p of tick seq.
func (f *follower) applyStorage(ctx context.Context, p *format.StoragePatch, seq uint64) error {
	c, to := &f.schema.Components[p.Number], &f.rows[p.Number]
	width := c.Layout.Width()
	if err := image.CheckStorage(c, p, to.n, width); err != nil {
		return err
	}
	to.n = p.After
	// Only the world has resources, and only entities have other components.
	if c.Resource != f.isWorld() {
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
	// A tag has an empty value. For other components, the tick can write the whole value, edit it,
	// or move the entity to a row whose value it does not write. Otherwise to.value stays the same.
	i := placeAmong(p.ValueRanges, to.row)
	edits := p.EditsOf(to.row)
	var err error
	switch {
	case width == 0:
		to.value = []byte{}
	case i >= 0:
		to.value, err = cutRow(c.Layout, width, p.Values, i)
	// Edits apply to the old value: a tick only edits rows that keep their entity.
	case edits != nil:
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

// place sets r.row to the row of e after patch p:
//
//   - If p writes e into a row, e is in this row.
//   - If p removes the row of e or writes another entity into it, e has no row.
//   - In all other cases, e has the same row as before.
//
// If p moves e, it may write the new row of e before or after it overwrites the old row.
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

// placeAmong returns the position of row among all rows of ranges, or -1. ranges are in ascending
// order.
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

// valueAt loads the state and returns the value in a row of component number n. A tick may put the
// entity into a row without writing the value of that row. Stet always writes the value too, so
// this happens only in journals of other software.
func (f *follower) valueAt(ctx context.Context, n, row int) ([]byte, error) {
	im, err := f.whole(progress.Quiet(ctx), f.id.Seq)
	if err != nil {
		return nil, err
	}
	if n >= len(im.Components) || row >= im.Components[n].Len() {
		return nil, fmt.Errorf("row %d has no value", row)
	}
	return slices.Clone(im.Components[n].Row(row)), nil
}
