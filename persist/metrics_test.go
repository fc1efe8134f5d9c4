package persist_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// bytesIn returns the total size of the files of dir that match pattern.
func bytesIn(t testing.TB, dir, pattern string) (n int64) {
	tree := storetest.ReadTree(t, dir)
	for _, name := range storetest.FilesOf(t, dir, pattern) {
		n += int64(len(tree[name]))
	}
	return n
}

func TestMetrics_ValuesAfterEachStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	m := s.Metrics()
	require.Equal(t, 1, m.Snapshots)
	require.Zero(t, m.LagTicks)
	require.Zero(t, m.SnapshotStall)
	syncs := m.Syncs
	for range 3 {
		w.Fill(2)
		require.NoError(t, s.Commit())
	}
	m = s.Metrics()
	require.Equal(t, uint64(3), m.Tick)
	require.Equal(t, uint64(0), m.DurableTick)
	require.Equal(t, uint64(3), m.LagTicks)
	require.NoError(t, s.Sync(storetest.Background))
	m = s.Metrics()
	require.Equal(t, uint64(3), m.DurableTick)
	require.Zero(t, m.LagTicks)
	require.Zero(t, m.QueuedBytes)
	require.Equal(t, syncs+1, m.Syncs)
	require.Greater(t, m.SyncLast, time.Duration(0))
	require.GreaterOrEqual(t, m.SyncMax, m.SyncLast)
	require.GreaterOrEqual(t, m.SyncTotal, m.SyncMax)

	r := storetest.SnapshotOf(t, s)
	m = s.Metrics()
	require.Equal(t, 2, m.Snapshots)
	require.Equal(t, r, m.LastSnapshot)
	require.False(t, m.Snapshotting)
	require.NoError(t, s.Journal().Roll(storetest.Background))
	storetest.CloseStore(t, s)
	require.ErrorIs(t, s.Commit(), persist.ErrClosed)
	m = s.Metrics()
	require.Equal(t, 2, m.JournalSegments)
	require.Equal(t, bytesIn(t, dir, "journal/*.seg"), m.JournalBytes)
	require.Equal(t, bytesIn(t, dir, "snapshots/*"), m.SnapshotBytes)
	require.Equal(t, m.JournalBytes+m.SnapshotBytes, m.DiskBytes)

	again := storetest.New(0) // Metrics include files of earlier openings.
	s = storetest.Open(t, dir, again, persist.Options{Sync: journal.SyncNever})
	m = s.Metrics()
	require.Equal(t, uint64(3), m.DurableTick)
	require.Zero(t, m.Snapshots)
	_, err := s.Journal().Prune(4)
	require.NoError(t, err)
	m = s.Metrics()
	require.Equal(t, bytesIn(t, dir, "journal/*.seg"), m.JournalBytes)
	require.Equal(t, bytesIn(t, dir, "snapshots/*"), m.SnapshotBytes)
	storetest.CloseStore(t, s)
}

func TestMetrics_SnapshotStall(t *testing.T) {
	w := storetest.New(0)
	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{SnapshotBytes: 1})
	for s.Metrics().Snapshots < 2 {
		w.Fill(5)
		require.NoError(t, s.Commit())
	}
	require.Greater(t, s.Metrics().SnapshotStall, time.Duration(0))
	require.NoError(t, s.Metrics().LastSnapshot.Err)
	storetest.CloseStore(t, s)
}

func TestMetrics_CountsRemovedFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	options := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1, Retain: persist.Retention{Last: 1}}, 2000)
	var removed []string
	for range 2 { // Retention also removes files of earlier openings.
		w := storetest.New(0)
		s := storetest.Open(t, dir, w, options)
		for range 4 {
			w.Fill(40)
			require.NoError(t, s.Commit())
			s.ForgetPages() // The next snapshot is a full one.
			r := storetest.SnapshotOf(t, s)
			require.NoError(t, r.RemoveErr)
			removed = append(removed, r.Removed...)
			m := s.Metrics()
			require.Equal(t, bytesIn(t, dir, "journal/*.seg"), m.JournalBytes)
			require.Equal(t, bytesIn(t, dir, "snapshots/*"), m.SnapshotBytes)
			require.Equal(t, m.JournalBytes+m.SnapshotBytes, m.DiskBytes)
		}
		storetest.CloseStore(t, s)
	}
	require.Contains(t, removed, catalog.SnapshotName(1))
	require.Contains(t, removed, catalog.SnapshotName(5))
	require.Contains(t, removed, "journal/00000001.seg")
}
