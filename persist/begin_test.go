package persist_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// The commits that follow BeginSnapshot finish the snapshot. The files in its result are enough to
// read the state, also when they are copied elsewhere.
func TestBeginSnapshot_NamesNeededFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	mem, w := disktest.New(), storetest.HostileBase(t)
	var ended []persist.SnapshotResult
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1, SnapshotPace: 1, OnSnapshot: func(r persist.SnapshotResult) { ended = append(ended, r) }})
	require.NoError(t, err)
	defer s.Close(storetest.Background)
	ended = ended[:0]
	commit := func() {
		w.Do(storetest.RandomActions(rng, 3)...)
		require.NoError(t, s.Commit())
	}
	shared := 0
	for range 3 {
		commit()
		want, tick := storetest.Persistent(w.World), w.World.Tick()
		for _, begins := range []bool{true, false} {
			begun, err := s.BeginSnapshot()
			require.NoError(t, err)
			require.Equal(t, begins, begun, "only one snapshot is under way")
		}
		require.Len(t, ended, 0, "BeginSnapshot does not wait")
		// These ticks must not rewind the world, because a rewind would abandon the snapshot.
		for s.Snapshotting() {
			w.Seed.Set(storetest.Seed(rng.Uint32()))
			require.NoError(t, s.Commit())
		}
		require.Len(t, ended, 1)
		r := ended[0]
		require.NoError(t, r.Err)
		require.Equal(t, tick, r.Tick)
		require.Equal(t, r.Name, r.Files[0])
		ended = ended[:0]
		elsewhere := disktest.New()
		require.NoError(t, elsewhere.Mkdir("snapshots"))
		for _, file := range r.Files {
			copied, err := elsewhere.Create(file)
			require.NoError(t, err)
			_, err = copied.WriteAt(mem.Bytes(file), 0)
			require.NoError(t, err)
			require.NoError(t, copied.Close())
		}
		into := storetest.New(0)
		require.NoError(t, persist.Load(storetest.Background, r.Name, into.World, persist.FileOptions{Files: elsewhere}))
		require.Equal(t, want, storetest.Persistent(into.World))
		shared += len(r.Files) - 1
	}
	require.Positive(t, shared, "no snapshot shared pages")
	w.Seed.Set(w.Seed.Get() + 1)
	_, err = s.BeginSnapshot()
	require.ErrorIs(t, err, persist.ErrUncommitted)
}
