package persist_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// sameView opens another view now, and requires that v shows the same.
func sameView(t *testing.T, dir string, v *inspect.View) {
	t.Helper()
	fresh, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer fresh.Close()
	require.Equal(t, fresh.Head(), v.Head())
	require.Equal(t, fresh.Damage(), v.Damage())
	want, err := fresh.Commits(0, 1e6)
	require.NoError(t, err)
	got, err := v.Commits(0, 1e6)
	require.NoError(t, err)
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.Equal(t, want[i].ID, got[i].ID)
		require.Equal(t, want[i].OnHead, got[i].OnHead, "record %d", want[i].Seq)
	}
}

func TestRefresh_SameAsNewView(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(8)
		options := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: 3000}, 2000)
		s := storetest.Open(t, dir, w, options)
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		var c *inspect.Cursor
		for range 40 {
			w.Do(storetest.RandomActions(rng, 8)...)
			w.ReleaseAll()
			require.NoError(t, s.Commit())
			switch rng.IntN(12) {
			case 0, 1:
				// Rewind fails if the history has no older tick.
				_ = w.History().Rewind(1 + rng.IntN(2))
			case 2:
				storetest.CloseStore(t, s)
				w = storetest.New(8)
				s = storetest.Open(t, dir, w, options)
			}
			if rng.IntN(3) > 0 {
				continue
			}
			require.NoError(t, s.Sync(storetest.Background))
			_, err := v.Refresh(storetest.Background)
			require.NoError(t, err)
			sameView(t, dir, v)
			if c == nil {
				c, err = v.Cursor(storetest.Background, v.Head())
				require.NoError(t, err)
			}
			require.NoError(t, c.Seek(storetest.Background, v.Head()))
			loaded, err := v.Catalog().At(storetest.Background, v.Head())
			require.NoError(t, err)
			require.Equal(t, contents(loaded), contents(c.Image().Internal()), "seed %d", seed)
		}
		storetest.CloseStore(t, s)
		_, err = v.Refresh(storetest.Background)
		require.NoError(t, err)
		sameView(t, dir, v)
		snapshots, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.snap"))
		require.NoError(t, err)
		require.Len(t, v.Snapshots(), len(snapshots))
		changed, err := v.Refresh(storetest.Background)
		require.NoError(t, err)
		require.False(t, changed)
		require.NoError(t, os.RemoveAll(dir))
		_, err = v.Refresh(storetest.Background)
		require.ErrorIs(t, err, persist.ErrNotFound)
		require.NoError(t, v.Close())
	}
}
