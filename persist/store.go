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
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Options say how a store is written. The zero Options are useful.
type Options struct {
	// Sync says when the journal is synced to disk. Default: 100 ms after the
	// first tick that is not durable yet. journal.SyncAlways() after every tick,
	// journal.SyncNever() only at Sync, Snapshot and Close.
	Sync journal.SyncPolicy

	// QueueBytes bounds the bytes of ticks that wait for the disk: while they are
	// as many, no further tick is let in, so that never more than that and one tick
	// wait. Default: 64 MiB.
	QueueBytes int64

	// Budget bounds the memory of ticks that wait for the disk in all stores that have it, in addition
	// to QueueBytes: a process with many worlds gives one to all of them. It is a number of bytes, of what
	// the queues take in memory:
	//
	//	budget.New(1 << 30)
	//
	// A store that finds it used up is as one with QueueBytes waiting: Commit waits, or returns
	// [ErrBacklog] with RefuseWhenFull. Half of it is divided equally among the stores, so that one whose
	// disk is stuck leaves the others their part. A store that has no tick waiting always takes one. So all
	// together hold at most the budget and one tick each. What a store holds is given back when it is
	// written, when the journal fails, and at Close. Package replica has the same option for what waits
	// for its log. Cost: some tens of nanoseconds a tick. Default: nil, no bound.
	Budget *budget.Budget

	// RefuseWhenFull makes Commit return [ErrBacklog] then, before the tick ends,
	// instead of waiting for the disk. Nothing has happened: go on changing the world
	// and commit later, or commit again. A store on several machines, see package replica, always does: its log
	// may not answer for long.
	RefuseWhenFull bool

	// SnapshotBytes is how far the journal may grow before Commit begins a
	// snapshot. Default: twice as many bytes as the last full snapshot has, and at
	// least 16 MiB, so that recovery reads at most about three times what the world
	// holds, or replays for some hundredths of a second; but no more than a 16th of
	// [Retention.Bytes], or one full snapshot if that is more.
	// Negative: Commit begins none, and nothing is removed until the program does.
	SnapshotBytes int64

	// OnDurable is called when a tick has become durable, in the order of commits,
	// by the journal's goroutine. It must not block. nil: nothing is called.
	OnDurable func(tick uint64)

	// OnLocal is called as OnDurable is, and before it, when a crash of this machine leaves the
	// tick: earlier where durable means more, as with package replica, which waits for what other
	// machines have.
	OnLocal func(tick uint64)

	// SnapshotPace is how many bytes of the world a Commit copies at most, or not
	// much more, while a snapshot is under way. It is raised if a snapshot takes long
	// or was begun in vain, and if [Options.Retain] limits the past and ticks journal so
	// much that it could not be kept otherwise. Default: 1 MiB, which takes about half a millisecond.
	// Negative: all in the Commit that begins it.
	SnapshotPace int

	// Retain says how much of the past stays on the disk. Default: as much as the
	// larger of 1 GiB and 16 full snapshots holds.
	Retain Retention

	// OnSnapshot is called when a snapshot is finished or has failed, by the
	// snapshot's goroutine or, if it was given up since the world went back to before
	// it, by Commit. A failed snapshot does not fail the store; the next one is tried
	// when it is due. nil: nothing is called.
	OnSnapshot func(SnapshotResult)

	// At is the state to recover, as inspect.View.Resolve takes it: "@latest~10", "1200".
	// The store branches there: the next tick continues it, and the ticks after it
	// stay in the journal, away from the way to the head. Until that tick is
	// durable, or the store is closed, a crash leads to the newest state again.
	// Default: the newest state. Any other is [ErrNotFound] in a new store.
	At string

	// History is how many of the newest ticks on the disk Open gives back to the history of
	// the world, so that it can go back over them as before it was closed: as many as it holds,
	// see [ecs.Options]. It ends where components were converted, a resource was stored for
	// the first time or a save was loaded. Each tick is read and applied, behind a state before them that
	// is read as well. Default 0: the history begins with the state recovered.
	History int

	// Epoch is the least epoch of the ticks that are committed, which a tick is told by from
	// another one of its number: whoever decides elsewhere who may write, gives each of them one
	// that nobody had, as package replica does. Default: one more than the highest there is.
	Epoch uint64

	// Now is the clock of ticks. It may go backwards, but shows years from 1678 to 2261:
	// another time fails the journal, see [Store.Err]. Default: time.Now.
	Now func() time.Time

	segmentSize int64 // Of the journal. 0: as Retain needs it; less in tests.
	leastBound  int64 // The default bound of small worlds. 0: 1 GiB; less in tests.
}

