package replica_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

// An owner finds an entry that no server shows, and sends all files again. After that, machines can
// follow again.
func TestOwner_ResendsAfterMissingEntry(t *testing.T) {
	log := &replicatest.Log{}
	options := replica.Options{}.ReadBack(5 * time.Millisecond)
	g, o, store := own(t, follow(t, log.Link(1), disktest.New(), options))
	play := func() {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	// These positions have the claim, the store and ticks.
	for hole := replica.Position(1); hole < 30; hole++ {
		for o.Position() <= hole {
			play()
		}
		log.Hide(hole)
		require.Eventually(t, func() bool {
			play()
			f, err := replica.Follow(background, log.Link(2), disktest.New(), replica.Options{}.Patient(time.Millisecond))
			if err != nil {
				return false
			}
			defer f.Close()
			return f.Ready()
		}, 20*time.Second, 5*time.Millisecond, "entry %d", hole)
	}
	assert.NotZero(t, o.Metrics().Healed)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}

// An owner does not repair a log that shows all of its entries, even if calls fail.
func TestOwner_NoResendWithoutMissingEntry(t *testing.T) {
	log := &replicatest.Log{}
	link := log.Link(1)
	options := replica.Options{}.ReadBack(time.Millisecond)
	g, o, store := own(t, follow(t, link, disktest.New(), options))
	link.Fail(replicatest.Faults{Refused: 0.1, Lost: 0.1, Late: 0.1, Stale: 0.1, Hole: 0.1})
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
		if g.Tick()%20 == 0 {
			require.NoError(t, o.Rebase(background))
			log.Settle()
		}
	}
	link.Fail(replicatest.Faults{})
	assert.Zero(t, o.Metrics().Healed)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}
