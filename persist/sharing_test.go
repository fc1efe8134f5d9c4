package persist_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/snap"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// bigStore keeps a world of several pages of positions in a directory. Only the test takes
// snapshots.
func bigStore(t testing.TB, pages int) (dir string, w *storetest.World, s *persist.Store) {
	t.Helper()
	dir, w = filepath.Join(t.TempDir(), "store"), storetest.New(0)
	for i := range pages*4096 - 480 {
		w.Position.Set(w.Create(), storetest.Position{X: float32(i), Y: 0})
	}
	return dir, w, storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
}

func TestPageSharing_UnchangedPages(t *testing.T) {
	t.Parallel()
	dir, w, s := bigStore(t, 5)
	base, err := os.Stat(filepath.Join(dir, "snapshots/00000001.snap"))
	require.NoError(t, err)

	none := storetest.SnapshotOf(t, s)
	require.Zero(t, none.Written)
	require.Positive(t, none.Shared)
	require.Less(t, none.Bytes, base.Size()/8)

	w.Position.Mut(w.Entities()[5]).Y = 1
	require.NoError(t, s.Commit())
	one := storetest.SnapshotOf(t, s)
	require.Equal(t, 1, one.Written)
	require.Equal(t, none.Shared-1, one.Shared)
	require.Equal(t, "snapshots/00000003.snap", one.Name)

	// The last row: only the last page of each array changes.
	w.Position.Remove(w.Entities()[w.Len()-1])
	require.NoError(t, s.Commit())
	require.Equal(t, 3, storetest.SnapshotOf(t, s).Written)
	storetest.CloseStore(t, s)
	v := storetest.Verified(t, dir)
	require.Len(t, v.Snapshots(), 4)
	for i, files := range []int{0, 1, 1, 2} {
		require.Len(t, v.Snapshots()[i].Files, files)
	}

	again := storetest.New(0) // Pages can also be shared after a recovery.
	s = storetest.Open(t, dir, again, persist.Options{SnapshotBytes: -1})
	require.Equal(t, w.Digest(), again.Digest())
	require.Zero(t, storetest.SnapshotOf(t, s).Written)
	storetest.CloseStore(t, s)
}

func TestPageSharing_ReferencesAreDirect(t *testing.T) {
	t.Parallel()
	dir, w, s := bigStore(t, 5)
	for i := range 5 {
		w.Position.Mut(w.Entities()[i*4096]).Y++
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	references, repeats := 0, 0
	for number := uint32(1); number <= 6; number++ {
		f, err := pagefile.Open(disk.Dir(root), catalog.SnapshotName(number))
		require.NoError(t, err)
		err = f.Scan(func(k pagefile.Key, value []byte) error {
			content, ref, err := format.DecodePage(value)
			if err != nil || content != nil {
				return err
			}
			references++
			if ref.File == 0 { // File 0 means a page of the same file.
				repeats++
				ref.File = number
			}
			require.Equal(t, ref.Column != 0, ref.File == number || k.Column == format.Column(0, format.DenseArray))
			require.LessOrEqual(t, ref.File, number)
			held, err := pagefile.Open(disk.Dir(root), catalog.SnapshotName(ref.File))
			require.NoError(t, err)
			defer held.Close()
			page, direct, err := snap.ReadPage(held, "", ref.Of(k))
			require.NotNil(t, page, "page %v of file %d is not held by file %d", k, number, ref.File)
			require.Equal(t, ref.CRC, direct.CRC)
			return err
		})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Greater(t, references, 50)
	require.Equal(t, 5, repeats, "the first file has the order of Position once")
}

func TestPageSharing_TooManyFiles(t *testing.T) {
	t.Parallel()
	const pages = snap.MaxFiles + 4
	dir, w, s := bigStore(t, pages)
	var full []int
	for i := range 3 * pages { // Each snapshot writes one page that the next snapshots share.
		w.Position.Mut(w.Entities()[i%pages*4096]).Y++
		require.NoError(t, s.Commit())
		if r := storetest.SnapshotOf(t, s); r.Shared == 0 {
			full = append(full, i)
		}
	}
	require.Equal(t, []int{8, 17, 26, 35}, full)
	storetest.CloseStore(t, s)
	most := 0
	for _, sn := range storetest.Verified(t, dir).Snapshots() {
		most = max(most, len(sn.Files))
	}
	require.Equal(t, snap.MaxFiles, most)
}

func TestPageSharing_DamagedFile(t *testing.T) {
	t.Parallel()
	dir, w, s := bigStore(t, 5)
	for range 2 {
		w.Position.Mut(w.Entities()[0]).Y++
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	const base = "snapshots/00000001.snap"
	data := storetest.ReadTree(t, dir)[base]
	// Damage a page that all snapshots share.
	at := strings.Index(data, string(w.Position.Raw().AppendRows(nil, 9000, 9010)))
	require.Positive(t, at)
	require.NoError(t, os.WriteFile(filepath.Join(dir, base), []byte(storetest.Flip(data, at, 3)), 0o600))

	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	defer v.Close()
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Len(t, r.Problems, 3)
	for _, p := range r.Problems {
		require.ErrorIs(t, p, persist.ErrCorrupt)
		require.ErrorContains(t, p, base)
		require.ErrorContains(t, p, "offset")
	}
	_, err = persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrCorrupt)
	require.ErrorContains(t, err, base)
}

func TestRecovery_OlderSnapshot(t *testing.T) {
	t.Parallel()
	dir, w, s := bigStore(t, 5)
	for range 3 {
		w.Position.Mut(w.Entities()[4096]).Y++
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	for _, name := range []string{"snapshots/00000003.snap", "snapshots/00000004.snap"} {
		data := tree[name]
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(storetest.Flip(data, len(data)/2, 1)), 0o600))
	}
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{SnapshotBytes: -1})
	require.Equal(t, w.Digest(), again.Digest())
	r := s.Report()
	require.Equal(t, "snapshots/00000002.snap", r.Snapshot)
	require.Equal(t, 2, r.Replayed)
	require.Len(t, r.Skipped, 2)
	require.ErrorContains(t, r.Skipped[0], "snapshots/00000004.snap")
	require.ErrorContains(t, r.Skipped[1], "snapshots/00000003.snap")
	require.Contains(t, r.String(), "skipped: ")

	// The next snapshot has a new number and shares nothing with the damaged files.
	next := storetest.SnapshotOf(t, s)
	require.Equal(t, "snapshots/00000005.snap", next.Name)
	for _, p := range s.Table() {
		require.NotContains(t, []uint32{3, 4}, p.File)
	}
	storetest.CloseStore(t, s)
	final := storetest.New(0)
	s = storetest.Open(t, dir, final, persist.Options{})
	require.Equal(t, w.Digest(), final.Digest())
	require.Equal(t, next.Name, s.Report().Snapshot)
	storetest.CloseStore(t, s)
}

