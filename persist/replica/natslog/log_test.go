package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

func TestLog_KeepsLogPromises(t *testing.T) {
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			js := newCluster(t, servers, nil).create("WORLDS", servers)
			var n atomic.Int32
			replicatest.Run(t, func(t *testing.T) replica.Log {
				log, err := natslog.Open(background, js, "WORLDS", fmt.Sprintf("w%d", n.Add(1)), natslog.Options{Replicas: servers})
				require.NoError(t, err)
				return log
			})
		})
	}
}

// add appends an entry to a log without other writers. It retries, because the election of a leader
// may take longer than Append waits.
func add(t testing.TB, log replica.Log, after replica.Position, text string) replica.Position {
	t.Helper()
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	for sent := false; ; sent = true {
		at, err := log.Append(ctx, after, []byte(text))
		taken := errors.Is(err, replica.ErrTaken)
		// An earlier try has succeeded.
		if taken && sent {
			_, at, err = log.Bounds(ctx)
		}
		if err == nil || taken && !sent || ctx.Err() != nil {
			require.NoError(t, err)
			return at
		}
	}
}

// texts reads the entries up to a position.
func texts(t testing.TB, log replica.Log, after, upto replica.Position) (all []string) {
	t.Helper()
	ctx, done := context.WithTimeout(background, 30*time.Second)
	defer done()
	for e, err := range log.Entries(ctx, after) {
		require.NoError(t, err)
		if all = append(all, string(e.Data)); e.Position >= upto {
			break
		}
	}
	return all
}

func TestAppend_LostAnswer(t *testing.T) {
	t.Parallel()
	// Append sends the message twice, because the first answer is lost. A single server refuses the
	// second message, because its position is taken. Three servers recognize the ID of the message.
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			c := newCluster(t, servers, nil)
			direct, err := natslog.Open(background, c.create("WORLDS", servers), "WORLDS", "one", natslog.Options{Replicas: servers})
			require.NoError(t, err)
			p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", c.options[0].Port))
			nc, err := nats.Connect("nats://"+p.Addr().String(), nats.UserInfo("owner", "x"), nats.MaxReconnects(-1),
				nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0), nats.IgnoreDiscoveredServers())
			require.NoError(t, err)
			defer nc.Close()
			log, err := natslog.Open(background, c.js(nc), "WORLDS", "one", natslog.Options{Replicas: servers})
			require.NoError(t, err)
			at := add(t, log, 0, "a")

			p.silence()
			got, errs := make(chan replica.Position, 1), make(chan error, 1)
			go func() {
				next, err := log.Append(background, at, []byte("b"))
				got <- next
				errs <- err
			}()
			c.until(func() bool { _, last, err := direct.Bounds(background); return err == nil && last > at }, "the entry does not arrive")
			p.cut()
			_, last, err := direct.Bounds(background)
			require.NoError(t, err)
			require.Equal(t, last, <-got)
			require.NoError(t, <-errs)

			// Append must not return the position of another writer's entry.
			p.silence()
			go func() {
				next, err := log.Append(background, at, []byte("c"))
				got <- next
				errs <- err
			}()
			// The message has probably arrived. Otherwise Append fails too, because the position is
			// taken.
			time.Sleep(50 * time.Millisecond)
			p.cut()
			assert.Zero(t, <-got)
			require.ErrorIs(t, <-errs, replica.ErrTaken)

			// If the context ends before the answer, Append returns ErrUnknown.
			p.silence()
			ctx, done := context.WithTimeout(background, 300*time.Millisecond)
			defer done()
			_, err = log.Append(ctx, last, []byte("d"))
			require.ErrorIs(t, err, replica.ErrUnknown)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, []string{"a", "b", "d"}, texts(t, direct, 0, last+1))
		})
	}
}

func TestLog_ServersRestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	log, reader := open(t, c.create("WORLDS", 3), "WORLDS", "one"), open(t, c.js(c.connect("owner")), "WORLDS", "one")
	read := make(chan []string, 1)
	ctx, done := context.WithTimeout(background, 3*time.Minute)
	defer done()
	go func() {
		var all []string
		for e, err := range reader.Entries(ctx, 0) {
			if all = append(all, string(e.Data)); err != nil || string(e.Data) == "the end" {
				break
			}
		}
		read <- all
	}()
	var want []string
	var at replica.Position
	write := func(text string) {
		want = append(want, text)
		at = add(t, log, at, text)
	}
	for round := range 3 {
		for i := range 20 {
			write(fmt.Sprintf("%d with all: %d", round, i))
		}
		down := c.leader("WORLDS")
		c.stop(down)
		for i := range 20 {
			write(fmt.Sprintf("%d without %d: %d", round, down, i))
		}
		c.start(down)
	}
	write("the end")
	assert.Equal(t, want, <-read)
	assert.Equal(t, want, texts(t, reader, 0, at))
}

