package repair_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// filled returns the image of a world of n entities.
func filled(t testing.TB, n int) *inspect.Image {
	w := storetest.New(0)
	w.Fill(n)
	return inspect.NewImage(storetest.ImageOf(t, w))
}

// inTheMiddle returns a context for a write. The progress callback in that context runs call once,
// when a part of the data is written.
func inTheMiddle(call func()) context.Context {
	called := false
	return persist.WithProgress(storetest.Background, func(p persist.Progress) {
		if p.Phase == progress.PhaseWrite && p.Done > 0 && !called {
			called = true
			call()
		}
	})
}

// names returns the names in a directory.
func names(t testing.TB, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// requireStore requires that dir is a store of n entities.
func requireStore(t testing.TB, dir string, n int) {
	t.Helper()
	storetest.Verified(t, dir)
	w := storetest.New(0)
	storetest.CloseStore(t, storetest.Open(t, dir, w, persist.Options{}))
	require.Equal(t, n, w.Len())
}

// If two writers create the same store, the writer that finishes first succeeds. The other writer
// returns fs.ErrExist.
func TestSaveStore_ConcurrentWriters(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	// This directory belongs to the user and must not be removed.
	require.NoError(t, os.Mkdir(dir+".tmp", 0o700))
	err := repair.SaveStore(inTheMiddle(func() {
		require.NoError(t, repair.SaveStore(storetest.Background, filled(t, 7), dir))
	}), filled(t, 9), dir)
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, []string{"store", "store.tmp"}, names(t, parent))
	requireStore(t, dir, 7)
}

// The next writer removes the temporary directory that a killed process left behind.
func TestSaveStore_AfterKilledWriter(t *testing.T) {
	const variable = "SAVE_STORE_TEST_DIR"
	if dir := os.Getenv(variable); dir != "" {
		_ = repair.SaveStore(inTheMiddle(func() { os.Exit(3) }), filled(t, 9), dir)
		os.Exit(1)
	}
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	for range 2 {
		c := exec.Command(os.Args[0], "-test.run=^TestSaveStore_AfterKilledWriter$")
		c.Env = append(os.Environ(), variable+"="+dir)
		var exit *exec.ExitError
		require.ErrorAs(t, c.Run(), &exit)
		require.Equal(t, 3, exit.ExitCode())
		if runtime.GOOS != "windows" {
			require.Len(t, names(t, parent), 1)
		}
	}
	own := filepath.Join(parent, "store.ABCDEFGHIJKLMNOP.tmp")
	require.NoError(t, os.Mkdir(own, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(own, "text"), []byte("a user's own"), 0o600))
	require.NoError(t, repair.SaveStore(storetest.Background, filled(t, 7), dir))
	if runtime.GOOS != "windows" {
		require.Equal(t, []string{"store", filepath.Base(own)}, names(t, parent))
	}
	requireStore(t, dir, 7)
}