func TestSnapshot_BeginsWhenDue(t *testing.T) {
	for _, c := range []struct {
		bytes   int64
		minimum int // Smallest number of snapshots, without the first one of the store.
		maximum int
	}{{-1, 0, 0}, {0, 0, 0}, {1 << 30, 0, 0}, {3000, 2, 40}} {
		var finished []persist.SnapshotResult
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(0)
		done := make(chan persist.SnapshotResult, 100)
		s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: c.bytes, Sync: journal.SyncNever, OnSnapshot: func(r persist.SnapshotResult) { done <- r }})
		for range 40 {
			w.Fill(4)
			require.NoError(t, s.Commit())
			s.Settle() // Only one snapshot can be under way.
		}
		storetest.CloseStore(t, s)
		close(done)
		for r := range done {
			require.NoError(t, r.Err)
			finished = append(finished, r)
		}
		require.Equal(t, uint64(0), finished[0].Tick)
		require.Len(t, storetest.Snapshots(t, dir), len(finished))
		require.GreaterOrEqual(t, len(finished)-1, c.minimum, "SnapshotBytes %d", c.bytes)
		require.LessOrEqual(t, len(finished)-1, c.maximum, "SnapshotBytes %d", c.bytes)
		again := storetest.New(0)
		s = storetest.Open(t, dir, again, persist.Options{})
		require.Equal(t, w.Digest(), again.Digest())
		require.Equal(t, finished[len(finished)-1].Name, s.Report().Snapshot)
		storetest.CloseStore(t, s)
	}
}

// A snapshot gets its name only after its ticks are durable. Otherwise a power failure could lose
// the ticks, and later ticks would get their numbers. The snapshot would then seem to belong to the
// later ticks.
func TestSnapshot_TicksDurableFirst(t *testing.T) {
	w := storetest.New(0)
	durable := make(chan uint64, 10)
	var s *persist.Store
	s = storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{
		Sync: journal.SyncNever, SnapshotBytes: 1,
		OnSnapshot: func(r persist.SnapshotResult) {
			if r.Tick > 0 {
				durable <- s.Journal().Durable()
			}
		},
	})
	w.Fill(1)
	require.NoError(t, s.Commit()) // This Commit begins a snapshot.
	require.NoError(t, s.Settle().Err)
	require.Equal(t, uint64(1), <-durable)
	s.Hurry(-1)
	w.Fill(1)
	require.NoError(t, s.Commit())
	require.Equal(t, uint64(1), s.Journal().Durable())
	storetest.SnapshotOf(t, s)
	require.Equal(t, uint64(2), <-durable)
	storetest.CloseStore(t, s)
}

