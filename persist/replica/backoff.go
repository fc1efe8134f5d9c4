package replica

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff computes the pauses between tries of a failing call. Each pause is about twice as long
// as the one before, up to a limit. Pauses are random, so that machines that fail together do not
// retry together.
type backoff struct{ next, limit time.Duration }

// newBackoff returns the backoff for calls of a log.
func newBackoff() backoff { return backoff{2 * time.Millisecond, 500 * time.Millisecond} }

// pause sleeps for the next pause of b, or until ctx ends.
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
