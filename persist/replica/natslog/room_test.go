package natslog_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// limit sets the size limit of a stream, in bytes.
func limit(t *testing.T, js jetstream.JetStream, bytes int64) {
	t.Helper()
	s, err := js.Stream(background, "WORLDS")
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.MaxBytes = bytes
	_, err = js.UpdateStream(background, config)
	require.NoError(t, err)
}

// An owner trims a stream with a limit before the stream is full. If the owner cannot trim, it
// reports that, and continues when the limit is raised.
func TestOwner_TrimsStreamBeforeLimit(t *testing.T) {
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	log, err := natslog.Open(background, js, "WORLDS", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	room, err := log.Room(background)
	require.NoError(t, err)
	assert.Negative(t, room, "the stream has no limit")

	limit(t, js, 24<<20)
	g, o, store := own(t, follow(t, log, replica.Options{}))
	g.play(t, store, 1)
	for range 40 { // 40 MiB, more than the stream has room for.
		f, err := o.Files().Create("snapshots/big.tmp")
		require.NoError(t, err)
		_, err = f.WriteAt(make([]byte, 1<<20), 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_ = o.Files().Remove("snapshots/big") // The file does not exist the first time.
		require.NoError(t, o.Files().Publish("snapshots/big.tmp", "snapshots/big"))
	}
	room, err = log.Room(background)
	require.NoError(t, err)
	assert.Positive(t, room)

	limit(t, js, 1<<20)
	require.Eventually(t, func() bool {
		g.score.Set(g.score.Get() + 1)
		_ = store.Commit() // After some calls, Commit fails.
		_, err := o.Stuck()
		return replica.ClassOf(err) == replica.Operator
	}, time.Minute, 5*time.Millisecond)
	limit(t, js, -1)
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	require.NoError(t, store.Sync(ctx))
	require.NoError(t, store.Close(ctx))
	require.NoError(t, o.Close())
}
