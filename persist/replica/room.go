package replica

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stet-ecs/stet/persist"
)

// A BoundedLog is a [Log] with a limit of bytes. Its Append fails with [ErrOperator] when it is
// full. An owner keeps so much of it free that all files can be sent once more, since only that
// makes room.
type BoundedLog interface {
	Log

	// Room returns how many bytes of entries the log takes until it is full. Other worlds may use
	// the same room. Negative: there is no limit. The answer may be old.
	Room(ctx context.Context) (int64, error)
}

// A room is what a sender knows of the limit of its log.
type room struct {
	log BoundedLog // nil: there is no limit.

	mu    sync.Mutex
	left  int64     // What the log said, less what was appended since. Negative: there is no limit.
	asked time.Time // When the log said so; zero: never.
}

const (
	// chunkBytes is how much is appended before the room is looked at again.
	chunkBytes = 4 << 20

	// The log is asked for its room so often at least: other worlds fill it too.
	askLimited   = 5 * time.Second
	askUnlimited = time.Minute
	askShort     = 100 * time.Millisecond
)

// refresh asks the log if that is due. A log that does not answer keeps no append waiting.
func (r *room) refresh(ctx context.Context, need int64) {
	if r.log == nil {
		return
	}
	left, known := r.get()
	due := askLimited
	switch {
	case known && left < 0:
		due = askUnlimited
	case known && left < need:
		due = askShort
	}
	r.mu.Lock()
	due -= time.Since(r.asked)
	r.mu.Unlock()
	if due > 0 {
		return
	}
	left, err := r.log.Room(ctx)
	if err != nil {
		return // Appends tell why.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.asked = left, time.Now()
}

// use notes that an entry was appended.
func (r *room) use(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left >= 0 {
		r.left = max(r.left-bytes, 0)
	}
}

// get returns how many bytes are left, negative if there is no limit, and whether that is known.
func (r *room) get() (left int64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, r.log != nil && !r.asked.IsZero()
}

// has reports whether there is room for so many bytes, or it is not known.
func (r *room) has(bytes int64) bool {
	left, known := r.get()
	return !known || left < 0 || left >= bytes
}

// storeBytes returns how many bytes the files have that the log has. The caller has the lock of
// appends.
func (s *sender) storeBytes() (n int64) {
	for _, size := range s.sent {
		n += size
	}
	return n
}

// reserve returns how many bytes are kept free: to send all files once more, and for what else is
// appended meanwhile.
func (s *sender) reserve() int64 {
	store := s.storeBytes()
	return store + store/8 + chunkBytes
}

// admit returns when the log has room for a chunk and the reserve. The caller does not have the
// lock of appends: tend sends all files meanwhile, if that makes room.
func (s *sender) admit() error {
	if s.room.log == nil {
		return s.lost()
	}
	defer s.monitor.hold(nil)
	for tries := newBackoff(); ; {
		s.order.Lock()
		reserve := s.reserve()
		s.order.Unlock()
		switch err := s.lost(); {
		case err != nil:
			return err
		case s.ctx.Err() != nil:
			return fmt.Errorf("%w: %w", persist.ErrClosed, context.Cause(s.ctx))
		case s.room.has(reserve + chunkBytes):
			return nil
		}
		left, _ := s.room.get()
		s.monitor.hold(fmt.Errorf("%w: the log has room for %d bytes, and sending all files once more takes %d; raise its limit or remove other worlds", ErrOperator, left, reserve))
		s.wake()
		tries.pause(s.ctx)
	}
}

// wake makes tend look at the room at once.
func (s *sender) wake() {
	select {
	case s.tight <- struct{}{}:
	default:
	}
}

// long reports whether sending all files once more is worth it: the log is much longer than the
// store, or has little room left and becomes shorter by it. The caller has the lock of appends.
func (s *sender) long() bool {
	store, reserve := s.storeBytes(), s.reserve()
	switch {
	case !s.room.has(reserve - chunkBytes/2):
		return false // It has no room for that.
	case !s.room.has(reserve + chunkBytes):
		return s.logged > store+store/4+chunkBytes
	case !s.room.has(2*reserve + chunkBytes):
		return s.logged > 2*store+chunkBytes
	}
	return s.logged > max(3*store, minLog)
}
