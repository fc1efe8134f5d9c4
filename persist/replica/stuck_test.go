package replica_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/replica"
)

// The log lost its beginning and has no complete store. A new follower reads the log to its end,
// and Stuck reports the missing store.
func TestFollower_StuckWithoutStore(t *testing.T) {
	log := &replica.Memory{}
	g, o, store := own(t, follow(t, log, disktest.New(), replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	last := o.Position()
	require.NoError(t, log.Trim(background, last))

	f := follow(t, log, disktest.New(), replica.Options{})
	require.False(t, f.Ready())
	require.GreaterOrEqual(t, f.Position(), last)
	since, err := f.Stuck()
	require.ErrorContains(t, err, "the log has no complete store")
	assert.Less(t, time.Since(since), time.Minute)
	assert.Equal(t, replica.Retried, replica.ClassOf(err))
	assert.Equal(t, err.Error(), f.Metrics().Stuck.Error())

	require.NoError(t, o.Rebase(background))
	require.NoError(t, f.Wait(background, o.Position()))
	require.True(t, f.Ready())
	_, err = f.Stuck()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}
