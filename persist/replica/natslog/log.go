package natslog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/persist/replica"
)

// A Log is the log of one world. Its methods may be called from several goroutines. If no server
// answers, each method returns after about 10 seconds.
type Log struct{ engine }

// An engine is a stream, and a connection to the servers that have it.
type engine struct {
	js      jetstream.JetStream
	conn    *connection
	stream  string
	subject string // The subject of the world, or "" for the whole stream.
}

func engineOf(js jetstream.JetStream, stream string) engine {
	return engine{js: js, conn: connectionOf(js.Conn()), stream: stream}
}

// Open returns the log of a world, which need not have entries yet. Open checks the settings of the
// stream.
//
// Open returns [jetstream.ErrStreamNotFound] if the stream does not exist, and [ErrSettings] if the
// stream may lose acknowledged entries. The name of a world may have letters, digits, - and _ only.
func Open(ctx context.Context, js jetstream.JetStream, stream, world string, o Options) (*Log, error) {
	if !plain(world) {
		return nil, fmt.Errorf("natslog: the name of a world must have letters, digits, - and _ only, not %q", world)
	}
	l := &Log{engineOf(js, stream)}
	l.subject = stream + "." + world
	return l, l.check(ctx, o)
}

// Append implements [replica.Log]. The cost is a message with the entry, and a sync on more than
// half of the servers.
func (l *Log) Append(ctx context.Context, after replica.Position, entry []byte) (at replica.Position, err error) {
	if len(entry) > replica.MaxEntry {
		return 0, fmt.Errorf("natslog: an entry has %d bytes, more than %d", len(entry), replica.MaxEntry)
	}
	id := rand.Text()
	m := &nats.Msg{Subject: l.subject, Data: entry, Header: nats.Header{
		jetstream.MsgIDHeader:               {id},
		jetstream.ExpectedStreamHeader:      {l.stream},
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(uint64(after), 10)},
	}}
	doubt := false
	err = l.patiently(ctx, func(ctx context.Context) error {
		ack, err := l.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		switch {
		// err is also nil if the server already had the message from an earlier try.
		case err == nil:
			at = replica.Position(ack.Sequence)
			return nil
		case hasCode(err, jetstream.JSErrCodeStreamWrongLastSequence):
			if doubt {
				at, err = l.mine(ctx, after, id)
				return err
			}
			return fmt.Errorf("%w: %s does not end at %d", replica.ErrTaken, l.subject, after)
		case errors.Is(err, jetstream.ErrNoStreamResponse):
			// The stream has no leader at the moment, or was removed.
			if _, gone := l.js.Stream(ctx, l.stream); errors.Is(gone, jetstream.ErrStreamNotFound) {
				return gone
			}
		case !refused(err):
			doubt = true
		}
		return err
	})
	if err != nil && doubt && !errors.Is(err, replica.ErrTaken) {
		err = fmt.Errorf("%w: %w", replica.ErrUnknown, err)
	}
	return at, err
}

// mine reads the first entry after the given position. If the entry is the message with this ID,
// mine returns the position of the entry. Otherwise, it returns [replica.ErrTaken].
func (l *Log) mine(ctx context.Context, after replica.Position, id string) (replica.Position, error) {
	m, err := l.get(ctx, request{Seq: uint64(after) + 1, NextFor: l.subject})
	switch {
	case err != nil:
		return 0, err
	case m == nil || header(m, jetstream.MsgIDHeader) != id:
		return 0, fmt.Errorf("%w: %s does not end at %d", replica.ErrTaken, l.subject, after)
	}
	return replica.Position(m.Seq), nil
}

// A message is a message of a stream, in the JSON form that servers send.
type message struct {
	Seq    uint64 `json:"seq"`
	Header []byte `json:"hdrs"`
	Data   []byte `json:"data"`
}

// header returns the value of a header of a message.
func header(m *message, key string) string {
	h, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil {
		return ""
	}
	return h.Get(key)
}

// A request asks for the last message of a subject, or for the subject's first message from a
// sequence on.
type request struct {
	Seq     uint64 `json:"seq,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
}

// get requests a message from the leader of the stream. It returns nil if the stream has no such
// message. get avoids the servers that answer direct requests, because these may not have the
// newest messages yet.
func (l *Log) get(ctx context.Context, r request) (*message, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	reply, err := l.js.Conn().RequestWithContext(ctx, l.api("STREAM.MSG.GET."+l.stream), b)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *message            `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return nil, fmt.Errorf("natslog: the answer of a server: %w", err)
	}
	if answer.Error != nil {
		if answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return nil, nil
		}
		return nil, answer.Error
	}
	return answer.Message, nil
}

// api returns the subject of a request to JetStream.
func (e *engine) api(name string) string {
	switch o := e.js.Options(); {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API." + name
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "." + name
	}
	return jetstream.DefaultAPIPrefix + name
}

// Next implements [replica.Log]. The cost is one request to the leader of the stream.
func (l *Log) Next(ctx context.Context, after replica.Position) (e replica.Entry, err error) {
	err = l.patiently(ctx, func(ctx context.Context) error {
		m, err := l.get(ctx, request{Seq: uint64(after) + 1, NextFor: l.subject})
		if err == nil && m != nil {
			e = replica.Entry{Position: replica.Position(m.Seq), Data: m.Data}
		}
		return err
	})
	return e, err
}

// Bounds implements [replica.Log]. The cost is two requests to the leader of the stream, which
// sends two entries.
func (l *Log) Bounds(ctx context.Context) (first, last replica.Position, err error) {
	err = l.patiently(ctx, func(ctx context.Context) error {
		m, err := l.get(ctx, request{LastFor: l.subject})
		if err != nil || m == nil {
			return err
		}
		last = replica.Position(m.Seq)
		if m, err = l.get(ctx, request{Seq: 1, NextFor: l.subject}); err != nil || m == nil {
			return err
		}
		first = replica.Position(m.Seq)
		return nil
	})
	return first, last, err
}

// Trim implements [replica.Log]. The last entry always remains, because it marks the end of the
// log.
func (l *Log) Trim(ctx context.Context, before replica.Position) error {
	_, last, err := l.Bounds(ctx)
	if before = min(before, last); err != nil || before <= 1 {
		return err
	}
	return l.patiently(ctx, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, l.stream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(l.subject), jetstream.WithPurgeSequence(uint64(before)))
	})
}
