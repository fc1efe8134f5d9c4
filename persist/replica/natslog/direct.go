package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stet-ecs/stet/persist/replica"
)

const (
	// Time without a new entry, after which a reader creates a consumer to wait for new entries.
	quiet     = 75 * time.Millisecond
	pollEvery = 250 * time.Millisecond // Interval between polls without a consumer.
	// Time after which a reader without a consumer tries to create one again.
	pollFor = 10 * time.Second
	// The maximum number of entries of a batch. Another constant, ahead, limits the bytes of a
	// batch.
	batchSize = 10_000
)

// errNoDirect reports that the servers do not answer direct requests.
var errNoDirect = errors.New("natslog: the stream or the login does not allow direct requests")

// A batchRequest requests the next entries of a subject from any server that has the stream.
type batchRequest struct {
	Seq      uint64 `json:"seq"`
	NextFor  string `json:"next_by_subj"`
	Batch    int    `json:"batch"`
	MaxBytes int    `json:"max_bytes"`
}

// catchUp yields existing entries by direct requests, without a consumer. So many worlds can
// recover at the same time. Any server of the stream may answer. catchUp ends when this server had
// no newer entries for a while. The consumer later yields entries that this server lacks.
func (r *reader) catchUp(ctx context.Context) error {
	if err := r.batches(ctx); err != nil {
		return err
	}
	pause(ctx, quiet)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.batches(ctx)
}

// batches yields the next entries until one server has no more entries.
func (r *reader) batches(ctx context.Context) error {
	for {
		if more, err := r.batch(ctx); err != nil || !more {
			return err
		}
	}
}

// batch yields the next entries that one server sends. It reports whether this server has more
// entries.
func (r *reader) batch(ctx context.Context) (more bool, err error) {
	nc := r.js.Conn()
	b, err := json.Marshal(batchRequest{uint64(r.after) + 1, r.subject, batchSize, ahead})
	if err != nil {
		return false, err
	}
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		return false, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	last, subject := nc.LastError(), r.api("DIRECT.GET."+r.stream)
	if err := nc.PublishRequest(subject, inbox, b); err != nil {
		return false, err
	}
	for before := uint64(0); ; {
		m, err := r.direct(ctx, answers, func() bool {
			now := nc.LastError()
			return before == 0 && !errors.Is(now, last) && errors.Is(now, nats.ErrPermissionViolation) && strings.Contains(now.Error(), `"`+subject+`"`)
		})
		if err != nil {
			return false, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204":
			pending, err := strconv.ParseUint(m.Header.Get("Nats-Num-Pending"), 10, 64)
			return err == nil && pending > 0 && before > 0, nil
		case "404":
			return false, nil
		case "503":
			return false, errNoDirect
		default:
			return false, fmt.Errorf("natslog: a direct request: %s %s", status, m.Header.Get("Description"))
		}
		at, err := number(m, "Nats-Sequence")
		if err != nil {
			return false, err
		}
		previous, err := number(m, "Nats-Last-Sequence")
		if err != nil {
			return false, err
		}
		if m.Header.Get("Nats-Subject") != r.subject || previous != before || at <= before || replica.Position(at) <= r.after {
			return false, fmt.Errorf("%w: a batch has %s at %d after %d, not after %d", errMissed, m.Header.Get("Nats-Subject"), at, previous, before)
		}
		before = at
		if err := r.show(replica.Position(at), m.Data); err != nil {
			return false, err
		}
	}
}

// direct returns the next answer to a direct request. It returns errNoDirect as soon as the request
// is denied.
func (r *reader) direct(ctx context.Context, answers *nats.Subscription, denied func() bool) (*nats.Msg, error) {
	for begun := time.Now(); ; {
		once, done := context.WithTimeout(ctx, silence/10)
		m, err := answers.NextMsgWithContext(once)
		done()
		switch {
		case err == nil, ctx.Err() != nil, !errors.Is(err, context.DeadlineExceeded):
			return m, err
		case denied():
			return nil, errNoDirect
		case time.Since(begun) > silence:
			return nil, errMissed
		}
	}
}

// number returns the number in a header of an answer.
func number(m *nats.Msg, key string) (uint64, error) {
	// A server appends its own headers after those of the message, so the last value counts.
	values := m.Header.Values(key)
	if len(values) == 0 {
		return 0, fmt.Errorf("%w: an answer has no %s", errMissed, key)
	}
	n, err := strconv.ParseUint(values[len(values)-1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: an answer has %s %q", errMissed, key, values)
	}
	return n, nil
}

// poll reads without a consumer for the duration pollFor, because the stream allows no more
// consumers. After a silence, it also asks the leader, because the other servers may lack entries.
func (r *reader) poll(ctx context.Context) error {
	asked := time.Now()
	for begun := time.Now(); time.Since(begun) < pollFor && ctx.Err() == nil; pause(ctx, pollEvery) {
		if err := r.batches(ctx); err != nil {
			return err
		}
		if min(time.Since(asked), time.Since(r.heard)) < stillness {
			continue
		}
		once, done := context.WithTimeout(ctx, answer)
		m, err := r.get(once, request{Seq: uint64(r.after) + 1, NextFor: r.subject})
		done()
		if err != nil {
			return err
		}
		asked = time.Now()
		r.conn.heard()
		if m != nil {
			if err := r.show(replica.Position(m.Seq), m.Data); err != nil {
				return err
			}
		}
	}
	return errMissed
}
