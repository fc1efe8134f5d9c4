// Package replicatest has tests for engines that implement [replica.Log]. It also has a log that
// fails on request, to test the users of a log.
package replicatest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"

	"github.com/stet-ecs/stet/persist/replica"
)

// A Log is a log in memory. Several machines use it, each by its own [Link].
type Log struct {
	replica.Memory

	mu     sync.Mutex
	limit  int64            // See Limit. 0 means no limit.
	hidden replica.Position // See Hide.
	// Appends that failed for their callers, and that Settle executes.
	late     []func()
	restarts int // How often the servers were restarted.
}

// Forget removes the last n entries, which were acknowledged. It simulates a restart of servers
// that lose entries. After Forget, the next append by each link fails.
func (l *Log) Forget(n int) {
	l.Memory.Forget(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restarts++
}

// Hide makes all links skip the entry at a position, although the log has it. Only the position of
// the last call is hidden.
func (l *Log) Hide(p replica.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden = p
}

// hides reports whether all links skip the entry at a position.
func (l *Log) hides(p replica.Position) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p == l.hidden && p > 0
}

// Limit makes the log full when its entries have the given number of bytes. 0 means no limit.
func (l *Log) Limit(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = bytes
}

// room returns how many more bytes of entries fit into the log. It is negative if there is no
// limit.
func (l *Log) room() int64 {
	l.mu.Lock()
	left := l.limit
	l.mu.Unlock()
	if left == 0 {
		return -1
	}
	ctx := context.Background()
	for e, _ := l.Memory.Next(ctx, 0); e.Position > 0; e, _ = l.Memory.Next(ctx, e.Position) {
		left -= int64(len(e.Data))
	}
	return max(left, 0)
}

// Faults are the probabilities of faults of a link, from 0 to 1 for each call.
type Faults struct {
	Refused float64 // The call fails and does nothing.
	// The log executes the append, but the caller gets an error.
	Lost float64
	Late float64 // The caller gets an error, and the log executes the append later.
	// Bounds and Next miss the last entries, like a server that is cut off from all other servers.
	Stale float64
	Hole  float64 // Entries skips an entry that the log has.
}

// Link returns a link to the log for one machine. The seed determines the faults.
func (l *Log) Link(seed uint64) *Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &Link{log: l, rng: rand.New(rand.NewPCG(seed, 17)), cut: make(chan struct{}), restarts: l.restarts}
}

// Settle executes the late appends.
func (l *Log) Settle() {
	l.mu.Lock()
	late := l.late
	l.late = nil
	l.mu.Unlock()
	for _, f := range late {
		f()
	}
}

// A Link is the connection of one machine to the log.
type Link struct {
	log *Log

	mu      sync.Mutex
	rng     *rand.Rand
	faults  Faults
	cut     chan struct{}    // Closed while the link is broken.
	broken  error            // The error of all calls, or nil if the link works.
	left    int              // The number of appends until the link is cut. 0 or less means never.
	hidden  replica.Position // See Link.Hide.
	damaged replica.Position // See Link.Damage.

	restarts int // Restarts of the servers that this link has noticed.
}

// Fail sets the probabilities of faults.
func (l *Link) Fail(f Faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = f
}

// Cut breaks or repairs the link.
func (l *Link) Cut(cut bool) {
	if cut {
		l.Break(errCut)
	} else {
		l.Break(nil)
	}
}

// Break makes every call return the given error. A nil error repairs the link.
func (l *Link) Break(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil && l.broken == nil:
		close(l.cut)
	case err == nil && l.broken != nil:
		l.cut = make(chan struct{})
	}
	l.broken = err
}

// Hide makes Entries skip the entry at a position. Only the position of the last call is hidden.
func (l *Link) Hide(p replica.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden = p
}

// Damage makes Entries yield the entry at a position with a flipped bit. Only the position of the
// last call is damaged.
func (l *Link) Damage(p replica.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged = p
}

// copy returns a copy of an entry. The copy has a flipped bit if Damage selected its position.
func (l *Link) copy(e replica.Entry) replica.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Position == l.damaged && len(e.Data) > 0 {
		e.Data = append([]byte(nil), e.Data...)
		e.Data[len(e.Data)/2] ^= 1
	}
	return e
}

// hides reports whether Entries skips an entry.
func (l *Link) hides(p replica.Position) bool {
	if l.log.hides(p) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return p == l.hidden || l.faults.Hole > 0 && l.rng.Float64() < l.faults.Hole
}

