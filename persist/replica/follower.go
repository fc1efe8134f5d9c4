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
	"github.com/stet-ecs/stet/persist"
)

// Options say how a log is followed. The zero Options are useful.
type Options struct {
	// Name is what this machine is called in the log, for people and for [Owner.Offer].
	// Default: "", to which nothing can be offered.
	Name string

	// OnShorter is called when the log is found to have forgotten what it acknowledged, and what was
	// missing was appended again. It must not block. nil: nothing is called.
	OnShorter func(*ShorterError)

	// Forget follows a log that has forgotten what is known here ([ErrLogShorter]), and that others
	// may have gone on with: what it does not have is set aside. If the log has nothing at all, what lies
	// here stays, and a claim brings it in.
	Forget bool
}

// A Follower keeps a copy of a store at what the log has of it. Its methods may be called from
// several goroutines.
//
//	Log ─▶ read ─▶ take: does it continue what is here? ─▶ apply ─▶ tree, next
//	                                                         └▶ claims, offers
//
// Entries are applied to one of two trees, or to none:
//
//	tree   the store, in store/: every operation on a file
//	next   a store that is sent just now, in next/: from opBegin to opComplete, when it becomes tree
//	none   until somebody sends one
//
// Who has a tree ignores a store that is sent once more: it has the same files. Who lost the thread,
// as the log was trimmed, gives up its tree and waits for such a one.
//
// What is applied is remembered in the file state, now and then. After a crash, operations from there on
// are applied again.
type Follower struct {
	log     Log
	files   disk.FS
	lock    disk.Lock
	options Options
	gate    *gate

	turn turn               // Held by who begins or ends something.
	stop context.CancelFunc // Of the goroutine that follows.
	done chan struct{}      // Closed when it has ended.

	mu     sync.Mutex // Guards what follows, which the goroutine changes or, when it has ended, who has the turn.
	at     link       // The last entry that was applied.
	term   uint64     // The highest of all claims.
	tree   *tree      // nil: the log has no store yet, or not all of it came.
	next   *tree      // It comes just now.
	owned  bool       // Something may lie here that the log does not have.
	origin bool       // A store lies here, and the log has none yet.
	since  int        // Bytes applied since the state was written.
	aside  *aside     // Where what is not in the log goes.
	offer  offer
	grown  chan struct{} // Closed when at or err is another one.
	err    error         // Why the log is not followed any more.
	stuck  error         // Why the next entry could not be applied, when that was last tried.
	closed bool
}

const (
	storeDir = "store"
	nextDir  = "next"
	lockFile = "LOCK"

	// stateEvery is after how many bytes of entries the state is written: as much is read again
	// after a crash.
	stateEvery = 16 << 20
)

// Follow brings the store in files to where the log is, and keeps it there until Close, or until
// it is claimed. In files, which are this machine's alone, nothing else may lie; a store in the
// directory store/ may be there before, if the log is empty: whoever claims then brings it in.
//
// What an owner wrote here and the log does not have is set aside before, see [Follower.Aside]. A machine
// that is too far behind, as the log was trimmed, gets all files anew. Errors: [persist.ErrForeign] if
// files hold a store that is not this log's; [persist.ErrLocked]; [ErrLogShorter], also if the log was
// emptied and this machine does not have all of it; those of the log.
func Follow(ctx context.Context, log Log, files disk.FS, options Options) (*Follower, error) {
	lock, err := files.Lock(lockFile)
	if errors.Is(err, disk.ErrLocked) {
		return nil, fmt.Errorf("%w: another process has this copy", persist.ErrLocked)
	}
	if err != nil {
		return nil, err
	}
	f := &Follower{log: log, files: files, lock: lock, options: options, turn: newTurn(), grown: make(chan struct{})}
	f.aside = &aside{top: files}
	f.offer.set(false)
	f.gate = newGate(disk.Sub(files, storeDir))
	if err := f.begin(ctx); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f.follow()
	return f, nil
}

