package persist

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/disk/disktest"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

// bigStore keeps a world of several pages of positions in a directory, without
// snapshots but those that the test asks for.
func bigStore(t testing.TB, pages int) (dir string, w *testWorld, s *Store) {
	t.Helper()
	dir, w = filepath.Join(t.TempDir(), "store"), newTestWorld(0)
	for i := range pages*4096 - 480 {
		w.position.Set(w.Create(), position{float32(i), 0})
	}
	return dir, w, open(t, dir, w, Options{SnapshotBytes: -1, Sync: journal.SyncNever()})
}

func TestUnchangedPagesAreNotWrittenAgain(t *testing.T) {
	dir, w, s := bigStore(t, 5)
	base, err := os.Stat(filepath.Join(dir, "snapshots/00000001.snap"))
	require.NoError(t, err)

	none := snapshotOf(t, s)
	require.Zero(t, none.Written)
	require.Positive(t, none.Shared)
	require.Less(t, none.Bytes, base.Size()/8)

	w.position.Mut(w.Entities()[5]).Y = 1
	require.NoError(t, s.Commit())
	one := snapshotOf(t, s)
	require.Equal(t, 1, one.Written)
	require.Equal(t, none.Shared-1, one.Shared)
	require.Equal(t, "snapshots/00000003.snap", one.Name)

	w.position.Remove(w.Entities()[w.Len()-1]) // The last row: one page of each array.
	require.NoError(t, s.Commit())
	require.Equal(t, 3, snapshotOf(t, s).Written)
	closeStore(t, s)
	v := verified(t, dir)
	require.Len(t, v.Snapshots(), 4)
	for i, files := range []int{0, 1, 1, 2} {
		require.Equal(t, files, v.Snapshots()[i].Files)
	}

	again := newTestWorld(0) // What was recovered is shared as well.
	s = open(t, dir, again, Options{SnapshotBytes: -1})
	require.Equal(t, w.Digest(), again.Digest())
	require.Zero(t, snapshotOf(t, s).Written)
	closeStore(t, s)
}

func TestReferencesNameTheFileThatHoldsThePageAndNeverAnotherReference(t *testing.T) {
	dir, w, s := bigStore(t, 5)
	for i := range 5 {
		w.position.Mut(w.Entities()[i*4096]).Y++
		require.NoError(t, s.Commit())
		snapshotOf(t, s)
	}
	closeStore(t, s)
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	references := 0
	for number := uint32(1); number <= 6; number++ {
		f, err := pagefile.Open(disk.Dir(root), snapshotName(number))
		require.NoError(t, err)
		err = f.Scan(func(k pagefile.Key, value []byte) error {
			content, ref, err := decodePage(value)
			if err != nil || content != nil {
				return err
			}
			references++
			require.Less(t, ref.file, number)
			held, err := pagefile.Open(disk.Dir(root), snapshotName(ref.file))
			require.NoError(t, err)
			defer held.Close()
			page, direct, err := readPage(held, "", k)
			require.NotNil(t, page, "page %v of file %d is not held by file %d", k, number, ref.file)
			require.Equal(t, ref.crc, direct.crc)
			return err
		})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Greater(t, references, 50)
}

func TestASnapshotThatWouldReferToTooManyFilesIsWrittenInFull(t *testing.T) {
	const pages = maxFiles + 4
	dir, w, s := bigStore(t, pages)
	var full []int
	for i := range 3 * pages { // Every file keeps a page that the next ones need.
		w.position.Mut(w.Entities()[i%pages*4096]).Y++
		require.NoError(t, s.Commit())
		if r := snapshotOf(t, s); r.Shared == 0 {
			full = append(full, i)
		}
	}
	require.Equal(t, []int{8, 17, 26, 35}, full)
	closeStore(t, s)
	most := 0
	for _, sn := range verified(t, dir).Snapshots() {
		most = max(most, sn.Files)
	}
	require.Equal(t, maxFiles, most)
}

func TestADamagedFileIsReportedForAllSnapshotsThatNeedIt(t *testing.T) {
	dir, w, s := bigStore(t, 5)
	for range 2 {
		w.position.Mut(w.Entities()[0]).Y++
		require.NoError(t, s.Commit())
		snapshotOf(t, s)
	}
	closeStore(t, s)
	const base = "snapshots/00000001.snap"
	data := readTree(t, dir)[base]
	at := strings.Index(data, string(w.position.AppendRows(nil, 9000, 9010))) // In a page that all share.
	require.Positive(t, at)
	require.NoError(t, os.WriteFile(filepath.Join(dir, base), []byte(flip(data, at, 3)), 0o600))

	v, err := OpenReadOnly(background, dir)
	require.NoError(t, err)
	defer v.Close()
	r, err := v.Verify(background)
	require.NoError(t, err)
	require.Len(t, r.Problems, 3)
	for _, p := range r.Problems {
		require.ErrorIs(t, p, ErrCorrupt)
		require.ErrorContains(t, p, base)
		require.ErrorContains(t, p, "offset")
	}
	_, err = Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, base)
}

