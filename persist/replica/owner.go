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
	"sync/atomic"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// ErrUnfinished reports a log with a store that was not sent to its end. Only the machine that has
// the store can claim it.
var ErrUnfinished = errors.New("replica: the store was not sent whole; claim it where it lies")

// An Owner may write a store that the log has, until another machine claims it.
//
// What becomes of a machine:
//
//	Follow ─▶ follows ──Claim──▶ owns ──Close──▶ Follow again
//	             ▲         │       └── lost: its syncs fail; Close
//	             └─refused─┘
//
// A claim ends the goroutine that follows, so that the files stand still, and appends the claim
// behind the entry that they have. If the log takes it, no other machine has appended anything in
// between. Only then a sender is let through the gate.
type Owner struct {
	f       *Follower
	sender  *sender
	cancel  context.CancelCauseFunc // Ends the sender's waiting for the log.
	done    chan struct{}           // Closed when the goroutine that tends the log has ended.
	watched chan struct{}           // Closed when the one that reads it back has.
	trims   atomic.Uint64           // How often the log was trimmed, begun and done.
	term    uint64
}

// termEpochs is how many epochs of a journal belong to one term. An epoch is an opening of the
// store: an owner that opens it more often than that would come into those of the next term.
const termEpochs = 1 << 16

// Claim makes this machine the owner: it appends a claim where the files of f have the log. From
// then on the owner before cannot confirm another tick.
//
// Errors: [ErrTaken] if the log has more by now, which may be another machine's claim;
// [persist.ErrNewer] if this program cannot open the store, see [Version]; [ErrUnfinished];
// [ErrLogShorter] if the log has less. After another error, which is of the log, the store may be
// claimed or not. f goes on following after all of them, and the claim can be tried again.
//
// The first claim of an empty log brings in the store that lies in the directory store/, or an
// empty one. It returns when all of it was sent.
//
// f is the owner's from then on.
func (f *Follower) Claim(ctx context.Context) (*Owner, error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.closed {
		return nil, persist.ErrClosed
	}
	f.halt()
	o, err := f.claim(ctx)
	if err != nil {
		f.follow()
		return nil, err
	}
	return o, nil
}

// claim is Claim while the goroutine that follows is halted. Up to the append nothing has changed,
// and the claim may be refused. Behind it this machine has the store, also where an error keeps it
// from using it.
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
		if t, err = f.present(); err != nil {
			return nil, err
		}
	}
	for name, size := range t.sizes { // What the files have is what the log has: so they follow.
		s.sizes[name], s.sent[name] = size, size
	}
	f.mu.Lock()
	// That it is owned must be remembered before the first write of the owner: after a crash, what
	// lies here may be more than the log has. Parts of files have no sender any more.
	f.at, f.end, f.term, f.info, f.owned, f.next, f.origin = s.at, s.end, term, info, true, nil, first
	f.offer.set(false)
	if err = t.drop(); err == nil {
		err = t.sync()
	}
	if err == nil {
		err = f.save()
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if first { // Until all is sent only this machine can claim: see ErrUnfinished.
		if _, err := s.all(f.gate.FS, term); err != nil {
			return nil, err
		}
		if err := o.remember(); err != nil {
			return nil, err
		}
	}
	// From here on the sender waits as long as there is an owner, not as long as the claim takes.
	s.ctx, o.cancel = context.WithCancelCause(context.Background())
	s.countMemory(f.options.Budget)
	f.gate.sender.Store(s)
	o.done = make(chan struct{})
	go o.tend(s.ctx)
	o.watched = make(chan struct{})
	go o.watch(s.ctx)
	return o, nil
}

// nextTerm returns the term of a claim: behind those of all claims, and of the epochs that the
// journal had before it came into the log.
func (f *Follower) nextTerm(ctx context.Context) (uint64, error) {
	term := f.term + 1
	if f.tree != nil {
		return term, nil
	}
	log, err := journal.Scan(ctx, disk.Sub(f.gate.FS, journalDir), 0, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return term, nil
	}
	if err != nil {
		return 0, err
	}
	return max(term, log.Epoch/termEpochs+1), log.Close()
}

