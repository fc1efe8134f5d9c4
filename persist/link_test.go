package persist_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// irregulars are ways to put a link or another irregular file at a path. The caller has moved the
// original file or directory to another path. at: the path, moved: the other path.
var irregulars = map[string]func(at, moved string) error{
	"relative link": func(at, moved string) error {
		to, err := filepath.Rel(filepath.Dir(at), moved)
		return errors.Join(err, os.Symlink(to, at))
	},
	"absolute link": func(at, moved string) error { return os.Symlink(moved, at) },
	"dangling link": func(at, moved string) error { return os.Symlink("nowhere", at) },
}

// verifyProblems returns the findings of verify, or the error if the store cannot be opened.
func verifyProblems(t *testing.T, dir string) (text string, opened bool) {
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	if err != nil {
		return err.Error(), false
	}
	defer v.Close()
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	return errors.Join(append([]error{errors.New("problems:")}, r.Problems...)...).Error(), true
}

// openWithin opens a store. It fails if that takes long, for example because Open reads from a
// pipe.
func openWithin(t *testing.T, dir string, w *storetest.World) (s *persist.Store, err error) {
	t.Helper()
	done := make(chan bool)
	go func() {
		s, err = persist.Open(storetest.Background, dir, w.World, persist.Options{})
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the opening hangs")
	}
	return s, err
}

// The test puts a link or irregular file in place of each file that Stet writes. verify and Open
// report the file, with advice. The target of a link is unchanged.
func TestVerify_LinkInPlaceOfEachFile(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	for how, put := range irregulars {
		for name := range s.Tree {
			t.Run(how+"/"+name, func(t *testing.T) {
				t.Parallel()
				name := strings.TrimSuffix(name, "/")
				dir := storetest.CopyDir(t, s.Dir)
				at, moved := filepath.Join(dir, name), filepath.Join(dir, "moved")
				require.NoError(t, os.Rename(at, moved))
				require.NoError(t, put(at, moved))
				before := bytesAt(t, moved)

				text, _ := verifyProblems(t, dir)
				require.Contains(t, text, name)
				require.Contains(t, text, "it is ")

				w := storetest.New(0)
				store, err := openWithin(t, dir, w)
				if err == nil {
					require.NotEmpty(t, store.Report().Skipped)
					err = errors.Join(store.Report().Skipped...)
					require.Equal(t, s.Digest, storetest.Persistent(w.World))
					storetest.CloseStore(t, store)
				}
				require.ErrorIs(t, err, persist.ErrForeign)
				require.ErrorContains(t, err, name)
				require.Regexp(t, "is a|is nothing", err.Error())
				info, err := os.Lstat(at)
				require.NoError(t, err)
				require.False(t, info.Mode().IsRegular(), "%s was replaced", name)
				if !strings.Contains(name, "/") && name != "LOCK" {
					return // Stet writes files through a directory that is a link.
				}
				require.Equal(t, before, bytesAt(t, moved))
			})
		}
	}
}

// bytesAt returns the bytes of a file, or the files of a directory.
func bytesAt(t *testing.T, path string) any {
	info, err := os.Stat(path)
	require.NoError(t, err)
	if info.IsDir() {
		return storetest.ReadTree(t, path)
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// A BALLAST that is a link is reported, although nothing is read from it.
func TestVerify_LinkInPlaceOfBallast(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	require.NoError(t, os.Symlink("LOCK", filepath.Join(s.Dir, "BALLAST")))
	text, opened := verifyProblems(t, s.Dir)
	require.True(t, opened)
	require.Contains(t, text, "BALLAST: it is a symbolic link")
	store := storetest.Open(t, s.Dir, storetest.New(0), persist.Options{})
	require.ErrorContains(t, errors.Join(store.Report().Skipped...), "BALLAST: it is a symbolic link")
	storetest.CloseStore(t, store)
}

// The directory of the store itself may be a link.
func TestOpen_LinkToStoreDirectory(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	dir := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(s.Dir, dir))
	storetest.Verified(t, dir)
	w := storetest.New(0)
	store := storetest.Open(t, dir, w, persist.Options{})
	require.Empty(t, store.Report().Skipped)
	require.Equal(t, s.Digest, storetest.Persistent(w.World))
	storetest.CloseStore(t, store)
}

// Open reads the newest snapshot. If the file of an older snapshot was replaced, Open reports that
// file too.
func TestOpen_OlderSnapshotReplaced(t *testing.T) {
	t.Parallel()
	whole, save := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "save")
	w := storetest.New(0)
	w.Fill(3)
	s := storetest.Open(t, whole, w, persist.Options{SnapshotBytes: -1})
	older, newest := "", ""
	for full := false; !full; { // The last snapshot shares no page, so it needs no older one.
		commits(t, s, w, 1)
		r := storetest.SnapshotOf(t, s)
		full, older, newest = r.Shared == 0, newest, r.Name
	}
	storetest.CloseStore(t, s)
	tree, digest := storetest.ReadTree(t, whole), storetest.Persistent(w.World)
	require.NoError(t, persist.Save(storetest.Background, save, w.World))
	saved, err := os.ReadFile(save)
	require.NoError(t, err)
	for how, data := range map[string]string{
		"another snapshot": tree[newest],
		"a save":           string(saved),
		"a text":           strings.Repeat("no snapshot ", 1000),
		"nothing":          "",
		"a segment":        tree["journal/00000001.seg"],
	} {
		t.Run(how, func(t *testing.T) {
			dir := storetest.CopyDir(t, whole)
			require.NoError(t, os.WriteFile(filepath.Join(dir, older), []byte(data), 0o600))
			text, _ := verifyProblems(t, dir)
			require.Contains(t, text, older)
			w := storetest.New(0)
			store := storetest.Open(t, dir, w, persist.Options{})
			require.ErrorContains(t, errors.Join(store.Report().Skipped...), older)
			require.Len(t, store.Report().Skipped, 1)
			require.Equal(t, digest, storetest.Persistent(w.World))
			storetest.CloseStore(t, store)
		})
	}
}

// If a snapshot becomes a link while the store is open, a new snapshot replaces it. The target of
// the link is never removed.
func TestSnapshot_LinkTargetNeverRemoved(t *testing.T) {
	t.Parallel()
	dir, elsewhere := filepath.Join(t.TempDir(), "store"), t.TempDir()
	w := storetest.New(0)
	w.Fill(3)
	store := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	for range 3 {
		commits(t, store, w, 1)
		storetest.SnapshotOf(t, store)
	}
	for _, name := range storetest.Snapshots(t, dir) {
		name = filepath.Base(name)
		at, moved := filepath.Join(dir, "snapshots", name), filepath.Join(elsewhere, name)
		require.NoError(t, os.Rename(at, moved))
		require.NoError(t, os.Symlink(moved, at))
	}
	before := storetest.ReadTree(t, elsewhere)
	require.NotEmpty(t, before)
	for range 4 {
		commits(t, store, w, 1)
		storetest.SnapshotOf(t, store)
	}
	storetest.CloseStore(t, store)
	require.Equal(t, before, storetest.ReadTree(t, elsewhere))

	store = storetest.Open(t, dir, storetest.New(0), persist.Options{Retain: persist.Retention{Last: 1}})
	require.NotEmpty(t, store.Report().Skipped)
	_, err := store.Snapshot(storetest.Background)
	require.NoError(t, err)
	storetest.CloseStore(t, store)
	require.Equal(t, before, storetest.ReadTree(t, elsewhere))
}
