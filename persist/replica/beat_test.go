package replica_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/replica"
)

// An idle owner appends at most one heartbeat per Options.Heartbeat.
func TestOwner_IdleSendsFewHeartbeats(t *testing.T) {
	log := &replica.Memory{}
	const every = 80 * time.Millisecond
	options := replica.Options{Heartbeat: every}
	o, err := follow(t, log, disktest.New(), options).Claim(background)
	require.NoError(t, err)
	f := follow(t, log, disktest.New(), options)
	// The first heartbeats have shorter intervals. Wait until they are over.
	require.NoError(t, f.Wait(background, o.Position()+5))
	assert.Less(t, time.Since(f.Fresh()), 10*time.Second)
	begun, at := time.Now(), f.Position()
	require.NoError(t, f.Wait(background, at+3))
	if took := time.Since(begun); took < every {
		t.Errorf("three entries in %v, want one in %v", took, every)
	}

	// After Close, Overdue and the age of the last entry increase.
	require.NoError(t, o.Close())
	assert.Eventually(t, func() bool { return f.Overdue() > 3*every }, 10*time.Second, time.Millisecond)
	assert.Greater(t, time.Since(f.Fresh()), 3*every)
	require.NoError(t, f.Close())
}

// After a tick, heartbeats have short intervals again, so that followers do not assume that the
// owner is dead.
func TestOwner_HeartbeatAfterTick(t *testing.T) {
	log := &replica.Memory{}
	const every = 1600 * time.Millisecond
	o, err := follow(t, log, disktest.New(), replica.Options{Heartbeat: every}).Claim(background)
	require.NoError(t, err)
	f := follow(t, log, disktest.New(), replica.Options{Heartbeat: every})
	// After these three entries, the next heartbeat is due after 1.6 s.
	require.NoError(t, f.Wait(background, o.Position()+3))
	require.NoError(t, publishFile(o.Files(), "snapshots/a", []byte{1}))
	begun := time.Now()
	require.NoError(t, f.Wait(background, o.Position()+1))
	assert.Less(t, time.Since(begun), every/2)
	require.NoError(t, f.Close())
	require.NoError(t, o.Close())
}

// A new follower of an idle owner does not assume that the owner is dead.
func TestFollower_NotOverdueOnIdleOwner(t *testing.T) {
	log := &replica.Memory{}
	const every = 400 * time.Millisecond
	o, err := follow(t, log, disktest.New(), replica.Options{Heartbeat: every}).Claim(background)
	require.NoError(t, err)
	first := follow(t, log, disktest.New(), replica.Options{Heartbeat: every})
	require.NoError(t, first.Wait(background, o.Position()+4))
	for phase := range 3 {
		time.Sleep(time.Duration(phase) * every / 3)
		f := follow(t, log, disktest.New(), replica.Options{Heartbeat: every})
		for end := f.Position() + 2; f.Position() < end; time.Sleep(time.Millisecond) {
			require.Less(t, f.Overdue(), every/2)
		}
		require.NoError(t, f.Close())
	}
	require.NoError(t, first.Close())
	require.NoError(t, o.Close())
}

// An owner trims the log by itself when it has appended many more bytes than its store has.
func TestOwner_TrimsLogByItself(t *testing.T) {
	log := &replica.Memory{}
	first := follow(t, log, disktest.New(), replica.Options{Heartbeat: 50 * time.Millisecond})
	o, err := first.Claim(background)
	require.NoError(t, err)
	files := o.Files()
	for range 3 {
		// The loop replaces the same file, so the store remains small.
		for range 12 {
			_ = files.Remove("snapshots/a") // The file does not exist the first time.
			require.NoError(t, publishFile(files, "snapshots/a", make([]byte, 1<<20)))
		}
	}
	assert.Eventually(t, func() bool {
		begin, _, err := log.Bounds(background)
		return err == nil && begin > 1 && o.Metrics().LogBytes < 16<<20
	}, 20*time.Second, 5*time.Millisecond)
	at := o.Position()
	fresh := follow(t, log, disktest.New(), replica.Options{})
	require.NoError(t, fresh.Wait(background, at))
	assert.True(t, fresh.Ready())
	require.NoError(t, fresh.Close())
	require.NoError(t, o.Close())
}
