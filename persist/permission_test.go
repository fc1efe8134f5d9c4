package persist_test

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A refusingFS cannot open one file.
type refusingFS struct {
	disk.FS
	name string
	err  error
}

func (f refusingFS) Open(name string) (disk.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.FS.Open(name)
}

// If the system refuses to open a file, Open reports that. The file is not damaged, and Open does
// not use an older file instead.
func TestOpen_SnapshotPermissionDenied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	for range 2 {
		w.Fill(10)
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	for _, name := range []string{"snapshots/00000001.snap", "snapshots/00000003.snap"} {
		for _, refusal := range []error{fs.ErrPermission, syscall.EMFILE} {
			files, err := disk.Open(dir)
			require.NoError(t, err)
			defer files.Close()
			refusing := refusingFS{files, name, refusal}
			_, opened := persist.Open(storetest.Background, ".", storetest.New(0).World, persist.Options{Files: refusing})
			_, viewed := inspect.OpenFS(storetest.Background, refusing, ".")
			for _, err := range []error{opened, viewed} {
				require.ErrorIs(t, err, refusal)
				require.NotErrorIs(t, err, persist.ErrCorrupt)
				require.EqualError(t, err, "persist: open "+name+": "+refusal.Error())
			}
		}
	}
	again := storetest.New(0)
	storetest.CloseStore(t, storetest.Open(t, dir, again, persist.Options{}))
	require.Equal(t, w.Digest(), again.Digest())
}
