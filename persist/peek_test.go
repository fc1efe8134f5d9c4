package persist

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

func TestAnEntityPeekedAtIsWhatTheWholeStateHasOfIt(t *testing.T) {
	for seed := range uint64(2) {
		v := wildView(t, seed)
		require.GreaterOrEqual(t, len(v.Snapshots()), 3)
		entities := lives(t, v)
		for _, seq := range seqsOf(v) {
			im := imageAt(t, v, seq)
			for _, e := range entities {
				s, err := v.Peek(background, e, seq)
				require.NoError(t, err)
				require.Equal(t, peekedAt(t, im, e), s, "seed %d, %v at record %d", seed, e, seq)
			}
		}
	}
}

// Whatever block of a save is damaged, Peek is right or says so; most blocks it does
// not read.
func TestDamageElsewhereDoesNotKeepFromPeeking(t *testing.T) {
	const block = 64 << 10
	file := filepath.Join(t.TempDir(), "save")
	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[position](w)
	for i := range 60_000 {
		positions.Set(w.Create(), position{float32(i), 1})
	}
	require.NoError(t, Save(background, file, w))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	e := ecs.NewEntity(40_002, 1)
	want := peekedAt(t, imageAt(t, viewOf(t, file), 0), e)
	right, refused := 0, 0
	for at := block / 2; at < len(good); at += block {
		bad := slices.Clone(good)
		bad[at] ^= 1
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		v, err := OpenReadOnly(background, file)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			continue
		}
		if got, err := v.Peek(background, e, 0); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			refused++
		} else {
			require.Equal(t, want, got)
			right++
		}
		require.NoError(t, v.Close())
	}
	require.Positive(t, refused)
	require.Greater(t, right, refused)
}

func TestAPeekGoesPastASnapshotThatIsDamaged(t *testing.T) {
	mem, _ := bushy(t)
	v, err := OpenFS(background, mem)
	require.NoError(t, err)
	im := imageAt(t, v, v.Head())
	e := im.Registry[7]
	want := peekedAt(t, im, e)
	for at := 0; at+100 < len(mem.Bytes(snapshotName(4))); at += 4096 {
		v, err := OpenFS(background, flipped(mem, snapshotName(4), 8*at+8*100))
		require.NoError(t, err)
		got, err := v.Peek(background, e, v.Head())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = v.Peek(background, e, 99)
	require.ErrorIs(t, err, ErrNotFound)
}
