package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist"
)

// Options are the settings of a follower and its owner. The zero Options are useful.
type Options struct {
	// Name is the name of this machine in the log, for people and for [Owner.Offer]. The default is
	// "". No owner can offer the store to a machine without a name.
	Name string

	// OnShorter is called after the log has lost entries and the owner has appended them again. It
	// must not block. The default nil does nothing.
	OnShorter func(*ShorterError)

	// Forget continues with a log that has lost entries of this machine ([ErrLogShorter]). Bytes
	// that the log does not have are quarantined, because other machines may have continued the
	// log. If the log is empty, this machine's store remains, and a claim sends it.
	Forget bool

	// Heartbeat is the time without entries after which the owner appends an empty entry. It shows
	// followers that the owner is alive; see [Follower.Fresh]. The default is 1 s. A negative value
	// turns heartbeats off.
	Heartbeat time.Duration

	// Budget bounds the memory of all stores that share it. It counts ticks that wait for the log
	// or the disk. It also counts entries that the owner retains in case the log loses them. The
	// default nil means no bound.
	//
	// [Owner.Open] uses it as [persist.Options.Budget]. For a store that a [persist.Follower]
	// opens, set both options. Each world takes two shares of the budget: one for its journal, and
	// one for its entries.
	//
	// If all logs stop at once, the memory can reach three times the budget. Each waiting tick can
	// then exist three times: as bytes of the journal, as operations, and as an entry.
	Budget *budget.Budget

	// Version says which states of the world this program can open, and which state it writes.
	// [Follower.Claim] compares it with the versions of earlier owners. By default, all its numbers
	// are 0.
	Version Version

	patience time.Duration // For tests: if not 0, the result of the method sure.
	reads    time.Duration // For tests: if not 0, the result of the method readBack.
}

func (o *Options) heartbeat() time.Duration { return cmp.Or(o.Heartbeat, time.Second) }

// sure returns how long the follower waits before it accepts that an acknowledged entry is lost. A
// server that is cut off gives old answers until it notices the partition, which takes 10 s for
// NATS.
func (o *Options) sure() time.Duration { return cmp.Or(o.patience, 15*time.Second) }

// readBack returns how often an owner reads its log back.
func (o *Options) readBack() time.Duration { return cmp.Or(o.reads, readBackEvery) }

// A Follower keeps the files of a store equal to the content of the log. Its methods may be called
// from several goroutines.
//
// The function read() gets entries from the log. applyEntry() checks that an entry continues the
// entries before it, and applies the operations of the entry. Some operations are claims or offers.
// Others change the files of one of two directory trees:
//
//	tree   the complete store, in the directory store/
//	next   a store that an owner is still sending, in the directory next/
//
// When next is complete, it becomes the tree. A follower with a tree ignores a store that is sent
// again. If the log is trimmed beyond the last entry of the follower, the follower drops its tree.
// It waits until an owner sends all files.
//
// The file named state records from time to time which entries were applied. After a crash, later
// entries are applied again.
type Follower struct {
	log     Log
	files   disk.FS
	lock    disk.Lock
	options Options
	storeFS *sendingFS
	monitor monitor

	turn      chanMutex          // Held while a method starts or stops following.
	stop      context.CancelFunc // Stops the goroutine that follows.
	following sync.WaitGroup     // The goroutine that follows.

	// mu guards the fields below. The goroutine that follows changes these fields. When this
	// goroutine does not run, the holder of f.turn may change the fields.
	mu      sync.Mutex
	at      trail     // The newest valid entries that were applied, newest first.
	skipped link      // The last entry that was not valid; see continuesLog.
	fresh   time.Time // When the last valid entry was read, or when Follow was called.
	// Whether an entry has arrived since the call of Follow. Then f.fresh is the time of an entry.
	timed bool
	// The time between the last two entries. Follow sets it to an upper bound, or to 0 if there are
	// no entries.
	gap time.Duration
	// Bytes of entries since the beginning of the last complete store in the log.
	logged int64
	// The value of f.logged at the last opBegin.
	begun  int64
	end    Position      // The last entry that was read, valid or not.
	term   uint64        // The highest term of all claims.
	info   logInfo       // The identity and the versions of the log.
	tree   *replicaFiles // The store. nil if this machine has no complete store.
	next   *replicaFiles // The store that is being sent.
	bare   time.Time     // When this machine last lost its complete store, or called Follow.
	owned  bool          // Whether the files may have data that the log does not have.
	origin bool          // Whether this machine has a store and the log has none yet.
	since  int           // The number of bytes applied since the file state was written.
	aside  *quarantine   // The quarantine for bytes that the log does not have.
	offer  offer
	grown  chan struct{} // Closed when f.at or f.err changes.
	err    error         // The reason why following has ended.
	stuck  error         // Why the last try to apply the next entry failed.
	closed bool
}

