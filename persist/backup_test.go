package persist

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
)

// opened opens a copy of a store, which was closed, and returns its world.
func opened(t testing.TB, dir string) *testWorld {
	t.Helper()
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	require.True(t, s.Report().Clean)
	require.Nil(t, s.Report().Torn)
	closeStore(t, s)
	return w
}

func TestABackupOfARunningStoreIsAStore(t *testing.T) {
	for i := range uint64(3) {
		rng := rand.New(rand.NewPCG(i, 5))
		dir := filepath.Join(t.TempDir(), "store")
		w := newTestWorld(5)
		s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: 5000})
		head, want := uint64(0), persistent(w.World)
		for n := range 5 {
			for range rng.IntN(10) {
				w.do(randomActions(rng, 10)...)
				w.releaseAll()
				head = s.Journal().Next()
				require.NoError(t, s.Commit())
				want = persistent(w.World)
				_ = w.History().Rewind(rng.IntN(2)) // Becomes durable with the next commit.
			}
			to := filepath.Join(t.TempDir(), fmt.Sprint("new/backup", n))
			h := &heard{t: t}
			require.NoError(t, s.Backup(h.context(), to))
			h.end()
			require.Equal(t, []Phase{PhaseScan, PhaseCopy}, h.phases)
			v := verified(t, to)
			require.Equal(t, head, v.Head())
			require.Empty(t, v.LockHolder())
			require.NoError(t, v.Close())
			require.Equal(t, want, persistent(opened(t, to).World))
		}
		w.fill(1) // The store goes on as if nothing had been.
		require.NoError(t, s.Commit())
		closeStore(t, s)
		require.Equal(t, persistent(w.World), persistent(opened(t, dir).World))
	}
}

// A backup is made beside the ticks: whatever is committed meanwhile, it holds a
// tick, and all that were committed before it began.
func TestABackupBesideTheTicksHoldsOneOfThem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(3)
	s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: 4000})
	digests := map[uint64]ecs.Digest{}
	tick := func() {
		w.fill(1)
		require.NoError(t, s.Commit())
		digests[w.Tick()] = persistent(w.World)
	}
	for n := range 4 {
		tick()
		before := w.Tick()
		to := filepath.Join(t.TempDir(), fmt.Sprint(n))
		done := make(chan error)
		go func() { done <- s.Backup(background, to) }()
		for running := true; running; {
			select {
			case err := <-done:
				require.NoError(t, err)
				running = false
			default:
				tick()
			}
		}
		v := verified(t, to)
		im, err := v.At(background, v.Head())
		require.NoError(t, err)
		require.GreaterOrEqual(t, im.Tick, before)
		require.Equal(t, digests[im.Tick], im.Digest())
		require.NoError(t, v.Close())
		opened(t, to)
	}
	closeStore(t, s)
}

func TestABackupGoesOnByItself(t *testing.T) {
	dir, digests := branching(t)
	v := verified(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, v.Backup(background, to))
	require.Equal(t, digests[10], persistent(opened(t, to).World))
	w := newTestWorld(0)
	s := open(t, to, w, Options{At: "3"}) // The whole history is there.
	require.Equal(t, digests[3], persistent(w.World))
	w.fill(1)
	require.NoError(t, s.Commit())
	closeStore(t, s)
	require.Equal(t, digests[10], persistent(opened(t, dir).World))
	require.Equal(t, w.Digest(), opened(t, to).Digest())
}

// What a running program removes while it is copied is not copied.
func TestABackupBeginsAgainIfFilesAreRemoved(t *testing.T) {
	dir, digests := branching(t)
	v := verified(t, dir)
	to := filepath.Join(t.TempDir(), "backup")
	copies := 0
	require.NoError(t, v.Backup(WithProgress(background, func(p Progress) {
		if p.Phase == PhaseCopy && p.Done == 0 {
			copies++
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "snapshots/00000002.snap")))
		}
	}), to))
	require.Equal(t, 2, copies)
	require.Equal(t, digests[10], persistent(opened(t, to).World))
	require.Equal(t, snapshots(t, dir), snapshots(t, to))
}

