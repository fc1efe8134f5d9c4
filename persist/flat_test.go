package persist_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/disk/flat"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// In a browser, a store is on a device that has only numbered files. If the device crashes, the
// store loses no durable tick.
func TestStore_OnNumberedFiles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(15, 400)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := disktest.New()
		commits, durable := map[ecs.Digest]int{}, 0 // The number of the commit with each digest.
		last := 0
		commits[storetest.Persistent(storetest.New(5).World)] = 0
		for range 4 {
			tree, err := flat.Open(disktest.Numbered(mem))
			require.NoError(t, err, "seed %d", seed)
			w := storetest.New(5)
			s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: tree, SnapshotBytes: 6000})
			require.NoError(t, err, "seed %d", seed)
			commit, ok := commits[storetest.Persistent(w.World)]
			require.True(t, ok, "seed %d: the state of no commit", seed)
			require.GreaterOrEqual(t, commit, durable, "seed %d", seed)
			for range rng.IntN(40) {
				w.Do(storetest.RandomActions(rng, 8)...)
				w.Seed.Set(storetest.Seed(rng.Uint64())) // No two ticks are equal.
				require.NoError(t, s.Commit())
				last++
				commits[storetest.Persistent(w.World)] = last
				switch rng.IntN(12) {
				case 0:
					_, err := s.SaveSlot(storetest.Background, "slot", "")
					require.NoError(t, err)
				case 1:
					require.NoError(t, s.Sync(storetest.Background))
				default:
					continue
				}
				durable = last
			}
			crashed := mem.CrashSeed(rng.Uint64())
			w.ReleaseAll()
			storetest.CloseStore(t, s)
			mem = crashed
		}
	}
}