const (
	storeDir = "store"
	nextDir  = "next"
	lockFile = "LOCK"

	// stateEvery is the number of bytes of entries between two writes of the file state. After a
	// crash, about this many bytes are read again.
	stateEvery = 16 << 20
)

// Follow keeps the files of a store equal to the log, until Close or a claim. The file system files
// belongs to this machine alone. Its directory store/ may already have a store if the log is empty:
// the first claim sends this store.
//
// Follow first quarantines data that an owner wrote on this machine and the log does not have; see
// [Follower.Aside]. If entries were trimmed that this machine needs, it gets all files again.
//
// Errors:
//   - [persist.ErrForeign]: files has the store of another log.
//   - [persist.ErrLocked]: another process uses files.
//   - [ErrLogShorter]: the log has lost entries, or was emptied before this machine had all of
//     them.
//   - Other errors are those of the log.
func Follow(ctx context.Context, log Log, files disk.FS, options Options) (*Follower, error) {
	if err := options.Version.check(); err != nil {
		return nil, err
	}
	lock, err := files.Lock(lockFile)
	if errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%w: another process uses this copy", persist.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	f := &Follower{log: log, files: files, lock: lock, options: options, turn: newChanMutex(), grown: make(chan struct{})}
	f.aside = &quarantine{top: files}
	f.offer.set(false)
	f.storeFS = newSendingFS(disk.Sub(files, storeDir))
	if err := f.begin(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f.fresh, f.timed, f.gap, f.bare = time.Now(), false, 0, time.Now()
	if f.end > 0 {
		// An owner without ticks appends a heartbeat after at most this time.
		f.gap = f.longestGap()
	}
	f.follow()
	return f, nil
}

// Files returns the files of the store. Readers may use them while the machine follows, and the
// owner may write them. The file system is empty until the log has a store.
func (f *Follower) Files() disk.FS { return f.storeFS }

// Position returns the position of the last entry that the files include.
func (f *Follower) Position() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// Fresh returns the time when the last entry arrived. A live owner appends an entry at least once a
// second; see [Options.Heartbeat]. After a much longer silence, the owner is dead, or this machine
// does not reach the log.
func (f *Follower) Fresh() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fresh
}

// Overdue returns how late the next entry of the owner is. This is the time since the last entry,
// minus twice the time between the last two entries. A program that replaces dead owners claims
// when Overdue exceeds some hundred milliseconds. This works for owners with and without ticks.
func (f *Follower) Overdue() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.fresh) - 2*f.gap
}

// heard records the arrival of an entry.
func (f *Follower) heard() {
	now := time.Now()
	if f.timed {
		f.gap = min(now.Sub(f.fresh), f.longestGap())
	}
	f.fresh, f.timed = now, true
}

// longestGap is the longest time between two entries of a live owner.
func (f *Follower) longestGap() time.Duration { return max(f.options.heartbeat(), time.Second) }

// Offered returns a channel that is closed once the owner has offered the store to this machine;
// see [Owner.Offer]. The program then calls Claim. Every claim, by any machine, ends an offer, so
// get a new channel after each claim. An offer remains valid after a restart of this process.
func (f *Follower) Offered() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.offer.made
}

// An offer records whether the store is offered to this machine.
type offer struct {
	stands bool
	made   chan struct{} // Closed while the store is offered to this machine.
}

// set records whether there is an offer.
func (o *offer) set(stands bool) {
	switch {
	case stands && !o.stands:
		close(o.made)
	case !stands && o.stands, o.made == nil:
		o.made = make(chan struct{})
	}
	o.stands = stands
}

// Writes returns the state version that an owner should write. This is the newest version in the
// log, or [Version.Writes] of the options if that is newer. Register the component types of this
// version.
func (f *Follower) Writes() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.info.Writes, f.options.Version.Writes)
}

// Ready reports whether Files has a complete store.
func (f *Follower) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tree != nil
}

// Aside returns the quarantine directory, and the size of its files. These files have the bytes
// that were written on this machine and never confirmed. The directory is "" if the quarantine is
// empty.
func (f *Follower) Aside() (dir string, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.aside.dir, f.aside.bytes
}

// Err returns why following has ended, or why the last entry could not be applied. For example, the
// follower retries an entry that does not fit on a full disk. Err returns nil while the follower
// applies entries.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.err, f.stuck)
}

