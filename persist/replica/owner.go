package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// An Owner may write a store that is in a log, until another machine claims the store.
//
// [Follower.Claim] stops the goroutine that follows, so that the files no longer change. Then it
// appends the claim directly after the last entry that the follower has read. If the log refuses
// it, the machine continues to follow. If the log accepts the claim, the file system accepts
// writes.
//
// When another machine claims the store, syncs of this owner fail. The program closes the owner,
// and calls [Follow] again.
type Owner struct {
	f          *Follower
	sender     *sender
	cancel     context.CancelCauseFunc // Stops the sender from waiting for the log.
	background sync.WaitGroup          // The goroutines of maintainLog and watch.
	// Increased before and after each trim. If it has changed during a reading of the log, a trim
	// may have removed entries meanwhile.
	trims atomic.Uint64
	term  uint64
}

// termEpochs is the number of journal epochs in one term: term 2 has the epochs from 2*termEpochs
// on. Each opening of the store starts an epoch. More than termEpochs openings by one owner would
// take epochs of the next term.
const termEpochs = 1 << 16

// Claim makes this machine the owner. The previous owner cannot confirm more ticks. After Claim, f
// no longer follows, and [Owner.Close] closes f.
//
// The first claim of a log sends the store in the directory store/, or an empty store. Claim
// returns when the log has the complete store.
//
// Errors:
//   - [ErrTaken]: the log has newer entries, such as a claim of another machine.
//   - [persist.ErrNewer]: this program cannot open the store; see [Version].
//   - [ErrUnfinished]: the log has no complete store.
//   - [ErrLogShorter]: the log has lost entries.
//   - After an error of the log itself, the log may or may not have the claim.
//
// After every error, f continues to follow, and Claim can be called again.
func (f *Follower) Claim(ctx context.Context) (*Owner, error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.closed {
		return nil, persist.ErrClosed
	}
	f.stopFollowing()
	o, err := f.claim(ctx)
	if err != nil {
		f.follow()
		return nil, err
	}
	return o, nil
}

// claim implements Claim. The goroutine that follows must be stopped. If the claim is refused, this
// machine remains a follower. After the append, this machine is the owner, even if a later step
// fails.
func (f *Follower) claim(ctx context.Context) (*Owner, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.tree == nil && f.at[0].Position > 0 && !f.origin:
		return nil, ErrUnfinished
	}
	info, err := f.info.claimed(f.options.Version)
	if err != nil {
		return nil, err
	}
	if info.Log == "" {
		info.Log = newIdentity()
	}
	term, err := f.nextTerm(ctx)
	if err != nil {
		return nil, err
	}
	s := newSender(ctx, f.log, f.at, f.end, &f.options)
	s.logged, s.info = f.logged, info
	err = s.append([]op{{kind: opClaim, name: f.options.Name, number: term, data: info.encode()}})
	var short *ShorterError
	switch {
	case errors.As(err, &short):
		return nil, short
	case errors.Is(err, persist.ErrLost):
		return nil, fmt.Errorf("%w: %w", ErrTaken, err)
	case err != nil:
		return nil, err
	}
	o := &Owner{f: f, sender: s, term: term}
	first, t := f.tree == nil, f.tree
	if first {
		if t, err = f.presentStore(); err != nil {
			return nil, err
		}
	}
	for name, size := range t.sizes { // The log has these files with the same contents.
		s.sizes[name], s.sent[name] = size, size
	}
	f.mu.Lock()
	// Record the ownership before the first write of the owner. From then on, the files may have
	// data that the log does not have. Drop unfinished files, because no owner sends the rest.
	f.at, f.end, f.term, f.info, f.owned, f.next, f.origin = s.at, s.end, term, info, true, nil, first
	f.offer.set(false)
	if err = t.dropParts(); err == nil {
		err = t.sync()
	}
	if err == nil {
		err = f.saveState()
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if first { // Until the complete store is sent, only this machine can claim: see ErrUnfinished.
		if _, err := s.sendAll(f.storeFS.FS, term); err != nil {
			return nil, err
		}
		if err := o.saveOwnerState(); err != nil {
			return nil, err
		}
	}
	// The log has the claim. From here on, the sender waits for the log until the owner is closed.
	s.ctx, o.cancel = context.WithCancelCause(context.Background())
	s.countMemory(f.options.Budget)
	f.storeFS.sender.Store(s)
	o.background.Go(func() { o.maintainLog(s.ctx) })
	o.background.Go(func() { o.watch(s.ctx) })
	return o, nil
}

