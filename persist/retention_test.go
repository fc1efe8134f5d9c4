package persist_test

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Whatever retention removes, the remaining data can be read and recovered.
func TestRetention_RemainingDataReadable(t *testing.T) {
	var removed atomic.Int64
	for seed := range uint64(3) {
		dir := filepath.Join(t.TempDir(), "store")
		rng := rand.New(rand.NewPCG(seed, 5))
		now := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
		options := persist.Options{
			Sync: journal.SyncNever, SnapshotBytes: 2000, Retain: persist.Retention{Last: 2, Every: time.Hour},
			Now: func() time.Time { now = now.Add(time.Minute); return now },
			OnSnapshot: func(r persist.SnapshotResult) {
				assert.NoError(t, r.RemoveErr)
				removed.Add(int64(len(r.Removed)))
			},
		}
		w := storetest.New(8)
		w.Fill(20)
		s := storetest.Open(t, dir, w, options)
		digests := map[journal.ID]ecs.Digest{}
		named := map[string]ecs.Digest{}
		for i := range 250 {
			w.Do(storetest.RandomActions(rng, 4)...)
			require.NoError(t, s.Commit())
			digests[s.IDs()[w.Raw().Seq()]] = storetest.Persistent(w.World)
			_, _ = s.Written(storetest.Background)
			if rng.IntN(10) == 0 {
				_ = w.History().Rewind(rng.IntN(8))
			}
			if i%100 == 50 {
				w.ReleaseAll()
				if w.Raw().Dirty() {
					require.NoError(t, s.Commit())
				}
				name := storetest.Names[1+i/100]
				_, err := s.SaveSlot(storetest.Background, name, "")
				require.NoError(t, err)
				named[name] = storetest.Persistent(w.World)
			}
			if i%90 == 89 {
				w.ReleaseAll()
				require.NoError(t, s.Commit())
				digests[s.IDs()[w.Raw().Seq()]] = storetest.Persistent(w.World)
				storetest.CloseStore(t, s)
				storetest.Verified(t, dir)
				w = storetest.New(8)
				s = storetest.Open(t, dir, w, options)
			}
		}
		w.ReleaseAll()
		storetest.CloseStore(t, s)
		storetest.Verified(t, dir)
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		for _, info := range v.Snapshots() {
			require.NoError(t, info.Err)
			if want, ok := digests[info.ID]; ok {
				require.Equal(t, want, info.Digest, info.Name)
			}
		}
		for name, want := range named {
			seq, err := v.Resolve("snap:" + name)
			require.NoError(t, err)
			im, err := v.At(storetest.Background, seq)
			require.NoError(t, err)
			require.Equal(t, want, im.Digest())
		}
		require.Less(t, len(v.Snapshots()), 40)
		require.NoError(t, v.Close())
	}
	require.Greater(t, removed.Load(), int64(20))
}

func TestRetention_DamagedStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	for range 5 {
		w.Fill(5)
		require.NoError(t, s.Commit())
		storetest.SnapshotOf(t, s)
	}
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	damaged := []byte(tree["snapshots/00000006.snap"])
	damaged[len(damaged)/2] ^= 1
	tree["snapshots/00000006.snap"] = string(damaged)
	tree["snapshots/00000090.snap.tmp"] = "unfinished"
	storetest.WriteTree(t, dir, tree)
	w = storetest.New(0)
	s = storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	require.NotEmpty(t, s.Report().Skipped)
	for range 12 {
		w.Fill(2)
		require.NoError(t, s.Commit())
		s.ForgetPages() // The next snapshot is a full one, which needs no older one.
		require.Empty(t, storetest.SnapshotOf(t, s).Removed)
	}
	storetest.CloseStore(t, s)
	delete(tree, "journal/00000001.ledger") // Every opening writes its own ledger.
	require.Subset(t, slices.Sorted(maps.Keys(storetest.ReadTree(t, dir))), slices.Sorted(maps.Keys(tree)))
}

func TestOpen_RemovesUnfinishedSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	delete(tree, "journal/00000001.ledger") // Every opening writes its own ledger.
	before := slices.Sorted(maps.Keys(tree))
	tree = storetest.ReadTree(t, dir)
	tree["snapshots/00000007.snap.tmp"] = "unfinished"
	storetest.WriteTree(t, dir, tree)
	s = storetest.Open(t, dir, storetest.New(0), persist.Options{})
	require.NotContains(t, storetest.ReadTree(t, dir), "snapshots/00000007.snap.tmp")
	storetest.CloseStore(t, s)
	require.Subset(t, slices.Sorted(maps.Keys(storetest.ReadTree(t, dir))), before)
}

// One page of the world never changes. Retention can still remove the older files.
func TestRetention_UnchangedPageKeepsFewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	w.Fill(50)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever, Retain: persist.Retention{Last: 1}})
	removed := 0
	for i := range 60 {
		w.Seed.Set(storetest.Seed(i))
		require.NoError(t, s.Commit())
		removed += len(storetest.SnapshotOf(t, s).Removed)
	}
	require.Greater(t, removed, 20)
	require.Less(t, s.Stored(), 40)
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

