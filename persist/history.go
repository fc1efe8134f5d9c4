package persist

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// The history of a world that was opened reaches back over ticks on the disk: the world is
// put to the state before them, and applies them again as it did when it lived through them.
//
//	snapshot ── … ── base ── tick ── tick ── head
//	                  Load    Apply   Apply          the history has base, tick, tick
//
// Nothing is changed before all of these ticks were read and applied to an image.

// A way is what leads from a state to the present one.
type way struct {
	base  *image.Image
	ticks []recordedTick
}

// A recordedTick is a tick with its record.
type recordedTick struct {
	*format.Tick
	schema *format.Schema
	id     journal.ID
}

// reachBack makes the history reach back as far as [Options.History] asks. The world is at
// the head. What cannot be read ends the history sooner, and is reported; an error says that
// the world is at another state.
func (s *Store) reachBack(ctx context.Context, c *catalog.Catalog) error {
	way, err := s.wayBack(ctx, c)
	if err != nil {
		if ctx.Err() == nil {
			s.report.Skipped = append(s.report.Skipped, fmt.Errorf("persist: the history of the world: %w", err))
			return nil
		}
		return err
	}
	if way == nil {
		return nil
	}
	storages := make(map[string]raw.Storage)
	for _, st := range s.world.Raw().Storages() {
		storages[st.Name()] = st
	}
	exempt := s.exempt() // As it is at the head: there is no other.
	state := way.base.State()
	state.Recorder, state.Seq, state.KeepNoRewind = s, way.base.ID.Seq, true
	s.ids[state.Seq] = way.base.ID
	if err := s.world.Raw().Load(state); err != nil {
		return err
	}
	for i, t := range way.ticks {
		p := t.patch(storages)
		if p.More = i < len(way.ticks)-1; !p.More {
			p.Storages = append(p.Storages, exempt...)
		}
		if err := s.world.Raw().Apply(p); err != nil {
			return fmt.Errorf("%w: applying record %d: %w", ErrCorrupt, t.id.Seq, err)
		}
		s.ids[t.id.Seq] = t.id
	}
	return nil // What does not rewind was written, so the next tick gives it, whatever it continues.
}

// wayBack reads what leads to the head, at most as many ticks as were asked for; nil: there
// are none.
func (s *Store) wayBack(ctx context.Context, c *catalog.Catalog) (*way, error) {
	oldest, ok := c.OldestBase(s.head)
	if !ok {
		return nil, nil
	}
	var entries []journal.Entry // Newest first.
	base := s.head
	for e := range c.Log.Ancestors(s.head) {
		if len(entries) == s.options.History || e.Lost() || e.Parent < oldest.ID.Seq || !s.continues(c, e) {
			break
		}
		entries, base = append(entries, e), e.Parent
	}
	if len(entries) == 0 {
		return nil, nil
	}
	im, _, err := c.Reach(ctx, base, false)
	if err != nil {
		return nil, err
	}
	start := im.Clone()
	start.DropDead()
	w := &way{base: start}
	for _, e := range slices.Backward(entries) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, schema, err := c.TickAfter(e, im.ID, im.Stored)
		if err != nil {
			return nil, err
		}
		anew := t.Tick <= im.Tick || givesFirst(im, schema, t) // A save was loaded, or a resource came.
		if err := c.Advance(im, e, t, schema); err != nil {
			return nil, err
		}
		if anew { // The way begins here.
			w.base, w.ticks = im.Clone(), nil
			w.base.DropDead()
			continue
		}
		w.ticks = append(w.ticks, recordedTick{t, schema, e.ID})
	}
	if len(w.ticks) == 0 {
		return nil, nil
	}
	return w, nil
}

// givesFirst reports whether t gives a resource that the state before it, im, has not: what the
// program had made it is not known any more.
func givesFirst(im *image.Image, schema *format.Schema, t *format.Tick) bool {
	return slices.ContainsFunc(t.Storages, func(p format.StoragePatch) bool {
		return schema.Components[p.Number].Resource && (p.Number >= len(im.Components) || im.Components[p.Number].N == 0)
	})
}

// continues reports whether the components that the tick of e knows are those of the head.
func (s *Store) continues(c *catalog.Catalog, e journal.Entry) bool {
	schema, err := c.SchemaAt(e)
	return err == nil && schema.Differs(s.schema) == nil
}

// patch returns t as the world applies it, but for what does not rewind.
func (t *recordedTick) patch(storages map[string]raw.Storage) *raw.Patch {
	p := &raw.Patch{Tick: t.Tick.Tick, Seq: t.id.Seq}
	if r := t.Registry; r != nil {
		p.Entities = raw.EntityChange{Changed: true, Alive: r.Alive, Free: r.Free, Total: r.Total, Rows: r.Ranges}
		p.Registry = r.Rows
	}
	for _, c := range t.Storages {
		if st := storages[t.schema.Components[c.Number].Name]; st.Rewinds() {
			change := raw.StorageChange{Storage: st, Before: c.Before, Entities: c.EntityRanges, Values: c.ValueRanges}
			p.Storages = append(p.Storages, raw.StoragePatch{StorageChange: change, After: c.After, Members: c.Entities, Rows: c.Values})
		}
	}
	return p
}

// exempt returns all of what does not rewind, as it is.
func (s *Store) exempt() (all []raw.StoragePatch) {
	for _, st := range s.world.Raw().Storages() {
		if st.Rewinds() || st.Layout() == nil {
			continue
		}
		whole := wholeStorage{Storage: st}
		p := raw.StoragePatch{StorageChange: whole.change(0), After: st.Rows()}
		p.Rows = st.AppendRows(nil, 0, p.After)
		for _, e := range st.Entities() {
			p.Members = binary.LittleEndian.AppendUint64(p.Members, e)
		}
		all = append(all, p)
	}
	return all
}
