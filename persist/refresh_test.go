package persist

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
)

// sameView checks that v shows what a view that is opened now does.
func sameView(t *testing.T, dir string, v *View) {
	t.Helper()
	fresh, err := OpenReadOnly(background, dir)
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

func TestARefreshedViewShowsWhatANewOneDoes(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dir := filepath.Join(t.TempDir(), "store")
		w := newTestWorld(8)
		options := Segmented(Options{Sync: journal.SyncNever(), SnapshotBytes: 3000}, 2000)
		s := open(t, dir, w, options)
		v, err := OpenReadOnly(background, dir)
		require.NoError(t, err)
		var c *Cursor
		for range 40 {
			w.do(randomActions(rng, 8)...)
			w.releaseAll()
			require.NoError(t, s.Commit())
			switch rng.IntN(12) {
			case 0, 1:
				_ = w.History().Rewind(1 + rng.IntN(2)) // There may be no tick to go back to.
			case 2:
				closeStore(t, s)
				w = newTestWorld(8)
				s = open(t, dir, w, options)
			}
			if rng.IntN(3) > 0 {
				continue
			}
			require.NoError(t, s.Sync(background))
			_, err := v.Refresh(background)
			require.NoError(t, err)
			sameView(t, dir, v)
			if c == nil {
				c, err = v.Cursor(background, v.Head())
				require.NoError(t, err)
			}
			require.NoError(t, c.Seek(background, v.Head()))
			loaded, err := v.At(background, v.Head())
			require.NoError(t, err)
			require.Equal(t, contents(loaded), contents(c.Image()), "seed %d", seed)
		}
		closeStore(t, s)
		_, err = v.Refresh(background)
		require.NoError(t, err)
		sameView(t, dir, v)
		snapshots, err := v.numbers()
		require.NoError(t, err)
		require.Len(t, v.Snapshots(), len(snapshots))
		changed, err := v.Refresh(background)
		require.NoError(t, err)
		require.False(t, changed)
		require.NoError(t, os.RemoveAll(dir))
		_, err = v.Refresh(background)
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, v.Close())
	}
}