// restarted reports whether the servers were restarted since the last call of restarted.
func (l *Link) restarted() bool {
	l.log.mu.Lock()
	now := l.log.restarts
	l.log.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.restarts
	l.restarts = now
	return now != before
}

// CutAfter cuts the link after n appends.
func (l *Link) CutAfter(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = n
}

// count counts an append, and cuts the link after the last append that CutAfter allows.
func (l *Link) count() {
	l.mu.Lock()
	l.left--
	now := l.left == 0
	l.mu.Unlock()
	if now {
		l.Cut(true)
	}
}

// state returns the error of a broken link, a channel that is closed when the link breaks, a random
// number and the faults.
func (l *Link) state() (broken error, cut <-chan struct{}, draw float64, f Faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken, l.cut, l.rng.Float64(), l.faults
}

var errCut = fmt.Errorf("the link is cut: %w", replica.ErrUnknown)

// Append implements [replica.Log].
func (l *Link) Append(ctx context.Context, after replica.Position, entry []byte) (replica.Position, error) {
	broken, _, draw, f := l.state()
	defer l.count()
	switch {
	case broken != nil:
		return 0, broken
	case l.restarted(), draw < f.Refused:
		return 0, errCut
	case draw < f.Refused+f.Lost:
		_, _ = l.log.Append(ctx, after, entry)
		return 0, errCut
	case draw < f.Refused+f.Lost+f.Late:
		entry = append([]byte(nil), entry...)
		l.log.mu.Lock()
		defer l.log.mu.Unlock()
		l.log.late = append(l.log.late, func() { _, _ = l.log.Append(context.Background(), after, entry) })
		return 0, errCut
	}
	if room := l.log.room(); room >= 0 && room < int64(len(entry)) {
		return 0, fmt.Errorf("%w: the log is full", replica.ErrOperator)
	}
	return l.log.Append(ctx, after, entry)
}

// Room implements [replica.BoundedLog].
func (l *Link) Room(ctx context.Context) (int64, error) {
	if broken, _, draw, f := l.state(); broken != nil || draw < f.Refused {
		return 0, cmp.Or(broken, errCut)
	}
	return l.log.room(), ctx.Err()
}

// Entries implements [replica.Log].
func (l *Link) Entries(ctx context.Context, after replica.Position) iter.Seq2[replica.Entry, error] {
	return func(yield func(replica.Entry, error) bool) {
		broken, cut, _, _ := l.state()
		if broken != nil {
			yield(replica.Entry{}, broken)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-cut:
				broken, _, _, _ := l.state()
				cancel(cmp.Or(broken, errCut))
			case <-ended:
			}
		}()
		for e, err := range l.log.Entries(ctx, after) {
			if err != nil {
				err = context.Cause(ctx)
			} else if l.hides(e.Position) {
				continue
			}
			if !yield(l.copy(e), err) {
				return
			}
		}
	}
}

// Next implements [replica.Log].
func (l *Link) Next(ctx context.Context, after replica.Position) (replica.Entry, error) {
	_, last, err := l.Bounds(ctx)
	if err != nil {
		return replica.Entry{}, err
	}
	e, err := l.log.Next(ctx, after)
	if err == nil && l.log.hides(e.Position) {
		e, err = l.log.Next(ctx, e.Position)
	}
	if e.Position > last {
		e = replica.Entry{}
	}
	return e, err
}

// Bounds implements [replica.Log].
func (l *Link) Bounds(ctx context.Context) (first, last replica.Position, err error) {
	broken, _, draw, f := l.state()
	if broken != nil || draw < f.Refused {
		return 0, 0, cmp.Or(broken, errCut)
	}
	first, last, err = l.log.Bounds(ctx)
	if err == nil && l.log.hides(first) {
		e, _ := l.log.Next(ctx, first)
		first = e.Position
	}
	if draw >= f.Refused && draw < f.Refused+f.Stale {
		last -= min(last, 1+replica.Position(draw*1e6)%3)
		first = min(first, last)
	}
	return first, last, err
}

// Trim implements [replica.Log].
func (l *Link) Trim(ctx context.Context, before replica.Position) error {
	if broken, _, draw, f := l.state(); broken != nil || draw < f.Refused {
		return cmp.Or(broken, errCut)
	}
	return l.log.Trim(ctx, before)
}