// resolved returns o with the defaults of what a store always needs.
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

// A Store keeps a world in a directory: every tick in a journal, and now and then
// a snapshot of it all.
//
// Its methods belong to the goroutine of the world, but for [Store.Do], [Store.Backup] and
// [Store.Metrics].
type Store struct {
	world   *ecs.World
	options Options
	files   disk.FS
	lock    *catalog.Lock // nil: nobody else can know the files.
	report  Report
	closed  bool
	closing chan error // What a Close that nobody waited for will return, or nil.

	id        [16]byte // Of the world.
	head      uint64   // The record of the state that Open or Goto went to,
	first     uint64   // and the first that can have been written since.
	older     bool     // It was not the newest.
	schema    *format.Schema
	announced int // Components that the journal's preambles describe.
	encoder   *tickRecorder
	notes     format.Notes          // Of the tick under way.
	ids       map[uint64]journal.ID // By seq, as far back as the history reaches.

	mu      sync.Mutex
	pending []pendingTick // Not known to be durable, by seq.
	local   int           // How many of them OnLocal was told.

	errands errands
	snapshotter
	tally
}

type pendingTick struct{ seq, tick uint64 }

// seq returns the record of the present tick, as far as the world knows.
func (s *Store) seq() uint64 {
	_, newest := s.world.Raw().Held(s)
	return newest
}

// oldestSeq returns the record of the oldest tick that the next one may continue.
func (s *Store) oldestSeq() uint64 {
	oldest, _ := s.world.Raw().Held(s)
	return oldest
}

// Report returns what Open found.
func (s *Store) Report() Report { return s.report }

// Commit ends the tick: [ecs.World.Commit], which hands what changed to the
// journal. It does not wait for the disk, unless [Options.QueueBytes] wait for it
// already or [Options.Budget] is used up; see [Options.Sync] and [Store.Sync].
//
// [ErrBacklog] is the one error that does not end the tick: the world is as it
// was before the call, and what the tick changed belongs to the next Commit that
// succeeds. It comes only if [Options.RefuseWhenFull] asks for it, or if the store is on several machines; it
// wraps then why their log takes nothing. [ecs.World.Commit] itself, which cannot refuse, waits.
//
// Once the journal has failed, every Commit returns why, until [Store.Resume]. The
// world goes on in memory; what was durable stays.
func (s *Store) Commit() error {
	if s.closed {
		return ErrClosed
	}
	if s.options.RefuseWhenFull && !s.journal.Reserve() {
		if _, why := disk.Replicated(s.files); why != nil {
			return fmt.Errorf("%w: %w", ErrBacklog, why)
		}
		return ErrBacklog
	}
	if s.errands.run(s.world); s.closed {
		return ErrClosed
	}
	s.world.Commit()
	if err := s.Err(); err != nil {
		return err
	}
	s.collectAndBegin()
	return nil
}

// Do calls f in the goroutine of the world: the next [Store.Commit] that ends a tick calls
// it before, so that f finds the world whole, and what f changes belongs to that tick. It
// waits until f has returned. It may be called by any goroutine but that of the world, which
// would wait for itself: for consoles, servers, live views.
//
//	err := store.Do(ctx, func(w *ecs.World) { n = units.Len() })
//
// Functions are called in the order in which they came, each once; those that come while
// some are called wait for the tick after. The world's own Commit calls none.
//
// If ctx ends before f is called, f never is, and Do returns the error of ctx. Errors:
// [ErrClosed] if the store is closed first; another one if f panicked, which the goroutine of
// the world does then.
func (s *Store) Do(ctx context.Context, f func(w *ecs.World)) error { return s.errands.do(ctx, f) }

