package persist_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// opened opens a copy of a closed store and returns its world.
func opened(t testing.TB, dir string) *storetest.World {
	t.Helper()
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	require.True(t, s.Report().Clean)
	require.Nil(t, s.Report().Torn)
	storetest.CloseStore(t, s)
	return w
}

func TestBackup_RunningStore(t *testing.T) {
	t.Parallel()
	for i := range uint64(3) {
		rng := rand.New(rand.NewPCG(i, 5))
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(5)
		s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: 5000})
		head, want := uint64(0), storetest.Persistent(w.World)
		for n := range 5 {
			for range rng.IntN(10) {
				w.Do(storetest.RandomActions(rng, 10)...)
				w.ReleaseAll()
				head = s.Journal().Next()
				require.NoError(t, s.Commit())
				want = storetest.Persistent(w.World)
				// The rewind becomes durable with the next commit.
				_ = w.History().Rewind(rng.IntN(2))
			}
			to := filepath.Join(t.TempDir(), fmt.Sprint("new/backup", n))
			h := &heard{t: t}
			require.NoError(t, s.Backup(h.context(), to))
			h.end()
			require.Equal(t, []string{progress.PhaseScan, progress.PhaseCopy}, h.phases)
			v := storetest.Verified(t, to)
			require.Equal(t, head, v.Head())
			require.Empty(t, v.LockHolder())
			require.NoError(t, v.Close())
			require.Equal(t, want, storetest.Persistent(opened(t, to).World))
		}
		w.Fill(1) // The original store continues.
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(opened(t, dir).World))
	}
}

// A backup runs in parallel with the ticks. It holds the state of one tick, and all ticks that were
// committed before it began.
func TestBackup_DuringTicks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(3)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: 4000})
	digests := map[uint64]ecs.Digest{}
	tick := func() {
		w.Fill(1)
		require.NoError(t, s.Commit())
		digests[w.Tick()] = storetest.Persistent(w.World)
	}
	for n := range 4 {
		tick()
		before := w.Tick()
		to := filepath.Join(t.TempDir(), fmt.Sprint(n))
		done := make(chan error)
		go func() { done <- s.Backup(storetest.Background, to) }()
		for running := true; running; {
			select {
			case err := <-done:
				require.NoError(t, err)
				running = false
			default:
				tick()
			}
		}
		v := storetest.Verified(t, to)
		im, err := v.At(storetest.Background, v.Head())
		require.NoError(t, err)
		require.GreaterOrEqual(t, im.Tick, before)
		require.Equal(t, digests[im.Tick], im.Digest())
		require.NoError(t, v.Close())
		opened(t, to)
	}
	storetest.CloseStore(t, s)
}

func TestBackup_CopyIsIndependentStore(t *testing.T) {
	t.Parallel()
	dir, digests := Branching(t)
	v := storetest.Verified(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, repair.Backup(storetest.Background, v, to))
	require.Equal(t, digests[10], storetest.Persistent(opened(t, to).World))
	w := storetest.New(0)
	// The copy also has the older ticks.
	s := storetest.Open(t, to, w, persist.Options{At: "3"})
	require.Equal(t, digests[3], storetest.Persistent(w.World))
	w.Fill(1)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	require.Equal(t, digests[10], storetest.Persistent(opened(t, dir).World))
	require.Equal(t, w.Digest(), opened(t, to).Digest())
}

// BackupTo writes a zip file that OpenReadOnly opens, with the states of the open store.
func TestBackupTo_OpensReadOnly(t *testing.T) {
	t.Parallel()
	w := storetest.New(0)
	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{SnapshotBytes: 2000})
	digests := map[uint64]ecs.Digest{}
	for range 30 {
		w.Fill(3)
		require.NoError(t, s.Commit())
		digests[w.Tick()] = w.Digest()
	}
	file := filepath.Join(t.TempDir(), "store.zip")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, s.BackupTo(storetest.Background, f))
	require.NoError(t, f.Close())
	w.Fill(3)
	require.NoError(t, s.Commit()) // The open store goes on.
	v := storetest.Verified(t, file)
	require.Len(t, v.Log().Entries, 30)
	for seq := range v.Head() {
		im, err := v.At(storetest.Background, seq+1)
		require.NoError(t, err)
		require.Equal(t, digests[im.Tick], im.Digest())
	}
	storetest.CloseStore(t, s)
	require.ErrorIs(t, s.BackupTo(storetest.Background, io.Discard), persist.ErrClosed)

	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, b[:len(b)/2], 0o600))
	_, err = inspect.OpenReadOnly(storetest.Background, file)
	require.ErrorIs(t, err, persist.ErrCorrupt)
}

