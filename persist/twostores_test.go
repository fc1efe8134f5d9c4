package persist_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Two stores record one world, and the second store begins at a later tick. Each store has every
// tick since its creation, on all branches. Each has its own record numbers.
func TestWorld_KeptInTwoStores(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 77))
		w := storetest.New(8)
		files := [2]disk.FS{disk.Memory(), disk.Memory()}
		var stores [2]*persist.Store
		open := func(i int) {
			s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: files[i], SnapshotBytes: 1 << 12})
			require.NoError(t, err)
			stores[i] = s
		}
		var digests [2]map[uint64]ecs.Digest // Digests by record.
		look := func() {
			for i, s := range stores {
				if s != nil {
					_, at := w.Raw().Held(s)
					digests[i][at] = storetest.Persistent(w.World)
				}
			}
		}
		digests[0], digests[1] = map[uint64]ecs.Digest{}, map[uint64]ecs.Digest{}
		run := func(ticks int) {
			for range ticks {
				change(w, rng)
				for _, s := range stores {
					if s != nil {
						require.NoError(t, s.Commit())
						break // One Commit ends the tick in both stores.
					}
				}
				look()
				if rng.IntN(5) == 0 {
					require.NoError(t, w.History().Rewind(rng.IntN(int(w.Tick()-w.History().Oldest())+1)))
				}
			}
		}
		open(0)
		run(10)
		open(1)
		look()
		run(20)
		require.ErrorIs(t, stores[0].Goto(storetest.Background, "@latest~1"), raw.ErrAttached, "the other one would not be told")
		storetest.CloseStore(t, stores[seed%2])
		stores[seed%2] = nil
		run(10)
		require.NoError(t, stores[1-seed%2].Close(storetest.Background))
		for i := range stores {
			v, err := inspect.OpenFS(storetest.Background, files[i], ".")
			require.NoError(t, err)
			report, err := v.Verify(storetest.Background)
			require.NoError(t, err)
			require.Empty(t, report.Problems)
			require.Greater(t, len(digests[i]), 20)
			for record, want := range digests[i] {
				if record == 0 {
					continue
				}
				require.Equal(t, want, storetest.ImageAt(t, v, record).Digest(), "seed %d, store %d, record %d", seed, i, record)
			}
			require.NoError(t, v.Close())
		}
	}
}