func TestRetention_RemovesRewoundSnapshot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(5)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
	var removed []string
	for i := range 3 {
		w.Fill(1)
		require.NoError(t, s.Commit())
		if i == 1 {
			require.NoError(t, w.History().Rewind(2))
			continue
		}
		s.ForgetPages() // The next snapshot is a full one.
		removed = storetest.SnapshotOf(t, s).Removed
	}
	require.Equal(t, []string{"snapshots/00000002.snap"}, removed)
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}

// The journal has a note that lists the snapshots. If the note cannot be written for a new
// snapshot, the snapshot fails and its file is removed.
func TestSnapshot_JournalNoteFails(t *testing.T) {
	mem := disktest.New()
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Sync: journal.SyncNever, SnapshotBytes: -1})
	require.NoError(t, err)
	w.Fill(9)
	require.NoError(t, s.Commit())
	for _, failure := range []error{syscall.ENOSPC, disktest.ErrShortWrite} {
		before := mem.Files()
		failed := false
		mem.OnCall(func(n int, call string) {
			if call == "write journal/00000001.ledger" && !failed {
				failed = true
				mem.Fail(n, failure)
			}
		})
		_, err = s.Snapshot(storetest.Background)
		mem.OnCall(nil)
		require.ErrorIs(t, err, failure)
		require.Equal(t, before, mem.Files())
		require.NoError(t, s.Err())
	}
	storetest.SnapshotOf(t, s)
	storetest.CloseStore(t, s)
	v, err := inspect.OpenFS(storetest.Background, mem, ".")
	require.NoError(t, err)
	r, err := v.Verify(storetest.Background)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, 2, r.Snapshots)
	require.NoError(t, v.Close())
}

// An arrivingFS reports an error for a write to a ledger, although the bytes were written.
type arrivingFS struct {
	disk.FS
	fail *bool
}

type arrivingFile struct {
	disk.File
	fail *bool
}

func (f arrivingFS) Create(name string) (disk.File, error) {
	file, err := f.FS.Create(name)
	if err == nil && strings.Contains(name, ".ledger") {
		file = arrivingFile{file, f.fail}
	}
	return file, err
}

func (f arrivingFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	if *f.fail {
		*f.fail = false
		return 0, syscall.EIO
	}
	return n, err
}

// The journal writes a note about a snapshot, but the disk reports an error. The snapshot fails,
// and the store removes its file. No later report calls the file missing.
func TestSnapshot_RemovedAfterFailedNote(t *testing.T) {
	mem, fail := disktest.New(), false
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: arrivingFS{mem, &fail}, Sync: journal.SyncNever, SnapshotBytes: -1})
	require.NoError(t, err)
	w.Fill(9)
	require.NoError(t, s.Commit())
	fail = true
	_, err = s.Snapshot(storetest.Background)
	require.ErrorIs(t, err, syscall.EIO)
	require.NoError(t, s.Sync(storetest.Background))
	for _, left := range []*disktest.Mem{mem.Crash(), mem.Clone()} {
		again := storetest.New(0)
		recovered, err := persist.Open(storetest.Background, ".", again.World, persist.Options{Files: left})
		require.NoError(t, err)
		require.Empty(t, recovered.Report().Skipped)
		storetest.CloseStore(t, recovered)
	}
	storetest.CloseStore(t, s)
	require.NoError(t, simVerify(mem, w))
}

// A temporary lack of file descriptors does not fail the journal.
func TestStore_OutOfFileDescriptors(t *testing.T) {
	for _, failing := range []string{"open LOCK", "open journal/00000002.seg"} {
		synctest.Test(t, func(t *testing.T) {
			mem := disktest.New()
			w := storetest.New(0)
			s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Sync: journal.SyncNever, SnapshotBytes: -1})
			require.NoError(t, err)
			times := 3
			mem.OnCall(func(n int, call string) {
				if call == failing && times > 0 {
					times--
					mem.Fail(n, syscall.EMFILE)
				}
			})
			commits(t, s, w, 1)
			require.NoError(t, s.Sync(storetest.Background))
			require.Zero(t, times)
			times = 1000
			commits(t, s, w, 1)
			err = s.Sync(storetest.Background)
			require.ErrorIs(t, err, syscall.EMFILE)
			require.ErrorContains(t, s.Err(), "Store.Resume")
			_, err = s.SaveSlot(storetest.Background, "boss", "")
			require.ErrorIs(t, err, syscall.EMFILE)
			mem.OnCall(nil)
			require.NoError(t, s.Resume(storetest.Background))
			storetest.CloseStore(t, s)
			require.NoError(t, simVerify(mem, w))
		})
	}
}

// The time of a snapshot is that of its tick.
func TestSnapshot_TimeOfTick(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	storetest.CloseStore(t, s)
	s = storetest.Open(t, dir, storetest.New(0), persist.Options{})
	storetest.SnapshotOf(t, s)
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)
	require.True(t, v.Snapshots()[0].Time.IsZero(), "no tick was committed")
	require.WithinDuration(t, time.Now(), v.Snapshots()[1].Time, time.Hour)
	require.Equal(t, v.Snapshots()[1].Time, v.Snapshots()[2].Time, "that of the tick, not of the opening")
}
