package inspect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A liveRegistry is the set of live entities after some ticks. The live entities are the first
// rows of the registry. Rows that ticks wrote are in given; method each reads all others from the
// snapshot, again on every call. So memory grows only with given.
type liveRegistry struct {
	reader       *snap.Reader
	alive, total int
	given        map[int]ecs.Entity
}

// readLiveRegistry calls read with a snapshot, the ticks after it, and the live entities in the
// snapshot. read must apply the ticks.
func readLiveRegistry(v *catalog.Catalog, s SnapshotInfo, seq uint64, read func(r *snap.Reader, path []journal.Entry, l *liveRegistry) error) error {
	return openAt(v, s, seq, func(r *snap.Reader, path []journal.Entry) error {
		return read(r, path, &liveRegistry{reader: r, alive: r.Manifest.Alive, total: r.Manifest.Total, given: map[int]ecs.Entity{}})
	})
}

// openAt calls read with an open snapshot and the ticks after it, up to record seq.
func openAt(v *catalog.Catalog, s SnapshotInfo, seq uint64, read func(r *snap.Reader, path []journal.Entry) error) error {
	if s.Err != nil {
		return s.Err
	}
	r, err := snap.Open(v.Files, s.Name, catalog.SnapshotName)
	if err != nil {
		return err
	}
	defer r.Close()
	path, err := v.Path(s.ID.Seq, seq)
	if err != nil {
		return err
	}
	return read(r, path)
}

// follow applies the ticks of path, which begins at the snapshot. It also passes each tick to the
// functions in also, so the journal is read only once.
func (l *liveRegistry) follow(ctx context.Context, v *catalog.Catalog, path []journal.Entry, also ...func(*format.Tick) error) error {
	id, schema := l.reader.Manifest.ID, l.reader.Manifest.Schema
	return v.Records(ctx, path, func(_ context.Context, r *catalog.Record) error {
		if err := v.Describe(r, id, func() *format.Schema { return schema }); err != nil {
			return err
		}
		err := l.apply(r.Decoded, id)
		for i := 0; err == nil && i < len(also); i++ {
			err = also[i](r.Decoded)
		}
		if err != nil {
			return v.EntryError(r.Entry, fmt.Errorf("tick %d: %w", r.Tick, err))
		}
		id, schema = r.ID, r.Schema
		return nil
	})
}

// apply applies the registry patch of t. The parent of t must be the state id.
func (l *liveRegistry) apply(t *format.Tick, id journal.ID) error {
	if t.Parent != id {
		return fmt.Errorf("it continues state %v, not %v", t.Parent, id)
	}
	p := t.Registry
	if p == nil {
		return nil
	}
	if err := image.CheckRegistry(p, l.total); err != nil {
		return fmt.Errorf("entities: %w", err)
	}
	l.alive, l.total = p.Alive, p.Total
	eachRow(p.Ranges, p.Rows, func(row int, e ecs.Entity) { l.given[row] = e })
	return nil
}

// each calls f with all live entities, in no particular order. Rows in given replace those of the
// snapshot. Rows from alive on belong to free or retired indices.
func (l *liveRegistry) each(ctx context.Context, f func(e ecs.Entity)) error {
	for row, e := range l.given {
		if row < l.alive {
			f(e)
		}
	}
	registry := l.reader.Manifest.Registry()
	err := l.reader.Entities(registry, min(l.alive, registry.Rows), func(row int, e ecs.Entity) bool {
		if _, given := l.given[row]; !given {
			f(e)
		}
		return row%format.PageRows > 0 || ctx.Err() == nil
	})
	if err != nil {
		err = l.reader.Damage(fmt.Errorf("entities: %w", err))
	}
	return cmp.Or(ctx.Err(), err)
}