// errNoStore reports that the follower reads a log without a complete store.
var errNoStore = errors.New("replica: the log has no complete store")

// Stuck returns why the files are behind the log at the moment, and since when. The log may yield
// no entries or have no complete store, or this machine cannot write the entries. The follower
// retries. [ClassOf] classifies the error. The error is nil while the follower makes progress.
func (f *Follower) Stuck() (since time.Time, err error) {
	m := f.Metrics()
	return m.StuckSince, m.Stuck
}

// Metrics returns the progress of this machine and of the log.
func (f *Follower) Metrics() Metrics {
	m := f.monitor.current()
	f.mu.Lock()
	defer f.mu.Unlock()
	m.Position, m.Term, m.LogBytes, m.Heard = f.end, f.term, f.logged, f.fresh
	if m.Stuck == nil && f.tree == nil && f.end > 0 && !f.origin {
		m.Stuck = fmt.Errorf("%w up to its entry %d; the owner sends all files again when it notices", errNoStore, f.end)
		m.StuckSince = f.bare
	}
	return m
}

// Wait waits until the files include the entry at a position. If ctx ends first, the returned error
// also includes the error of Stuck.
func (f *Follower) Wait(ctx context.Context, p Position) error {
	for {
		f.mu.Lock()
		at, err, grown := f.end, f.err, f.grown
		f.mu.Unlock()
		switch {
		case at >= p:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			if _, stuck := f.Stuck(); stuck != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), stuck)
			}
			return ctx.Err()
		case <-grown:
		}
	}
}

// Close stops following. The files remain, and equal the log up to [Follower.Position].
func (f *Follower) Close() error {
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.closed {
		return persist.ErrClosed
	}
	f.stopFollowing()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.fail(persist.ErrClosed)
	return errors.Join(f.saveState(), f.lock.Close())
}

// fail records why following has ended, and wakes the callers of Wait.
func (f *Follower) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	f.wakeWaiters()
}

// wakeWaiters wakes the callers of Wait.
func (f *Follower) wakeWaiters() {
	close(f.grown)
	f.grown = make(chan struct{})
}

// stopFollowing ends the goroutine that follows.
func (f *Follower) stopFollowing() {
	f.stop()
	f.following.Wait()
}

// follow starts the goroutine that follows. The goroutine ends at errors that make the log or the
// files unusable. At any other error, such as a network error, it retries the failed call.
func (f *Follower) follow() {
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.following.Go(func() {
		tries := backoff{shortWait, longWait}
		for ctx.Err() == nil {
			begun := f.end
			f.monitor.begin()
			err := f.read(ctx, nil)
			if ctx.Err() == nil {
				f.monitor.fail(err)
			}
			if errors.Is(err, errGap) || errors.Is(err, ErrLogShorter) || errors.Is(err, persist.ErrNewer) || errors.Is(err, persist.ErrForeign) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.fail(err)
				return
			}
			if f.end > begun {
				tries = backoff{shortWait, longWait}
			}
			tries.pause(ctx)
		}
	})
}

// Shortest and longest pause between two tries to read the log.
const (
	shortWait = 20 * time.Millisecond
	longWait  = time.Second
)

// errReached is the error of read() when it has reached the given position.
var errReached = errors.New("reached")

