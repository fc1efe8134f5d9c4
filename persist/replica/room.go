package replica

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stet-ecs/stet/persist"
)

// A BoundedLog is a [Log] with a size limit. When the log is full, its Append fails with
// [ErrOperator]. An owner always keeps enough room to send all files again, because only that
// allows it to trim the log.
type BoundedLog interface {
	Log

	// Room returns how many bytes of entries fit into the log until it is full. Other worlds may
	// use the same room. A negative number means no limit. The answer may be stale.
	Room(ctx context.Context) (int64, error)
}

// A room tracks the free space of a sender's log.
type room struct {
	log BoundedLog // nil if the log has no limit.

	mu sync.Mutex
	// The last answer of the log, less the bytes appended since. Negative means no limit.
	left  int64
	asked time.Time // Time of that answer. Zero if there is none.
}

const (
	// chunkBytes is how much is appended between two checks of the room.
	chunkBytes = 4 << 20

	// Longest intervals between two calls of Room. Other worlds fill the log too.
	askLimited   = 5 * time.Second
	askUnlimited = time.Minute
	askShort     = 100 * time.Millisecond
)

// refresh calls Room if that is due. It does not block appends while the log does not answer.
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
		return // The error of the next append tells why.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.asked = left, time.Now()
}

// use records that bytes were appended.
func (r *room) use(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left >= 0 {
		r.left = max(r.left-bytes, 0)
	}
}

// get returns how many bytes are left, and whether that is known. A negative number means no limit.
func (r *room) get() (left int64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, r.log != nil && !r.asked.IsZero()
}

// has reports whether the log has room for so many bytes. It returns true if the room is unknown.
func (r *room) has(bytes int64) bool {
	left, known := r.get()
	return !known || left < 0 || left >= bytes
}

// storeBytes returns the total size of the files that the log has. The caller holds order.
func (s *sender) storeBytes() (n int64) {
	for _, size := range s.sent {
		n += size
	}
	return n
}

// reserve returns how many bytes must stay free. All files must fit in once more, with the entries
// that are appended meanwhile.
func (s *sender) reserve() int64 {
	store := s.storeBytes()
	return store + store/8 + chunkBytes
}

// admit waits until the log has room for a chunk and the reserve. The caller must not hold order,
// because tend may send all files meanwhile to make room.
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

// wake makes tend check the room at once.
func (s *sender) wake() {
	select {
	case s.tight <- struct{}{}:
	default:
	}
}

// long reports whether sending all files again is worthwhile. It is if the log is much longer than
// the store. It also is if the log has little room left, and would become shorter. The caller holds
// order.
func (s *sender) long() bool {
	store, reserve := s.storeBytes(), s.reserve()
	switch {
	case !s.room.has(reserve - chunkBytes/2):
		return false // All files do not fit into the log again.
	case !s.room.has(reserve + chunkBytes):
		return s.logged > store+store/4+chunkBytes
	case !s.room.has(2*reserve + chunkBytes):
		return s.logged > 2*store+chunkBytes
	}
	return s.logged > max(3*store, minLog)
}
