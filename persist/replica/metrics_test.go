package replica_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

// While the log refuses every call, owner and follower report why and since when. The reports do
// not wait for the log. Owner and follower continue when the log works again.
func TestStuck_LogRefusesAllCalls(t *testing.T) {
	log := &replicatest.Log{}
	ours, theirs := log.Link(1), log.Link(2)
	o, err := follow(t, ours, disktest.New(), replica.Options{Heartbeat: 10 * time.Millisecond}).Claim(background)
	require.NoError(t, err)
	f := follow(t, theirs, disktest.New(), replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))

	before := time.Now()
	full := fmt.Errorf("%w: the stream is full", replica.ErrOperator)
	ours.Break(full)
	theirs.Break(full)
	stuck := func(get func() replica.Metrics) func() bool {
		return func() bool {
			m := get()
			return m.Stuck != nil && !m.StuckSince.Before(before) && replica.ClassOf(m.Stuck) == replica.Operator && m.Errors[replica.Operator] > 0
		}
	}
	assert.Eventually(t, stuck(o.Metrics), 10*time.Second, time.Millisecond)
	assert.Eventually(t, stuck(f.Metrics), 10*time.Second, time.Millisecond)
	since, err := f.Stuck()
	assert.ErrorIs(t, err, full)
	assert.False(t, since.IsZero())
	_, err = o.Stuck()
	assert.ErrorIs(t, err, full)
	assert.NoError(t, o.Err(), "the machine still owns the store")
	assert.NoError(t, f.Err(), "the machine still follows the store")

	ours.Break(nil)
	theirs.Break(nil)
	at := o.Position()
	require.NoError(t, f.Wait(background, at+2))
	assert.Eventually(t, func() bool {
		m, n := o.Metrics(), f.Metrics()
		return m.Stuck == nil && n.Stuck == nil && m.StuckSince.IsZero() && m.Term == n.Term
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, f.Close())
	require.NoError(t, o.Close())
}