func TestSnapshot_UncommittedChanges(t *testing.T) {
	w := storetest.New(2)
	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{})
	w.Fill(1)
	_, err := s.Snapshot(storetest.Background)
	require.ErrorIs(t, err, persist.ErrUncommitted)
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, uint64(0), storetest.SnapshotOf(t, s).Tick)
	storetest.CloseStore(t, s)
}

func TestSnapshot_RetryAfterFailure(t *testing.T) {
	mem := disktest.New()
	results := make(chan persist.SnapshotResult, 100)
	w := storetest.New(0)
	s := memStore(t, mem, w, persist.Options{SnapshotBytes: 2000, OnSnapshot: func(r persist.SnapshotResult) { results <- r }})
	require.NoError(t, (<-results).Err)
	w.Fill(3)
	require.NoError(t, s.Commit())

	failCalls(mem, "create snapshots/00000002.snap")
	_, err := s.Snapshot(storetest.Background)
	require.Error(t, err)
	require.Error(t, (<-results).Err)
	require.NoError(t, s.Err())
	require.Equal(t, 1, s.Metrics().SnapshotsFailed)

	began := 0
	for range 200 { // A later Commit begins the next snapshot.
		w.Fill(2)
		require.NoError(t, s.Commit())
		if s.Snapshotting() {
			began++
			require.NoError(t, s.Settle().Err)
		}
		if began > 1 {
			break
		}
	}
	next := <-results
	require.Equal(t, "snapshots/00000003.snap", next.Name)
	require.Positive(t, next.Shared, "the snapshot before the failed one is shared with")
	storetest.CloseStore(t, s)
	require.NoError(t, simVerify(mem, w))
	again := storetest.New(0)
	s = memStore(t, mem, again, persist.Options{})
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
}

func TestOnDurable_EveryTickInOrder(t *testing.T) {
	for _, policy := range []time.Duration{journal.SyncAlways, time.Millisecond, journal.SyncNever} {
		var ticks []uint64
		w := storetest.New(5)
		s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{Sync: policy, OnDurable: func(tick uint64) { ticks = append(ticks, tick) }})
		for range 5 {
			w.Fill(1)
			require.NoError(t, s.Commit())
		}
		require.NoError(t, w.History().Rewind(2))
		w.Fill(1)
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 4}, ticks, "%v", policy)
	}
}

// A journal that refuses a tick has failed, even if it reports no error.
func TestStore_JournalRefusesTick(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	w.Fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Journal().Close(storetest.Background, w.Raw().Seq()))
	for range 2 {
		w.Fill(1)
		require.ErrorIs(t, s.Commit(), journal.ErrClosed)
	}
	require.Error(t, s.Sync(storetest.Background))
	_, err := s.Snapshot(storetest.Background)
	require.Error(t, err)
	require.Error(t, s.Close(storetest.Background))
	require.Equal(t, 3, w.Len())
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, 1, again.Len())
	require.Equal(t, ecs.NewEntity(1, 1), again.Create())
	storetest.CloseStore(t, s)
}

// twoPages is a number of entities whose sparse array has two pages.
const twoPages = format.PageRows + 100

func TestPageSharing_SparseArrayAfterClear(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(w *storetest.World){
		"component": func(w *storetest.World) { w.Position.Clear() },
		"world": func(w *storetest.World) {
			w.World.Clear()
			for range twoPages {
				w.Create()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, w, s := bigStore(t, 3)
			empty(w)
			w.Position.Set(w.Entities()[twoPages-1], storetest.Position{X: 1, Y: 2})
			require.NoError(t, s.Commit())
			storetest.SnapshotOf(t, s)
			storetest.CloseStore(t, s)
			storetest.Verified(t, dir)
			got := opened(t, dir)
			require.Equal(t, w.Digest(), got.Digest())
		})
	}
}

func TestSnapshot_NextAfterClearAndFailure(t *testing.T) {
	mem := disktest.New()
	w := storetest.New(0)
	for range twoPages {
		w.Position.Set(w.Create(), storetest.Position{})
	}
	s := memStore(t, mem, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	w.Position.Clear()
	require.NoError(t, s.Commit())
	mem.OnCall(func(n int, call string) {
		if strings.Contains(call, catalog.SnapshotDir) {
			mem.Fail(n, syscall.ENOSPC)
		}
	})
	_, err := s.Snapshot(storetest.Background)
	require.ErrorIs(t, err, syscall.ENOSPC)
	mem.OnCall(nil)
	w.Position.Set(w.Entities()[twoPages-1], storetest.Position{X: 1, Y: 2})
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	storetest.CloseStore(t, s)
	require.NoError(t, simVerify(mem.Crash(), w))
}