// nextTerm returns a higher term than all earlier claims. If the claim sends an existing store, the
// journal of that store already has epochs. The term is then so high that its epochs are also
// higher.
func (f *Follower) nextTerm(ctx context.Context) (uint64, error) {
	term := f.term + 1
	if f.tree != nil {
		return term, nil
	}
	log, err := journal.Scan(ctx, disk.Sub(f.storeFS.FS, journalDir), 0, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return term, nil
	}
	if err != nil {
		return 0, err
	}
	return max(term, log.Epoch/termEpochs+1), log.Close()
}

// presentStore returns replicaFiles with every file in store/. The owner then sends these files to
// the log.
func (f *Follower) presentStore() (*replicaFiles, error) {
	t := newReplicaFiles(f.files, storeDir, f.aside)
	if err := t.make(); err != nil {
		return nil, err
	}
	names, err := t.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !replicated(name) {
			continue
		}
		file, err := t.writable(name)
		if err != nil {
			return nil, err
		}
		if t.sizes[name], err = file.Size(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Term returns the number of the claim. Every claim has a higher number than earlier claims.
func (o *Owner) Term() uint64 { return o.term }

// Epoch returns the lowest epoch of the ticks that the owner commits. See [persist.Options.Epoch].
func (o *Owner) Epoch() uint64 { return o.term * termEpochs }

// Position returns the position of the last entry that the owner appended.
func (o *Owner) Position() Position { return o.sender.monitor.current().Position }

// Writes returns the state version that the owner must write. See [Follower.Writes].
func (o *Owner) Writes() uint64 { return o.sender.info.Writes }

// Err returns why the owner can no longer confirm ticks. The error wraps [persist.ErrLost] if
// another machine claimed the store. Err returns nil until the owner has found such an error.
func (o *Owner) Err() error { return o.sender.failure() }

// Stuck returns why the log has not confirmed the current entry, and since when. The owner retries,
// so ticks may be confirmed later. [ClassOf] classifies the error. The error is nil if no entry
// waits, or if no call has failed yet.
func (o *Owner) Stuck() (since time.Time, err error) {
	m := o.sender.monitor.current()
	return m.StuckSince, m.Stuck
}

// Metrics returns the progress and the errors of this machine and its log.
func (o *Owner) Metrics() Metrics {
	m := o.sender.monitor.current()
	m.Term = o.term
	return m
}

// Files returns the files of the store. See [Follower.Files].
func (o *Owner) Files() disk.FS { return o.f.storeFS }

// Open opens the store for the world w. See [persist.Open]. Alternatively, let a
// [persist.Follower] of the same files open the store, with [Owner.Epoch] in its options. Such a
// follower only reads the new ticks, and not the complete store.
func (o *Owner) Open(ctx context.Context, w *ecs.World, options persist.Options) (*persist.Store, error) {
	options.Epoch, options.Budget = max(options.Epoch, o.Epoch()), cmp.Or(options.Budget, o.f.options.Budget)
	options.Files = o.f.storeFS
	return persist.Open(ctx, ".", w, options)
}

// Rebase sends all files of the store again, and trims the log before them. A new follower then
// reads these files and the later entries. While Rebase runs, ticks are confirmed and snapshots are
// finished. The owner calls Rebase by itself when the entries since the last Rebase exceed 16 MiB
// and three times the size of the store. It does so earlier in a log with little room.
//
// If ctx ends first, Rebase returns the error of ctx, and continues in the background.
func (o *Owner) Rebase(ctx context.Context) error {
	return within(ctx, func() error { return o.rebase(ctx) })
}

// rebase implements Rebase, without a time limit. It holds the mutex o.f.turn, so Close waits for
// rebase.
func (o *Owner) rebase(ctx context.Context) error {
	o.f.turn.Lock()
	defer o.f.turn.Unlock()
	if o.f.closed {
		return persist.ErrClosed
	}
	begin, err := o.sender.sendAll(o.f.storeFS.FS, o.term)
	if err != nil {
		return err
	}
	if err := o.saveOwnerState(); err != nil {
		return err
	}
	if err := o.sender.verifyLast(); err != nil {
		return err
	}
	o.trims.Add(1)
	defer o.trims.Add(1)
	// Before Trim, the log has two complete stores. After Trim, the log has one complete store.
	return o.f.log.Trim(ctx, begin)
}

// maintainLog appends heartbeats and shortens the log until ctx ends. A heartbeat is an entry
// without operations, appended after a silence. Heartbeats let followers tell an idle owner from a
// dead owner. maintainLog calls rebase() when the log has become much longer than the store.
func (o *Owner) maintainLog(ctx context.Context) {
	every := o.f.options.heartbeat()
	for {
		next, long := o.sender.heartbeat(every)
		if long && o.rebase(ctx) != nil {
			// After an error, rebase is retried later, unless the owner has lost the log.
			next = max(next, longWait)
		}
		if o.Err() != nil || ctx.Err() != nil {
			return
		}
		if every > 0 {
			// A tick may make the next heartbeat due sooner, so check again after an eighth of the
			// interval.
			next = min(next, every/8)
		}
		select {
		case <-ctx.Done():
		case <-o.sender.tight:
			pause(ctx, shortWait)
		case <-time.After(next):
		}
	}
}

// saveOwnerState writes the file state, so that this machine can later follow from the current
// entry.
//
// The state has the sizes of the files in the log. The next Follow quarantines the bytes beyond
// these sizes. saveOwnerState first syncs the files. Otherwise a crash of this machine could lose
// bytes that the log has.
func (o *Owner) saveOwnerState() error {
	o.sender.order.Lock()
	defer o.sender.order.Unlock()
	f := o.f
	f.mu.Lock()
	defer f.mu.Unlock()
	t := newReplicaFiles(f.files, storeDir, f.aside)
	maps.Copy(t.sizes, o.sender.sent)
	maps.Copy(t.parts, o.sender.coming)
	names := slices.Collect(maps.Keys(t.sizes))
	for name := range t.parts {
		names = append(names, name+tempSuffix)
	}
	for _, name := range names {
		file, err := f.files.OpenWrite(t.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			// The file was removed after the sizes were copied, so it cannot be synced. After a
			// crash, the file may exist again with fewer bytes. This machine then gets all files
			// again.
			continue
		}
		if err == nil {
			err = errors.Join(file.Sync(), file.Close())
		}
		if err != nil {
			return err
		}
	}
	f.at, f.end, f.logged, f.tree, f.origin = o.sender.at, o.sender.end, o.sender.logged, t, false
	return f.saveState()
}

// Offer records that the machine with the given name may claim the store. See [Follower.Offered].
// Close the store first, so that the journal is sealed. A machine that is down finds the offer when
// it follows again. Any other machine may also claim, including this one.
//
// If ctx ends before the log has the offer, Offer returns the error of ctx. The log may get the
// offer later.
func (o *Owner) Offer(ctx context.Context, to string) error {
	if strings.TrimSpace(to) == "" || len(to) > maxName {
		return fmt.Errorf("replica: the name of a machine must have 1 to %d bytes", maxName)
	}
	return within(ctx, func() error {
		o.sender.order.Lock()
		defer o.sender.order.Unlock()
		if err := o.sender.flushLocked(); err != nil {
			return err
		}
		return o.sender.append([]op{{kind: opOffer, name: to}})
	})
}

// within calls f, and returns its error. If ctx ends first, within returns the error of ctx, and f
// continues in the background. It cannot stop, because entries are sent in order and cannot be
// withdrawn.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the ownership. A Sync that waits for the log returns an error, and the owner confirms
// no more ticks. Close the store first. To continue as a follower, call [Follow].
func (o *Owner) Close() error {
	f := o.f
	// A running Rebase holds f.turn. This error ends it, so that Close can lock f.turn below.
	_ = o.sender.fail(persist.ErrClosed)
	o.cancel(errors.New("the owner has closed"))
	o.background.Wait()
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.closed {
		return persist.ErrClosed
	}
	f.closed = true
	f.storeFS.sender.Store(nil)
	err := o.saveOwnerState()
	o.sender.share.Close()
	f.mu.Lock()
	f.fail(persist.ErrClosed)
	f.mu.Unlock()
	return errors.Join(err, f.lock.Close())
}
