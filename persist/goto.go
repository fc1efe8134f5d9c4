package persist

import (
	"context"
	"fmt"
	"io"

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

// Goto brings the world to the state at a point in time, in the syntax of inspect.View.Resolve:
// "1200", "@latest~10", "mark:boss", "tip:1". The next tick continues that state. Later ticks stay
// in the journal, on a separate branch:
//
//	tick 7 ── tick 8 ── tick 9
//	    `── tick 8 ── …             Goto(ctx, "7"), Commit
//
// Entities, handles, queries, groups, indexes and hooks of the world stay valid, and the functions
// of [ecs.World.OnRestore] are called. NoRewind components and resources keep their values. The
// history of the world starts again at that state; use [ecs.History.Seek] for ticks that the
// history holds. A state with older types is converted, as in [Open].
//
// Until the next tick is durable or the store is closed, a recovery after a crash returns the
// newest state of the journal. @latest names that state.
//
// Errors: [ErrUncommitted], [raw.ErrCheckpointHeld], [ErrPoint], [ErrNotFound] with the available
// points, [ErrSchema], [ErrCorrupt], and the error of ctx. After these errors the world is
// unchanged. An error that wraps [Store.Err] is different: the world is at the requested state, but
// the journal failed.
//
// Cost: as Open. All committed ticks become durable first.
func (s *Store) Goto(ctx context.Context, point string) error {
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

// Load fills the world from a file that [Save] wrote, for example one that a player received. The
// loaded state becomes the next tick of the journal, after the present one. That tick holds the
// whole state, and a snapshot of it begins. After a crash, Open recovers the state before the load
// or the loaded state. [Store.Goto] can reach the ticks before the load and those after it:
//
//	tick 900 ── all of tick 500 ── tick 501 ── …       Load of a save of tick 500
//
// NoRewind components and resources keep their values. Otherwise Load behaves as [Store.Goto] does,
// and returns the same errors; [ErrForeign] and [ErrNewer] refer to the file.
//
// Cost: as the function Load, plus about the size of the save both in the journal and in the
// snapshot. The loaded state becomes durable as a tick does: see [Store.Sync].
func (s *Store) Load(ctx context.Context, file string) error {
	if err := s.leave(ctx); err != nil {
		return err
	}
	return inDirectoryOf(file, nil, func(files disk.FS, name string) error { return s.load(ctx, files, name) })
}

// LoadFrom reads a save in the format of [SaveTo], up to the end of the reader, and loads it as
// [Store.Load] does. See also the function [LoadFrom].
func (s *Store) LoadFrom(ctx context.Context, in io.Reader) error {
	files, err := received(in)
	if err != nil {
		return err
	}
	if err := s.leave(ctx); err != nil {
		return err
	}
	return s.load(ctx, files, stream)
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