// A reader on a server whose copy of the stream no longer grows moves to another server. While the
// copy is complete, the reader stays.
func TestEntries_LeavesStalledServer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	opened := func(js jetstream.JetStream) *natslog.Log {
		log, err := natslog.Open(background, js, "WORLDS", "one", natslog.Options{Replicas: 1})
		require.NoError(t, err)
		return log
	}
	owner := opened(js)
	at := add(t, owner, 0, "a")
	still := &stillServer{JetStream: js}
	reader := opened(still)
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	var all []string
	for e, err := range reader.Entries(ctx, 0) {
		require.NoError(t, err)
		if all = append(all, string(e.Data)); len(all) == 2 {
			break
		}
		// During this time, the leader has no newer entry, so the reader must not move.
		time.AfterFunc(7*time.Second, func() {
			assert.EqualValues(t, 1, still.consumers.Load())
			add(t, owner, at, "b")
		})
	}
	assert.Equal(t, []string{"a", "b"}, all)
}

// A stillServer sends no messages to its first consumer.
type stillServer struct {
	jetstream.JetStream
	consumers atomic.Int32
}

func (s *stillServer) CreateConsumer(ctx context.Context, stream string, config jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	c, err := s.JetStream.CreateConsumer(ctx, stream, config)
	if s.consumers.Add(1) == 1 {
		c = stillConsumer{c}
	}
	return c, err
}

type stillConsumer struct{ jetstream.Consumer }

func (c stillConsumer) Messages(o ...jetstream.PullMessagesOpt) (jetstream.MessagesContext, error) {
	m, err := c.Consumer.Messages(o...)
	return stillMessages{m}, err
}

type stillMessages struct{ jetstream.MessagesContext }

// Next drops all messages, and returns only errors.
func (m stillMessages) Next(o ...jetstream.NextOpt) (jetstream.Msg, error) {
	for {
		if _, err := m.MessagesContext.Next(o...); err != nil {
			return nil, err
		}
	}
}

func TestLog_WorldsAreSeparate(t *testing.T) {
	c := newCluster(t, 3, nil)
	js := c.create("WORLDS", 3)
	const worlds, entries = 10, 5
	var logs []*natslog.Log
	var at [worlds][]replica.Position
	for w := range worlds {
		logs = append(logs, open(t, js, "WORLDS", fmt.Sprintf("w%d", w)))
		at[w] = []replica.Position{0}
	}
	for i := range entries {
		for w, log := range logs {
			at[w] = append(at[w], add(t, log, at[w][i], fmt.Sprintf("%d of %d", i, w)))
		}
	}
	require.NoError(t, logs[0].Trim(background, at[0][4]))
	for w, log := range logs {
		first, last, err := log.Bounds(background)
		require.NoError(t, err)
		begin := 1
		if w == 0 {
			begin = 4
		}
		assert.Equal(t, [2]replica.Position{at[w][begin], at[w][entries]}, [2]replica.Position{first, last}, "world %d", w)
		var want []string
		for i := begin - 1; i < entries; i++ {
			want = append(want, fmt.Sprintf("%d of %d", i, w))
		}
		// The server that answers may be behind the server that trimmed.
		c.until(func() bool { return slices.Equal(want, texts(t, log, 0, last)) }, "the entries read differ from the retained entries")
	}

	// A completely trimmed log keeps its last entry.
	last := at[3][entries]
	require.NoError(t, logs[3].Trim(background, last+100))
	first, end, err := logs[3].Bounds(background)
	require.NoError(t, err)
	assert.Equal(t, [2]replica.Position{last, last}, [2]replica.Position{first, end})
	_, err = logs[3].Append(background, 0, nil)
	assert.ErrorIs(t, err, replica.ErrTaken)
	add(t, logs[3], last, "behind it")
}

func TestLog_StreamPurgedByOperator(t *testing.T) {
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	log, err := natslog.Open(background, js, "WORLDS", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	at := add(t, log, 0, "a")
	s, err := js.Stream(background, "WORLDS")
	require.NoError(t, err)
	require.NoError(t, s.Purge(background))
	_, err = log.Append(background, at, []byte("b"))
	assert.ErrorIs(t, err, replica.ErrTaken)
	first, last, err := log.Bounds(background)
	require.NoError(t, err)
	assert.Zero(t, first)
	assert.Zero(t, last)
}

func TestEntries_PermanentError(t *testing.T) {
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	log, err := natslog.Open(background, js, "WORLDS", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	last := add(t, log, 0, "a")
	ends := func(log replica.Log, after replica.Position, end func()) (err error) {
		ctx, done := context.WithTimeout(background, 20*time.Second)
		defer done()
		time.AfterFunc(50*time.Millisecond, end)
		for _, err = range log.Entries(ctx, after) {
			require.Error(t, err, "the log yielded an unexpected entry")
		}
		return err
	}
	nc := c.connect("owner")
	other, err := natslog.Open(background, c.js(nc), "WORLDS", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	isOperator(t, ends(other, last, nc.Close), "connect again")
	assert.ErrorIs(t, ends(log, last, func() { _ = js.DeleteStream(background, "WORLDS") }), jetstream.ErrStreamNotFound)
	_, err = natslog.Open(background, js, "WORLDS", "one", natslog.Options{})
	assert.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
