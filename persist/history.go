package persist

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
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
	exempt := s.exempt() // As it is at the head: there is no other.
	state := way.base.State()
	state.Recorder, state.Seq, state.KeepNoRewind = s, way.base.ID.Seq, true
	s.ids[state.Seq] = way.base.ID
	if err := s.world.Raw().Load(state); err != nil {
		return err
	}
	if err := s.world.Raw().Apply(s.ticksOf(way, exempt)); err != nil {
		return fmt.Errorf("%w: the history of the world: %w", ErrCorrupt, err)
	}
	return nil // What does not rewind was written, so the next tick gives it, whatever it continues.
}

// ticksOf returns the ticks of a way but for what does not rewind, which the last one gives.
func (s *Store) ticksOf(way *way, exempt []raw.StoragePatch) iter.Seq2[*raw.Patch, error] {
	typed := image.Typed{World: s.world.Raw()}
	return func(yield func(*raw.Patch, error) bool) {
		for i, t := range way.ticks {
			p, err := typed.Patch(t.Tick, t.schema, t.id)
			if err == nil {
				p.Storages = slices.DeleteFunc(p.Storages, func(s raw.StoragePatch) bool { return !s.Storage.Rewinds() })
				if i == len(way.ticks)-1 {
					p.Storages = append(p.Storages, exempt...)
				}
			}
			if !yield(p, err) {
				return
			}
			s.ids[t.id.Seq] = t.id // It was applied: the world can go back to it.
		}
	}
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
	// Two images: im goes on along the ticks and shows that all of them fit; start stays, and is
	// as a world would be there, without what does not rewind of the dead.
	start := im.Clone()
	start.DropDead()
	w := &way{base: start}
	for _, e := range slices.Backward(entries) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := c.Record(e)
		if err := c.Describe(r, im.ID, im.Stored); err != nil {
			return nil, err
		}
		t, schema := r.Says, r.Schema
		anew := t.Tick <= im.Tick || givesFirst(im, schema, t) // A save was loaded, or a resource came.
		if err := c.Advance(im, r); err != nil {
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
