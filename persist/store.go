package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/archive"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Options configure a store. The zero value is useful.
type Options struct {
	// Files is the file system that has the directory of the store, which must exist. The store
	// does not close it. By default, it is the file system of the operating system.
	Files disk.FS

	// Sync is the delay from the first tick that is not durable yet to the sync of the journal. The
	// default is 100 ms. [journal.SyncAlways] syncs after every tick, and [journal.SyncNever] only
	// at Sync, Snapshot and Close.
	Sync time.Duration

	// CommitEvery journals only every n-th tick. A record then has the changes of n ticks, and a
	// row that several of them wrote is stored once. History, events and filters still see each
	// tick. A crash loses up to n-1 more ticks, and the store cannot go to the ticks between two
	// records. The default 0 means 1: every tick is journaled.
	//
	// A tick with a mark, an input or a slot is journaled at once, together with the ticks that
	// wait. Waiting ticks are also journaled when a snapshot begins, and before a rewind over them.
	// Sync, Goto, Load and Close journal them too. But if the world was changed since the last
	// Commit, these four functions return [ErrUncommitted] instead, and Close loses the waiting
	// ticks. A backup ends at the last record.
	//
	// While ticks wait, the world keeps their old values and operations in memory, as a history
	// does. If the world has another store or recorder, every tick is journaled.
	CommitEvery int

	// QueueBytes bounds the bytes of ticks that wait for the disk. If that many bytes or more wait,
	// the next tick is not accepted. The default is 64 MiB.
	QueueBytes int64

	// Budget bounds the memory of ticks that wait for the disk in several stores together.
	// QueueBytes still bounds each single store. A process with many worlds gives the same budget
	// to all of their stores. This budget allows 1 GiB of queued ticks:
	//
	//	budget.New(1 << 30)
	//
	// If the budget is used up, Commit waits for the disk. With RefuseWhenFull it returns
	// [ErrBacklog] instead. Half of the budget is divided equally among the stores, so a store with
	// a stuck disk cannot use the parts of other stores. A store without a waiting tick always
	// accepts one. So all stores together hold at most the budget and one tick each.
	//
	// A store returns its part when the ticks are written, when the journal fails, and at Close.
	// Package replica has the same option for ticks that wait for its log. Cost: some tens of
	// nanoseconds a tick. The default nil means no bound.
	Budget *budget.Budget

	// RefuseWhenFull makes Commit return [ErrBacklog] when the queue is full, before the tick ends,
	// instead of waiting for the disk. Such a Commit does not end the tick: the program can change
	// the world further and commit later. A replicated store (see package replica) always refuses,
	// because its log may not answer for a long time.
	RefuseWhenFull bool

	// SnapshotBytes is how far the journal may grow before Commit begins a snapshot.
	//
	// The default is twice the size of the last full snapshot, and at least 16 MiB. It is at most a
	// 16th of [Retention.Bytes], or one full snapshot if that is more. So the journal that a
	// recovery replays is at most about twice as large as the world. If the world is small, the
	// replay takes some hundredths of a second.
	//
	// Negative: Commit begins no snapshots, and nothing is removed until the program takes a
	// snapshot.
	SnapshotBytes int64

	// OnDurable is called when a tick has become durable, in the order of commits. The journal's
	// goroutine calls it, so it must not block or call Sync. Store.Sync returns after the calls
	// for its ticks. nil means no call.
	OnDurable func(tick uint64)

	// OnLocal is called when a tick survives a crash of this machine. It is called like OnDurable,
	// and before OnDurable. The two differ in a store of package replica: a tick is durable there
	// only after other machines have it.
	OnLocal func(tick uint64)

	// SnapshotPace is roughly how many bytes of the world a Commit copies at most while a snapshot
	// is under way. The pace rises if a snapshot takes long or had to be abandoned. It also rises
	// if ticks journal so much that a limit of [Options.Retain] could not be kept otherwise.
	//
	// The default is 1 MiB, which takes about half a millisecond. With a negative pace, the Commit
	// that begins the snapshot copies everything.
	SnapshotPace int

	// Retain says how much old data stays on the disk. The default is the larger of 1 GiB and 16
	// full snapshots.
	Retain Retention

	// OnSnapshot is called when a snapshot has finished or failed, by the snapshot's goroutine. If
	// the world went back to before the snapshot, the snapshot is abandoned and Commit calls
	// OnSnapshot. Commit also calls it if the snapshot of a slot cannot begin. A failed snapshot
	// does not fail the store; the next snapshot is tried when it is due. nil means no call.
	OnSnapshot func(SnapshotResult)

	// At is the state to recover, in the syntax of inspect.View.Resolve: "@latest~10", "1200". The
	// store branches at this state: the next tick continues it. Later ticks stay in the journal, on
	// a separate branch. Until the next tick is durable or the store is closed, a recovery after a
	// crash returns the newest state.
	//
	// The default is the newest state. In a new store, any other value is [ErrNotFound].
	At string

	// History is how many of the newest ticks Open loads from the disk into the history of the
	// world. The world can then go back over these ticks, as it could before the store was closed.
	// Open loads at most as many ticks as the history holds, see [ecs.Options].
	//
	// The loaded history ends at a tick where components were converted, a resource was stored for
	// the first time, or a save was loaded. It has only ticks with a record, see CommitEvery. The
	// default 0 means that the history begins with the recovered state.
	History int

	// Epoch is part of the ID of each tick that this store commits. After a crash or a change of
	// the writer, another tick can have the same number, but it has another epoch. A system that
	// decides which process may write gives each writer a higher epoch, as package replica does. By
	// default, and if Epoch is too low, the store uses one more than its highest epoch.
	Epoch uint64

	// Now is the clock of ticks. It may go backwards, but it must return years from 1678 to 2261.
	// Any other time fails the journal, see [Store.Err]. The default is time.Now.
	Now func() time.Time

	// Size of a journal segment. 0 means a size derived from Retain. Tests use less.
	segmentSize int64
	leastBound  int64 // The default bound of small worlds. 0 means 1 GiB. Tests use less.
}

