//go:build unix

package persist_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestSave_IrregularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, sub := filepath.Join(dir, "pipe"), filepath.Join(dir, "sub")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Mkdir(sub, 0o700))
	w := storetest.New(0)
	for file, text := range map[string]string{pipe: "pipe is a pipe; write to it with SaveTo", sub: "sub is a directory"} {
		before, err := os.Lstat(file)
		require.NoError(t, err)
		err = persist.Save(storetest.Background, file, w.World)
		require.ErrorIs(t, err, persist.ErrIrregular)
		require.ErrorContains(t, err, text)
		after, err := os.Lstat(file)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
	}
	require.Len(t, temps(t, dir), 2)
}

// The file at the end of a chain of links is replaced, and the links stay.
func TestSave_SymbolicLink(t *testing.T) {
	top := t.TempDir()
	games, cloud := filepath.Join(top, "games"), filepath.Join(top, "cloud")
	require.NoError(t, os.Mkdir(games, 0o700))
	require.NoError(t, os.Mkdir(cloud, 0o700))
	link := func(to, path string) {
		require.NoError(t, os.Symlink(to, path))
	}
	link(cloud, filepath.Join(games, "sub"))
	// sub is a link to cloud. So "sub/.." is the parent directory of cloud, and not games.
	link("sub/../cloud/slot", filepath.Join(games, "chain"))
	link("chain", filepath.Join(games, "slot"))
	file := filepath.Join(games, "slot")
	for n := 1; n <= 2; n++ { // In the first round, the last link leads to no file.
		w := storetest.New(0)
		w.Fill(n)
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		for _, path := range []string{file, filepath.Join(cloud, "slot")} {
			again := storetest.New(0)
			require.NoError(t, persist.Load(storetest.Background, path, again.World))
			require.Equal(t, n, again.Len())
		}
		storetest.Verified(t, file)
	}
	for _, name := range []string{"slot", "chain", "sub"} {
		_, err := os.Readlink(filepath.Join(games, name))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"slot"}, temps(t, cloud))

	nowhere := filepath.Join(games, "nowhere")
	link("missing/slot", nowhere)
	require.ErrorIs(t, persist.Save(storetest.Background, nowhere, storetest.New(0).World), os.ErrNotExist)
	loop := filepath.Join(games, "loop")
	link("loop", loop)
	require.Error(t, persist.Save(storetest.Background, loop, storetest.New(0).World))

	files, err := disk.Open(games)
	require.NoError(t, err)
	defer files.Close()
	require.ErrorIs(t, persist.Save(storetest.Background, "slot", storetest.New(0).World, persist.FileOptions{Files: files}), persist.ErrIrregular)
}

func TestSave_KeepsFilePermissions(t *testing.T) {
	file := filepath.Join(t.TempDir(), slot)
	mode := func() os.FileMode {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Mode()
	}
	w := storetest.New(0)
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	require.Equal(t, os.FileMode(0o600), mode())
	for _, want := range []os.FileMode{0o644, 0o440, 0o660} {
		require.NoError(t, os.Chmod(file, want))
		require.NoError(t, persist.Save(storetest.Background, file, w.World))
		require.Equal(t, want, mode())
	}
}
