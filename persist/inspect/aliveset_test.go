package inspect_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// The set must store generations of one to four bytes, also 256 and 512, whose lowest byte is zero.
// Some pages have large generations, and some pages have only small generations.
func TestAliveSet_CountsLargeGenerations(t *testing.T) {
	generations := []uint32{1, 2, 255, 256, 257, 512, 1 << 16, 1<<24 + 1, 1<<32 - 2}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 64))
		w := ecs.NewWorld(ecs.Options{})
		indices := 1 + rng.IntN(4*format.PageRows)
		few := rng.IntN(2) == 0 // If true, only the first page has large generations.
		for i := range uint32(indices) {
			g := generations[rng.IntN(3)]
			if i < format.PageRows || !few {
				g = generations[rng.IntN(len(generations))]
			}
			require.NoError(t, w.CreateAt(ecs.NewEntity(i, g)))
		}
		for _, i := range rng.Perm(indices)[:rng.IntN(indices)] {
			require.True(t, w.Destroy(w.Entities()[min(i, w.Len()-1)]))
		}
		w.Commit()
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, persist.Save(t.Context(), file, w))
		v := storetest.ViewOf(t, file)
		im := storetest.ImageAt(t, v, 0)
		whole, err := read(t, v, 0, func(s *inspect.State) error {
			require.NoError(t, s.Count(t.Context()))
			for i := range uint32(indices + 3) {
				for _, g := range append(generations, 0, 3) {
					e := ecs.NewEntity(i, g)
					if s.IsAlive(e) != im.IsAlive(e) {
						t.Fatalf("seed %d: IsAlive(%v) = %v, want %v", seed, e, s.IsAlive(e), im.IsAlive(e))
					}
				}
			}
			for range 5 {
				sameSkip(t, im, s, rng.IntN(indices+1))
			}
			return nil
		})
		require.NoError(t, err)
		require.False(t, whole)
	}
}
