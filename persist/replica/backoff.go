package replica

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff spaces the tries of a call that fails: each pause is twice as long as the one before,
// up to a limit. Pauses vary, so that machines that fail together do not try again together.
type backoff struct{ next, limit time.Duration }

// newBackoff returns the pauses between calls of a log that fail.
func newBackoff() backoff { return backoff{2 * time.Millisecond, 500 * time.Millisecond} }

// pause waits, or until ctx ends.
func (b *backoff) pause(ctx context.Context) {
	pause(ctx, b.next/2+rand.N(b.next))
	b.next = min(2*b.next, b.limit)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