// resolved returns o with the defaults that every store needs.
func (o Options) resolved(files disk.FS) Options {
	if replicated, _ := disk.Replicated(files); replicated {
		o.RefuseWhenFull = true
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = defaultQueueBytes
	}
	return o
}

const defaultQueueBytes = 64 << 20

// A Store keeps a world in a directory: every tick in a journal, and from time to time a snapshot
// of the whole world.
//
// Only the goroutine of the world may call the methods of a Store, except [Store.Do],
// [Store.Backup], [Store.BackupTo] and [Store.Metrics].
type Store struct {
	world   *ecs.World
	options Options
	files   disk.FS
	lock    *catalog.Lock // nil means that no other process can reach the files.
	report  Report
	closed  bool
	// Receives the result while closing is under way. Otherwise nil.
	closing chan error

	id        [16]byte // ID of the world.
	head      uint64   // The record of the state that Open or Goto recovered.
	first     uint64   // The first record that can be written after Open or Goto.
	older     bool     // The world went to head although the journal had a newer state.
	schema    *format.Schema
	announced int // Number of components that the journal's preambles describe.
	encoder   *tickRecorder
	notes     format.Notes   // Marks and inputs of the tick under way.
	late      format.Notes   // Marks of the last ended tick that are not recorded yet.
	moving    bool           // A Goto or a Load is under way.
	ending    bool           // Commit is calling the functions that wait in Do.
	asked     []slotName     // Slots to begin when the tick under way ends.
	askedAt   format.StateID // The state of the world when the slots were asked for.
	// Record IDs by seq, as far back as the history reaches.
	ids map[uint64]journal.ID

	mu      sync.Mutex
	pending []pendingTick // Ticks that are not known to be durable, in the order of seq.
	local   int           // Number of pending ticks that were reported to OnLocal.

	errands workQueue
	snapshotter
	counters
}

type pendingTick struct{ seq, tick uint64 }

// seq returns the record of the world's present tick.
func (s *Store) seq() uint64 {
	_, newest := s.world.Raw().Held(s)
	return newest
}

// oldestSeq returns the record of the oldest tick that the next tick may continue.
func (s *Store) oldestSeq() uint64 {
	oldest, _ := s.world.Raw().Held(s)
	return oldest
}

