package inspect

import (
	"context"
	"fmt"
	"iter"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// The values of one entity are read without loading the state. From the snapshot, this takes a page
// or two per component and some pages of the registry:
//
//	sparse[index]   the row of the index; its page may be missing
//	dense[row]      the entity in the row, which may have another generation of the index
//	data[row]       the value
//	registry        whether the entity is alive; it has no index, so it is searched
//
// A follower then applies the ticks after the snapshot.

// An EntityState holds the values of one entity in a state of the world.
type EntityState struct {
	Entity ecs.Entity // [ecs.None] for the resources of the world.
	// Seq is the record that leads to the state, Tick its tick.
	Seq, Tick uint64

	Alive bool
	// Row is the registry row of the entity's index; -1 means that the index was never in use.
	Row int
	// Holder is the entity in that registry row: the entity itself, or another generation of its
	// index.
	Holder ecs.Entity

	// Living is the number of live entities, Free the number of live or free indices, Indices the
	// number of all indices.
	Living, Free, Indices int

	// Components are all components by number, also those that the entity does not have.
	Components []EntityComponent
}

// An EntityComponent is a component or resource in an [EntityState].
type EntityComponent struct {
	Name     string
	Layout   *layout.Type
	Resource bool
	// Row is the row of the entity, or 0 for a resource; -1 if there is no value.
	Row   int
	Value layout.Value // The zero Value if Row is -1.
}

// nearestFollower returns a follower of e at the nearest readable snapshot from which ticks lead
// to record seq.
func nearestFollower(ctx context.Context, v *View, e ecs.Entity, seq uint64) (*follower, error) {
	f, _, err := followFrom(ctx, v, leadingBases(v.cat, seq), e, seq)
	return f, err
}

// followFrom returns a follower of e at the first snapshot of bases that can be read, and that
// snapshot. All bases are on the path to record seq.
func followFrom(ctx context.Context, v *View, bases []catalog.SnapshotInfo, e ecs.Entity, seq uint64) (f *follower, from catalog.SnapshotInfo, err error) {
	err = firstReadable(ctx, v.cat, bases, seq, func(s catalog.SnapshotInfo) (err error) {
		from = s
		f, err = peekSnapshot(ctx, v, s, e)
		return err
	})
	return f, from, err
}

// peekSnapshot returns a follower of e at a snapshot.
func peekSnapshot(ctx context.Context, v *View, s catalog.SnapshotInfo, e ecs.Entity) (f *follower, err error) {
	err = v.readFrom(ctx, s, s.ID.Seq, noComponent, func(st *State) error {
		if f, err = peek(ctx, st, e); err != nil {
			return st.reader.Damage(err)
		}
		return nil
	})
	return f, err
}

// peek reads the values of e from a state in a snapshot.
func peek(ctx context.Context, s *State, e ecs.Entity) (*follower, error) {
	if e == ecs.None {
		e = ecs.Vacant // A follower of ecs.Vacant holds the resources.
	}
	m := s.reader.Manifest
	f := &follower{
		view: s.view, whole: s.view.cat.At, entity: e, tick: m.Tick, id: m.ID, time: m.Time, schema: m.Schema,
		alive: m.Alive, free: m.Free, total: m.Total, rows: make([]followedRow, len(s.columns)),
	}
	for n := range s.columns {
		c := &s.columns[n]
		f.rows[n] = followedRow{n: c.N, row: -1}
		if c.Resource == f.isWorld() {
			if err := f.rows[n].read(s, c, e); err != nil {
				return nil, err
			}
		}
	}
	if err := peekRegistry(ctx, s.reader, f); err != nil {
		return nil, fmt.Errorf("entities: %w", err)
	}
	if s.view.IsSave() {
		return f, nil
	}
	// Loading a state drops the rows of dead entities in no-rewind components, and later rows move
	// up. So a row can have a higher number in the file. Find its number in the loaded state.
	// Indexed components keep their row numbers, because dropped rows become gaps.
	for n := range s.columns {
		if c := &s.columns[n]; f.has(n) > 0 && !c.Rewinds && !c.Indexed {
			if err := c.dropDead(ctx); err != nil {
				return nil, err
			}
			f.rows[n].row = c.Find(e)
		}
	}
	return f, nil
}

// read sets the row and the value of r to those of entity e in column c, if e has the component. If
// c is a resource, it reads the resource.
func (r *followedRow) read(s *State, c *stateColumn, e ecs.Entity) error {
	row := c.N - 1
	if !c.Resource {
		var err error
		if row, err = c.rowOf(e); err != nil {
			return err
		}
	}
	if row < 0 {
		return nil
	}
	holder, err := c.holder(row)
	switch {
	case err != nil:
		return err
	case c.Resource:
	case holder.Index() != e.Index() || holder == ecs.Vacant:
		return c.fault(fmt.Errorf("sparse entry %d names row %d of another entity", e.Index(), row))
	// The row belongs to an entity with another generation of the index.
	case holder != e:
		return nil
	}
	value, err := c.row(row)
	r.row, r.value = row, append([]byte{}, value...)
	return err
}

// peekRegistry sets f.row to the registry row of the entity's index, and f.holder to the entity in
// that row. The index may be on any page, so likely pages are searched first:
//
//   - The first page has the row whose number equals the index. The two numbers are equal until an
//     entity is destroyed.
//   - The next pages have the numbers of the entity's component rows. Component rows move much
//     like registry rows.
func peekRegistry(ctx context.Context, r *snap.Reader, f *follower) error {
	index, a := f.entity.Index(), r.Manifest.Registry()
	// An index past the last row was never in use.
	if f.row = -1; int64(index) >= int64(a.Rows) {
		return nil
	}
	for page := range registryPages(f, a.Pages()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := r.Page(a, page)
		if err != nil {
			return err
		}
		lo, hi := a.Span(page)
		for row := lo; row < hi; row++ {
			if e := format.EntityAt(content, row-lo); e.Index() == index {
				f.row, f.holder = row, e
				return nil
			}
		}
	}
	return fmt.Errorf("no row holds index %d of %d", index, a.Rows)
}

// registryPages iterates over the pages of the registry. Pages that are likely to have the row of
// the entity come first. The first page has the row whose number equals the index of the entity.
// Next come the pages with the row numbers that the entity has in components. Then come all pages,
// by their distance from the first page. A page may come twice.
func registryPages(f *follower, pages int) iter.Seq[int] {
	return func(yield func(int) bool) {
		start := int(f.entity.Index()) / format.PageRows
		if !yield(start) {
			return
		}
		for _, c := range f.rows {
			if page := c.row / format.PageRows; c.row >= 0 && page < pages && page != start && !yield(page) {
				return
			}
		}
		outward(start, pages)(yield)
	}
}

// outward iterates over 0 to n-1. It begins at start and continues alternately to the left and
// right.
func outward(start, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for d := 0; d < n; d++ {
			if i := start - d; i >= 0 && !yield(i) {
				return
			}
			if i := start + d; d > 0 && i < n && !yield(i) {
				return
			}
		}
	}
}

// cutRow returns a checked copy of row i of src, which is a sequence of rows. If rows vary in
// size, it skips the rows before i one by one.
func cutRow(t *layout.Type, width int, src []byte, i int) ([]byte, error) {
	if width >= 0 {
		if (i+1)*width > len(src) {
			return nil, format.ErrShort
		}
		row := append([]byte{}, src[i*width:(i+1)*width]...)
		return row, t.Check(row, 1)
	}
	for ; ; i-- {
		row, rest, err := t.Next(src)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			return append([]byte{}, row...), nil
		}
		src = rest
	}
}
