package natslog_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// openOne returns the log of the world "one", in a stream on one server.
func openOne(t testing.TB, js jetstream.JetStream, stream string) *natslog.Log {
	t.Helper()
	log, err := natslog.Open(background, js, stream, "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	return log
}

// firstError reads a log until the first error.
func firstError(ctx context.Context, log replica.Log, after replica.Position) (err error) {
	for _, err = range log.Entries(ctx, after) {
		if err != nil {
			break
		}
	}
	return err
}

// isOperator checks that an error has the class Operator, and that its text contains some words.
func isOperator(t testing.TB, err error, words ...string) {
	t.Helper()
	require.ErrorIs(t, err, replica.ErrOperator)
	assert.Equal(t, replica.Operator, replica.ClassOf(err))
	for _, word := range words {
		assert.ErrorContains(t, err, word)
	}
}

func TestErrOperator_StreamFaults(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.js(c.connect("owner"))
	change := func(stream string, set func(*jetstream.StreamConfig)) {
		s, err := js.Stream(background, stream)
		require.NoError(t, err)
		config := s.CachedInfo().Config
		set(&config)
		_, err = js.UpdateStream(background, config)
		require.NoError(t, err)
	}
	append1 := func(log *natslog.Log, at replica.Position) error {
		_, err := log.Append(background, at, make([]byte, 4096))
		return err
	}
	read := func(log *natslog.Log, at replica.Position) error { return firstError(background, log, at) }
	for name, test := range map[string]struct {
		breaks func(stream string)
		call   func(*natslog.Log, replica.Position) error
		text   string
	}{
		"REMOVED-append": {func(s string) { require.NoError(t, js.DeleteStream(background, s)) }, append1, "the stream does not exist: restore it"},
		"REMOVED-next": {func(s string) { require.NoError(t, js.DeleteStream(background, s)) }, func(l *natslog.Log, _ replica.Position) error {
			_, err := l.Next(background, 0)
			return err
		}, "the stream does not exist: restore it"},
		"REMOVED-bounds": {func(s string) { require.NoError(t, js.DeleteStream(background, s)) }, func(l *natslog.Log, _ replica.Position) error {
			_, _, err := l.Bounds(background)
			return err
		}, "the stream does not exist: restore it"},
		"REMOVED-read": {func(s string) { require.NoError(t, js.DeleteStream(background, s)) }, read, "the stream does not exist: restore it"},
		"BYTES": {func(s string) { change(s, func(c *jetstream.StreamConfig) { c.MaxBytes = 2048 }) }, append1,
			"the stream is full: raise its limits"},
		"MESSAGES": {func(s string) { change(s, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 }) }, append1,
			"the stream is full: raise its limits"},
		"SUBJECT": {func(s string) {
			change(s, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject, c.DiscardNewPerSubject = 1, true })
		}, append1, "the stream is full: raise its limits"},
		"SIZE":   {func(s string) { change(s, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1024 }) }, append1, "the stream refuses entries of this size: set --max-msg-size -1"},
		"SEALED": {func(s string) { change(s, func(c *jetstream.StreamConfig) { c.Sealed = true }) }, append1, "the stream is sealed"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, natslog.Create(background, js, name, natslog.Options{Replicas: 1}))
			log := openOne(t, js, name)
			at := add(t, log, 0, "a")
			test.breaks(name)
			err := test.call(log, at)
			isOperator(t, err, "stream "+name+": "+test.text)
			assert.NotErrorIs(t, err, replica.ErrUnknown)
		})
	}
}

// When a server deletes its last stream, it removes the directory of all streams a moment later. If
// a new stream is created in between, its directory is removed, too. The creation fails, and the
// next attempt of Create succeeds.
func TestCreate_AfterLastStreamDeleted(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.js(c.connect("owner"))
	for range 1000 {
		require.NoError(t, natslog.Create(background, js, "WORLDS", natslog.Options{Replicas: 1}))
		require.NoError(t, js.DeleteStream(background, "WORLDS"))
	}
}

// Servers do not answer a request that a login may not make, but the error names the missing right.
func TestErrOperator_NoPermission(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	at := add(t, openOne(t, js, "WORLDS"), 0, "a")
	at = add(t, openOne(t, js, "WORLDS"), at, "a")
	reader := openOne(t, c.js(c.connect("follower")), "WORLDS")
	_, err := reader.Append(background, at, []byte("b"))
	isOperator(t, err, "the login lacks a right", `Publish to "WORLDS.one"`)
	isOperator(t, reader.Trim(background, at), `"$JS.API.STREAM.PURGE.WORLDS"`)

	two, err := natslog.Open(background, c.js(c.connect("follower")), "WORLDS", "two", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	isOperator(t, firstError(background, two, 0), "Publish to", "WORLDS.two")
	_, err = two.Next(background, 0)
	require.NoError(t, err, "the right to read single entries is valid for all worlds")

	ctx, done := context.WithTimeout(background, time.Second)
	defer done()
	_, err = natslog.Open(ctx, c.js(c.connect("stranger")), "WORLDS", "one", natslog.Options{Replicas: 1})
	isOperator(t, err, "set jetstream: enabled for the account")
}

// A follower whose login lost a right, and got it back, continues by itself.
func TestFollower_PermissionRestored(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	owner := follow(t, openOne(t, c.create("WORLDS", 1), "WORLDS"), replica.Options{Name: "owner"})
	g, o, store := own(t, owner)
	g.play(t, store, 1)
	nc := c.connect("follower")
	reader := follow(t, openOne(t, c.js(nc), "WORLDS"), replica.Options{})
	reload := func(logins string) {
		o := c.options[0].Clone()
		require.NoError(t, o.ProcessConfigString(logins))
		require.NoError(t, c.servers[0].ReloadOptions(o))
	}
	reload(strings.Replace(logins, `"$JS.API.CONSUMER.MSG.NEXT.WORLDS.*"`, `"none"`, 1))
	// The connection may still get answers to requests from before the reload, so reconnect.
	require.NoError(t, nc.ForceReconnect())
	c.until(func() bool { _, err := reader.Stuck(); return replica.ClassOf(err) == replica.Operator }, "the follower does not report the missing right")
	g.play(t, store, 1)
	reload(logins)
	ctx, done := context.WithTimeout(background, 30*time.Second)
	defer done()
	g.play(t, store, 1)
	require.NoError(t, reader.Wait(ctx, o.Position()))
	c.until(func() bool { _, err := reader.Stuck(); return err == nil }, "the follower does not say that it follows again")
	require.NoError(t, reader.Close())
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}

// The owner of a full stream confirms the waiting ticks when the stream has room again.
func TestOwner_StreamFull(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	f := follow(t, openOne(t, js, "WORLDS"), replica.Options{})
	g, o, store := own(t, f)
	g.play(t, store, 1)
	limit := func(bytes int64) {
		s, err := js.Stream(background, "WORLDS")
		require.NoError(t, err)
		config := s.CachedInfo().Config
		config.MaxBytes = bytes
		_, err = js.UpdateStream(background, config)
		require.NoError(t, err)
	}
	limit(1)
	require.NoError(t, store.Commit())
	synced := make(chan error, 1)
	go func() { synced <- store.Sync(background) }()
	c.until(func() bool { _, err := o.Stuck(); return replica.ClassOf(err) == replica.Operator }, "the owner does not say that the stream is full")
	_, err := o.Stuck()
	isOperator(t, err, "the stream is full")
	limit(-1)
	require.NoError(t, <-synced)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}
