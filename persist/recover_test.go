package persist_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// A recovery recovers damaged copies of a store, and compares them with the original store.
type recovery struct {
	*storetest.Damaged
	digests map[uint64]ecs.Digest // Digests by seq.
	n       int
}

func newRecovery(t testing.TB, s *storetest.Sample) *recovery {
	r := &recovery{Damaged: s.Damaged(t), digests: map[uint64]ecs.Digest{}}
	v := storetest.ViewOf(t, s.Dir)
	for seq := range v.Log().Last + 1 {
		im, err := v.At(storetest.Background, seq)
		require.NoError(t, err)
		r.digests[seq] = im.Digest()
	}
	return r
}

// run recovers the files in the directory. It checks that the result is a store, and that its state
// is the reported state of the original.
func (r *recovery) run(options repair.RecoverOptions) (string, repair.RecoverReport, error) {
	r.T.Helper()
	r.n++
	before := storetest.ReadTree(r.T, r.Dir)
	out := filepath.Join(r.T.TempDir(), "recovered")
	report, err := repair.Recover(storetest.Background, r.Dir, out, options)
	require.Equal(r.T, before, storetest.ReadTree(r.T, r.Dir), "the damaged store was changed")
	if err != nil {
		_, statErr := os.Stat(out)
		require.ErrorIs(r.T, statErr, os.ErrNotExist)
		return "", report, err
	}
	v := storetest.Verified(r.T, out)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(r.T, err)
	require.Equal(r.T, r.digests[report.Seq], im.Digest(), "record %d", report.Seq)
	require.Equal(r.T, report.Tick, im.Tick)
	return out, report, nil
}

func TestRecover_EveryFlippedBit(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	r := newRecovery(t, s)
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	whole, less, none := 0, 0, 0
	for name, data := range s.Tree {
		if data == "" || name == "LOCK" {
			continue
		}
		step := 1
		if *storetest.Stride > 1 {
			step = len(data)**storetest.Stride/240 + 1 // A few bits of each file.
		}
		for at := rng.IntN(step); at < len(data); at += step {
			r.With(name, storetest.Flip(data, at, rng.IntN(8)), func() {
				_, report, err := r.run(repair.RecoverOptions{})
				switch {
				case err != nil:
					require.ErrorIs(t, err, persist.ErrCorrupt, "byte %d of %s", at, name)
					// The other snapshots refer to this file.
					require.Equal(t, "snapshots/00000001.snap", name)
					none++
				case report.Complete():
					require.Equal(t, uint64(6), report.Seq, "byte %d of %s", at, name)
					whole++
				default:
					less++
				}
			})
		}
	}
	t.Logf("%d recovered whole, %d in part, %d not", whole, less, none)
	require.Positive(t, whole)
}
