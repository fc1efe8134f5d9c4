// Package budget bounds the memory for ticks that wait to be written. The bound is for all stores
// of a process together.
//
// A process with many worlds gives all of them one [Budget]:
//
//	memory := budget.New(1 << 30)
//	for _, world := range worlds {
//		persist.Open(ctx, world.dir, world.World, persist.Options{Budget: memory})
//	}
//
// Half of the budget is divided into equal floors, one for each share. The other half is a pool. A
// share that needs more than its floor takes bytes from the pool:
//
//	|     floor     |     floor     |     floor     |                pool                 |
//	  share 1         share 2         share 3         what any share has above its floor
//
// If the disk of a store is stuck, its share holds at most its floor and the whole pool. The other
// shares continue with their floors. A share that holds no bytes may always take one tick. So all
// shares together hold at most the budget and one tick each.
//
// A full share waits until it or another share releases bytes. Shares that wait for the pool are
// woken in the order in which they began to wait.
package budget

import (
	"math"
	"slices"
	"sync"
)

// A Budget limits the total bytes of several shares. Its methods may be called from several
// goroutines. A nil Budget has no limit.
type Budget struct {
	bytes int64

	mu      sync.Mutex
	shares  []*Share // Open shares.
	floor   int64    // Bytes that each share may hold without the pool.
	used    int64    // Bytes held by all shares.
	pool    int64    // Bytes held by shares above their floors.
	waiting []*Share // Waiting shares. The share that waits longest is first.
}

// New returns a budget of this many bytes, at least 1.
func New(bytes int64) *Budget { return &Budget{bytes: max(bytes, 1)} }

// Bytes returns the size of the budget in bytes.
func (b *Budget) Bytes() int64 { return b.bytes }

// Used returns the number of bytes that all shares hold together.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Open returns a new, empty share. If [Share.Wait] returns true, the budget calls wake later, when
// the share may hold more. The call runs in the goroutine that releases or closes another share,
// with the budget unlocked. If wake is nil, there is no call. A nil Budget returns a nil Share,
// whose methods do nothing.
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

// divide recomputes the floors after the number of shares has changed.
func (b *Budget) divide() {
	b.floor, b.pool = b.bytes/2/int64(max(len(b.shares), 1)), 0
	for _, s := range b.shares {
		b.pool += max(0, s.used-b.floor)
	}
}

// change adds n bytes to a share; n may be negative.
func (b *Budget) change(s *Share, n int64) {
	b.pool -= max(0, s.used-b.floor)
	s.used += n
	b.used += n
	b.pool += max(0, s.used-b.floor)
}

// room returns how many bytes are left in the pool.
func (b *Budget) room() int64 {
	return min(b.bytes-b.used, b.bytes-b.floor*int64(len(b.shares))-b.pool)
}

// woken returns the waiting shares that may now hold more, and removes them from the list waiting.
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

// A Share is the part of a [Budget] that one queue holds. A queue checks whether its share is full
// before it accepts an item, and adds the item's bytes afterwards. The methods of a nil Share do
// nothing.
type Share struct {
	budget *Budget
	wake   func()

	// The budget's mutex guards the fields below.
	used   int64
	wants  int64 // Bytes that the share waits for.
	waits  bool  // The share is in the list of waiting shares.
	closed bool
}

// full implements Full. The caller has locked the budget.
func (s *Share) full() bool {
	b := s.budget
	return s.used > 0 && (b.used >= b.bytes || s.used >= b.floor && b.room() <= 0)
}

// Full reports whether the share may not hold more at the moment.
func (s *Share) Full() bool {
	if s == nil {
		return false
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return !s.closed && s.full()
}

// Wait reports whether the share is full. If it is, the budget calls wake when the share may hold
// more. The parameter wants is an estimate of the bytes that the share will add then.
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

// Add adds n bytes to the share, even if the share is full. It returns how many bytes the share is
// below its floor, or 0 if it is above. A queue may keep free buffers of that size, because no
// other share can use these bytes.
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

// Floor returns how many bytes the share may always hold, given the shares that are open now.
// Without a budget it returns math.MaxInt64.
func (s *Share) Floor() int64 {
	if s == nil {
		return math.MaxInt64
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.budget.floor
}

// Release removes n bytes from the share and wakes waiting shares. It returns the same value as
// Add. The caller must not hold a lock that the wake function of any share takes.
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

// Close releases all bytes of the share and ends it, so the floors of other shares grow. A closed
// share is never full.
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
