package natslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/persist/replica"
)

// Entries implements [replica.Log]. It ends at a permanent error, such as [replica.ErrOperator]. At
// other errors, it retries for 10 seconds, and continues after the last entry. It reads up to some
// MiB ahead of the caller.
func (l *Log) Entries(ctx context.Context, after replica.Position) iter.Seq2[replica.Entry, error] {
	return func(yield func(replica.Entry, error) bool) {
		r := &reader{Log: l, after: after, heard: time.Now(), yield: yield}
		failing := time.Time{} // The time since which calls fail.
		for wait := shortest; ; wait = min(2*wait, longest) {
			from, last, begun := r.after, r.js.Conn().LastError(), time.Now()
			err := r.read(ctx)
			if errors.Is(err, errEnough) {
				return
			}
			err, stays := r.explain(err, last)
			if r.after > from || failing.IsZero() || time.Since(begun) > patience {
				failing = time.Now()
			}
			switch {
			case ctx.Err() != nil:
				yield(replica.Entry{}, ctx.Err())
				return
			case stays, time.Since(failing) > patience:
				yield(replica.Entry{}, err)
				return
			}
			r.conn.leave(r.js.Conn(), r.heard)
			if r.after > from {
				wait = shortest
			}
			pause(ctx, wait)
		}
	}
}

var (
	errEnough = errors.New("natslog: the caller stopped the iteration")
	errMissed = fmt.Errorf("natslog: a message was not delivered: %w", nats.ErrTimeout)
)

// A reader reads the entries of a log for one loop over Entries.
type reader struct {
	*Log
	after replica.Position // Position of the last entry that was yielded.
	heard time.Time        // When the last entry was yielded, or when the loop began.
	yield func(replica.Entry, error) bool

	indirect bool // Whether direct requests are denied or do not work.
}

// show yields an entry, unless it was yielded before.
func (r *reader) show(at replica.Position, data []byte) error {
	if at <= r.after {
		return nil
	}
	r.after, r.heard = at, time.Now()
	if !r.yield(replica.Entry{Position: at, Data: data}, nil) {
		return errEnough
	}
	return nil
}

// read yields entries until an error. It gets existing entries by direct requests, and new ones by
// a consumer. Without direct requests, it gets all entries by a consumer.
func (r *reader) read(ctx context.Context) error {
	if r.indirect {
		return r.consume(ctx)
	}
	from := r.after
	err := r.catchUp(ctx)
	switch {
	case errors.Is(err, errEnough), ctx.Err() != nil:
		return err
	case err != nil:
		r.indirect = errors.Is(err, errNoDirect) || r.after == from
		if !r.indirect {
			// The next call continues after the last yielded entry.
			return err
		}
	}
	err = r.consume(ctx)
	if hasCode(err, jetstream.JSErrCodeMaximumConsumersLimit) && !r.indirect {
		return r.poll(ctx)
	}
	return err
}

// consume creates a consumer and yields its entries.
func (r *reader) consume(ctx context.Context) error {
	once, done := context.WithTimeout(ctx, answer)
	defer done()
	c, err := r.js.CreateConsumer(once, r.stream, jetstream.ConsumerConfig{
		FilterSubject: r.subject, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: uint64(r.after) + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1,
		// Servers remove the consumer after this time if the login may not remove it.
		InactiveThreshold: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	r.conn.heard()
	defer r.remove(c)
	// A limit of bytes alone would give each reader a queue for a million messages. So also limit
	// the number of messages.
	messages, err := c.Messages(jetstream.PullMaxMessagesWithBytesLimit(queued, ahead), jetstream.PullHeartbeat(silence/2))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for number := uint64(1); ; number++ {
		m, err := r.next(ctx, messages)
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != number {
			return errMissed
		}
		if err := r.show(replica.Position(meta.Sequence.Stream), m.Data()); err != nil {
			return err
		}
	}
}

// remove asks the servers to remove a consumer, and does not wait. Without the right to do so, the
// servers remove the consumer after a while.
func (r *reader) remove(c jetstream.Consumer) {
	nc, subject := r.js.Conn(), r.api("CONSUMER.DELETE."+r.stream+".")
	if r.conn.mayRemove(nc, subject) {
		_ = nc.PublishRequest(subject+c.CachedInfo().Name, nc.NewInbox(), nil)
	}
}

// next returns the next message of a consumer. A consumer can send heartbeats although its server
// no longer gets new entries. After a silence, next therefore asks the leader for a newer message.
//
// It returns an error if the consumer does not send that message, or if no leader answers through
// this server. Reading then continues through another server.
func (r *reader) next(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	begun := time.Now()
	for wait, more := stillness, false; ; {
		once, done := context.WithTimeout(ctx, wait)
		m, err := messages.Next(jetstream.NextContext(once))
		still := once.Err() != nil
		done()
		switch {
		case err == nil || !still || ctx.Err() != nil:
			return m, err
		case more:
			return nil, errMissed
		}
		// Wait for the leader until leave() may move the connection, but not longer than one answer
		// usually takes. Wait at least an eighth of that time.
		once, done = context.WithTimeout(ctx, min(answer, max(time.Until(begun.Add(unheard)), answer/8)))
		behind, err := r.get(once, request{Seq: uint64(r.after) + 1, NextFor: r.subject})
		done()
		switch {
		case decided(err):
			r.conn.heard()
			wait, more, begun = stillness, behind != nil, time.Now()
		case r.conn.leave(r.js.Conn(), begun):
			return nil, errMissed
		default:
			wait = shortest
		}
	}
}
