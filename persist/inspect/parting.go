package inspect

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Parting says where two histories part that were equal before.
type Parting struct {
	Compared int         // Ticks that both histories have.
	Equal    *CommonTick // The last of them after which the states are equal; nil: none is.
	First    *CommonTick // The first after which they differ; nil: none is.
}

// A CommonTick is a tick that two histories have, with the records of both that
// led there.
type CommonTick struct {
	Tick     uint64
	Old, New uint64
}

// A parting is a search for one.
type parting struct {
	Parting
	views   [2]*catalog.Catalog
	cursors [2]*Cursor
}

// A pairedTick is a common tick with its two places in the journals.
type pairedTick struct {
	CommonTick
	places [2]place
}

// A place is a state on the way to another.
type place struct {
	tick, seq uint64
	id        journal.ID
	entry     journal.Entry // That led there; none led to the oldest.
}

// commonTicks returns the ticks on both ways, oldest first.
func commonTicks(v *catalog.Catalog, a uint64, u *catalog.Catalog, b uint64) ([]pairedTick, error) {
	older, newer := way(v, a), way(u, b)
	var common []pairedTick
	for len(older) > 0 && len(newer) > 0 {
		o, n := older[0], newer[0]
		if o.tick <= n.tick {
			older = older[1:]
		}
		if n.tick <= o.tick {
			newer = newer[1:]
		}
		if o.tick != n.tick {
			continue
		}
		if v.Log.World == u.Log.World && o.id == n.id { // The same record: what came before is the same.
			common = common[:0]
		}
		common = append(common, pairedTick{CommonTick{o.tick, o.seq, n.seq}, [2]place{o, n}})
	}
	if len(common) == 0 {
		return nil, fmt.Errorf("%w: a tick that both have", format.ErrNotFound)
	}
	return common, nil
}

// way returns the states on the way to record seq, the oldest that a snapshot
// leads to first.
func way(v *catalog.Catalog, seq uint64) (way []place) {
	root := seq
	for e := range v.Log.Ancestors(seq) {
		way = append(way, place{e.Tick, e.ID.Seq, e.ID, e})
		root = e.Parent
	}
	var oldest *SnapshotInfo
	for _, s := range v.Bases(seq) { // Nearest first.
		if s.Err == nil {
			oldest = &s
		}
	}
	if oldest == nil {
		return nil
	}
	if oldest.ID.Seq == root || len(way) == 0 {
		way = append(way, place{tick: oldest.Tick, seq: oldest.ID.Seq, id: oldest.ID})
	}
	slices.Reverse(way)
	return slices.DeleteFunc(way, func(p place) bool { return p.seq < oldest.ID.Seq })
}

// sameTick reports whether both histories came from one common tick to the next in
// one step, and in the same way. If in doubt it says no.
func (d *parting) sameTick(from, to *pairedTick) bool {
	var ticks [2]*format.Tick
	var schemas [2]*format.Schema
	for i, v := range d.views {
		e := to.places[i].entry
		if e.Parent != from.places[i].seq {
			return false
		}
		var err error
		if ticks[i], schemas[i], err = v.Tick(e); err != nil {
			return false
		}
	}
	a, known := rewindingPatches(ticks[0], schemas[0])
	b, alsoKnown := rewindingPatches(ticks[1], schemas[1])
	return known && alsoKnown && sameRegistry(ticks[0].Registry, ticks[1].Registry) && slices.EqualFunc(a, b, namedPatch.same)
}

func sameRegistry(a, b *format.RegistryPatch) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Alive == b.Alive && a.Free == b.Free && a.Total == b.Total && slices.Equal(a.Ranges, b.Ranges) && bytes.Equal(a.Rows, b.Rows)
}

// A namedPatch is what a tick does to a component.
type namedPatch struct {
	*format.StoragePatch
	entry *format.Entry
}

// rewindingPatches returns what t does to components that rewind, and whether s has all
// that it names.
func rewindingPatches(t *format.Tick, s *format.Schema) (patches []namedPatch, known bool) {
	for i := range t.Storages {
		p := &t.Storages[i]
		if p.Number >= len(s.Components) {
			return nil, false
		}
		if e := &s.Components[p.Number]; e.Rewinds {
			patches = append(patches, namedPatch{p, e})
		}
	}
	return patches, true
}

func (p namedPatch) same(q namedPatch) bool {
	return p.entry.Name == q.entry.Name && p.entry.Layout.Equal(q.entry.Layout) && p.Before == q.Before && p.After == q.After &&
		slices.Equal(p.EntityRanges, q.EntityRanges) && bytes.Equal(p.Entities, q.Entities) &&
		slices.Equal(p.ValueRanges, q.ValueRanges) && bytes.Equal(p.Values, q.Values)
}

// sameState compares the states after t.
func (d *parting) sameState(ctx context.Context, t *pairedTick) (bool, error) {
	for i, v := range d.views {
		var err error
		if d.cursors[i] == nil {
			d.cursors[i], err = newCursor(ctx, v, t.places[i].seq)
		} else {
			err = d.cursors[i].Seek(ctx, t.places[i].seq)
		}
		if err != nil {
			return false, err
		}
	}
	return d.cursors[0].Image().Digest() == d.cursors[1].Image().Digest(), nil
}
