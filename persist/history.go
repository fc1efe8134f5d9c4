package persist

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// After Open, the history of the world can hold ticks from the disk. Open fills the world with the
// state before those ticks, and then applies the ticks up to the head one by one. Before Open
// changes the world, it reads all of these ticks and applies them to an image.

// A replayPath is a state and the ticks that lead from it to the present state.
type replayPath struct {
	base  *image.Image
	ticks []*catalog.Record
}

// loadHistory fills the history with the ticks that [Options.History] requests. The world is at the
// head. If a tick cannot be read, the history stays empty, and the report has the error. After a
// returned error the world may be at another state.
func (s *Store) loadHistory(ctx context.Context, c *catalog.Catalog) error {
	way, err := s.findReplayPath(ctx, c)
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
	exempt := s.exempt()
	state := way.base.State()
	state.Recorder, state.Seq, state.KeepNoRewind = s, way.base.ID.Seq, true
	s.ids[state.Seq] = way.base.ID
	if err := s.world.Raw().Load(state); err != nil {
		return err
	}
	if err := s.world.Raw().Apply(s.ticksOf(way, exempt)); err != nil {
		return fmt.Errorf("%w: the history of the world: %w", ErrCorrupt, err)
	}
	// The NoRewind storages have their values at the head. A next tick that continues an older
	// record must write these storages in full.
	s.encoder.whole.valuesOf(s.head)
	return nil
}

// ticksOf iterates over the ticks of a path as patches. Only the last patch changes NoRewind
// storages. It sets them to exempt, their values at the head.
func (s *Store) ticksOf(way *replayPath, exempt []raw.StoragePatch) iter.Seq2[*raw.Patch, error] {
	typed := image.Typed{World: s.world.Raw()}
	return func(yield func(*raw.Patch, error) bool) {
		for i, r := range way.ticks {
			p, err := typed.Patch(r.Decoded, r.Schema, r.ID)
			if err == nil {
				p.Storages = slices.DeleteFunc(p.Storages, func(s raw.StoragePatch) bool { return !s.Storage.Rewinds() })
				if i == len(way.ticks)-1 {
					p.Storages = append(p.Storages, exempt...)
				}
			}
			if !yield(p, err) {
				return
			}
			s.ids[r.ID.Seq] = r.ID // The tick was applied, so the world can go back to it.
		}
	}
}

// findReplayPath reads the path to the head, with at most [Options.History] ticks. It returns nil
// if there are no ticks to replay.
func (s *Store) findReplayPath(ctx context.Context, c *catalog.Catalog) (*replayPath, error) {
	oldest, ok := c.OldestBase(s.head)
	if !ok {
		return nil, nil
	}
	var entries []journal.Entry // Newest first.
	ticks, base := 0, s.head
	for e := range c.Log.Ancestors(s.head) {
		if ticks == s.options.History || e.Lost() || e.Parent < oldest.ID.Seq || !s.continues(c, e) {
			break
		}
		entries, base = append(entries, e), e.Parent
		if e.Flags&format.FlagRepeats == 0 {
			ticks++
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	im, _, err := c.Reach(ctx, base, false)
	if err != nil {
		return nil, err
	}
	// All ticks are applied to im, to check that they fit. start is a copy of the first state. An
	// image can have NoRewind rows of dead entities, but a world cannot, so start drops them.
	start := im.Clone()
	start.DropDead()
	w := &replayPath{base: start}
	for _, e := range slices.Backward(entries) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := c.Record(e)
		if err := c.Describe(r, im.ID, im.Stored); err != nil {
			return nil, err
		}
		repeats := e.Flags&format.FlagRepeats != 0
		// The world cannot go back over a tick that loaded a save or wrote a new resource. So the
		// path begins after such a tick.
		anew := e.Tick <= im.Tick && !repeats || givesFirst(im, r.Schema, r.Decoded)
		if err := c.Advance(im, r); err != nil {
			return nil, err
		}
		if anew || repeats && len(w.ticks) == 0 {
			w.base, w.ticks = im.Clone(), nil
			w.base.DropDead()
			continue
		}
		// The record has no new tick. It adds marks or NoRewind values to the last tick.
		if repeats {
			w.ticks[len(w.ticks)-1].ID = e.ID
			continue
		}
		w.ticks = append(w.ticks, r)
	}
	if len(w.ticks) == 0 {
		return nil, nil
	}
	return w, nil
}

// givesFirst reports whether tick t writes a resource for the first time. The image im is the state
// before t. It has no value of the resource, so the world could not go back over t.
func givesFirst(im *image.Image, schema *format.Schema, t *format.Tick) bool {
	return slices.ContainsFunc(t.Storages, func(p format.StoragePatch) bool {
		return schema.Components[p.Number].Resource && (p.Number >= len(im.Components) || im.Components[p.Number].N == 0)
	})
}

// continues reports whether the journal entry e has the same components as the head.
func (s *Store) continues(c *catalog.Catalog, e journal.Entry) bool {
	schema, err := c.SchemaAt(e)
	return err == nil && schema.Differs(s.schema) == nil
}

// exempt returns patches with the present contents of all NoRewind storages.
func (s *Store) exempt() (all []raw.StoragePatch) {
	for _, st := range s.world.Raw().Storages() {
		if st.Rewinds() || st.Layout() == nil {
			continue
		}
		whole := wholeStorage{Storage: st}
		p := raw.StoragePatch{StorageChange: whole.change(0), After: st.Rows()}
		p.Rows = st.AppendRows(nil, 0, p.After)
		p.Members = entityBytes(st.Entities())
		all = append(all, p)
	}
	return all
}