// Files that the running program removes during the backup are not copied.
func TestBackup_FilesRemovedMeanwhile(t *testing.T) {
	dir, digests := Branching(t)
	v := storetest.Verified(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	copies := 0
	require.NoError(t, repair.Backup(persist.WithProgress(storetest.Background, func(p persist.Progress) {
		if p.Phase == progress.PhaseCopy && p.Done == 0 {
			copies++
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "snapshots/00000002.snap")))
		}
	}), v, to))
	require.Equal(t, 2, copies)
	require.Equal(t, digests[10], storetest.Persistent(opened(t, to).World))
	require.Equal(t, storetest.Snapshots(t, dir), storetest.Snapshots(t, to))
}

func TestBackup_HeadOfClosedStore(t *testing.T) {
	dir, digests := Branching(t)
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{At: "record:4"})
	storetest.CloseStore(t, s)
	to := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, repair.Backup(storetest.Background, storetest.Verified(t, dir), to))
	require.Equal(t, uint64(4), storetest.Verified(t, to).Head())
	require.Equal(t, digests[4], storetest.Persistent(opened(t, to).World))
}

func TestBackup_OnlyDurableTicks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	for range 3 {
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Sync(storetest.Background))
	durable := storetest.Persistent(w.World)
	for range 3 {
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	// After Sync, the file has all records. The function below reports only records 1 to 3 as
	// durable, so Backup copies only these.
	require.NoError(t, s.Journal().Sync(storetest.Background))
	to := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, catalog.Backup(storetest.Background, s.Files(), to, func() uint64 { return 3 }))
	require.Equal(t, durable, storetest.Persistent(opened(t, to).World))

	// The backup ends at record 3, so it must not copy this snapshot of a later record.
	storetest.SnapshotOf(t, s)
	to = filepath.Join(t.TempDir(), "backup")
	require.NoError(t, catalog.Backup(storetest.Background, s.Files(), to, func() uint64 { return 3 }))
	require.Equal(t, []string{"snapshots/00000001.snap"}, storetest.Snapshots(t, to))
	require.Equal(t, durable, storetest.Persistent(opened(t, to).World))
	storetest.CloseStore(t, s)
}

func TestBackup_DirectoryNotEmpty(t *testing.T) {
	dir, _ := Branching(t)
	v := storetest.Verified(t, dir)
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "precious"), []byte("precious"), 0o600))
	before := storetest.ReadTree(t, full)
	err := repair.Backup(storetest.Background, v, full)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "precious")
	require.Equal(t, before, storetest.ReadTree(t, full))
	require.Error(t, repair.Backup(storetest.Background, v, filepath.Join(full, "precious")))
	require.ErrorIs(t, repair.Backup(storetest.Background, v, dir), fs.ErrExist)
	storetest.Verified(t, dir)

	// The backup directory may be a link.
	link := filepath.Join(t.TempDir(), "link")
	target := t.TempDir()
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, repair.Backup(storetest.Background, v, link))
	opened(t, target)
}

func TestBackup_DamagedStore(t *testing.T) {
	intact, _ := Branching(t)
	for name, damage := range map[string]func(dir string) error{
		"journal/00000001.seg":    func(dir string) error { return flipAt(filepath.Join(dir, "journal/00000001.seg"), 700) },
		"snapshots/00000002.snap": func(dir string) error { return flipAt(filepath.Join(dir, "snapshots/00000002.snap"), 9000) },
		"snapshots/00000001.snap": func(dir string) error { return flipAt(filepath.Join(dir, "snapshots/00000001.snap"), 20) },
		"journal":                 func(dir string) error { return os.RemoveAll(filepath.Join(dir, "journal")) },
		"no snapshot":             func(dir string) error { return os.RemoveAll(filepath.Join(dir, "snapshots")) },
	} {
		dir := storetest.CopyDir(t, intact)
		require.NoError(t, damage(dir))
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		defer v.Close()
		to := filepath.Join(t.TempDir(), "backup")
		err = repair.Backup(storetest.Background, v, to)
		require.ErrorContains(t, err, name)
		require.Empty(t, storetest.ReadTree(t, to), name)
	}
}

func flipAt(name string, offset int) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[offset] ^= 16
	return os.WriteFile(name, data, 0o600)
}

func TestBackup_ContextEnds(t *testing.T) {
	t.Parallel()
	dir, _ := Branching(t)
	v := storetest.Verified(t, dir)
	for _, phase := range []string{progress.PhaseScan, progress.PhaseCopy} {
		for after := range 4 {
			ctx, cancel := context.WithCancel(storetest.Background)
			told := 0
			to := filepath.Join(t.TempDir(), "backup")
			err := repair.Backup(persist.WithProgress(ctx, func(p persist.Progress) {
				if p.Phase == phase {
					if told++; told > after {
						cancel()
					}
				}
			}), v, to)
			if err == nil { // The context ended after the backup.
				opened(t, to)
				continue
			}
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, storetest.ReadTree(t, to))
			require.NoError(t, repair.Backup(storetest.Background, v, to))
			opened(t, to)
			cancel()
		}
	}
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	storetest.CloseStore(t, s)
	require.ErrorIs(t, s.Backup(storetest.Background, t.TempDir()), persist.ErrClosed)
}

