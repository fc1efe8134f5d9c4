package replica

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stet-ecs/stet/persist"
)

// A BoundedLog is a [Log] with a size limit. When the log is full, its Append fails with
// [ErrOperator]. An owner always leaves enough room to send all files again, because it must do
// that before it can trim the log.
type BoundedLog interface {
	Log

	// Room returns how many more bytes of entries fit into the log. Other worlds may use the same
	// room. A negative number means no limit. The answer may be stale.
	Room(ctx context.Context) (int64, error)
}

// A room tracks the free space of a sender's log.
type room struct {
	log BoundedLog // nil if the log has no limit.

	mu sync.Mutex
	// The free bytes at the last report, minus the bytes appended since. Negative means no limit.
	left  int64
	asked time.Time // Time of the last report of the log. Zero before the first report.
}

const (
	// chunkBytes is the number of bytes appended between two checks of the room.
	chunkBytes = 4 << 20

	// Longest intervals between two calls of Room. Other worlds also fill the log, so the room
	// changes.
	askLimited   = 5 * time.Second
	askUnlimited = time.Minute
	askShort     = 100 * time.Millisecond
)

// refresh calls Room if the last report is too old. Reports expire sooner if the room is less than
// need. While refresh waits for an answer, other goroutines may append.
func (r *room) refresh(ctx context.Context, need int64) {
	if r.log == nil {
		return
	}
	r.mu.Lock()
	left, asked := r.left, r.asked
	r.mu.Unlock()
	interval := askLimited
	switch {
	case left < 0:
		interval = askUnlimited
	case left < need:
		interval = askShort
	}
	if time.Since(asked) < interval {
		return
	}
	left, err := r.log.Room(ctx)
	if err != nil {
		return // The next append then returns an error with the reason.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left, r.asked = left, time.Now()
}

// addUsed records that bytes were appended.
func (r *room) addUsed(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left >= 0 {
		r.left = max(r.left-bytes, 0)
	}
}

// bytesLeft returns how many bytes fit, and whether this number is known. A negative number means
// no limit.
func (r *room) bytesLeft() (left int64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, r.log != nil && !r.asked.IsZero()
}

// fits reports whether the log has room for the given number of bytes. It returns true if the room
// is unknown.
func (r *room) fits(bytes int64) bool {
	left, known := r.bytesLeft()
	return !known || left < 0 || left >= bytes
}

// storeBytes returns the total size of the files that the log has. The caller holds s.order.
func (s *sender) storeBytes() (n int64) {
	for _, size := range s.sent {
		n += size
	}
	return n
}

// reserve returns how many bytes must remain free. The reserve has room for all files of the store,
// and for the entries that are appended while they are sent.
func (s *sender) reserve() int64 {
	store := s.storeBytes()
	return store + store/8 + chunkBytes
}

// waitForRoom waits until the log has room for a chunk and the reserve. The caller must not hold
// s.order: while waitForRoom waits, maintainLog may send all files to make room.
func (s *sender) waitForRoom() error {
	if s.room.log == nil {
		return s.failure()
	}
	defer s.monitor.setPaused(nil)
	for tries := newBackoff(); ; {
		s.order.Lock()
		reserve := s.reserve()
		s.order.Unlock()
		switch err := s.failure(); {
		case err != nil:
			return err
		case s.ctx.Err() != nil:
			return fmt.Errorf("%w: %w", persist.ErrClosed, context.Cause(s.ctx))
		case s.room.fits(reserve + chunkBytes):
			return nil
		}
		left, _ := s.room.bytesLeft()
		s.monitor.setPaused(fmt.Errorf("%w: the log has room for %d bytes, and sending all files again takes %d; raise its limit or remove other worlds", ErrOperator, left, reserve))
		s.wakeMaintenance()
		tries.pause(s.ctx)
	}
}

// wakeMaintenance makes maintainLog check the room immediately.
func (s *sender) wakeMaintenance() {
	select {
	case s.tight <- struct{}{}:
	default:
	}
}

// isLogLong reports whether sending all files again is worthwhile, because the log is much longer
// than the store. If the log has little room left, a smaller difference is enough. The caller holds
// s.order.
func (s *sender) isLogLong() bool {
	store, reserve := s.storeBytes(), s.reserve()
	switch {
	case !s.room.fits(reserve - chunkBytes/2):
		return false // The room is too small to send all files again.
	case !s.room.fits(reserve + chunkBytes):
		return s.logged > store+store/4+chunkBytes
	case !s.room.fits(2*reserve + chunkBytes):
		return s.logged > 2*store+chunkBytes
	}
	return s.logged > max(3*store, minLog)
}
