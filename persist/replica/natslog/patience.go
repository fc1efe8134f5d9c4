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
	// For servers to answer at all: an election of theirs takes some seconds.
	patience  = 10 * time.Second
	answer    = 2 * time.Second // For one to answer a request.
	shortest  = 10 * time.Millisecond
	longest   = 250 * time.Millisecond // Between two tries.
	silence   = time.Second            // After which a reader asks another server.
	stillness = 3 * time.Second        // After which a reader asks whether there is more.
	// Without an answer of a leader, after which the connection goes to another server.
	unheard = 2 * stillness
	ahead   = 2 << 20 // Bytes of entries that are read ahead,
	queued  = 64      // and messages of a consumer.
)

// patiently tries what a server may not answer just now, until it is done, or cannot be, or
// patience is at an end. Through a server that passes on no answer for too long it is tried through
// another one.
func (e *engine) patiently(ctx context.Context, try func(context.Context) error) error {
	long, done := context.WithTimeout(ctx, patience)
	defer done()
	begun := time.Now()
	var known error // Why an operator must act, as far as an attempt told.
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
			return fmt.Errorf("natslog: no server did it in %v: %w", patience, err)
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

// What servers answer when the fate of another message decides.
const (
	codeSameID   = 10158 // One of the same ID is under way.
	codeUnderWay = jetstream.JSErrCodeStreamWrongLastSequenceConstant
)

// refused reports whether a server has said that it did nothing, or none has heard.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode != codeSameID || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed)
}

// decided reports whether an error, or none, is the answer of a server that decides.
func decided(err error) bool {
	return err == nil || errors.Is(err, replica.ErrTaken) || errors.As(err, new(*jetstream.APIError)) && !passing(err)
}

// passing reports whether what went wrong may be over at the next try.
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

// hasCode reports whether an error is what a server answered under a number.
func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}
