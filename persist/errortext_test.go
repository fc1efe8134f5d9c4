package persist_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestLoad_ErrorTexts(t *testing.T) {
	dir := t.TempDir()
	w := ecs.NewWorld(ecs.Options{})
	err := persist.Load(storetest.Background, filepath.Join(dir, "nope.save"), w)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.True(t, strings.HasPrefix(err.Error(), "persist: load: open nope.save: "), err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.save"), []byte("milk, bread"), 0o600))
	err = persist.Load(storetest.Background, filepath.Join(dir, "notes.save"), w)
	require.ErrorIs(t, err, persist.ErrForeign)
	require.EqualError(t, err, "foreign: notes.save: it is neither a save nor a snapshot (in "+dir+")")
}

// Errors name the action of the program, not the system call.
func TestErrors_WithoutSystemCallNames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	w := ecs.NewWorld(ecs.Options{})
	_, open := persist.Open(storetest.Background, filepath.Join(file, "store"), w, persist.Options{})
	_, read := inspect.OpenReadOnly(storetest.Background, filepath.Join(dir, "none"))
	for _, err := range []error{
		persist.Save(storetest.Background, filepath.Join(dir, "none", "x.save"), w),
		persist.Load(storetest.Background, filepath.Join(dir, "none", "x.save"), w),
		persist.Load(storetest.Background, dir, w),
		open, read,
	} {
		require.Error(t, err)
		for _, jargon := range []string{"statat", "openat", "unlinkat", "renameat", "mkdirat", "pagefile", "page file"} {
			require.NotContains(t, err.Error(), jargon)
		}
		require.LessOrEqual(t, strings.Count(err.Error(), "persist: "), 1, err)
	}
}
