package catalog_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// changing is a file system that changes while a store is copied. It has the files of FS until the
// copier lists the journal. After that, it has the files of then.
type changing struct {
	disk.FS
	then disk.FS
}

func (c *changing) ReadDir(dir string) ([]fs.DirEntry, error) {
	if dir == catalog.JournalDir {
		c.FS = c.then
	}
	return c.FS.ReadDir(dir)
}

// After CopyStore has listed the snapshots, a program writes a new snapshot, and removes the older
// snapshots and records. The listed snapshots do not lead to the new head, so CopyStore starts
// again.
func TestCopyStore_SnapshotsRemovedMeanwhile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	texts := ecs.MustRegister[text](w)
	tick := func(content text) {
		s, err := persist.Open(t.Context(), dir, w, persist.Options{Retain: persist.Retention{Last: 1}})
		require.NoError(t, err)
		texts.Set(w.Create(), content)
		w.Commit()
		_, err = s.Snapshot(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
		w = ecs.NewWorld(ecs.Options{})
		texts = ecs.MustRegister[text](w)
	}
	tick("a")
	before := filepath.Join(t.TempDir(), "before")
	require.NoError(t, os.CopyFS(before, os.DirFS(dir)))
	for range 5 { // Each record is in its own segment.
		tick("b")
	}
	then, err := disk.Open(dir)
	require.NoError(t, err)
	defer then.Close()
	for _, name := range []string{"snapshots", "journal"} {
		entries, err := then.ReadDir(name)
		require.NoError(t, err)
		_, err = os.Stat(filepath.Join(before, name, entries[0].Name()))
		require.ErrorIs(t, err, fs.ErrNotExist, "the files of the first store still exist")
	}
	files, err := disk.Open(before)
	require.NoError(t, err)
	defer files.Close()
	to := disk.Memory()
	require.NoError(t, catalog.CopyStore(t.Context(), &changing{files, then}, to, func() uint64 { return 1 << 60 }))
	c, err := catalog.OpenFS(t.Context(), to, ".")
	require.NoError(t, err)
	require.Empty(t, c.Faults())
	require.NotEmpty(t, c.CandidateSnapshots(c.Head()))
	require.NoError(t, c.Close())
}