func TestABackupKeepsTheHeadOfAClosedStore(t *testing.T) {
	dir, digests := branching(t)
	s := open(t, dir, newTestWorld(0), Options{At: "seq:4"})
	closeStore(t, s)
	to := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, verified(t, dir).Backup(background, to))
	require.Equal(t, uint64(4), verified(t, to).Head())
	require.Equal(t, digests[4], persistent(opened(t, to).World))
}

func TestABackupLeavesOutWhatIsNotDurable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	for range 3 {
		w.fill(1)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Sync(background))
	durable := persistent(w.World)
	for range 3 {
		w.fill(1)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Journal().Sync(background)) // All is in the file; say that it is not.
	to := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, backup(background, s.Files(), to, func() uint64 { return 3 }))
	require.Equal(t, durable, persistent(opened(t, to).World))

	snapshotOf(t, s) // Of a later record than is copied.
	to = filepath.Join(t.TempDir(), "backup")
	require.NoError(t, backup(background, s.Files(), to, func() uint64 { return 3 }))
	require.Equal(t, []string{"snapshots/00000001.snap"}, snapshots(t, to))
	require.Equal(t, durable, persistent(opened(t, to).World))
	closeStore(t, s)
}

func TestABackupNeedsAnEmptyDirectory(t *testing.T) {
	dir, _ := branching(t)
	v := verified(t, dir)
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "precious"), []byte("precious"), 0o600))
	before := readTree(t, full)
	err := v.Backup(background, full)
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "precious")
	require.Equal(t, before, readTree(t, full))
	require.Error(t, v.Backup(background, filepath.Join(full, "precious")))
	require.ErrorIs(t, v.Backup(background, dir), fs.ErrExist)
	verified(t, dir)

	link := filepath.Join(t.TempDir(), "link") // A directory can be named by a link; nothing else leads out.
	target := t.TempDir()
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, v.Backup(background, link))
	opened(t, target)
}