// Files are those of the store: to be read as long as the store is followed, and the owner's to be
// written. Before the log has a store, there is nothing in them.
func (f *Follower) Files() disk.FS { return f.gate }

// Position returns up to which entry the files have the log.
func (f *Follower) Position() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at.Position
}

// Offered returns what is closed once the owner has offered the store to this machine, see [Owner.Offer]:
// Claim then. A claim of whoever ends an offer, so ask for another channel after each. An offer outlives
// this process.
func (f *Follower) Offered() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.offer.made
}

// An offer is whether the store is offered to this machine.
type offer struct {
	stands bool
	made   chan struct{} // Closed if it is.
}

// set notes whether there is an offer.
func (o *offer) set(stands bool) {
	switch {
	case stands && !o.stands:
		close(o.made)
	case !stands && o.stands, o.made == nil:
		o.made = make(chan struct{})
	}
	o.stands = stands
}

// Ready reports whether the files have a store.
func (f *Follower) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tree != nil
}

// Aside returns the directory in which lies what was written on this machine and never confirmed,
// and how many bytes of files those are; "" if nothing was found when it began to follow.
func (f *Follower) Aside() (dir string, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.aside.dir, f.aside.bytes
}

// Err returns why the log is not followed any more, or why it is not just now: an entry that cannot be written
// here, to a disk that is full say, is tried again until it can. nil: the log is followed.
func (f *Follower) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.err, f.stuck)
}

// Wait waits until the files have the log up to a position. If ctx ends before, the error says what
// Err does, too.
func (f *Follower) Wait(ctx context.Context, p Position) error {
	for {
		f.mu.Lock()
		at, err, stuck, grown := f.at.Position, f.err, f.stuck, f.grown
		f.mu.Unlock()
		switch {
		case at >= p:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			if stuck != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), stuck)
			}
			return ctx.Err()
		case <-grown:
		}
	}
}

// Close stops following. The files are the beginning of the log that they are.
func (f *Follower) Close() error {
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.closed {
		return persist.ErrClosed
	}
	f.halt()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.fail(persist.ErrClosed)
	return errors.Join(f.save(), f.lock.Close())
}

// fail notes why the log is not followed any more, and tells those who wait.
func (f *Follower) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	f.tell()
}

// tell makes those who wait look again.
func (f *Follower) tell() {
	close(f.grown)
	f.grown = make(chan struct{})
}

// halt ends the goroutine that follows.
func (f *Follower) halt() {
	f.stop()
	<-f.done
}

// follow begins to follow in a goroutine. Three errors say that the log or the files are not what
// they were, and end it; any other, of the network say, may pass, and reading begins again
// where it was.
func (f *Follower) follow() {
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.done = stop, make(chan struct{})
	done := f.done
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := f.read(ctx, nil)
			f.mu.Lock()
			lasting := errors.Is(err, errGap) || errors.Is(err, errEntry) || errors.Is(err, ErrLogShorter) || errors.Is(err, persist.ErrNewer)
			if lasting {
				f.fail(err)
			}
			f.mu.Unlock()
			if lasting {
				return
			}
			pause(ctx, 20*time.Millisecond)
		}
	}()
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// errReached ends reading where it was to end.
var errReached = errors.New("reached")