// read applies entries as they arrive. It always ends with an error, which is errReached at the
// given position. The next call of read() continues after the last entry that was applied
// completely.
func (f *Follower) read(ctx context.Context, upto *Position) error {
	if upto != nil && f.end >= *upto {
		return errReached
	}
	for e, err := range f.log.Entries(ctx, f.end) {
		if err != nil {
			return err
		}
		err := f.applyEntry(ctx, e)
		if errors.Is(err, ErrHole) || errors.Is(err, errEntry) {
			err = f.fillGap(ctx, e)
		}
		f.mu.Lock()
		if f.stuck = err; errors.As(err, new(*unansweredError)) {
			// The log did not say whether the entry is valid. f.stuck has only errors of this
			// machine, or of entries.
			f.stuck = nil
		} else if err != nil {
			f.wakeWaiters()
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
		if upto != nil && e.Position >= *upto {
			return errReached
		}
	}
	return ctx.Err()
}

// fillGap applies the entries that Entries skipped, up to the position of e. It reads from the
// server that decides on appends, because another server may have a damaged copy.
func (f *Follower) fillGap(ctx context.Context, e Entry) error {
	for {
		missed, err := f.log.Next(ctx, f.end)
		if err != nil {
			return &unansweredError{err}
		}
		if missed.Position == 0 || missed.Position > e.Position {
			return f.applyEntry(ctx, e)
		}
		if err := f.applyEntry(ctx, missed); err != nil || missed.Position == e.Position {
			return err
		}
	}
}

// continuesLog reports whether entry e is valid. Each entry names the entry before it. If e names
// the last valid entry, e is valid. Otherwise there are these cases:
//
//   - e names a newer entry, which was trimmed: e is valid. The follower drops its files until an
//     owner sends all files again.
//   - e names a newer entry, which the log does not show: The result is a [HoleError].
//   - e names any other entry, and the log still has the last valid entry: e is invalid. Its writer
//     did not know the last valid entry.
//   - e names any other entry, and the log has lost the last valid entry: The result is a
//     [ShorterError].
func (f *Follower) continuesLog(ctx context.Context, e Entry, h header, ops []op) (ok bool, err error) {
	unknown := f.at[0].ID == entryID{}
	if h.before == f.at[0] || unknown && f.at[0].Position > 0 && h.before.Position == f.at[0].Position {
		return true, nil
	}
	if h.before.Position > f.end {
		first, _, err := f.log.Bounds(ctx)
		switch {
		case err != nil:
			return false, err
		case first == 0 || f.at[0] == link{} && first < e.Position || first <= h.before.Position:
			return false, &HoleError{After: f.end, Next: e.Position}
		}
		if err := f.sameLog(ops); err != nil {
			return false, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		// The entries before e were trimmed.
		f.tree, f.next, f.bare = nil, nil, time.Now()
		return true, nil
	}
	if h.before == f.skipped {
		return false, nil
	}
	err = f.at.check(ctx, f.log)
	if errors.Is(err, errTrimmed) || unknown {
		return false, &ShorterError{Known: f.at[0].Position, Last: h.before.Position}
	}
	if err == nil && f.end > f.at[0].Position {
		err = f.recheck(ctx, e)
	}
	return false, err
}

// recheck looks for a valid entry between the last valid entry and e. The log may have lost an
// invalid entry, and may now have a valid entry at its position. If recheck finds one, it returns a
// [HoleError], and reading starts again after the last valid entry.
func (f *Follower) recheck(ctx context.Context, e Entry) error {
	next, _, err := continuation(ctx, f.log, f.at[0], e.Position)
	if err != nil || next.Position == 0 || next.Position >= e.Position {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = f.at[0].Position
	return &HoleError{After: f.end, Next: e.Position}
}

// An unansweredError means that the log did not say whether an entry is valid.
type unansweredError struct{ error }

// Unwrap returns the error of the log.
func (e *unansweredError) Unwrap() error { return e.error }

// applyEntry applies an entry if it is valid.
func (f *Follower) applyEntry(ctx context.Context, e Entry) error {
	h, ops, newer := decodeEntry(e.Data)
	if newer != nil && !errors.Is(newer, persist.ErrNewer) {
		return fmt.Errorf("%w: at %d", newer, e.Position)
	}
	counts, err := f.continuesLog(ctx, e, h, ops)
	if err != nil && !errors.Is(err, ErrHole) {
		return &unansweredError{err}
	}
	if err != nil {
		return err
	}
	if counts && newer != nil {
		return fmt.Errorf("%w: at %d", newer, e.Position)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !counts {
		f.skipped, f.end = link{e.Position, h.id}, e.Position
		f.monitor.succeed(f.end, f.logged)
		f.wakeWaiters()
		return nil
	}
	for i := range ops {
		if err := f.applyOp(&ops[i]); err != nil {
			// The caller retries the whole entry.
			return err
		}
	}
	f.at.push(link{e.Position, h.id})
	f.end, f.logged = e.Position, f.logged+int64(len(e.Data))
	f.heard()
	f.monitor.succeed(f.end, f.logged)
	if f.since += len(e.Data); f.since >= stateEvery {
		if err := f.saveState(); err != nil {
			return err
		}
	}
	f.wakeWaiters()
	return nil
}

// applyOp applies an operation to the store, or to the store that is being sent.
func (f *Follower) applyOp(o *op) error {
	if o.kind == opClaim || o.kind == opBegin {
		if err := f.adoptInfo(o.data); err != nil {
			return err
		}
	}
	switch o.kind {
	case opClaim:
		f.term = max(f.term, o.number)
		f.offer.set(false)
		f.next = nil
		if f.tree != nil {
			return f.tree.dropParts()
		}
		return nil
	case opOffer:
		f.offer.set(o.name == f.options.Name)
		return nil
	case opBegin:
		f.begun = f.logged
	case opComplete:
		f.logged -= f.begun
	}
	if f.tree != nil {
		return f.tree.applyOp(o)
	}
	switch {
	case o.kind == opBegin:
		f.term = max(f.term, o.number)
		f.next = newReplicaFiles(f.files, nextDir, f.aside)
		if err := f.clearDir(nextDir); err != nil {
			return err
		}
		return f.next.make()
	case f.next == nil:
		// The beginning of this store was trimmed, so its later operations are useless.
		return nil
	case o.kind == opComplete:
		return f.completeStore()
	case o.kind == opWrite:
		if _, known := f.next.sizes[o.name]; !known {
			// The file is not sent yet, and its parts will include this write.
			return nil
		}
	}
	return f.next.applyOp(o)
}

// sameLog returns an error if the operations show that the files follow another log, unless
// Options.Forget is set.
func (f *Follower) sameLog(ops []op) error {
	for _, o := range ops {
		if o.kind != opClaim && o.kind != opBegin {
			continue
		}
		info, err := decodeInfo(o.data)
		if err != nil {
			return err
		}
		if f.info.isOther(info) && !f.options.Forget {
			return &otherLogError{f.info.Log, info.Log}
		}
	}
	return nil
}

// adoptInfo records the identity and the versions of the log. A log that was removed and created
// again has a new identity. The store of this machine does not belong to the new log, and remains.
func (f *Follower) adoptInfo(data []byte) error {
	info, err := decodeInfo(data)
	if err != nil {
		return err
	}
	if f.info.isOther(info) {
		if !f.options.Forget {
			return &otherLogError{f.info.Log, info.Log}
		}
		f.info, f.owned = logInfo{}, true
	}
	f.info = f.info.merge(info)
	return nil
}

// An otherLogError reports a log whose identity differs from that of the files.
type otherLogError struct{ known, found string }

func (e *otherLogError) Error() string {
	return fmt.Sprintf("replica: the log has the identity %s, and the files here follow %s: the log was removed and created again, or belongs to another world; with Options.Forget, this machine follows it and quarantines the files here", e.found, e.known)
}

// Unwrap returns [persist.ErrForeign].
func (e *otherLogError) Unwrap() error { return persist.ErrForeign }

// clearDir removes a store directory, with its subdirectories first. The directory may be partly
// removed already.
func (f *Follower) clearDir(dir string) error {
	for _, sub := range []string{dir + "/" + journalDir, dir + "/" + snapshotDir, dir} {
		entries, err := f.files.ReadDir(sub)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := f.files.Remove(sub + "/" + e.Name()); err != nil {
				return err
			}
		}
		if err := disk.SyncDir(f.files, sub); err != nil {
			return err
		}
		if err := f.files.Remove(sub); err != nil {
			return err
		}
	}
	return disk.SyncDir(f.files, ".")
}

// completeStore makes the received store the current store. It first quarantines data that the old
// store has and the log may not have. When next/ is durable, one rename replaces store/ with it.
func (f *Follower) completeStore() error {
	t := f.next
	if err := t.sync(); err != nil {
		return err
	}
	if f.owned { // If f.owned is false, the log has all data of the old store.
		if err := f.aside.replace(newReplicaFiles(f.files, storeDir, f.aside), t); err != nil {
			return err
		}
		f.owned = false
	}
	// After a crash from here on, the file state may name missing files. begin() then reads the log
	// from its beginning.
	if err := f.clearDir(storeDir); err != nil {
		return err
	}
	if err := f.files.Publish(nextDir, storeDir); err != nil {
		return err
	}
	t.dir = storeDir
	f.tree, f.next, f.origin = t, nil, false
	for _, dir := range []string{".", storeDir} {
		if err := disk.SyncDir(f.files, dir); err != nil {
			return err
		}
	}
	return f.saveState()
}

// saveState makes the files durable and then writes the file state. The state excludes a store that
// is still being sent. After a restart, the entries of that store are read again.
func (f *Follower) saveState() error {
	s := &state{At: f.at[0], Trail: f.at, Logged: f.logged, Term: f.term, Info: f.info, Owner: f.owned, First: f.origin, Offer: f.offer.stands}
	if f.tree != nil {
		if err := f.tree.sync(); err != nil {
			return err
		}
		s.Files, s.Parts = maps.Clone(f.tree.sizes), maps.Clone(f.tree.parts)
	}
	f.since = 0
	return s.write(f.files)
}
