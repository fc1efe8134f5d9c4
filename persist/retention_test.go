package persist

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// Whatever is removed, what stays can be read and recovered from.
func TestARunWithRetentionKeepsWhatItPromises(t *testing.T) {
	var removed atomic.Int64
	for seed := range uint64(3) {
		dir := filepath.Join(t.TempDir(), "store")
		rng := rand.New(rand.NewPCG(seed, 5))
		now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
		options := Options{
			Sync: journal.SyncNever(), SnapshotBytes: 2000, Retain: Retention{Last: 2, Every: time.Hour},
			Now: func() time.Time { now = now.Add(time.Minute); return now },
			OnSnapshot: func(r SnapshotResult) {
				assert.NoError(t, r.RemoveErr)
				removed.Add(int64(len(r.Removed)))
			},
		}
		w := newTestWorld(8)
		w.fill(20)
		s := open(t, dir, w, options)
		digests := map[journal.ID]ecs.Digest{}
		named := map[string]ecs.Digest{}
		for i := range 250 {
			w.do(randomActions(rng, 4)...)
			require.NoError(t, s.Commit())
			digests[s.IDs()[w.Mark()]] = persistent(w.World)
			_, _ = s.Written(background)
			if rng.IntN(10) == 0 {
				_ = w.History().Rewind(rng.IntN(8))
			}
			if i%100 == 50 {
				w.releaseAll()
				if w.Dirty() {
					require.NoError(t, s.Commit())
				}
				name := names[1+i/100]
				_, err := s.SnapshotAs(background, name)
				require.NoError(t, err)
				named[name] = persistent(w.World)
			}
			if i%90 == 89 {
				w.releaseAll()
				require.NoError(t, s.Commit())
				digests[s.IDs()[w.Mark()]] = persistent(w.World)
				closeStore(t, s)
				verified(t, dir)
				w = newTestWorld(8)
				s = open(t, dir, w, options)
			}
		}
		w.releaseAll()
		closeStore(t, s)
		verified(t, dir)
		v, err := OpenReadOnly(background, dir)
		require.NoError(t, err)
		for _, info := range v.Snapshots() {
			require.NoError(t, info.Err)
			if want, ok := digests[info.ID]; ok {
				require.Equal(t, want, info.Digest, info.Name)
			}
		}
		for name, want := range named {
			seq, err := v.Resolve("snap:" + name)
			require.NoError(t, err)
			im, err := v.At(background, seq)
			require.NoError(t, err)
			require.Equal(t, want, im.Digest())
		}
		require.Less(t, len(v.Snapshots()), 40)
		require.NoError(t, v.Close())
	}
	require.Greater(t, removed.Load(), int64(20))
}

func TestNamesOfSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	for _, bad := range []string{"", "12", "-1", " x", "a\nb", "\xff", strings.Repeat("x", 256)} {
		_, err := s.SnapshotAs(background, bad)
		require.ErrorIs(t, err, ErrName, "%q", bad)
	}
	r, err := s.SnapshotAs(background, "before the boss")
	require.NoError(t, err)
	_, err = s.SnapshotAs(background, "before the boss")
	require.ErrorIs(t, err, ErrName)
	require.ErrorContains(t, err, "snapshot 2")
	require.NoError(t, s.Commit())
	snapshotOf(t, s)
	closeStore(t, s)
	s = open(t, dir, newTestWorld(0), Options{})
	_, err = s.SnapshotAs(background, "before the boss")
	require.ErrorIs(t, err, ErrName, "after opening again")
	snapshotOf(t, s)
	closeStore(t, s)
	v, err := OpenReadOnly(background, dir)
	require.NoError(t, err)
	defer v.Close()
	require.Equal(t, "before the boss", v.Snapshots()[1].Label)
	require.Equal(t, r.Name, v.Snapshots()[1].Name)
	require.True(t, v.Snapshots()[0].Time.IsZero(), "no tick was committed")
	require.WithinDuration(t, time.Now(), v.Snapshots()[2].Time, time.Hour)
	require.Equal(t, v.Snapshots()[2].Time, v.Snapshots()[3].Time, "that of the tick, not of the opening")
	_, err = v.Resolve("snap:nothing")
	require.ErrorIs(t, err, ErrNotFound)
}

func TestADamagedStoreRemovesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	for range 5 {
		w.fill(5)
		require.NoError(t, s.Commit())
		snapshotOf(t, s)
	}
	closeStore(t, s)
	tree := readTree(t, dir)
	damaged := []byte(tree["snapshots/00000006.snap"])
	damaged[len(damaged)/2] ^= 1
	tree["snapshots/00000006.snap"] = string(damaged)
	tree["snapshots/00000090.snap.tmp"] = "unfinished"
	writeTree(t, dir, tree)
	w = newTestWorld(0)
	s = open(t, dir, w, Options{SnapshotBytes: -1, Retain: Retention{Last: 1}})
	require.NotEmpty(t, s.Report().Skipped)
	for range 12 {
		w.fill(2)
		require.NoError(t, s.Commit())
		s.ForgetPages() // In full: none needs those before.
		require.Empty(t, snapshotOf(t, s).Removed)
	}
	closeStore(t, s)
	require.Subset(t, slices.Sorted(maps.Keys(readTree(t, dir))), slices.Sorted(maps.Keys(tree)))
}

func TestOpeningRemovesSnapshotsThatWereNeverFinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, newTestWorld(0), Options{})
	closeStore(t, s)
	before := slices.Sorted(maps.Keys(readTree(t, dir)))
	tree := readTree(t, dir)
	tree["snapshots/00000007.snap.tmp"] = "unfinished"
	writeTree(t, dir, tree)
	s = open(t, dir, newTestWorld(0), Options{})
	require.NotContains(t, readTree(t, dir), "snapshots/00000007.snap.tmp")
	closeStore(t, s)
	require.Subset(t, slices.Sorted(maps.Keys(readTree(t, dir))), before)
}

// A page that never changes must not hold all files for ever.
func TestAWorldThatHardlyChangesIsPrunedAsWell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	w.fill(50)
	s := open(t, dir, w, Options{SnapshotBytes: -1, Sync: journal.SyncNever(), Retain: Retention{Last: 1}})
	removed := 0
	for i := range 60 {
		w.seed.Set(seed(i))
		require.NoError(t, s.Commit())
		removed += len(snapshotOf(t, s).Removed)
	}
	require.Greater(t, removed, 20)
	require.Less(t, s.Stored(), 40)
	closeStore(t, s)
	verified(t, dir)
}

func TestSnapshotsThatWereRewoundAreNotKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(5)
	s := open(t, dir, w, Options{SnapshotBytes: -1, Retain: Retention{Last: 1}})
	var removed []string
	for i := range 3 {
		w.fill(1)
		require.NoError(t, s.Commit())
		if i == 1 {
			require.NoError(t, w.History().Rewind(2))
			continue
		}
		s.ForgetPages() // In full.
		removed = snapshotOf(t, s).Removed
	}
	require.Equal(t, []string{"snapshots/00000002.snap"}, removed)
	closeStore(t, s)
	verified(t, dir)
}
