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

// Two histories are walked side by side, by the ticks that both have:
//
//	old   1 ── 2 ── 3 ── 4 ── 5
//	new        2 ── 3 ── 4 ── 5 ── 6        common: 2 to 5
//
// From one common tick to the next, either both took one step and the payloads say the same, which is
// cheap to see (sameTick); or the states themselves are compared (sameState).

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

// A pairedTick is a common tick with the records that led there in both journals. Of the
// oldest state on a way, which none led to, they have no more than the tick and the ID.
type pairedTick struct {
	CommonTick
	records [2]journal.Entry
}

// commonTicks returns the ticks on both ways, oldest first.
func commonTicks(v *catalog.Catalog, a uint64, u *catalog.Catalog, b uint64) (common []pairedTick, err error) {
	byTick := func(o, n journal.Entry) int { return cmp.Compare(o.Tick, n.Tick) }
	for o, n := range matched(way(v, a), way(u, b), byTick) {
		if o == nil || n == nil {
			continue
		}
		if v.Log.World == u.Log.World && o.ID == n.ID { // The same record: what came before is the same, and need not be compared.
			common = common[:0]
		}
		common = append(common, pairedTick{CommonTick{o.Tick, o.ID.Seq, n.ID.Seq}, [2]journal.Entry{*o, *n}})
	}
	if len(common) == 0 {
		return nil, fmt.Errorf("%w: a tick that both have", format.ErrNotFound)
	}
	return common, nil
}

// way returns the states on the way to record seq, the oldest that a snapshot
// leads to first, by the records that led there.
func way(v *catalog.Catalog, seq uint64) (way []journal.Entry) {
	root := seq
	for e := range v.Log.Ancestors(seq) {
		if e.Lost() { // What is behind it can be compared, what is before leads no further.
			break
		}
		way = append(way, e)
		root = e.Parent
	}
	var oldest *SnapshotInfo
	for _, s := range v.Bases(seq) { // Nearest first, so the last one that fits is the oldest.
		if s.Err == nil && (s.ID.Seq >= root || len(way) == 0) {
			oldest = &s
		}
	}
	if oldest == nil {
		return nil
	}
	if oldest.ID.Seq == root || len(way) == 0 {
		way = append(way, journal.Entry{Tick: oldest.Tick, ID: oldest.ID})
	}
	slices.Reverse(way)
	return slices.DeleteFunc(way, func(e journal.Entry) bool { return e.ID.Seq < oldest.ID.Seq })
}

// sameTick reports whether both histories came from one common tick to the next in
// one step, and in the same way. If in doubt it says no.
func (d *parting) sameTick(from, to *pairedTick) bool {
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
			if e := &s.Components[p.Number]; e.Rewinds { // Others are not compared.
				patches[i] = append(patches[i], namedPatch{p, e})
			}
		}
	}
	return sameRegistry(registries[0], registries[1]) && slices.EqualFunc(patches[0], patches[1], namedPatch.same)
}

// sameRegistry reports whether both ticks did the same to the entities, or both nothing.
func sameRegistry(a, b *format.RegistryPatch) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Alive == b.Alive && a.Free == b.Free && a.Total == b.Total && slices.Equal(a.Ranges, b.Ranges) && bytes.Equal(a.Rows, b.Rows)
}

// A namedPatch is what a tick does to a component, one that rewinds.
type namedPatch struct {
	*format.StoragePatch
	entry *format.Entry
}

// same reports whether both say the same byte by byte. The same change can be written in other ways, as
// edits or as a row; then the states are compared.
func (p namedPatch) same(q namedPatch) bool {
	return p.entry.Name == q.entry.Name && p.entry.Layout.Equal(q.entry.Layout) && p.Before == q.Before && p.After == q.After &&
		slices.Equal(p.EntityRanges, q.EntityRanges) && bytes.Equal(p.Entities, q.Entities) &&
		slices.Equal(p.ValueRanges, q.ValueRanges) && bytes.Equal(p.Values, q.Values) &&
		slices.Equal(p.EditRanges, q.EditRanges) && bytes.Equal(p.Edits, q.Edits)
}

// sameState compares the states after t, by their digests. Each cursor goes on from where it was, at an
// earlier common tick, or from a snapshot if that is nearer.
func (d *parting) sameState(ctx context.Context, t *pairedTick) (bool, error) {
	for i, c := range d.cursors {
		if err := c.Seek(ctx, t.records[i].ID.Seq); err != nil {
			return false, err
		}
	}
	return d.cursors[0].Image().Digest() == d.cursors[1].Image().Digest(), nil
}