// Err returns why the journal failed, or nil. A store fails as well if another program removed its
// snapshots and no other one could be written.
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

// await notes a tick that OnLocal and OnDurable are to be told.
func (s *Store) await(seq, tick uint64) {
	if s.options.OnDurable == nil && s.options.OnLocal == nil {
		return
	}
	s.mu.Lock()
	s.pending = append(s.pending, pendingTick{seq, tick})
	s.mu.Unlock()
}

// kept tells OnLocal the ticks up to seq. The journal calls it.
func (s *Store) kept(seq uint64) {
	s.mu.Lock()
	from := s.local
	s.local = max(from, s.waiting(seq))
	ticks := slices.Clone(s.pending[from:s.local])
	s.mu.Unlock()
	tell(s.options.OnLocal, ticks)
}

// durable tells OnDurable the ticks up to seq. The journal calls it, after kept.
func (s *Store) durable(seq uint64) {
	s.mu.Lock()
	n := s.waiting(seq)
	ticks := slices.Clone(s.pending[:n])
	s.pending, s.local = slices.Delete(s.pending, 0, n), max(0, s.local-n)
	s.mu.Unlock()
	tell(s.options.OnDurable, ticks)
}

// waiting returns how many of those pending are up to seq.
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

// Sync waits until all ticks committed so far are durable: they survive any
// crash. If another program removed snapshots of the store, Sync writes a full one first; see
// [SnapshotResult.Lost].
func (s *Store) Sync(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.journal.Sync(ctx); err != nil {
		return err
	}
	return s.ensureBase(ctx)
}