// A stoppingFS fails every change from the n-th on, as if the process had ended.
type stoppingFS struct {
	disk.FS
	left *int
}

type stoppingFile struct {
	disk.File
	left *int
}

var errStopped = fmt.Errorf("stopped")

func (f stoppingFS) step() error {
	if *f.left--; *f.left < 0 {
		return errStopped
	}
	return nil
}

func (f stoppingFS) Create(name string) (disk.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.FS.Create(name)
	return stoppingFile{file, f.left}, err
}

func (f stoppingFS) OpenWrite(name string) (disk.File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	file, err := f.FS.OpenWrite(name)
	return stoppingFile{file, f.left}, err
}

func (f stoppingFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f stoppingFS) Remove(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f stoppingFS) Mkdir(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.FS.Mkdir(name)
}

func (f stoppingFile) WriteAt(b []byte, offset int64) (int, error) {
	if *f.left--; *f.left < 0 {
		return 0, errStopped
	}
	return f.File.WriteAt(b, offset)
}

// If a backup stops at any call, Open refuses the copied files, or they are a complete store.
func TestBackup_InterruptedAtAnyCall(t *testing.T) {
	t.Parallel()
	dir, digests := Branching(t)
	from, err := disk.Open(dir)
	require.NoError(t, err)
	defer from.Close()
	whole := 0
	for n := 0; whole == 0; n++ {
		dir := t.TempDir()
		to, err := disk.Open(dir)
		require.NoError(t, err)
		left := n
		err = catalog.CopyStore(storetest.Background, from, stoppingFS{to, &left}, func() uint64 { return 10 })
		require.NoError(t, to.Close())
		if err == nil {
			whole++
			require.Equal(t, digests[10], storetest.Persistent(opened(t, dir).World))
			continue
		}
		require.ErrorIs(t, err, errStopped)
		if len(storetest.ReadTree(t, dir)) == 0 {
			continue
		}
		_, err = inspect.OpenReadOnly(storetest.Background, dir)
		require.ErrorIs(t, err, persist.ErrForeign, n)
		require.ErrorContains(t, err, "unfinished backup")
		before := storetest.ReadTree(t, dir)
		_, err = persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
		require.ErrorContains(t, err, "unfinished backup")
		require.Equal(t, before, storetest.ReadTree(t, dir))
	}
}

func TestStoreFiles_PrivateAndLinksNotFollowed(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other file modes")
	}
	dir := filepath.Join(t.TempDir(), "a/store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(3)
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	to := filepath.Join(t.TempDir(), "a/backup")
	require.NoError(t, s.Backup(storetest.Background, to))
	save := filepath.Join(t.TempDir(), "game.save")
	require.NoError(t, persist.Save(storetest.Background, save, w.World))
	for _, top := range []string{filepath.Dir(dir), filepath.Dir(to), save} {
		require.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			require.Equal(t, want, info.Mode().Perm(), path)
			return nil
		}))
	}
	storetest.CloseStore(t, s)

	// Replace a directory by a link that leads out of the store.
	for _, name := range []string{"snapshots", "journal"} {
		moved := storetest.CopyDir(t, dir)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		require.NoError(t, os.Rename(filepath.Join(moved, name), elsewhere))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(moved, name)))
		before := storetest.ReadTree(t, elsewhere)
		_, err := persist.Open(storetest.Background, moved, storetest.New(0).World, persist.Options{})
		require.Error(t, err, name)
		require.Equal(t, before, storetest.ReadTree(t, elsewhere))
		_, err = inspect.OpenReadOnly(storetest.Background, moved)
		require.Error(t, err, name)
	}
	// Replace a file by a link that leads out of the store.
	for _, name := range []string{"snapshots/00000001.snap", "journal/00000001.seg"} {
		moved := storetest.CopyDir(t, dir)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		require.NoError(t, os.Rename(filepath.Join(moved, name), elsewhere))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(moved, name)))
		before, err := os.ReadFile(elsewhere)
		require.NoError(t, err)
		if s, err := persist.Open(storetest.Background, moved, storetest.New(0).World, persist.Options{}); err == nil {
			storetest.CloseStore(t, s) // Open succeeded without the linked file.
		}
		after, err := os.ReadFile(elsewhere)
		require.NoError(t, err)
		require.True(t, string(before) == string(after), name)
	}
	// Earlier versions used a fixed name for the temporary file of a save. Here, a link with that
	// name leads to a file of the user. A save to linked replaces the target of linked, and leaves
	// the user's file unchanged.
	behind, precious := filepath.Join(t.TempDir(), "behind.save"), filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	linked := filepath.Join(t.TempDir(), "linked.save")
	require.NoError(t, os.Symlink(behind, linked))
	require.NoError(t, os.Symlink(precious, linked+catalog.TempType))
	require.NoError(t, persist.Save(storetest.Background, linked, w.World))
	require.NoError(t, persist.Load(storetest.Background, behind, storetest.New(0).World))
	data, err := os.ReadFile(precious)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
}
