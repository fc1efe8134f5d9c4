package persist_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A namelessFS cannot sync directories.
type namelessFS struct {
	disk.FS
	err error
}

func (f namelessFS) SyncDir(string) error { return f.err }

// If directories cannot be synced, a store still opens and works, and its report has UnsyncedNames
// set. A save succeeds.
func TestOpen_DirectoriesCannotBeSynced(t *testing.T) {
	files := namelessFS{disktest.New(), fmt.Errorf("%w: %w", disk.ErrNoDirSync, syscall.EINVAL)}
	w := storetest.New(0)
	for opening := range 3 {
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: files, Retain: persist.Retention{Last: 1}})
		require.NoError(t, err)
		require.True(t, s.Report().UnsyncedNames, "opening %d", opening)
		require.Contains(t, s.Report().String(), "cannot sync directories")
		for range 20 {
			w.Fill(30)
			require.NoError(t, s.Commit())
		}
		storetest.SnapshotOf(t, s)
		require.NoError(t, s.Sync(storetest.Background))
		require.NoError(t, s.Close(storetest.Background))
		digest := w.Digest()
		w = storetest.New(0)
		require.NoError(t, persist.Save(storetest.Background, fmt.Sprintf("%d.save", opening), w.World, persist.FileOptions{Files: files}))
		s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: files})
		require.NoError(t, err)
		require.Equal(t, digest, w.Digest())
		require.NoError(t, s.Close(storetest.Background))
		w = storetest.New(0)
	}
}

// A follower that takes over such a store reports it, too.
func TestFollowerOpen_DirectoriesCannotBeSynced(t *testing.T) {
	files := namelessFS{disktest.New(), fmt.Errorf("%w: %w", disk.ErrNoDirSync, syscall.EINVAL)}
	s, err := persist.Open(storetest.Background, ".", storetest.New(0).World, persist.Options{Files: files})
	require.NoError(t, err)
	f, err := persist.Follow(storetest.Background, ".", storetest.New(0).World, persist.FileOptions{Files: files})
	require.NoError(t, err)
	require.NoError(t, s.Close(storetest.Background))
	s, err = f.Open(storetest.Background, persist.Options{Files: files})
	require.NoError(t, err)
	require.True(t, s.Report().UnsyncedNames)
	require.NoError(t, s.Close(storetest.Background))
}

// If a directory sync fails for another reason, Open returns the error.
func TestOpen_DirectorySyncFails(t *testing.T) {
	broken := errors.New("input/output error")
	_, err := persist.Open(storetest.Background, ".", storetest.New(0).World, persist.Options{Files: namelessFS{disktest.New(), broken}})
	require.ErrorIs(t, err, broken)
}
