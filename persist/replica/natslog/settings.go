package natslog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/persist/replica"
)

// ErrSettings reports that a stream or a server may lose acknowledged entries because of its
// settings. Its text lists all wrong settings, and how to correct them.
var ErrSettings = errors.New("natslog: the engine may lose acknowledged entries with its settings")

// Options are requirements on a stream. The zero Options are useful.
type Options struct {
	// Replicas is the minimum number of servers that store each entry. Ticks are confirmed while
	// more than half of these servers run. The default is 3.
	Replicas int
}

func (o Options) replicas() int { return cmp.Or(o.Replicas, 3) }

// version is the oldest server version that has been tested to keep the promises of a log.
const version = "2.15.0"

// consumers is the maximum number of consumers in streams that Create creates. Each waiting
// follower uses one consumer. The default of the servers is 1,000.
const consumers = 100_000

// Create creates a stream for worlds, with the subjects NAME.>. If the stream exists with settings
// that [Open] accepts, Create keeps it and returns nil. It returns
// [jetstream.ErrStreamNameAlreadyInUse] if the stream exists with other settings. It also returns
// errors of the servers.
func Create(ctx context.Context, js jetstream.JetStream, stream string, o Options) error {
	e := engineOf(js, stream)
	limit := consumers
	return e.patiently(ctx, func(ctx context.Context) error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{
			Name: stream, Subjects: []string{stream + ".>"}, Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy,
			Discard: jetstream.DiscardNew, Replicas: o.replicas(), Duplicates: 4 * patience, AllowDirect: true, MaxConsumers: limit,
		})
		switch {
		case hasCode(err, jetstream.JSErrCodeMaximumConsumersLimit) && limit == consumers:
			limit = -1 // The account has a lower limit, so let the account limit the consumers.
			// Wrap ErrTimeout instead of err, so that the call is retried.
			return fmt.Errorf("%w: %s", nats.ErrTimeout, err.Error())
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			if s, err := js.Stream(ctx, stream); err == nil && len(faults(&s.CachedInfo().Config, o.replicas(), stream+".>")) == 0 {
				// An older Create has created the stream, and Open accepts it.
				return nil
			}
		}
		return err
	})
}

// check returns an error if the stream has wrong settings.
func (l *Log) check(ctx context.Context, o Options) error {
	var c jetstream.StreamConfig
	err := l.patiently(ctx, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, l.stream)
		if err == nil {
			c = s.CachedInfo().Config
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("natslog: stream %s: %w", l.stream, err)
	}
	wrong := faults(&c, o.replicas(), l.stream+".>")
	if v := l.js.Conn().ConnectedServerVersion(); older(v) {
		wrong = append(wrong, fmt.Sprintf("a server is of version %s: run %s or newer", v, version))
	}
	if n := l.js.Conn().MaxPayload(); n < replica.MaxEntry+headers {
		wrong = append(wrong, fmt.Sprintf("a server accepts messages of at most %d bytes: set max_payload: 1MB", n))
	}
	return settings("stream "+l.stream, wrong)
}

// settings returns an error that lists wrong settings, or nil if the list is empty. The first
// argument names the stream or the servers.
func settings(what string, wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return &operatorError{what + ": " + strings.Join(wrong, "; "), ErrSettings}
}