// Report returns what Open found.
func (s *Store) Report() Report { return s.report }

// Commit ends the tick: it calls [ecs.World.Commit], which passes the changes to the journal.
// Commit waits for the disk only if [Options.QueueBytes] bytes already wait or [Options.Budget] is
// used up. See [Options.Sync] and [Store.Sync].
//
// If Commit returns [ErrBacklog], the tick has not ended. Its changes, and those of functions that
// [Store.Do] had queued, belong to the next Commit that succeeds. Until then, call only Commit
// again, and not the systems: a step of package schedule belongs to one tick. Commit returns
// ErrBacklog only if [Options.RefuseWhenFull] is set or the store is replicated. In a replicated
// store ErrBacklog also wraps the reason why the log accepts nothing. [ecs.World.Commit] itself
// cannot refuse, so it waits.
//
// Once the journal has failed, every Commit returns the reason, until [Store.Resume]. The world
// continues in memory, and durable ticks stay on the disk.
func (s *Store) Commit() error {
	switch {
	case s.closed:
		return ErrClosed
	case s.ending:
		return errors.New("persist: Commit in a function given to Do; the Commit that calls the function ends the tick")
	}
	if err := s.reserve(); err != nil {
		return err
	}
	if s.runErrands(); s.closed {
		return ErrClosed
	}
	// A function that was given to Do may have called MarkLast, which uses the reserved room.
	if err := s.reserve(); err != nil {
		return err
	}
	s.dropAsked()
	s.world.Commit()
	if err := s.Err(); err != nil {
		return err
	}
	s.collectAndBegin()
	return nil
}

// runErrands calls the functions that wait in Do, before the tick ends.
func (s *Store) runErrands() {
	s.ending = true
	defer func() { s.ending = false }()
	s.errands.run(s.world)
}

// reserve returns [ErrBacklog] if the journal accepts no record and the store must not wait.
func (s *Store) reserve() error {
	if !s.options.RefuseWhenFull || s.journal.Reserve() {
		return nil
	}
	if _, why := disk.Replicated(s.files); why != nil {
		return fmt.Errorf("%w: %w", ErrBacklog, why)
	}
	return ErrBacklog
}

// dropAsked drops the requested slots if the world has gone to another state since the request.
func (s *Store) dropAsked() {
	if s.askedAt != s.present() {
		s.asked = s.asked[:0]
	}
}

// Do calls f in the goroutine of the world, and waits until f has returned. The next [Store.Commit]
// that ends a tick calls f before it ends the tick, or [Store.Poll] calls f. So f sees the world
// with all changes of the tick under way, and the changes that f makes belong to that tick.
//
// Consoles, servers and live views call Do. Any goroutine may call it except the goroutine of the
// world, which would wait for itself.
//
//	err := store.Do(ctx, func(w *ecs.World) { n = units.Len() })
//
// The function must not call Commit. If it changes the world, it should also describe the change to
// [Store.Input], so that a replay can repeat it. The input belongs to the same tick.
//
// Functions are called once each, in the order of the Do calls. A function that is added while
// others run waits for the next tick. [ecs.World.Commit] calls no functions.
//
// If ctx ends before f is called, f is never called, and Do returns the error of ctx. Other errors:
// [ErrClosed] if the store is closed before f is called, and a separate error if f panicked. The
// panic then continues in the goroutine of the world.
func (s *Store) Do(ctx context.Context, f func(w *ecs.World)) error { return s.errands.do(ctx, f) }

// Poll calls the functions that wait in [Store.Do], without ending a tick. A program calls it while
// it makes no ticks, for example when the game is paused. Changes that the functions make belong to
// the next tick. Poll must not be called while a query or a system runs.
func (s *Store) Poll() error {
	if s.errands.run(s.world); s.closed {
		return ErrClosed
	}
	return s.Err()
}

// Err returns why the journal failed, or nil. A store also fails if another program removed its
// snapshots and no replacement could be written.
func (s *Store) Err() error {
	err := s.failed
	if e := s.journal.Err(); err == nil && !errors.Is(e, journal.ErrClosed) {
		err = e
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLost):
		return fmt.Errorf("persist: journal failed, nothing later is saved: %w", err)
	}
	return fmt.Errorf("persist: journal failed, nothing later is saved until Store.Resume: %w", err)
}

