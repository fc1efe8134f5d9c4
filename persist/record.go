package persist

import (
	"fmt"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Record encodes a tick into the journal and returns its record. If the journal failed, the tick
// has no record, and Record returns the parent's record. [ecs.World.Commit] calls Record and cannot
// return an error, so [Store.Err] reports the failure.
//
// If a tick has new components, a preamble that describes them precedes the tick in the journal.
// Record encodes the tick before the preamble, because only encoding finds the new components.
func (s *Store) Record(c *raw.Change) uint64 {
	if c.Late {
		return s.recordLate(c)
	}
	defer s.notes.Reset()
	seq, err := s.record(c)
	if err != nil {
		s.fail(err)
		s.observeTick(c.Tick)
		return c.Parent
	}
	return seq
}

// Defers reports whether the store may defer ticks.
func (s *Store) Defers() bool { return s.options.CommitEvery > 1 }

// Defer reports whether the ending tick is journaled together with the next one. The world calls
// Defer.
func (s *Store) Defer(tick, recorded uint64) bool {
	s.notes.About(s.present())
	if tick-recorded >= uint64(s.options.CommitEvery) || s.failed != nil || s.journal == nil || !s.notes.None() || len(s.asked) > 0 {
		return false
	}
	// Reserve room in the queue for the later record of this tick. Then the call that writes the
	// record does not wait for the disk.
	if !s.journal.Reserve() {
		return false
	}
	s.copyStep()
	s.await(s.journal.Next(), tick)
	s.observeTick(tick)
	return true
}

// recordDeferred journals the ticks that still wait for a record, up to the present one. It returns
// [ErrUncommitted] if the world was changed since the last Commit.
func (s *Store) recordDeferred() error {
	if w := s.world.Raw(); w.Deferred() && w.RecordLast() != nil {
		return fmt.Errorf("%w: ticks wait for the next record, see Options.CommitEvery", ErrUncommitted)
	}
	return s.Err()
}

// recordNoRewind journals the NoRewind values if the record of the present state has other ones.
// For example, a rewind changes the state but not the NoRewind values in the world. recordNoRewind
// does nothing if other changes wait for a Commit, or if the queue is full. In these cases
// uncommitted() returns an error.
func (s *Store) recordNoRewind() {
	w := s.world
	s.notes.About(s.present())
	s.dropAsked()
	switch {
	case s.failed != nil || w.Raw().Dirty() || !s.notes.None() || len(s.asked) > 0:
	case (w.Dirty() || s.encoder.whole.different(s.seq())) && s.journal.Reserve():
		_ = w.Raw().RecordLast() // The journal reports the error.
	}
}

// recordLate writes a record for ticks that have already ended, with the marks of [Store.MarkLast].
// Marks, inputs and slots of the tick under way continue to wait for its Commit.
func (s *Store) recordLate(c *raw.Change) uint64 {
	next, was := s.notes, format.StateID{Seq: c.Parent, Tick: c.Tick}
	s.notes, s.late = s.late, format.Notes{}
	seq, err := s.record(c)
	if s.notes = next; err != nil {
		s.fail(err)
		return c.Parent
	}
	s.notes.Recorded(was, seq)
	if s.askedAt == was {
		s.askedAt.Seq = seq
	}
	return seq
}

// present identifies the state of the last commit.
func (s *Store) present() format.StateID {
	return format.StateID{Seq: s.seq(), Tick: s.world.Tick()}
}

// Restored updates the metrics. The world calls Restored after a move to another tick of its
// history.
func (s *Store) Restored(tick uint64) { s.observeTick(tick) }

// record does the work of Record. It returns an error if the journal has failed or fails now.
func (s *Store) record(c *raw.Change) (uint64, error) {
	switch {
	case s.failed != nil:
		return 0, s.failed
	case s.journal == nil:
		return 0, errFollowed
	}
	if !c.Late {
		s.notes.About(s.present())
	}
	s.copyStep()
	// Only this goroutine appends, so the tick's record gets this seq.
	seq := s.journal.Next()
	// s.dirty lists the pages that changed since the last snapshot began. If the world went back to
	// before that, any page may differ from the snapshot.
	s.dirty.All = s.dirty.All || c.Parent < s.since
	if c.Parent+1 < seq {
		s.branched(c.Parent, seq-1)
	}
	now, err := s.now()
	if err != nil {
		return 0, err
	}
	repeats := c.Tick == c.ParentTick && !s.encoder.whole.resourcesPending(c.Parent)
	payload := s.encoder.encode(s.journal.Buffer(), c, seq, s.ids[c.Parent], now)
	if err := s.announce(); err != nil {
		return 0, err
	}
	size := int64(len(payload)) // Append takes over the buffer, so the size is read before.
	// Call await before Append. After Append, the journal's goroutine may report the tick as
	// durable at once.
	if !c.Late { // A late tick was queued when it ended.
		s.await(seq, c.Tick)
	}
	flags := s.notes.Flags()
	switch {
	case c.Tick > c.ParentTick+1:
		flags |= format.FlagSeveral
	case repeats:
		flags |= format.FlagRepeats
	}
	id, err := s.journal.AppendSummed(c.Parent, c.Tick, flags, payload, s.encoder.Sum)
	if err != nil {
		return 0, err
	}
	s.grown, s.lastTick = s.grown+size, size/int64(max(1, c.Tick-c.ParentTick))
	if s.notes.Flags()&format.FlagMarks != 0 {
		s.marked(id.Seq)
	}
	s.remember(id)
	s.committedAt = now
	return id.Seq, nil
}

// now returns the time for a tick.
func (s *Store) now() (time.Time, error) {
	now := s.options.Now()
	if err := format.CheckTime(now); err != nil {
		return now, fmt.Errorf("Options.Now: %w", err)
	}
	return now, nil
}

// announce writes a preamble to the journal if the schema has new components.
func (s *Store) announce() error {
	n := len(s.schema.Components)
	if n == s.announced {
		return nil
	}
	if err := s.journal.AppendPreamble(s.schema.Encode()); err != nil {
		return err
	}
	s.announced = n
	return nil
}

// remember adds id to the IDs that a later tick may name as its parent. Whenever the number of IDs
// is a multiple of 1024, it removes those that are older than the world's history.
func (s *Store) remember(id journal.ID) {
	s.ids[id.Seq] = id
	if len(s.ids)%1024 == 0 {
		oldest := s.oldestSeq()
		for seq := range s.ids {
			if seq < oldest {
				delete(s.ids, seq)
			}
		}
	}
}

// A tickRecorder encodes the payload of a tick from its changes. It also marks the pages that the
// tick touches as dirty. If the tick must write a storage in full, it encodes the unchanged rows
// too.
type tickRecorder struct {
	*format.TickEncoder
	schema *format.Schema
	whole  wholeList // Storages that a tick may have to write although they did not change.
	edits  edits     // Large rows of which the tick writes only the changed bytes.

	varying varyingRows
	notes   *format.Notes // Marks and inputs of the tick.
	dirty   *snap.Dirty   // Pages that changed since the last snapshot began.
}

func newTickRecorder(s *format.Schema, n *format.Notes, d *snap.Dirty) *tickRecorder {
	return &tickRecorder{TickEncoder: format.NewTickEncoder(), schema: s, notes: n, dirty: d}
}

// encode appends the payload of c, which becomes record seq, to buf. It finds edits first, because
// they decide the format of the payload.
func (t *tickRecorder) encode(buf []byte, c *raw.Change, seq uint64, parent journal.ID, now time.Time) []byte {
	t.findEdits(c, seq)
	t.Begin(buf, !t.notes.None(), t.edits.any(), parent, c.Tick, now)
	t.recordRegistry(c)
	t.Storages(t.count(c))
	for _, s := range c.Storages {
		if s.Persistent() {
			t.recordStorage(t.whole.complete(c.Of(s), t.schema, seq, c.Parent))
		}
	}
	for s := range t.whole.rest(seq, c.Parent) {
		t.recordStorage(s)
	}
	t.recordOps(c)
	return t.End(t.notes)
}

// findEdits finds the edited rows of c, which becomes record seq. An edited row is a large row of
// which only the changed bytes are journaled. Its value in the parent state must be known. The row
// must belong to the same entity there, so that a reader of one entity needs no values of other
// entities.
func (t *tickRecorder) findEdits(c *raw.Change, seq uint64) {
	t.edits.n = 0
	t.varying.begin(seq, c.Parent)
	for _, st := range c.Storages {
		switch {
		case !st.Persistent():
			continue
		case t.whole.gives(st, t.schema, c.Parent):
			t.varying.forget(st)
			continue
		}
		rows := t.edits.next(st)
		switch width := st.Layout().Width(); {
		case width > raw.LargeRow:
			isGiven := among(c.Of(st).Entities)
			c.Before(st, func(row int, then, now []byte) {
				if !isGiven(row) {
					rows.Add(row, then, now)
				}
			})
		case width < 0 && t.varying.isLarge(st):
			t.varying.find(c.Of(st), rows)
		}
		if len(rows.Ranges) > 0 {
			t.edits.n++
		}
	}
}

// recordRegistry encodes the changes of the registry.
func (t *tickRecorder) recordRegistry(c *raw.Change) {
	if c.Entities.Changed {
		t.dirty.SetRegistry(c.Entities)
	}
	rows, _, _ := c.World.Registry()
	t.Registry(c.Entities, raw.As[ecs.Entity](rows))
}

// recordStorage encodes the changes of a storage, and numbers the storage if it has no number yet.
func (t *tickRecorder) recordStorage(c raw.StorageChange) {
	number := t.schema.Number(c.Storage)
	t.dirty.SetStorage(number, c)
	size := t.Storage(number, c, t.edits.of(c.Storage))
	if c.Storage.Layout().Width() < 0 && c.Storage.Rewinds() && !t.varying.isLarge(c.Storage) {
		t.varying.saw(c.Storage, format.CountRows(c.Values), size)
	}
}

// recordOps encodes the operations of the tick, except those of storages that are not saved.
func (t *tickRecorder) recordOps(c *raw.Change) {
	for _, op := range c.Ops {
		number := format.NoComponent
		if op.Storage != nil {
			if !op.Storage.Persistent() {
				continue
			}
			number = t.schema.Number(op.Storage)
		}
		e := ecs.Entity(op.Entity)
		t.dirty.SetOp(op.Kind, number, e)
		t.Ops.Add(op.Kind, number, e)
	}
}

// count returns how many storages the tick writes: the changed ones, and the unchanged ones that
// must be written in full.
func (t *tickRecorder) count(c *raw.Change) (n int) {
	for i := range t.whole {
		if t.whole[i].pending(c.Parent) {
			n++
		}
	}
	for _, s := range c.Storages {
		if w := t.whole.find(s); s.Persistent() && (w == nil || !w.pending(c.Parent)) {
			n++
		}
	}
	return n
}
