package persist

import (
	"context"
	"slices"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// These methods give external tests access to the internals of a store.

func (s *Store) Journal() *journal.Journal  { return s.journal }
func (s *Store) Files() disk.FS             { return s.files }
func (s *Store) World() *ecs.World          { return s.world }
func (s *Store) Head() uint64               { return s.head }
func (s *Store) IDs() map[uint64]journal.ID { return s.ids }
func (s *Store) Notes() *format.Notes       { return &s.notes }
func (s *Store) Table() snap.PageTable      { return s.base.table }
func (s *Store) Newest() uint32             { return s.number }
func (s *Store) Stored() int                { return len(s.list) }
func (s *Store) Closed() bool               { return s.closed }

// Leave makes s a store whose Close is under way. That Close ends when gate has a value. With a nil
// gate, s is an open store again.
func (s *Store) Leave(gate chan error) { s.closed, s.closing = gate != nil, gate }

// Closing reports whether closing continues after the context of a Close ended.
func (s *Store) Closing() bool { return s.closing != nil }

// Fail makes s a store whose journal failed.
func (s *Store) Fail(err error) { s.fail(err) }

// ForgetPages makes the next snapshot a full one.
func (s *Store) ForgetPages() { s.base = pageBase{} }

// Unwatch removes all snapshots from the list of s except the needed ones. So s does not report the
// others as lost.
func (s *Store) Unwatch(needed map[uint32]bool) {
	s.list = slices.DeleteFunc(s.list, func(o storedSnapshot) bool { return !needed[o.Number] })
	s.watch.expect(sizesByNumber(s.list))
}

// Hurry makes a snapshot due after every n bytes; negative: never.
func (s *Store) Hurry(n int64) { s.options.SnapshotBytes = n }

func (s *Store) Copying() bool { return s.stage() == stageCopying }

// Copied returns the number of the snapshot that is being copied, or 0.
func (s *Store) Copied() uint32 {
	if !s.Copying() {
		return 0
	}
	return s.underWay.Manifest.Number
}

func (s *Store) Abandoned() bool    { return s.Copying() && !s.underWay.pin.Valid() }
func (s *Store) Snapshotting() bool { return s.snapshotting() }
func (s *Store) Hand()              { s.finishCopy() }

// Settle finishes the snapshot under way, if any.
func (s *Store) Settle() SnapshotResult {
	r, _ := s.waitSnapshot(context.Background())
	return r
}

// Written waits for the snapshot that is being written. It does not finish the copy of a snapshot.
func (s *Store) Written(ctx context.Context) (SnapshotResult, error) {
	if s.Copying() {
		return SnapshotResult{}, nil
	}
	return s.waitSnapshot(ctx)
}

func (s *Store) Begin(beforePublish func(context.Context) error) error {
	return s.begin(slotName{}, beforePublish)
}

func (s *Store) SnapshotBefore(ctx context.Context, beforePublish func(context.Context) error) error {
	_, err := s.snapshot(ctx, slotName{}, beforePublish)
	return err
}

// Segmented returns the options o with a journal segment size of size bytes.
func Segmented(o Options, size int64) Options {
	o.segmentSize = size
	return o
}

// Retained replaces the Retain option of s.
func Retained(s *Store, r Retention) { s.options.Retain = r }

// Bounded returns the options o with bound as the default bound of small worlds, instead of 1 GiB.
func Bounded(o Options, bound int64) Options {
	o.leastBound = bound
	return o
}

// OpenFiles opens a store without a lock.
func OpenFiles(ctx context.Context, files disk.FS, w *ecs.World, o Options) (*Store, error) {
	return openFiles(ctx, files, nil, w, o)
}

// A TickRecorder encodes ticks as a store does.
type TickRecorder = tickRecorder

func NewTickRecorder(s *format.Schema) *TickRecorder {
	return newTickRecorder(s, new(format.Notes), new(snap.Dirty))
}

// Encode appends the payload of a tick without a parent.
func (t *tickRecorder) Encode(buf []byte, c *raw.Change) []byte {
	return t.encode(buf, c, 0, journal.ID{}, time.Time{})
}

// Waiting returns the number of functions queued by Do.
func Waiting(s *Store) int { return s.errands.count() }

// SavesBehind returns the number of files that SaveBehind is writing.
func SavesBehind() int {
	savingBehind.mu.Lock()
	defer savingBehind.mu.Unlock()
	return len(savingBehind.last)
}