// usable returns an error unless ticks can be committed.
func (s *Store) usable() error {
	if s.closed {
		return ErrClosed
	}
	return s.Err()
}

// await queues a tick for OnLocal and OnDurable.
func (s *Store) await(seq, tick uint64) {
	if s.options.OnDurable == nil && s.options.OnLocal == nil {
		return
	}
	s.mu.Lock()
	s.pending = append(s.pending, pendingTick{seq, tick})
	s.mu.Unlock()
}

// kept calls OnLocal for the ticks up to record seq. The journal calls kept().
func (s *Store) kept(seq uint64) {
	s.mu.Lock()
	from := s.local
	s.local = max(from, s.waiting(seq))
	ticks := slices.Clone(s.pending[from:s.local])
	s.mu.Unlock()
	tell(s.options.OnLocal, ticks)
}

// durable calls OnDurable for the ticks up to record seq. The journal calls kept(), and later
// durable().
func (s *Store) durable(seq uint64) {
	s.mu.Lock()
	n := s.waiting(seq)
	ticks := slices.Clone(s.pending[:n])
	s.pending, s.local = slices.Delete(s.pending, 0, n), max(0, s.local-n)
	s.mu.Unlock()
	tell(s.options.OnDurable, ticks)
}

// waiting returns how many pending ticks have a record up to seq.
func (s *Store) waiting(seq uint64) (n int) {
	for n < len(s.pending) && s.pending[n].seq <= seq {
		n++
	}
	return n
}

func tell(f func(tick uint64), ticks []pendingTick) {
	for _, p := range ticks {
		if f != nil {
			f(p.tick)
		}
	}
}

// Sync waits until all ticks committed so far are durable: they survive any crash. If another
// program removed snapshots of the store, Sync also writes a full snapshot; see
// [SnapshotResult.Lost]. With [Options.CommitEvery], Sync may return [ErrUncommitted].
func (s *Store) Sync(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.world.Raw().RecordDeferred(); err != nil {
		return fmt.Errorf("%w: ticks wait for the next record, see Options.CommitEvery", ErrUncommitted)
	}
	if err := s.Err(); err != nil {
		return err
	}
	if err := s.journal.Sync(ctx); err != nil {
		return err
	}
	return s.ensureBase(ctx)
}

// Close makes everything that was committed durable, seals the journal at the present tick and
// releases the directory. The world stays usable but loses its history. The error is the first
// error of the journal, or one of these:
//
//   - [ErrUncommitted] if changes, marks, inputs or slots wait for a Commit. They are lost, but the
//     store is closed, and all committed ticks with a record are durable. NoRewind values alone are
//     no error: Close saves them. See also [Options.CommitEvery].
//   - [raw.ErrCheckpointHeld] while a checkpoint is held. The store stays open.
//   - The error of ctx if ctx ends first. Closing continues in the background, and the directory
//     stays locked until closing is complete. Another Close waits for that and returns the result.
//   - [ErrClosed] if the store is already closed.
//
// A process that exits before closing is complete may lose the ticks that were not durable. So do
// not pass a ctx that a signal has cancelled: pass context.WithoutCancel(ctx).
//
// The package handles no signals, so a program that ends on SIGTERM should call Close first. A
// process that ends without Close loses no durable tick.
func (s *Store) Close(ctx context.Context) error {
	if s.closed && s.closing == nil {
		return ErrClosed
	}
	if !s.closed {
		if len(slices.Collect(s.world.Checkpoints())) > 0 {
			return raw.ErrCheckpointHeld
		}
		s.finishCopy()         // The copy needs the history of the world.
		_ = s.recordDeferred() // If ticks still wait, uncommitted reports them.
		s.recordNoRewind()
		s.ensureBaseAtClose()
		head, lost := s.seq(), s.uncommitted()
		if err := s.world.Raw().Detach(s); err != nil {
			return err
		}
		s.errands.close()
		s.closed, s.closing = true, make(chan error, 1)
		go func(done chan<- error) { done <- cmp.Or(s.seal(head), lost) }(s.closing)
	}
	select {
	case err := <-s.closing:
		s.closing = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("persist: close: %w; closing continues in the background, and another Close waits for it", ctx.Err())
	}
}

