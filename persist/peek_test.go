package persist_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestPeek_SameAsWholeState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		v := storetest.WildView(t, seed)
		require.GreaterOrEqual(t, len(v.Snapshots()), 3)
		entities := storetest.Lives(t, v)
		for _, seq := range storetest.SeqsOf(v) {
			im := storetest.ImageAt(t, v, seq)
			for _, e := range entities {
				s, err := v.Peek(storetest.Background, e, seq)
				require.NoError(t, err)
				require.Equal(t, storetest.PeekedAt(t, im, e), s, "seed %d, %v at record %d", seed, e, seq)
			}
		}
	}
}

// If a block of a save is damaged, Peek is correct or returns an error. Peek does not read most
// blocks.
func TestPeek_OtherBlocksDamaged(t *testing.T) {
	t.Parallel()
	const block = 64 << 10
	file := filepath.Join(t.TempDir(), "save")
	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[storetest.Position](w)
	for i := range 60_000 {
		positions.Set(w.Create(), storetest.Position{X: float32(i), Y: 1})
	}
	require.NoError(t, persist.Save(storetest.Background, file, w))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	e := ecs.NewEntity(40_002, 1)
	want := storetest.PeekedAt(t, storetest.ImageAt(t, storetest.ViewOf(t, file), 0), e)
	right, refused := 0, 0
	for at := block / 2; at < len(good); at += block {
		bad := slices.Clone(good)
		bad[at] ^= 1
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		v, err := inspect.OpenReadOnly(storetest.Background, file)
		if err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt)
			continue
		}
		if got, err := v.Peek(storetest.Background, e, 0); err != nil {
			require.ErrorIs(t, err, persist.ErrCorrupt)
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

func TestPeek_SnapshotDamaged(t *testing.T) {
	mem, _ := bushy(t)
	v, err := inspect.OpenFS(storetest.Background, mem, ".")
	require.NoError(t, err)
	im := storetest.ImageAt(t, v, v.Head())
	e := im.Registry[7]
	want := storetest.PeekedAt(t, im, e)
	for at := 0; at+100 < len(mem.Bytes(catalog.SnapshotName(4))); at += 4096 {
		v, err := inspect.OpenFS(storetest.Background, flipped(mem, catalog.SnapshotName(4), 8*at+8*100), ".")
		require.NoError(t, err)
		got, err := v.Peek(storetest.Background, e, v.Head())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = v.Peek(storetest.Background, e, 99)
	require.ErrorIs(t, err, persist.ErrNotFound)
}
