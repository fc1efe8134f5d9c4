package persist

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// A recovery recovers damaged copies of a store, and knows what the store was.
type recovery struct {
	*damaged
	digests map[uint64]ecs.Digest // By seq.
	n       int
}

func newRecovery(t testing.TB, s *sample) *recovery {
	r := &recovery{damaged: s.damaged(t), digests: map[uint64]ecs.Digest{}}
	v := openedReadOnly(t, s.dir)
	for seq := range v.Log().Last + 1 {
		im, err := v.At(background, seq)
		require.NoError(t, err)
		r.digests[seq] = im.Digest()
	}
	return r
}

// run recovers what lies in the directory now, and checks that the outcome is a store
// in a state that it says the original was in.
func (r *recovery) run(options RecoverOptions) (string, RecoverReport, error) {
	r.t.Helper()
	r.n++
	before := readTree(r.t, r.dir)
	out := filepath.Join(r.t.TempDir(), "recovered")
	report, err := Recover(background, r.dir, out, options)
	require.Equal(r.t, before, readTree(r.t, r.dir), "the damaged store was changed")
	if err != nil {
		_, statErr := os.Stat(out)
		require.ErrorIs(r.t, statErr, os.ErrNotExist)
		return "", report, err
	}
	v := verified(r.t, out)
	im, err := v.At(background, v.Head())
	require.NoError(r.t, err)
	require.Equal(r.t, r.digests[report.Seq], im.Digest(), "record %d", report.Seq)
	require.Equal(r.t, report.Tick, im.Tick)
	return out, report, nil
}

func TestWithOneFlippedBitAStoreIsRecoveredAsItWasAtOneOfItsTicks(t *testing.T) {
	s := newSample(t)
	r := newRecovery(t, s)
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	whole, less, none := 0, 0, 0
	for name, data := range s.tree {
		if data == "" || name == lockFile {
			continue
		}
		step := 1
		if *stride > 1 {
			step = len(data)**stride/240 + 1 // A handful.
		}
		for at := rng.IntN(step); at < len(data); at += step {
			r.with(name, flip(data, at, rng.IntN(8)), func() {
				_, report, err := r.run(RecoverOptions{})
				switch {
				case err != nil:
					require.ErrorIs(t, err, ErrCorrupt, "byte %d of %s", at, name)
					require.Equal(t, "snapshots/00000001.snap", name) // The others refer to it.
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
