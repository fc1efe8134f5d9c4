package persist

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A store changes to another state in two ways. Goto goes to a state that is in the journal. Later
// ticks continue that state. For example, after Goto tick 7, the next tick is another tick 8:
//
//	tick 6 ── tick 7 ── tick 8 ── tick 9
//	             `── tick 8 ── …
//
// Load brings a state from a save. The journal records it as one tick, which holds the whole state
// and follows the present tick. For example, a save of tick 3 is loaded after tick 7:
//
//	tick 6 ── tick 7 ── all of tick 3 ── tick 4 ── …

// goTo is [Store.Goto].
func (s *Store) goTo(ctx context.Context, point string) error {
	if err := s.leave(ctx); err != nil {
		return err
	}
	s.moving = true
	defer func() { s.moving = false }()
	// The catalog reads the files, so all committed ticks must be in them.
	if err := s.journal.Sync(ctx); err != nil {
		return err
	}
	c := catalog.New(s.files)
	defer func() { _ = c.Log.Close() }()
	if err := c.Scan(ctx); err != nil {
		return err
	}
	im, found, err := c.RecoverHead(ctx, point)
	if err != nil {
		return err
	}
	held := stateOf(im)
	stored := held.schema
	conversions, err := conversionsOf(stored, s.world)
	if err != nil {
		return err
	}
	conversions = converting(conversions)
	// The call of image.Put below is the first one that changes anything. If an earlier call fails,
	// store and world are unchanged.

	stays := exemptRows(im, s.world)
	state := im.State()
	state.Recorder, state.Seq, state.KeepNoRewind = s, im.ID.Seq, true
	if err := image.Put(s.world, state, found.Snapshot.Name); err != nil {
		return err
	}
	s.foundDamage(c.AllDamage(found))
	continued := conversions == nil && stored.Differs(s.schema) == nil
	if !continued || len(stored.Components) > len(s.schema.Components) {
		s.schema = evolved(stored, s.world, conversions)
	}
	s.continueAt(c, held, found)
	s.first = s.journal.Next()
	s.encoder.whole.stayed(stays)
	if continued {
		return nil
	}
	return s.restart(ctx, conversions != nil)
}

// restart begins a journal segment with a new schema. If the state was converted, restart also
// writes a snapshot of it. The world is already at the new state and cannot go back, so an error
// fails the journal.
func (s *Store) restart(ctx context.Context, converted bool) error {
	roll := func(ctx context.Context) error {
		s.announced = len(s.schema.Components)
		return s.journal.Roll(ctx)
	}
	s.base = pageBase{} // Share no pages with the previous schema.
	// Ignore the end of ctx, because an interrupted restart would fail the journal.
	ctx = context.WithoutCancel(ctx)
	var err error
	if converted {
		_, err = s.snapshot(ctx, slotName{}, roll)
	} else {
		err = roll(ctx)
	}
	s.fail(err)
	return s.Err()
}

// load is like [Store.Load], but reads the named file in the file system files. The caller has
// called leave().
func (s *Store) load(ctx context.Context, files disk.FS, file string) error {
	s.moving = true
	defer func() { s.moving = false }()
	im, name, err := readSave(ctx, files, file, s.world)
	if err != nil {
		return err
	}
	if err := s.fits(im); err != nil {
		return err
	}
	now, err := s.now()
	if err != nil {
		return err
	}
	// The tick of the loaded state replaces all rows. Its record needs the present number of rows
	// of each storage.
	before := make(map[string]int)
	for _, st := range s.world.Raw().Storages() {
		before[st.Name()] = st.Rows()
	}
	parent := s.ids[s.seq()]
	state := im.State()
	state.Recorder, state.Seq, state.KeepNoRewind = s, s.journal.Next(), true
	if err := image.Put(s.world, state, name); err != nil {
		return err
	}
	if parent.Seq+1 < state.Seq {
		s.branched(parent.Seq, state.Seq-1)
	}
	err = s.journalAll(parent, func(st raw.Storage) int { return before[st.Name()] }, now)
	if s.fail(err); err != nil {
		// The loaded state could not be journaled, so the world stays attached at its previous
		// record.
		_ = s.world.Raw().Attach(s, parent.Seq)
		return s.Err()
	}
	s.beginAtOnce()
	return nil
}

// leave finishes the snapshot under way before the world changes to another state. It returns an
// error if the world cannot change now.
func (s *Store) leave(ctx context.Context) error {
	switch err := s.usable(); {
	case err != nil:
		return err
	case s.world.Raw().Dirty():
		return tooEarly(s.world.Raw(), "going to another state")
	}
	if err := s.recordDeferred(); err != nil {
		return err
	}
	if err := s.lock.Check(); err != nil {
		return err
	}
	_, err := s.waitSnapshot(ctx)
	return err
}

// fits returns an error if im and the store have different layouts for a component that the program
// did not register. Rows of such a component are kept as bytes, so they cannot be converted.
func (s *Store) fits(im *image.Image) error {
	registered := make(map[string]bool)
	for _, st := range s.world.Raw().Storages() {
		registered[st.Name()] = !st.Unknown()
	}
	for _, c := range im.Components {
		n, stored := s.schema.Numbers[c.Name]
		if stored && !registered[c.Name] && !c.Entry.Same(&s.schema.Components[n]) {
			return fmt.Errorf("%w: %s is not registered, and is %v in the save, %v in the store", format.ErrSchema,
				naming.Shown(c.Name), c.Layout, s.schema.Components[n].Layout)
		}
	}
	return nil
}
