package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A failed journal is never written to again, because its contents on the disk are unknown. The
// store continues in a new journal with a higher epoch. The first record of that journal has the
// whole present state, and continues the newest durable state. The failed ticks in between have no
// record:
//
//	record ── record ── (failed …)              the old journal
//	             └── all of the present ── …    the new one
//
// The store stays failed until that first record is durable. So a resume that fails halfway can be
// retried.
//
// If another program removed files while the store was open, the newest durable state may be
// unreachable on the disk. Resume then also writes a full snapshot of the present state before it
// returns. A recovery can begin with that snapshot.

// An origin is the state that a resumed store continues.
type origin struct {
	id journal.ID
	// rows returns the number of rows that a storage has in the continued state.
	rows  func(raw.Storage) int
	found *catalog.Recovery
	lost  bool // The continued state cannot be recovered from the files.
}

// Resume makes a store with a failed journal persist the world again, in its present state. A full
// disk is a common reason for the failure:
//
//	tick 7   tick 8   tick 9   failed   tick 10 … 40   Resume            tick 41
//	durable  durable  durable           in memory      all of tick 40    journaled
//
// Durable ticks stay, and failed writes are not retried. Resume reads the store as Open does and
// begins a new segment under a higher epoch. Then it journals the whole present state as one tick,
// which continues the newest durable ancestor of the present tick. The journaled tick is durable
// when Resume returns nil, and a snapshot of it has begun. The failed ticks are in no journal. The
// world's history starts again at this tick.
//
// Resume does nothing if the store has not failed. Errors:
//
//   - [ErrLost] if another process may have taken the store; Resume cannot recover from that
//   - [ErrUncommitted] and [raw.ErrCheckpointHeld]
//   - [ErrCorrupt] if durable data cannot be read, unless the store failed because files were
//     removed
//   - the error of the disk if it still fails
//   - the error of ctx
//
// After an error the store is still failed, and Resume can be called again.
//
// Cost: as Open, and about as many bytes of journal as a full snapshot has. If the disk is still
// full, Resume removes what [Options.Retain] allows to be removed.
func (s *Store) Resume(ctx context.Context) error {
	if s.closed {
		return ErrClosed
	}
	if err := s.Err(); err == nil || errors.Is(err, ErrLost) {
		return err
	}
	if s.world.Raw().Dirty() {
		return tooEarly(s.world.Raw(), "Resume")
	}
	if err := s.lock.Check(); err != nil {
		return err
	}
	err := s.resume(ctx, false)
	if spendBallast(s.files, err) {
		err = s.resume(ctx, true)
	}
	return err
}

// resume makes a store with a failed journal continue in a new one. If full is set, the disk is
// full, and resume removes what Retain allows.
func (s *Store) resume(ctx context.Context, full bool) error {
	if s.stage() == stageCopying {
		s.abandon()
	}
	// Wait for the snapshot that is being written. It fails, because the journal has failed.
	if _, err := s.waitSnapshot(ctx); err != nil {
		return err
	}
	cause := cmp.Or(s.failed, s.journal.Err())
	s.journal.Abandon()

	// Only the files show what is durable, not the memory of this process.
	c := catalog.New(s.files)
	defer func() { _ = c.Log.Close() }()
	if err := c.Scan(ctx); err != nil {
		return err
	}
	// An empty point means the newest durable state. If the world went back to an older state and
	// no durable tick continues it, the point is that older state.
	at := ""
	if s.older && c.Head() < s.first {
		at = fmt.Sprint("record:", s.head)
	}
	from, err := s.originIn(ctx, c, at, cause)
	if err != nil {
		return err
	}
	// openJournal replaces the journal, and with it the error. So keep the error in the counters.
	s.fail(cause)
	if err := s.openJournal(c.Log); err != nil {
		return err
	}
	if err := s.goOnFrom(ctx, c, from, full); err != nil {
		s.journal.Abandon()
		return err
	}
	s.fail(nil)
	return nil
}

// originIn returns the state that the store continues: the newest durable state, or the state at
// the given point. If the files do not lead to that state, originIn returns an error. But if the
// store failed because files were removed, it returns an origin that is marked as lost.
func (s *Store) originIn(ctx context.Context, c *catalog.Catalog, at string, cause error) (*origin, error) {
	durable, found, err := c.RecoverHead(ctx, at)
	switch {
	case err == nil:
		rows := func(st raw.Storage) int {
			if number := s.schema.Number(st); number < len(durable.Components) {
				return durable.Components[number].N
			}
			return 0
		}
		return &origin{id: durable.ID, rows: rows, found: found}, nil
	case ctx.Err() != nil || !errors.Is(cause, fs.ErrNotExist):
		return nil, err
	}
	id := journal.ID{Seq: c.Head()}
	if e, ok := c.Log.Find(id.Seq); ok {
		id = e.ID
	}
	found = &catalog.Recovery{Snapshot: catalog.SnapshotInfo{ID: id, World: s.id}, Skipped: []error{err}}
	return &origin{id: id, rows: func(raw.Storage) int { return 0 }, found: found, lost: true}, nil
}

