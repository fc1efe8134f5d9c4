// Package budget bounds the memory that the stores of one process use for ticks that wait for
// their disks or logs.
//
// A process that has many worlds gives all of them one [Budget]:
//
//	memory := budget.New(1 << 30)
//	for _, world := range worlds {
//		persist.Open(ctx, world.dir, world.World, persist.Options{Budget: memory})
//	}
//
// Half of the budget is divided into equal floors, one for each share. The other half is a pool, from which
// shares that need more than their floor take what they need:
//
//	|     floor     |     floor     |     floor     |                pool                 |
//	  share 1         share 2         share 3         what any share has above its floor
//
// So a share whose log is stuck holds at most its floor and the pool, and the others go on with their
// floors. A share that holds nothing may always take one tick. So all shares together hold at most the
// budget, and one tick for each of them.
//
// A share that may hold no more waits, until it or another one has released some. The shares that wait for the
// pool are woken in the order in which they came.
package budget

import (
	"math"
	"slices"
	"sync"
)

// A Budget is a number of bytes that shares hold together. Its methods may be called from several goroutines.
// A nil Budget has no limit.
type Budget struct {
	bytes int64

	mu      sync.Mutex
	shares  []*Share // Those that are open.
	floor   int64    // What each share may hold of its own.
	used    int64    // Held by all shares.
	pool    int64    // Held by shares above their floors.
	waiting []*Share // Longest waiting first.
}

// New returns a budget of so many bytes; 1 if bytes is less than that.
func New(bytes int64) *Budget { return &Budget{bytes: max(bytes, 1)} }

// Bytes returns how many bytes the budget has.
func (b *Budget) Bytes() int64 { return b.bytes }

// Used returns how many bytes are held.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Open returns a new share, which holds nothing. wake is called when the share has waited, see [Share.Wait], and
// may hold more. Another share's Release or Close calls it, with no lock of the budget held. nil: the share
// never waits. A nil Budget returns a nil Share, whose methods do nothing.
//
// Cost: O(n) for n shares.
func (b *Budget) Open(wake func()) *Share {
	if b == nil {
		return nil
	}
	s := &Share{budget: b, wake: wake}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares = append(b.shares, s)
	b.divide()
	return s
}

// divide computes the floors again when there are more or fewer shares.
func (b *Budget) divide() {
	b.floor, b.pool = b.bytes/2/int64(max(len(b.shares), 1)), 0
	for _, s := range b.shares {
		b.pool += max(0, s.used-b.floor)
	}
}

// change makes a share hold n bytes more, or less.
func (b *Budget) change(s *Share, n int64) {
	b.pool -= max(0, s.used-b.floor)
	s.used += n
	b.used += n
	b.pool += max(0, s.used-b.floor)
}

// room returns how many bytes the pool has left.
func (b *Budget) room() int64 {
	return min(b.bytes-b.used, b.bytes-b.floor*int64(len(b.shares))-b.pool)
}

// woken removes from waiting, and returns, the shares that may hold more now.
func (b *Budget) woken() []*Share {
	if len(b.waiting) == 0 {
		return nil
	}
	var woken []*Share
	room := b.room()
	b.waiting = slices.DeleteFunc(b.waiting, func(s *Share) bool {
		fromPool := s.used > 0 && s.used >= b.floor
		if s.full() || fromPool && room <= 0 {
			return false
		}
		if fromPool {
			room -= s.wants
		}
		s.waits = false
		woken = append(woken, s)
		return true
	})
	return woken
}

// A Share is what one queue holds of a [Budget]. A queue adds what it has taken already: before, it asks whether
// the share is full. The methods of a nil Share do nothing.
type Share struct {
	budget *Budget
	wake   func()

	// Guarded by the budget's mutex:
	used   int64
	wants  int64 // Bytes that it waits for.
	waits  bool  // It is in the list of waiting shares.
	closed bool
}

// full is Full while the budget is locked.
func (s *Share) full() bool {
	b := s.budget
	return s.used > 0 && (b.used >= b.bytes || s.used >= b.floor && b.room() <= 0)
}

// Full reports whether the share may not hold more just now.
func (s *Share) Full() bool {
	if s == nil {
		return false
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return !s.closed && s.full()
}

// Wait reports whether the share is full. If it is, its function wake is called when the share may hold more;
// wants is how many bytes that will probably be.
func (s *Share) Wait(wants int64) bool {
	if s == nil {
		return false
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.closed || !s.full() {
		return false
	}
	s.wants = wants
	if !s.waits && s.wake != nil {
		s.waits = true
		b.waiting = append(b.waiting, s)
	}
	return true
}

// Add makes the share hold n bytes more, also if it is full. It returns how many bytes the share may use until
// it has its floor: what a queue may keep for later, since no other share can have it.
func (s *Share) Add(n int64) (spare int64) {
	if s == nil {
		return 0
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if !s.closed {
		s.budget.change(s, n)
	}
	return s.budget.floor - s.used
}

// Floor returns how many bytes the share may always hold, with all shares that are open now. Without a budget it is
// the largest number.
func (s *Share) Floor() int64 {
	if s == nil {
		return math.MaxInt64
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.budget.floor
}

// Release makes the share hold n bytes less, and wakes shares that waited. It returns what Add does. The caller
// must hold no lock that a function wake of any share takes.
func (s *Share) Release(n int64) (spare int64) {
	if s == nil {
		return 0
	}
	b := s.budget
	b.mu.Lock()
	if s.closed {
		b.mu.Unlock()
		return 0
	}
	b.change(s, -n)
	spare = b.floor - s.used
	woken := b.woken()
	b.mu.Unlock()
	for _, other := range woken {
		other.wake()
	}
	return spare
}

// Close releases all that the share holds, and ends it: others have larger floors. A share that is closed is
// never full.
func (s *Share) Close() {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	if s.closed {
		b.mu.Unlock()
		return
	}
	b.change(s, -s.used)
	s.closed = true
	is := func(other *Share) bool { return other == s }
	b.shares, b.waiting = slices.DeleteFunc(b.shares, is), slices.DeleteFunc(b.waiting, is)
	b.divide()
	woken := b.woken()
	b.mu.Unlock()
	for _, other := range woken {
		other.wake()
	}
}