// faults returns the wrong settings of a stream.
func faults(c *jetstream.StreamConfig, replicas int, subjects string) (wrong []string) {
	for _, fault := range []struct {
		is   bool
		text string
	}{
		{len(c.Subjects) != 1 || c.Subjects[0] != subjects, fmt.Sprintf("its subjects are %q: set --subjects '%s'", c.Subjects, subjects)},
		{c.SubjectTransform != nil, "it transforms subjects: remove the transform"},
		{c.Mirror != nil || len(c.Sources) > 0, "it copies other streams: use a stream without --mirror and --source"},
		{c.Storage != jetstream.FileStorage, "it is in memory: set --storage file"},
		{c.PersistMode == jetstream.AsyncPersistMode, "it acknowledges before it writes: set the persist mode default"},
		{c.NoAck, "it does not acknowledge messages: do not set --no-ack"},
		{c.Retention != jetstream.LimitsPolicy, "it removes messages that were read: set --retention limits"},
		{c.Replicas < replicas, fmt.Sprintf("%d servers keep it: set --replicas %d", c.Replicas, replicas)},
		{c.MaxAge > 0, fmt.Sprintf("it removes messages after %v: set --max-age -1", c.MaxAge)},
		{c.Discard != jetstream.DiscardNew && (c.MaxMsgs > 0 || c.MaxBytes > 0), "it removes the oldest messages above a limit: set --discard new"},
		{c.MaxMsgsPerSubject > 0 && !(c.Discard == jetstream.DiscardNew && c.DiscardNewPerSubject),
			"it removes the oldest messages of a subject: set --max-msgs-per-subject -1"},
		{c.MaxMsgSize > 0 && c.MaxMsgSize < replica.MaxEntry+headers,
			fmt.Sprintf("messages have at most %d bytes: set --max-msg-size %d, or -1", c.MaxMsgSize, replica.MaxEntry+headers)},
		{!c.AllowDirect && c.MaxConsumers > 0, fmt.Sprintf("each reader needs one of %d consumers: set --allow-direct, or --max-consumers -1", c.MaxConsumers)},
	} {
		if fault.is {
			wrong = append(wrong, fault.text)
		}
	}
	return wrong
}

// headers is an upper bound of the size of the headers of a message.
const headers = 1 << 10

// older reports whether a server version is too old or empty.
func older(v string) bool {
	v, _, _ = strings.Cut(v, "-")
	was, want := strings.Split(v, "."), strings.Split(version, ".")
	for i := range want {
		if i >= len(was) {
			return true
		}
		a, err := strconv.Atoi(was[i])
		b, _ := strconv.Atoi(want[i])
		if err != nil || a != b {
			return err != nil || a < b
		}
	}
	return false
}

// plain reports whether a name is valid as a part of a subject.
func plain(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// CheckServers asks every server for its version, and whether it syncs each message before the
// acknowledgement. It returns [ErrSettings] for wrong settings, and the error of ctx if no server
// answers.
//
// Only a connection of the system account gets answers. CheckServers returns when no answer has
// arrived for half a second, so it does not detect a server that is down.
func CheckServers(ctx context.Context, system *nats.Conn) error {
	inbox := system.NewInbox()
	answers, err := system.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if err := system.PublishRequest("$SYS.REQ.SERVER.PING.JSZ", inbox, nil); err != nil {
		return err
	}
	var wrong []string
	for n := 0; ; n++ {
		next, done := ctx, context.CancelFunc(func() {})
		if n > 0 {
			next, done = context.WithTimeout(ctx, 500*time.Millisecond)
		}
		m, err := answers.NextMsgWithContext(next)
		done()
		switch {
		case err != nil && n > 0 && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return settings("servers", wrong)
		case err != nil:
			return fmt.Errorf("natslog: servers do not report how they sync; use a login of the system account: %w", err)
		}
		fault, err := serverFault(m.Data)
		if err != nil {
			return err
		}
		wrong = append(wrong, fault...)
	}
}

// serverFault returns the wrong settings of a server, according to its answer.
func serverFault(b []byte) (wrong []string, err error) {
	var said struct {
		Server struct {
			Name    string `json:"name"`
			Version string `json:"ver"`
		} `json:"server"`
		Data struct {
			Disabled bool `json:"disabled"`
			Config   struct {
				Interval time.Duration `json:"sync_interval"`
				Always   bool          `json:"sync_always"`
			} `json:"config"`
		} `json:"data"`
	}
	if err := json.Unmarshal(b, &said); err != nil {
		return nil, fmt.Errorf("natslog: the answer of a server: %w", err)
	}
	if s := said.Server; older(s.Version) {
		wrong = append(wrong, fmt.Sprintf("%s is of version %s: run %s or newer", s.Name, s.Version, version))
	}
	if d := said.Data; !d.Disabled && !d.Config.Always {
		wrong = append(wrong, fmt.Sprintf("%s syncs every %v: set jetstream { sync_interval: always }", said.Server.Name, d.Config.Interval))
	}
	return wrong, nil
}
