package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// What a state has of one entity is read without loading the state. In the snapshot that
// takes a page or two of each component, and some of the registry:
//
//	sparse[index]  ──▶ row        a page of sparse, which may say nothing
//	dense[row]     == e?          the index may have belonged to another life
//	data[row]      ──▶ value
//	registry       ──▶ alive?     searched: nothing says where an index lies in it
//
// The ticks behind the snapshot are then followed, see follower.

// An EntityState is what a state of the world has of one entity.
type EntityState struct {
	Entity    ecs.Entity
	Seq, Tick uint64 // Of the record that leads to the state, and its tick.

	Alive  bool
	Row    int        // Of its index among the entities, as they lie; -1: the index was never in use.
	Holder ecs.Entity // Who has that row: the entity itself, or who has its index, or had it last.

	Living, Free, Indices int // Entities alive, indices alive or free, and indices in all.

	Components []EntityComponent // By number: all that there are, whether the entity has them or not.
}

// An EntityComponent is a component or resource in an [EntityState].
type EntityComponent struct {
	Name     string
	Layout   *layout.Type
	Resource bool
	Row      int          // Where the entity has its value; -1: it does not have the component. Of a resource that has one: 0.
	Value    layout.Value // The zero Value if it does not.
}

// nearestFollower returns what the nearest readable snapshot that leads to record
// seq has of e.
func nearestFollower(ctx context.Context, v *catalog.Catalog, e ecs.Entity, seq uint64) (*follower, error) {
	f, _, err := followFrom(ctx, v, leadingBases(v, seq), e, seq)
	return f, err
}

// followFrom returns what the first readable of bases, which lead to record seq, has of e, and which
// that is.
func followFrom(ctx context.Context, v *catalog.Catalog, bases []SnapshotInfo, e ecs.Entity, seq uint64) (f *follower, from SnapshotInfo, err error) {
	err = firstReadable(ctx, v, bases, seq, func(s SnapshotInfo) (err error) {
		from = s
		f, err = peekSnapshot(ctx, v, s, e)
		return err
	})
	return f, from, err
}

// leadingBases returns the snapshots that record seq can be reached from by ticks of their
// own schema, nearest first, and those that cannot be read.
func leadingBases(v *catalog.Catalog, seq uint64) []SnapshotInfo {
	return slices.DeleteFunc(v.Bases(seq), func(s SnapshotInfo) bool { return s.Err == nil && !v.Leads(s, seq) })
}

// firstReadable calls read with each of bases, which lead to record seq, until it succeeds:
// the same state may be reached from an older snapshot, at the price of more ticks.
// Its error says what is wrong with all of them.
func firstReadable(ctx context.Context, v *catalog.Catalog, bases []SnapshotInfo, seq uint64, read func(SnapshotInfo) error) error {
	var skipped []error
	for _, s := range bases {
		err := read(s)
		if err == nil || ctx.Err() != nil {
			return err
		}
		skipped = append(skipped, err)
	}
	if len(skipped) > 0 {
		return errors.Join(skipped...)
	}
	return v.Unreachable(seq)
}

// peekSnapshot returns what a snapshot has of e.
func peekSnapshot(ctx context.Context, v *catalog.Catalog, s SnapshotInfo, e ecs.Entity) (*follower, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	r, err := snap.Open(v.Files, s.Name, catalog.SnapshotName)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := peek(ctx, r, e, !v.IsSave())
	if err != nil {
		return nil, r.Damage(err)
	}
	f.view, f.whole = v, v.At
	return f, nil
}

// peek returns what the snapshot has of e. If the snapshot is one of a store, what
// does not rewind may have rows of entities that are not alive.
func peek(ctx context.Context, r *snap.Reader, e ecs.Entity, inStore bool) (*follower, error) {
	m := r.Manifest
	f := &follower{
		entity: e, tick: m.Tick, id: m.ID, time: m.Time, schema: m.Schema,
		alive: m.Alive, free: m.Free, total: m.Total,
		rows: make([]followedRow, len(m.Schema.Components)),
	}
	if err := m.CheckRegistry(); err != nil {
		return nil, fmt.Errorf("entities: %w", err)
	}
	for n := range f.rows {
		f.rows[n] = followedRow{n: m.Components[n].Rows, row: -1}
		var err error
		switch resource := m.Schema.Components[n].Resource; {
		case resource && f.isWorld():
			err = peekResource(r, n, &f.rows[n])
		case !resource && !f.isWorld():
			err = peekComponent(r, n, e, &f.rows[n])
		}
		if err != nil {
			return nil, r.InComponent(n, err)
		}
	}
	if err := peekRegistry(ctx, r, f); err != nil {
		return nil, fmt.Errorf("entities: %w", err)
	}
	if !inStore {
		return f, nil
	}
	// Where a state is loaded, rows of dead entities are dropped and those behind come up.
	// So shall the row that is told here. Rows of an indexed component stay: they become gaps.
	// A tick that writes such a component gives all of its rows, so it says anew which is whose.
	for n, c := range m.Schema.Components {
		if row := f.has(n); row > 0 && !c.Rewinds && !c.Indexed {
			dead, err := deadBefore(r, n, row)
			if err != nil {
				return nil, r.InComponent(n, err)
			}
			f.rows[n].row -= dead
		}
	}
	return f, nil
}