// read applies entries as they come. If upto is given, it ends with errReached there. It always ends with
// an error, and may be called again: it goes on behind the last entry that was applied whole.
func (f *Follower) read(ctx context.Context, upto *Position) error {
	if upto != nil && f.at.Position >= *upto {
		return errReached
	}
	for e, err := range f.log.Entries(ctx, f.at.Position) {
		if err != nil {
			return err
		}
		err := f.take(e)
		f.mu.Lock()
		if f.stuck = err; err != nil {
			f.tell()
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

// take applies an entry. It names the one that it continues, which must be the last that was
// applied. If it names that position or an older one, the log has forgotten what is here; if a
// newer one, entries were trimmed that were not read, and the files are of no use any more:
// take passes over what follows until an owner sends all files again.
func (f *Follower) take(e Entry) error {
	h, ops, err := decodeEntry(e.Data)
	if err != nil {
		return fmt.Errorf("%w: at %d", err, e.Position)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tree != nil || f.next != nil {
		switch {
		case h.before.Position == f.at.Position && h.before.ID == f.at.ID:
		case h.before.Position <= f.at.Position:
			return &ShorterError{Known: f.at.Position, Last: h.before.Position}
		default:
			f.tree, f.next = nil, nil // What is between was trimmed.
		}
	}
	for i := range ops {
		if err := f.apply(&ops[i]); err != nil {
			return err // The entry is taken once more, from its first operation on.
		}
	}
	f.at = link{e.Position, h.id}
	if f.since += len(e.Data); f.since >= stateEvery {
		if err := f.save(); err != nil {
			return err
		}
	}
	f.tell()
	return nil
}

// apply does what an operation says, to the store, or to the one that comes.
func (f *Follower) apply(o *op) error {
	switch o.kind {
	case opClaim: // What the owner before was sending has no end.
		f.term = max(f.term, o.number)
		f.offer.set(false)
		f.next = nil // Nobody goes on sending it,
		if f.tree != nil {
			return f.tree.drop() // nor these.
		}
		return nil
	case opOffer:
		f.offer.set(o.name == f.options.Name)
		return nil
	}
	if f.tree != nil {
		return f.tree.apply(o)
	}
	switch {
	case o.kind == opBegin:
		f.term = max(f.term, o.number)
		f.next = newTree(f.files, nextDir, f.aside)
		if err := f.clear(nextDir); err != nil {
			return err
		}
		return f.next.make()
	case f.next == nil:
		return nil // It belongs to what was trimmed.
	case o.kind == opComplete:
		return f.complete()
	case o.kind == opWrite: // An owner goes on writing to files that it has not sent to their end.
		if _, known := f.next.sizes[o.name]; !known {
			return nil // What is sent of the file later has it.
		}
	}
	return f.next.apply(o)
}

// clear removes a directory that has what a store has, from the inside out. It may be half removed.
func (f *Follower) clear(dir string) error {
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

// complete makes what came the store. What was there before is set aside if the log may not have all
// of it. The directory next/ takes the place of store/ by one rename, when all of it is durable.
func (f *Follower) complete() error {
	t := f.next
	if err := t.sync(); err != nil {
		return err
	}
	if f.owned { // Else all that lies there is in the log.
		old := newTree(f.files, storeDir, f.aside)
		for _, dir := range []string{journalDir, snapshotDir} {
			entries, err := f.files.ReadDir(old.path(dir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, e := range entries {
				if err := f.aside.move(old, dir+"/"+e.Name()); err != nil {
					return err
				}
			}
		}
		f.owned = false
	}
	// A crash from here on may leave a state that names files which are not there: begin finds that
	// out and asks for all anew.
	if err := f.clear(storeDir); err != nil {
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
	return f.save()
}

// save writes what is known, once it is durable. Of a store that is coming nothing is: it is asked for
// from its beginning.
func (f *Follower) save() error {
	s := &state{At: f.at, Term: f.term, Owner: f.owned, First: f.origin, Offer: f.offer.stands}
	if f.tree != nil {
		if err := f.tree.sync(); err != nil {
			return err
		}
		s.Files, s.Parts = maps.Clone(f.tree.sizes), maps.Clone(f.tree.parts)
	}
	f.since = 0
	return s.write(f.files)
}

// begin brings the files to where the log is now. What lies here decides how:
//
//	no state, no store            read from the beginning
//	no state, a store             the log must be empty: the store is to be brought in
//	state damaged                 as if nothing was known: read from the beginning; all here is set aside
//	state newer than the log      refused, or with Forget as if nothing was known
//	log emptied                   go on behind a state that has all of it; else refused, or with Forget
//	                              the store here is to be brought in
//	state                         go on behind it, if its entry is that of the log
//	files not as the state says   read from the beginning; all here is set aside
func (f *Follower) begin(ctx context.Context) error {
	s, err := readState(f.files)
	damaged := errors.Is(err, errState)
	if err != nil && !damaged {
		return err
	}
	first, last, err := f.log.Bounds(ctx)
	if err != nil {
		return err
	}
	lies, err := f.lies()
	switch {
	case err != nil:
		return err
	case s == nil && lies && last > 0 && !damaged:
		return fmt.Errorf("%w: %s holds a store that is not of this log", persist.ErrForeign, storeDir)
	case first == 0 && last > 0 && (s == nil || s.Files == nil || s.At.Position < last):
		if !f.options.Forget {
			return fmt.Errorf("%w: it ends at %d, has no entry any more, and here is not all that it had; let a machine that has all of it claim it and send its store with Rebase", ErrLogShorter, last)
		}
		f.at, f.owned, f.origin = link{Position: last}, lies, lies
	case s == nil:
		f.owned, f.origin = lies && damaged, lies && last == 0
	case last < s.At.Position && !f.options.Forget:
		return &ShorterError{Known: s.At.Position, Last: last}
	case last < s.At.Position:
		f.owned = true
	default:
		err = f.remember(ctx, s, first)
	}
	if err == nil {
		err = f.reach(ctx, last)
	}
	if errors.Is(err, errGap) { // The files are not what they were.
		f.tree, f.next, f.at, f.owned = nil, nil, link{}, true
		err = f.reach(ctx, last)
	}
	if err != nil {
		return err
	}
	return f.save()
}

// lies reports whether there is something of a store.
func (f *Follower) lies() (bool, error) {
	for _, dir := range []string{journalDir, snapshotDir} {
		entries, err := f.files.ReadDir(storeDir + "/" + dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if len(entries) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// remember goes on from what is remembered, unless the log was trimmed behind it.
func (f *Follower) remember(ctx context.Context, s *state, first Position) error {
	f.term, f.owned, f.origin = s.Term, s.Owner, s.First
	if s.Files == nil || first > s.At.Position+1 {
		return nil // All is asked for anew: f.at is before the first entry.
	}
	if s.At.Position > 0 && first > 0 && first <= s.At.Position { // It must be the entry that is known.
		// Only the first entry is looked at: that of the state, or the one behind it, which names it.
		for e, err := range f.log.Entries(ctx, s.At.Position-1) {
			if err != nil {
				return err
			}
			h, _, err := decodeEntry(e.Data)
			switch {
			case err != nil:
				return err
			case e.Position == s.At.Position && h.id == s.At.ID, h.before == s.At:
			case h.before.Position > s.At.Position:
				return nil // It was trimmed since its bounds were asked for.
			case f.options.Forget:
				f.owned = true
				return nil
			default:
				return &ShorterError{Known: s.At.Position, Last: h.before.Position}
			}
			break
		}
	}
	f.offer.set(s.Offer)
	f.at, f.tree = s.At, newTree(f.files, storeDir, f.aside)
	maps.Copy(f.tree.sizes, s.Files)
	maps.Copy(f.tree.parts, s.Parts)
	return nil
}

// reach applies the entries up to last, and sets aside what the log does not have. Without a tree there
// is nothing to compare with yet: complete sets aside all of it.
func (f *Follower) reach(ctx context.Context, last Position) error {
	if err := f.read(ctx, &last); !errors.Is(err, errReached) {
		return err
	}
	if f.tree == nil {
		return nil
	}
	if err := f.tree.tidy(); err != nil {
		return err
	}
	f.owned = false
	return nil
}
