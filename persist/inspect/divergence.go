package inspect

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Two histories are compared step by step, at the ticks that both histories have. For example,
// histories of the ticks 1 to 5 and 2 to 6 are compared at the ticks 2 to 5.
//
// Equal states stay equal if both histories have the same payload for the next tick. sameTick does
// this cheap check. Otherwise sameState compares the states.

// A Divergence says where two histories begin to differ.
type Divergence struct {
	Compared int         // Number of ticks that both histories have.
	Equal    *CommonTick // The last common tick after which the states are equal, or nil.
	First    *CommonTick // The first common tick after which the states differ, or nil.
}

// A CommonTick is a tick that two histories have. Old and New are the records of that tick.
type CommonTick struct {
	Tick     uint64
	Old, New uint64
}

// A divergenceSearch is one call of View.FindDivergence.
type divergenceSearch struct {
	Divergence
	views   [2]*catalog.Catalog
	cursors [2]*Cursor
}

// A commonRecord is a common tick with its record in each of the two journals. The Entry of the
// oldest state of a history has only Tick and ID, because the state comes from a snapshot.
type commonRecord struct {
	CommonTick
	records [2]journal.Entry
}

// commonTicks returns the ticks that both histories have, oldest first.
func commonTicks(v *catalog.Catalog, a uint64, u *catalog.Catalog, b uint64) (common []commonRecord, err error) {
	byTick := func(o, n journal.Entry) int { return cmp.Compare(o.Tick, n.Tick) }
	for o, n := range matched(historyTo(v, a), historyTo(u, b), byTick) {
		if o == nil || n == nil {
			continue
		}
		// Both histories contain this record, so all states up to it are equal. Drop the earlier
		// ticks.
		if v.Log.World == u.Log.World && o.ID == n.ID {
			common = common[:0]
		}
		common = append(common, commonRecord{CommonTick{o.Tick, o.ID.Seq, n.ID.Seq}, [2]journal.Entry{*o, *n}})
	}
	if len(common) == 0 {
		return nil, fmt.Errorf("%w: the histories have no tick in common", format.ErrNotFound)
	}
	return common, nil
}

// historyTo returns the records on the path to record seq, oldest first. It begins with the state
// of the oldest readable snapshot on this path. If several records have the same tick, the result
// has only the last of them.
func historyTo(v *catalog.Catalog, seq uint64) []journal.Entry {
	oldest, ok := v.OldestBase(seq)
	if !ok {
		return nil
	}
	// OldestBase has found this path.
	path, _ := v.Log.Path(oldest.ID.Seq, seq)
	way := []journal.Entry{{Tick: oldest.Tick, ID: oldest.ID}}
	for _, e := range path {
		if last := &way[len(way)-1]; last.Tick == e.Tick {
			*last = e
		} else {
			way = append(way, e)
		}
	}
	return way
}

// sameTick reports whether both histories make the same change from one common tick to the next.
// The change must be a single record in each history. If a record cannot be read or compared,
// sameTick returns false.
func (d *divergenceSearch) sameTick(from, to *commonRecord) bool {
	var registries [2]*format.RegistryPatch
	var patches [2][]namedPatch
	for i, v := range d.views {
		if to.records[i].Parent != from.records[i].ID.Seq {
			return false
		}
		t, s, err := v.Tick(to.records[i])
		if err != nil {
			return false
		}
		registries[i] = t.Registry
		for n := range t.Storages {
			p := &t.Storages[n]
			if p.Number >= len(s.Components) {
				return false
			}
			// No-rewind components are not compared.
			if e := &s.Components[p.Number]; e.Rewinds {
				patches[i] = append(patches[i], namedPatch{p, e})
			}
		}
	}
	return sameRegistry(registries[0], registries[1]) && slices.EqualFunc(patches[0], patches[1], namedPatch.same)
}

// sameRegistry reports whether two registry patches are equal. A nil patch changes nothing.
func sameRegistry(a, b *format.RegistryPatch) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Alive == b.Alive && a.Free == b.Free && a.Total == b.Total && slices.Equal(a.Ranges, b.Ranges) && bytes.Equal(a.Rows, b.Rows)
}

// A namedPatch is a tick's patch for a component that rewinds.
type namedPatch struct {
	*format.StoragePatch
	entry *format.Entry
}

// same reports whether two patches are equal byte by byte. Two different patches can still make the
// same change: one edits a row, the other writes the whole row. After the result false, the caller
// compares the states.
func (p namedPatch) same(q namedPatch) bool {
	return p.entry.Name == q.entry.Name && p.entry.Layout.Equal(q.entry.Layout) && p.Before == q.Before && p.After == q.After &&
		slices.Equal(p.EntityRanges, q.EntityRanges) && bytes.Equal(p.Entities, q.Entities) &&
		slices.Equal(p.ValueRanges, q.ValueRanges) && bytes.Equal(p.Values, q.Values) &&
		slices.Equal(p.EditRanges, q.EditRanges) && bytes.Equal(p.Edits, q.Edits)
}

// sameState compares the states after t by their digests. Each cursor advances from an earlier
// common tick, or loads a nearer snapshot.
func (d *divergenceSearch) sameState(ctx context.Context, t *commonRecord) (bool, error) {
	for i, c := range d.cursors {
		if err := c.Seek(ctx, t.records[i].ID.Seq); err != nil {
			return false, err
		}
	}
	return d.cursors[0].settled.Digest() == d.cursors[1].settled.Digest(), nil
}