// peekRegistry sets the row of the index of f, and the entity there. Rows are a
// permutation of the indices, so each page can be the one. First come those where it
// often is: at the row of the index itself, where it stays while nothing is destroyed,
// or at that of a component, whose rows move as those of the registry do.
func peekRegistry(ctx context.Context, r *snap.Reader, f *follower) error {
	index, a := f.entity.Index(), r.Manifest.Registry()
	if f.row = -1; int64(index) >= int64(a.Rows) { // It was never in use.
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

// registryPages iterates over the pages of the registry, the likely ones first, and
// perhaps again later: that of the row which equals the index, those of the rows that components have
// for the entity, and then all, from the first one outward.
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

// outward iterates over 0 to n-1: from start on, then one to the left and one to
// the right by turns.
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

// peekResource sets row and value of resource number n, if it was saved.
func peekResource(r *snap.Reader, n int, to *followedRow) (err error) {
	if to.n > 0 {
		to.row = 0
		to.value, err = peekValue(r, n, 0)
	}
	return err
}

// peekComponent sets row and value of e in component number n, if it has it. The
// sparse array leads to a row, and dense says whether it is the row of e.
func peekComponent(r *snap.Reader, n int, e ecs.Entity, to *followedRow) error {
	row, err := peekSparse(r, n, e.Index())
	if err != nil || row < 0 {
		return err
	}
	if row >= to.n {
		return fmt.Errorf("sparse entry %d names row %d of %d", e.Index(), row, to.n)
	}
	dense := r.Manifest.Array(n, format.DenseArray)
	content, err := r.Page(dense, row/dense.PageRows)
	if err != nil {
		return err
	}
	holder := format.EntityAt(content, row%dense.PageRows)
	if holder.Index() != e.Index() || holder == ecs.Vacant {
		return fmt.Errorf("sparse entry %d names row %d of another entity", e.Index(), row)
	}
	if holder != e { // Of another life of the index.
		return nil
	}
	to.row = row
	to.value, err = peekValue(r, n, row)
	return err
}

// peekSparse returns the row that the sparse array of component number n has for
// an index, or -1. A page that nothing is in is not stored.
func peekSparse(r *snap.Reader, n int, index uint32) (row int, err error) {
	sparse := r.Manifest.Array(n, format.SparseArray)
	page := int(index) / sparse.PageRows
	content, err := r.Page(sparse, page)
	if err != nil || content == nil {
		return -1, err
	}
	row = -1
	err = format.DecodeSparsePage(content, func(i int, first uint32, n int) error {
		if at := int(index)%format.PageRows - i; at >= 0 && at < n {
			row = int(first) + at
		}
		return nil
	})
	if err != nil {
		return -1, fmt.Errorf("page %v: %w", sparse.Key(page), err)
	}
	return row, nil
}

// peekValue returns a row of component number n, which has it: a copy, as the page is let go.
func peekValue(r *snap.Reader, n, row int) ([]byte, error) {
	a := r.Manifest.Array(n, format.DataArray)
	if a.Width == 0 {
		return []byte{}, nil
	}
	content, err := r.Page(a, row/a.PageRows)
	if err != nil {
		return nil, err
	}
	value, err := cutRow(r.Manifest.Schema.Components[n].Layout, a.Width, content, row%a.PageRows)
	if err != nil {
		return nil, fmt.Errorf("row %d: %w", row, err)
	}
	return value, nil
}

// cutRow returns a copy of row i of src, which holds rows end to end, checked. Where rows
// vary in size, those before it have to be passed one by one.
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

// deadBefore returns how many rows of component number n before a row belong to
// entities that are not alive. It reads all that are: O(alive log row) time, 8 bytes for
// each row before.
func deadBefore(r *snap.Reader, n, row int) (dead int, err error) {
	var before []ecs.Entity
	err = r.Entities(r.Manifest.Array(n, format.DenseArray), row, func(_ int, e ecs.Entity) bool {
		before = append(before, e)
		return true
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(before)
	dead = row // All, but for those that are found among the living.
	err = r.Entities(r.Manifest.Registry(), r.Manifest.Alive, func(_ int, e ecs.Entity) bool {
		if _, found := slices.BinarySearch(before, e); found {
			dead--
		}
		return true
	})
	return dead, err
}