// uncommitted returns an error if changes, marks, inputs or slots wait for a commit.
func (s *Store) uncommitted() error {
	s.notes.About(s.present())
	s.dropAsked()
	switch note, noted := s.notes.First(); {
	case len(s.asked) > 0:
		return fmt.Errorf("%w: the slot %q was begun after the last Commit", ErrUncommitted, s.asked[0].name)
	case noted:
		return fmt.Errorf("%w: %s was added after the last Commit", ErrUncommitted, note)
	case s.world.Raw().Deferred() && s.failed == nil:
		return fmt.Errorf("%w: the world was changed after the last Commit, and the ticks since the last record are lost, see Options.CommitEvery", ErrUncommitted)
	case s.world.Dirty():
		return uncommittedError(s.world.Raw(), "the world was changed after the last Commit; call Commit before Close to save the changes")
	case s.encoder.whole.different(s.seq()):
		return fmt.Errorf("%w: the world went to another tick, and NoRewind values from before are not saved; call Commit before Close", ErrUncommitted)
	}
	return nil
}

// seal finishes the snapshot under way and closes the journal, the lock and the files.
func (s *Store) seal(head uint64) error {
	r, _ := s.waitSnapshot(context.Background()) // Fails only if the context ends.
	err := cmp.Or(s.journal.Close(context.Background(), head), s.failed)
	if err = cmp.Or(err, s.lock.Release(err == nil), s.files.Close()); err == nil && r.Slot != "" {
		err = r.Err // Report the failed slot.
	}
	return err
}

// Backup copies the open store to a directory that is missing or empty. The copy is an independent
// store, marked as closed: it holds all snapshots and the journal up to the last record before the
// call. Backup reads the copy back and makes it durable before it returns. If the journal has
// failed, the copy holds the durable ticks.
//
// Like [Store.Do], Backup may be called by any goroutine. It delays no tick, but it competes for
// the disk. It reads the whole store and the whole copy. If ctx ends or an error occurs, the
// directory is left empty. [Open] refuses a copy that a crash left incomplete. A damaged store is
// not copied: [ErrCorrupt] says where the damage is. Backup reports progress in the phases "reading
// the journal" and "copying files".
func (s *Store) Backup(ctx context.Context, dir string) error {
	durable, err := s.beginBackup(ctx)
	if err != nil {
		return err
	}
	return catalog.Backup(ctx, s.files, dir, durable)
}

// BackupTo writes a backup as a zip file to out, for example to download it from a browser. Package
// archive unpacks it, and so do [inspect.OpenReadOnly], ecsdump, and programs for zip files. Except
// for the destination, BackupTo is like [Store.Backup]. It has the whole copy in memory before it
// writes the first byte.
//
// [inspect.OpenReadOnly]: https://pkg.go.dev/github.com/stet-ecs/stet/persist/inspect#OpenReadOnly
func (s *Store) BackupTo(ctx context.Context, out io.Writer) error {
	durable, err := s.beginBackup(ctx)
	if err != nil {
		return err
	}
	files := disk.Memory()
	if err := catalog.CopyStore(ctx, s.files, files, durable); err != nil {
		return fmt.Errorf("persist: backup: %w", err)
	}
	return archive.Write(ctx, out, files)
}

// beginBackup makes all records durable. The returned function gives the newest durable record,
// where the backup ends.
func (s *Store) beginBackup(ctx context.Context) (durable func() uint64, err error) {
	j := s.current()
	switch err := j.Sync(ctx); {
	case errors.Is(j.Err(), journal.ErrClosed):
		return nil, ErrClosed
	case err != nil && ctx.Err() != nil, errors.Is(err, ErrLost):
		return nil, err
	}
	return j.Durable, nil
}

// Metrics returns the current metrics of s. Any goroutine may call it, at any rate: it allocates
// nothing, does not wait for the disk and does not delay a tick. The counts include every call on s
// that has returned. After Close, Metrics returns the final values.
func (s *Store) Metrics() Metrics { return s.counters.metrics() }