func TestRecoveryFallsBackToAnOlderSnapshot(t *testing.T) {
	dir, w, s := bigStore(t, 5)
	for range 3 {
		w.position.Mut(w.Entities()[4096]).Y++
		require.NoError(t, s.Commit())
		snapshotOf(t, s)
	}
	closeStore(t, s)
	tree := readTree(t, dir)
	for _, name := range []string{"snapshots/00000003.snap", "snapshots/00000004.snap"} {
		data := tree[name]
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(flip(data, len(data)/2, 1)), 0o600))
	}
	again := newTestWorld(0)
	s = open(t, dir, again, Options{SnapshotBytes: -1})
	require.Equal(t, w.Digest(), again.Digest())
	r := s.Report()
	require.Equal(t, "snapshots/00000002.snap", r.Snapshot)
	require.Equal(t, 2, r.Replayed)
	require.Len(t, r.Skipped, 2)
	require.ErrorContains(t, r.Skipped[0], "snapshots/00000004.snap")
	require.ErrorContains(t, r.Skipped[1], "snapshots/00000003.snap")
	require.Contains(t, r.String(), "skipped: ")

	next := snapshotOf(t, s) // It has a new number, and nothing of the damaged files.
	require.Equal(t, "snapshots/00000005.snap", next.Name)
	for _, p := range s.Table() {
		require.NotContains(t, []uint32{3, 4}, p.file)
	}
	closeStore(t, s)
	final := newTestWorld(0)
	s = open(t, dir, final, Options{})
	require.Equal(t, w.Digest(), final.Digest())
	require.Equal(t, next.Name, s.Report().Snapshot)
	closeStore(t, s)
}

func TestASnapshotBeginsWhenTheJournalHasGrown(t *testing.T) {
	for _, c := range []struct {
		bytes   int64
		minimum int // Snapshots besides the base.
		maximum int
	}{{-1, 0, 0}, {0, 0, 0}, {1 << 30, 0, 0}, {3000, 2, 40}} {
		var finished []SnapshotResult
		dir := filepath.Join(t.TempDir(), "store")
		w := newTestWorld(0)
		done := make(chan SnapshotResult, 100)
		s := open(t, dir, w, Options{SnapshotBytes: c.bytes, Sync: journal.SyncNever(), OnSnapshot: func(r SnapshotResult) { done <- r }})
		for range 40 {
			w.fill(4)
			require.NoError(t, s.Commit())
			s.Settle() // So that the next one may begin.
		}
		closeStore(t, s)
		close(done)
		for r := range done {
			require.NoError(t, r.Err)
			finished = append(finished, r)
		}
		require.Equal(t, uint64(0), finished[0].Tick)
		require.Len(t, snapshots(t, dir), len(finished))
		require.GreaterOrEqual(t, len(finished)-1, c.minimum, "SnapshotBytes %d", c.bytes)
		require.LessOrEqual(t, len(finished)-1, c.maximum, "SnapshotBytes %d", c.bytes)
		again := newTestWorld(0)
		s = open(t, dir, again, Options{})
		require.Equal(t, w.Digest(), again.Digest())
		require.Equal(t, finished[len(finished)-1].Name, s.Report().Snapshot)
		closeStore(t, s)
	}
}

// Else it would outlive its journal in a power failure, and fit on a later one.
func TestTheTicksOfASnapshotAreDurableBeforeItHasItsName(t *testing.T) {
	w := newTestWorld(0)
	durable := make(chan uint64, 10)
	var s *Store
	s = open(t, filepath.Join(t.TempDir(), "store"), w, Options{
		Sync: journal.SyncNever(), SnapshotBytes: 1,
		OnSnapshot: func(r SnapshotResult) {
			if r.Tick > 0 {
				durable <- s.Journal().Durable()
			}
		},
	})
	w.fill(1)
	require.NoError(t, s.Commit()) // Begins one.
	require.NoError(t, s.Settle().Err)
	require.Equal(t, uint64(1), <-durable)
	s.Hurry(-1)
	w.fill(1)
	require.NoError(t, s.Commit())
	require.Equal(t, uint64(1), s.Journal().Durable())
	snapshotOf(t, s)
	require.Equal(t, uint64(2), <-durable)
	closeStore(t, s)
}

func TestASnapshotOfUncommittedChangesIsRefused(t *testing.T) {
	w := newTestWorld(2)
	s := open(t, filepath.Join(t.TempDir(), "store"), w, Options{})
	w.fill(1)
	_, err := s.Snapshot(background)
	require.ErrorIs(t, err, ErrUncommitted)
	require.NoError(t, s.Commit())
	snapshotOf(t, s)
	require.NoError(t, w.History().Rewind(1))
	require.Equal(t, uint64(0), snapshotOf(t, s).Tick)
	closeStore(t, s)
}

func TestAFailedSnapshotIsReportedAndTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	results := make(chan SnapshotResult, 100)
	w := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: 2000, OnSnapshot: func(r SnapshotResult) { results <- r }})
	require.NoError(t, (<-results).Err)
	w.fill(3)
	require.NoError(t, s.Commit())

	inTheWay := filepath.Join(dir, "snapshots/00000002.snap.tmp")
	require.NoError(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700))
	_, err := s.Snapshot(background)
	require.Error(t, err)
	require.Error(t, (<-results).Err)
	require.NoError(t, s.Err())
	require.Equal(t, 1, s.Metrics().SnapshotsFailed)

	began := 0
	for range 200 { // Commit tries again by itself, with the next number.
		w.fill(2)
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
	closeStore(t, s)
	require.NoError(t, os.RemoveAll(inTheWay))
	verified(t, dir)
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, w.Digest(), again.Digest())
	closeStore(t, s)
}

func TestOnDurableTellsEveryTickInOrder(t *testing.T) {
	for _, policy := range []journal.SyncPolicy{journal.SyncAlways(), journal.SyncEvery(time.Millisecond), journal.SyncNever()} {
		var ticks []uint64
		w := newTestWorld(5)
		s := open(t, filepath.Join(t.TempDir(), "store"), w, Options{Sync: policy, OnDurable: func(tick uint64) { ticks = append(ticks, tick) }})
		for range 5 {
			w.fill(1)
			require.NoError(t, s.Commit())
		}
		require.NoError(t, w.History().Rewind(2))
		w.fill(1)
		require.NoError(t, s.Commit())
		closeStore(t, s)
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 4}, ticks, "%v", policy)
	}
}

// A journal that does not take a tick has failed, whatever it says itself.
func TestATickThatTheJournalRefusesFailsTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	w.fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Journal().Close(background, w.Mark()))
	for range 2 {
		w.fill(1)
		require.ErrorIs(t, s.Commit(), journal.ErrClosed)
	}
	require.Error(t, s.Sync(background))
	_, err := s.Snapshot(background)
	require.Error(t, err)
	require.Error(t, s.Close(background))
	require.Equal(t, 3, w.Len())
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, 1, again.Len())
	require.Equal(t, ecs.NewEntity(1, 1), again.Create())
	closeStore(t, s)
}

// twoPages are more entities than one page of a sparse array has.
const twoPages = pageRows + 100

func TestWhatIsClearedLeavesThePagesOfTheSparseArray(t *testing.T) {
	for name, empty := range map[string]func(w *testWorld){
		"component": func(w *testWorld) { w.position.Clear() },
		"world": func(w *testWorld) {
			w.World.Clear()
			for range twoPages {
				w.Create()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, w, s := bigStore(t, 3)
			empty(w)
			w.position.Set(w.Entities()[twoPages-1], position{1, 2})
			require.NoError(t, s.Commit())
			snapshotOf(t, s)
			closeStore(t, s)
			verified(t, dir)
			got := opened(t, dir)
			require.Equal(t, w.Digest(), got.Digest())
		})
	}
}

func TestASnapshotAfterOneThatFailedKnowsWhatWasClearedBefore(t *testing.T) {
	mem := disktest.New()
	w := newTestWorld(0)
	for range twoPages {
		w.position.Set(w.Create(), position{})
	}
	s := memStore(t, mem, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	w.position.Clear()
	require.NoError(t, s.Commit())
	mem.OnCall(func(n int, call string) {
		if strings.Contains(call, snapshotDir) {
			mem.Fail(n, syscall.ENOSPC)
		}
	})
	_, err := s.Snapshot(background)
	require.ErrorIs(t, err, syscall.ENOSPC)
	mem.OnCall(nil)
	w.position.Set(w.Entities()[twoPages-1], position{1, 2})
	require.NoError(t, s.Commit())
	snapshotOf(t, s)
	closeStore(t, s)
	require.NoError(t, simVerify(mem.Crash(), w))
}

func TestMergedPagesAreThoseOfBoth(t *testing.T) {
	e := ecs.NewEntity(2*pageRows, 1)
	var a, b dirty
	a.setOp(ecs.OpRemove, 0, e)
	b.setOp(ecs.OpRemove, 0, ecs.NewEntity(70*pageRows, 1))
	b.setOp(ecs.OpClear, 1, 0)
	b.setOp(ecs.OpDestroy, noComponent, e)
	a.merge(&b)
	require.True(t, a.component(0).sparse.has(2) && a.component(0).sparse.has(70) && !a.component(0).sparse.has(3))
	require.True(t, a.component(1).cleared && !a.component(0).cleared)
	require.True(t, a.destroyed.has(2))
	require.False(t, a.all)
	a.merge(&dirty{all: true})
	require.True(t, a.all)
}