func TestADamagedStoreIsNotBackedUp(t *testing.T) {
	intact, _ := branching(t)
	for name, damage := range map[string]func(dir string) error{
		"journal/00000001.seg":    func(dir string) error { return flipAt(filepath.Join(dir, "journal/00000001.seg"), 700) },
		"snapshots/00000002.snap": func(dir string) error { return flipAt(filepath.Join(dir, "snapshots/00000002.snap"), 9000) },
		"snapshots/00000001.snap": func(dir string) error { return flipAt(filepath.Join(dir, "snapshots/00000001.snap"), 20) },
		"journal":                 func(dir string) error { return os.RemoveAll(filepath.Join(dir, "journal")) },
		"no snapshot":             func(dir string) error { return os.RemoveAll(filepath.Join(dir, "snapshots")) },
	} {
		dir := copyDir(t, intact)
		require.NoError(t, damage(dir))
		v, err := OpenReadOnly(background, dir)
		require.NoError(t, err)
		defer v.Close()
		to := filepath.Join(t.TempDir(), "backup")
		err = v.Backup(background, to)
		require.ErrorContains(t, err, name)
		require.Empty(t, readTree(t, to), name)
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

func TestTheEndOfTheContextLeavesNoHalfBackup(t *testing.T) {
	dir, _ := branching(t)
	v := verified(t, dir)
	for _, phase := range []Phase{PhaseScan, PhaseCopy} {
		for after := range 4 {
			ctx, cancel := context.WithCancel(background)
			told := 0
			to := filepath.Join(t.TempDir(), "backup")
			err := v.Backup(WithProgress(ctx, func(p Progress) {
				if p.Phase == phase {
					if told++; told > after {
						cancel()
					}
				}
			}), to)
			if err == nil { // It ended too late.
				opened(t, to)
				continue
			}
			require.ErrorIs(t, err, context.Canceled)
			require.Empty(t, readTree(t, to))
			require.NoError(t, v.Backup(background, to))
			opened(t, to)
			cancel()
		}
	}
	s := open(t, dir, newTestWorld(0), Options{})
	closeStore(t, s)
	require.ErrorIs(t, s.Backup(background, t.TempDir()), ErrClosed)
}

// A stoppingFS fails every change from the n-th on, as the end of a process does.
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

// Wherever a backup stops, what it leaves behind is refused or whole.
func TestAnUnfinishedBackupIsNotTakenForAStore(t *testing.T) {
	dir, digests := branching(t)
	from, err := disk.OpenDir(dir)
	require.NoError(t, err)
	defer from.Close()
	whole := 0
	for n := 0; whole == 0; n++ {
		dir := t.TempDir()
		to, err := disk.OpenDir(dir)
		require.NoError(t, err)
		left := n
		err = copyStore(background, from, stoppingFS{to, &left}, func() uint64 { return 10 })
		require.NoError(t, to.Close())
		if err == nil {
			whole++
			require.Equal(t, digests[10], persistent(opened(t, dir).World))
			continue
		}
		require.ErrorIs(t, err, errStopped)
		if len(readTree(t, dir)) == 0 {
			continue
		}
		_, err = OpenReadOnly(background, dir)
		require.ErrorIs(t, err, ErrForeign, n)
		require.ErrorContains(t, err, "not finished")
		before := readTree(t, dir)
		_, err = Open(background, dir, newTestWorld(0).World, Options{})
		require.ErrorContains(t, err, "not finished")
		require.Equal(t, before, readTree(t, dir))
	}
}

func TestWhatIsWrittenIsForTheUserOnlyAndNoLinkLeadsOut(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of other systems")
	}
	dir := filepath.Join(t.TempDir(), "a/store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	w.fill(3)
	require.NoError(t, s.Commit())
	snapshotOf(t, s)
	to := filepath.Join(t.TempDir(), "a/backup")
	require.NoError(t, s.Backup(background, to))
	save := filepath.Join(t.TempDir(), "game.save")
	require.NoError(t, Save(background, save, w.World))
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
	closeStore(t, s)

	for _, name := range []string{"snapshots", "journal"} { // A directory that is a link out of the store.
		moved := copyDir(t, dir)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		require.NoError(t, os.Rename(filepath.Join(moved, name), elsewhere))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(moved, name)))
		before := readTree(t, elsewhere)
		_, err := Open(background, moved, newTestWorld(0).World, Options{})
		require.Error(t, err, name)
		require.Equal(t, before, readTree(t, elsewhere))
		_, err = OpenReadOnly(background, moved)
		require.Error(t, err, name)
	}
	for _, name := range []string{"snapshots/00000001.snap", "journal/00000001.seg"} { // A file that is one.
		moved := copyDir(t, dir)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		require.NoError(t, os.Rename(filepath.Join(moved, name), elsewhere))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(moved, name)))
		before, err := os.ReadFile(elsewhere)
		require.NoError(t, err)
		if s, err := Open(background, moved, newTestWorld(0).World, Options{}); err == nil {
			closeStore(t, s) // It could do without.
		}
		after, err := os.ReadFile(elsewhere)
		require.NoError(t, err)
		require.True(t, string(before) == string(after), name)
	}
	precious := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	linked := filepath.Join(t.TempDir(), "linked.save")
	require.NoError(t, os.Symlink(precious, linked))
	require.NoError(t, os.Symlink(precious, linked+tempType))
	require.NoError(t, Save(background, linked, w.World)) // The link is replaced, not followed.
	data, err := os.ReadFile(precious)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	require.NoError(t, Load(background, linked, newTestWorld(0).World))
}