// Resume makes a store whose journal has failed, for want of space perhaps, keep the
// world again, as it is now:
//
//	tick 7   tick 8   tick 9   failed   tick 10 … 40   Resume            tick 41
//	durable  durable  durable           in memory      all of tick 40    journaled
//
// What was durable stays and nothing that failed is tried again: Resume reads the
// store as Open does, begins a new segment under a higher epoch, and journals the whole
// present state as one tick behind the newest durable one that it comes from. It is durable when Resume
// returns nil, and a snapshot of it is begun. The ticks between are in no journal. The
// history of the world starts anew.
//
// A store that has not failed is left as it is. Errors: [ErrLost] if another process
// may have the store, from which there is no way back; [ErrUncommitted];
// [raw.ErrCheckpointHeld]; [ErrCorrupt] if what was durable cannot be read, unless the store failed
// because files were removed; and what the disk says, if it still fails. Then the store is as failed as before, and Resume
// can be called again. If ctx ends, so does Resume, with its error.
//
// Cost: as Open, and about as many bytes of journal as a full snapshot has. If the disk is
// still full, what [Options.Retain] lets go is removed.
func (s *Store) Resume(ctx context.Context) error {
	if s.closed {
		return ErrClosed
	}
	if err := s.Err(); err == nil || errors.Is(err, ErrLost) {
		return err
	}
	if s.world.Raw().Dirty() {
		return ErrUncommitted
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

// Goto makes the world the state at a point in time, written as inspect.View.Resolve takes
// it: "1200", "@latest~10", "mark:boss", "tip:1". The next tick continues it, and the ticks
// that were after it stay in the journal, on a branch of their own:
//
//	tick 7 ── tick 8 ── tick 9
//	    `── tick 8 ── …             Goto(ctx, "7"), Commit
//
// Entities, handles, queries, groups, indexes and hooks of the world stay, and
// [ecs.World.OnRestore] tells. What is registered with NoRewind keeps its values. The history
// of the world starts anew; [ecs.History.Seek] is for the ticks that it holds. A state of
// older types is converted, as by [Open].
//
// Until the next tick is durable, or the store is closed, a crash leads to the newest state
// of the journal again, which is what @latest names until then.
//
// Errors: [ErrUncommitted], [raw.ErrCheckpointHeld], [ErrPoint], [ErrNotFound] with what
// there is instead, [ErrSchema], [ErrCorrupt]; and that of ctx. The world is then as it was.
// One that wraps [Store.Err] says that the world is there, but the journal failed.
//
// Cost: as Open. What was committed becomes durable before.
func (s *Store) Goto(ctx context.Context, point string) error { return s.goTo(ctx, point) }

// Load makes the world what [Save] wrote to a file: the quick load of a game whose store
// goes on. It becomes the next tick of the journal, which gives the whole state, behind the
// present one, and a snapshot of it is begun. So a crash leads to the state before or
// to the one loaded, and the way back over both is in the journal:
//
//	tick 900 ── all of tick 500 ── tick 501 ── …       Load of a save of tick 500
//
// What is registered with NoRewind gets the values of the file too. Otherwise all is as for
// [Store.Goto], errors also; [ErrForeign] and [ErrNewer] are those of the file.
//
// Cost: as the function Load, and about as many bytes of journal as the save has, and of
// snapshot. It is durable as a tick is: see [Store.Sync].
func (s *Store) Load(ctx context.Context, file string) error {
	return inDirectoryOf(file, func(files disk.FS, name string) error { return s.load(ctx, files, name) })
}

// LoadFrom is Load of the save that in has up to its end, as [SaveTo] writes it; see
// [LoadFrom].
func (s *Store) LoadFrom(ctx context.Context, in io.Reader) error {
	files, err := received(in)
	if err != nil {
		return err
	}
	return s.load(ctx, files, stream)
}

// Close makes everything that was committed durable, seals the journal at the
// present tick and lets go of the directory. Changes since the last commit are
// not saved. The world stays usable and loses its history.
//
// It returns the first error of the journal, if any. While a checkpoint is held
// it returns [raw.ErrCheckpointHeld], and the store stays open. If ctx ends
// first, it returns its error and closing goes on; the directory stays locked
// until it is done, and another Close waits for that and returns its outcome. Once
// that is known, Close returns [ErrClosed].
//
// Signals are the program's: one that ends on SIGTERM calls Close before. A
// process that ends without loses nothing that was durable.
func (s *Store) Close(ctx context.Context) error {
	if s.closed && s.closing == nil {
		return ErrClosed
	}
	if !s.closed {
		s.hand() // While there is a history to copy from.
		s.ensureBaseAtClose()
		head := s.seq()
		if err := s.world.Raw().Detach(s); err != nil {
			return err
		}
		s.errands.close()
		s.closed, s.closing = true, make(chan error, 1)
		go func(done chan<- error) { done <- s.seal(head) }(s.closing)
	}
	select {
	case err := <-s.closing:
		s.closing = nil
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// seal closes everything once what is under way is finished.
func (s *Store) seal(head uint64) error {
	s.settle()
	err := cmp.Or(s.journal.Close(context.Background(), head), s.failed)
	return cmp.Or(err, s.lock.Release(err == nil), s.files.Close())
}

// Backup copies the store, which goes on, to a directory that is missing or
// empty. The copy is a store of its own: it holds all that was committed when
// Backup was called, snapshots and journal, has been read back, is durable when
// Backup returns, and was closed. If the journal has failed, the copy holds what
// was durable before.
//
// Like [Store.Do], it may be called by any goroutine: it holds up no
// tick, but competes for the disk. It reads all of the store and the copy. If ctx
// ends or something fails, the directory is left empty; what a crash leaves behind
// is refused by [Open]. A store with damage is not copied: [ErrCorrupt] says
// where. Its phases are [PhaseScan] and [PhaseCopy].
func (s *Store) Backup(ctx context.Context, dir string) error {
	j := s.current()
	switch err := j.Sync(ctx); {
	case errors.Is(j.Err(), journal.ErrClosed):
		return ErrClosed
	case err != nil && ctx.Err() != nil, errors.Is(err, ErrLost):
		return err
	}
	return catalog.Backup(ctx, s.files, dir, j.Durable)
}

// Metrics returns how s fares. It may be called by any goroutine, as often as it likes: it
// allocates nothing, and neither waits for the disk nor holds up a tick. Whoever did something
// to s finds it counted. After Close it returns what was true at the end.
func (s *Store) Metrics() Metrics { return s.tally.metrics() }
