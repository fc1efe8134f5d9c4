package natslog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/persist/replica"
)

const (
	// How long a call waits for any server. An election of a leader takes some seconds.
	patience = 10 * time.Second
	answer   = 2 * time.Second        // How long a call waits for one answer.
	shortest = 10 * time.Millisecond  // The shortest pause between two tries.
	longest  = 250 * time.Millisecond // The longest pause between two tries.
	// Length of a silence after which a reader retries or asks another server.
	silence = time.Second
	// Length of a silence after which a reader asks the leader for newer entries.
	stillness = 3 * time.Second
	// Time without a leader's answer after which the connection moves to another server.
	unheard = 2 * stillness
	ahead   = 2 << 20 // Maximum bytes of entries that are read before they are needed.
	queued  = 64      // Maximum messages of a consumer that are read before they are needed.
)

// patiently calls try() until it succeeds or fails with a permanent error, but not longer than 10
// seconds (the constant patience). If no answer arrives through the connected server, the
// connection moves to another server.
func (e *engine) patiently(ctx context.Context, try func(context.Context) error) error {
	long, done := context.WithTimeout(ctx, patience)
	defer done()
	begun := time.Now()
	var known error // The last error that an operator must resolve.
	for wait := shortest; ; wait = min(2*wait, longest) {
		last := e.js.Conn().LastError()
		once, answered := context.WithTimeout(long, answer)
		err := try(once)
		answered()
		if decided(err) {
			e.conn.heard()
		} else {
			e.conn.leave(e.js.Conn(), begun)
		}
		err, stays := e.explain(err, last)
		if stays {
			return err
		}
		if errors.Is(err, replica.ErrOperator) {
			known = err
		} else if known != nil {
			err = join(err, known)
		}
		switch {
		case ctx.Err() != nil:
			return err
		case long.Err() != nil:
			return fmt.Errorf("natslog: no server executed the request in %v: %w", patience, err)
		}
		pause(long, wait)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Error codes of servers that another message is still in progress. The next try may succeed.
const (
	codeSameID   = 10158 // A message with the same ID is in progress.
	codeUnderWay = jetstream.JSErrCodeStreamWrongLastSequenceConstant
)

// refused reports whether the message was certainly not stored, because a server refused it or no
// server got it.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode != codeSameID || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed)
}

// decided reports whether err is the answer of a leader. err may be nil.
func decided(err error) bool {
	return err == nil || errors.Is(err, replica.ErrTaken) || errors.As(err, new(*jetstream.APIError)) && !passing(err)
}

// passing reports whether the next try may succeed.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503 || api.ErrorCode == codeSameID || api.ErrorCode == codeUnderWay
	}
	for _, lasting := range []error{replica.ErrTaken, nats.ErrMaxPayload, nats.ErrConnectionClosed, nats.ErrBadSubject, jetstream.ErrConnectionClosed} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// hasCode reports whether an error is an answer with a code.
func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}