// goOnFrom journals the present state as one tick. The tick continues the state described by the
// parameter from. If full is set, goOnFrom prunes the store first.
func (s *Store) goOnFrom(ctx context.Context, c *catalog.Catalog, from *origin, full bool) error {
	now, err := s.now()
	if err != nil {
		return err
	}
	if err := s.world.Raw().Attach(s, s.journal.Next()); err != nil {
		return err
	}
	s.head = from.id.Seq
	s.adoptFiles(c, from.found)
	s.foundDamage(c.AllDamage(from.found))
	if full {
		s.pruneNow()
	}
	s.mu.Lock()
	s.pending, s.local = nil, 0 // The failed ticks will not become durable.
	s.mu.Unlock()
	err = s.journalAll(from.id, from.rows, now)
	if err == nil {
		err = s.journal.Sync(ctx)
	}
	if err == nil && from.lost {
		_, err = s.snapshot(ctx, slotName{}, s.journal.Sync)
	}
	if err != nil {
		return err
	}
	s.head = s.seq()
	if !from.lost {
		s.beginAtOnce()
	}
	return nil
}

// journalAll journals the whole present state as one tick. The tick continues the record parent.
// The function before returns how many rows a storage has in the state after that record. The
// caller has already attached the world with the seq of the new record.
func (s *Store) journalAll(parent journal.ID, before func(raw.Storage) int, now time.Time) error {
	seq, tick := s.seq(), s.world.Tick()
	payload := s.encodeAll(parent, before, now)
	if err := s.announce(); err != nil {
		return err
	}
	// Call await before Append. After Append, the journal's goroutine may report the tick as
	// durable at once.
	s.await(seq, tick)
	id, err := s.journal.Append(parent.Seq, tick, 0, payload)
	if err != nil {
		return err
	}
	// All pages may differ from those of the last snapshot.
	s.since, s.dirty.All = seq, true
	s.encoder.varying = varyingRows{}
	s.forgetBefore(id, now)
	for _, st := range s.world.Raw().Storages() {
		s.encoder.whole.add(st, seq)
	}
	return nil
}

// beginAtOnce begins a snapshot and copies all of it. If it cannot begin, the next tick tries
// again.
func (s *Store) beginAtOnce() {
	if s.begin(slotName{}, s.journal.Sync) == nil {
		s.finishCopy()
	}
}

// encodeAll returns the payload of a tick with the whole present state. The tick clears the world
// first, so its result does not depend on its parent.
func (s *Store) encodeAll(parent journal.ID, before func(raw.Storage) int, now time.Time) []byte {
	rows, alive, free := s.world.Raw().Registry()
	entities := raw.As[ecs.Entity](rows)
	registry := raw.EntityChange{Changed: true, Alive: alive, Free: free, Total: len(rows)}
	if len(rows) > 0 {
		registry.Rows = []raw.Range{{N: len(rows)}}
	}
	t := format.NewTickEncoder()
	t.Begin(s.journal.Buffer(), false, false, parent, s.world.Tick(), now)
	t.Registry(registry, entities)
	var storages []raw.Storage
	for _, st := range s.world.Raw().Storages() {
		if st.Persistent() {
			storages = append(storages, st)
		}
	}
	t.Storages(len(storages))
	// The operations say when entities are created and destroyed. Here, OpClear destroys all
	// entities, and the living ones are created again.
	t.Ops.Add(raw.OpClear, format.NoComponent, 0)
	for _, e := range entities[:alive] {
		t.Ops.Add(raw.OpCreate, format.NoComponent, e)
	}
	for _, st := range storages {
		number := s.schema.Number(st)
		if !st.IsResource() {
			for _, e := range raw.As[ecs.Entity](st.Entities()) {
				if e != ecs.Vacant {
					t.Ops.Add(raw.OpAdd, number, e)
				}
			}
		}
		all := wholeStorage{Storage: st}
		t.Storage(number, all.change(before(st)), nil)
	}
	return t.End(&format.Notes{})
}
