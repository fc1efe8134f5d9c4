package replica_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

// The owner of a log with a limit sends all files again before the log is full, so that ticks
// continue.
func TestOwner_ResendsFilesBeforeLogIsFull(t *testing.T) {
	log := &replicatest.Log{}
	// The owner reserves 4 MiB to send all files, so about 20 MiB are usable. An owner whose log
	// has no limit sends all files after 16 MiB.
	log.Limit(24 << 20)
	f := follow(t, log.Link(1), disktest.New(), replica.Options{})
	o, err := f.Claim(background)
	require.NoError(t, err)
	files := o.Files()
	for range 60 { // MiB.
		_ = files.Remove("snapshots/a") // The file does not exist the first time.
		require.NoError(t, publishFile(files, "snapshots/a", make([]byte, 1<<20)))
	}
	require.NoError(t, o.Err())
	require.NoError(t, o.Close())
}

// If the log has no room for all files, ticks stop, and the owner reports the error. Commit does
// not wait. Ticks are confirmed when the log has room again.
func TestOwner_LogIsFull(t *testing.T) {
	log := &replicatest.Log{}
	f := follow(t, log.Link(1), disktest.New(), replica.Options{})
	o, err := f.Claim(background)
	require.NoError(t, err)
	g := newGame()
	var durable atomic.Uint64
	store, err := o.Open(background, g.World, persist.Options{
		Sync: journal.SyncAlways, QueueBytes: 4 << 10, OnDurable: func(tick uint64) { durable.Store(tick) },
	})
	require.NoError(t, err)
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	// Fill the log so far that the store does not fit into it again.
	for range 9 {
		_ = o.Files().Remove("snapshots/a") // The file does not exist the first time.
		require.NoError(t, publishFile(o.Files(), "snapshots/a", make([]byte, 1<<20)))
	}

	log.Limit(1) // The log is now full.
	var refused error
	for range 1_000 {
		g.score.Set(g.score.Get() + 1)
		if refused = store.Commit(); refused != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	require.ErrorIs(t, refused, persist.ErrBacklog, "Commit does not wait")
	require.ErrorIs(t, refused, replica.ErrOperator, "the error must name the reason")
	since, err := o.Stuck()
	require.ErrorIs(t, err, replica.ErrOperator)
	assert.False(t, since.IsZero())

	log.Limit(64 << 20)
	require.NoError(t, store.Sync(background))
	require.NoError(t, store.Commit(), "the queue is not full yet")
	require.NoError(t, store.Sync(background))
	assert.Equal(t, g.Tick(), durable.Load())
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}