// present returns the store that lies here, all of it, as if the log had it: its files are to be
// sent.
func (f *Follower) present() (*tree, error) {
	t := newTree(f.files, storeDir, f.aside)
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

// Term returns the number of the claim: each has a higher one.
func (o *Owner) Term() uint64 { return o.term }

// Epoch returns the least epoch of the ticks that the owner commits, see [persist.Options.Epoch].
func (o *Owner) Epoch() uint64 { return o.term * termEpochs }

// Position returns the position of the last entry that the owner appended.
func (o *Owner) Position() Position { return o.sender.monitor.now().Position }

// Writes returns which state of the world the owner is to write, see [Follower.Writes].
func (o *Owner) Writes() uint64 { return o.sender.info.Writes }

// Err returns why nothing is confirmed any more: an error wrapping [persist.ErrLost], if another
// machine claimed the store. nil: nothing is known of that.
func (o *Owner) Err() error { return o.sender.lost() }

// Stuck returns why the log has not confirmed the entry that is appended just now, and since when.
// The owner tries again, so ticks may be confirmed later. [ClassOf] tells what helps. nil: nothing
// waits, or the log has only not answered yet.
func (o *Owner) Stuck() (since time.Time, err error) {
	m := o.sender.monitor.now()
	return m.StuckSince, m.Stuck
}

// Metrics returns how the machine and the log get on.
func (o *Owner) Metrics() Metrics {
	m := o.sender.monitor.now()
	m.Term = o.term
	return m
}

// Files are those of the store, see [Follower.Files].
func (o *Owner) Files() disk.FS { return o.f.gate }

// Open makes the store keep w, see [persist.OpenFS]. A [persist.Follower] of the same files can be
// made the owner's instead, with [Owner.Epoch] in its options: it reads nothing again.
func (o *Owner) Open(ctx context.Context, w *ecs.World, options persist.Options) (*persist.Store, error) {
	options.Epoch, options.Budget = max(options.Epoch, o.Epoch()), cmp.Or(options.Budget, o.f.options.Budget)
	return persist.OpenFS(ctx, o.f.gate, w, options)
}

// Rebase sends all files of the store once more, and trims the log before them: a new follower
// reads no more than the store has, and what came since. Ticks are confirmed, and snapshots
// finished, meanwhile. The owner does so by itself when three times as much was appended as the
// store has, and 16 MiB.
//
// If ctx ends before, so does Rebase, with its error, and what it began goes on.
func (o *Owner) Rebase(ctx context.Context) error {
	return within(ctx, func() error { return o.rebase(ctx) })
}

// rebase is Rebase for as long as it takes. It has the turn of the follower, so that Close waits
// for it.
func (o *Owner) rebase(ctx context.Context) error {
	o.f.turn.Lock()
	defer o.f.turn.Unlock()
	if o.f.closed {
		return persist.ErrClosed
	}
	begin, err := o.sender.all(o.f.gate.FS, o.term)
	if err != nil {
		return err
	}
	if err := o.remember(); err != nil {
		return err
	}
	if err := o.sender.holds(); err != nil {
		return err
	}
	o.trims.Add(1)
	defer o.trims.Add(1)
	return o.f.log.Trim(ctx, begin) // The log has two whole stores until then, and never none.
}

// tend keeps the log alive and short until ctx ends. It appends an entry without operations after
// each silence, so that followers can tell an owner without ticks from one that is gone. It sends
// all files once more when much more than that was appended.
func (o *Owner) tend(ctx context.Context) {
	defer close(o.done)
	every := o.f.options.heartbeat()
	for {
		next, long := o.sender.beat(every)
		if long && o.rebase(ctx) != nil {
			// It is tried again when the log has grown on, unless the owner has lost it.
			next = max(next, longWait)
		}
		if o.Err() != nil || ctx.Err() != nil {
			return
		}
		if every > 0 {
			next = min(next, every/8) // A tick meanwhile makes the next entry due sooner.
		}
		select {
		case <-ctx.Done():
		case <-o.sender.tight:
			pause(ctx, shortWait)
		case <-time.After(next):
		}
	}
}

// remember writes what the log has, so that this machine reads on from here when it follows again.
//
// The sizes are those that the log has; the files may have more, which is cut off and set aside
// then, as has a file that comes, of which all is here. They are synced, as an entry may have what
// was written and not synced here.
func (o *Owner) remember() error {
	o.sender.order.Lock()
	defer o.sender.order.Unlock()
	f := o.f
	f.mu.Lock()
	defer f.mu.Unlock()
	t := newTree(f.files, storeDir, f.aside)
	maps.Copy(t.sizes, o.sender.sent)
	maps.Copy(t.parts, o.sender.coming)
	names := slices.Collect(maps.Keys(t.sizes))
	for name := range t.parts {
		names = append(names, name+tempSuffix)
	}
	for _, name := range names {
		file, err := f.files.OpenWrite(t.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was removed. The log learns of it, or this machine gets all files again.
		}
		if err == nil {
			err = errors.Join(file.Sync(), file.Close())
		}
		if err != nil {
			return err
		}
	}
	f.at, f.end, f.logged, f.tree, f.origin = o.sender.at, o.sender.end, o.sender.logged, t, false
	return f.save()
}

// Offer tells a machine that follows, by its name, that it may claim the store: see
// [Follower.Offered]. Close the store before, so that the journal is sealed. A machine that is down
// learns of it when it follows again; if it never does, any other may claim, and so may this one.
// If ctx ends before the log has the offer, so does Offer, with its error, and the machine may be
// told yet.
func (o *Owner) Offer(ctx context.Context, to string) error {
	if strings.TrimSpace(to) == "" || len(to) > maxName {
		return fmt.Errorf("replica: a machine has a name of 1 to %d bytes", maxName)
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

// within returns what f does or, if that is earlier, the error of ctx when it ends; f goes on then:
// what an owner sends is sent in its order, and is not taken back.
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

// Close ends the ownership: a Sync that waits for the log ends with an error, and nothing is
// confirmed any more. Close the store before; [Follow] the log again to see how it goes on.
func (o *Owner) Close() error {
	f := o.f
	_ = o.sender.fail(persist.ErrClosed) // First: a Rebase that has the turn ends by it.
	o.cancel(errors.New("the owner has closed"))
	<-o.done
	<-o.watched
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.closed {
		return persist.ErrClosed
	}
	f.closed = true
	f.gate.sender.Store(nil)
	err := o.remember()
	o.sender.share.Close()
	f.mu.Lock()
	f.fail(persist.ErrClosed)
	f.mu.Unlock()
	return errors.Join(err, f.lock.Close())
}
