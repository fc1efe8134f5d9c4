package persist_test

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// removeSnapshots removes all snapshots of a store and their directory, as another program might.
func removeSnapshots(t testing.TB, mem *disktest.Mem) {
	t.Helper()
	for _, name := range mem.Files() {
		if strings.HasPrefix(name, "snapshots/") {
			require.NoError(t, mem.Remove(name))
		}
	}
	require.NoError(t, mem.Remove("snapshots"))
}

// lossCases are the ways in which another program makes the snapshots of a store useless.
var lossCases = map[string]func(t testing.TB, mem *disktest.Mem){
	"directory": removeSnapshots,
	"base":      func(t testing.TB, mem *disktest.Mem) { require.NoError(t, mem.Remove("snapshots/00000001.snap")) },
	"cut": func(_ testing.TB, mem *disktest.Mem) {
		mem.Put("snapshots/00000001.snap", mem.Bytes("snapshots/00000001.snap")[:4096])
	},
}

// recovers requires that Open recovers the state of w from the files.
func recovers(t testing.TB, mem *disktest.Mem, w *storetest.World) {
	t.Helper()
	again := storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", again.World, persist.Options{Files: mem})
	require.NoError(t, err)
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(again.World))
	require.NoError(t, s.Close(storetest.Background))
}

func TestLostSnapshots_ReplacedByStore(t *testing.T) {
	for name, lose := range lossCases {
		for _, end := range []string{"sync", "snapshot", "named", "close"} {
			t.Run(name+" "+end, func(t *testing.T) {
				mem := disktest.New()
				w := storetest.New(0)
				var told []persist.SnapshotResult
				s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{
					Files: mem,
					Sync:  journal.SyncNever, SnapshotBytes: -1,
					OnSnapshot: func(r persist.SnapshotResult) { told = append(told, r) },
				})
				require.NoError(t, err)
				w.Fill(9)
				commits(t, s, w, 10)
				require.NoError(t, s.Sync(storetest.Background))
				lose(t, mem)
				commits(t, s, w, 20)
				switch end {
				case "sync":
					require.NoError(t, s.Sync(storetest.Background))
				case "snapshot":
					_, err = s.Snapshot(storetest.Background)
					require.NoError(t, err)
				case "named":
					_, err = s.SaveSlot(storetest.Background, "boss", "")
					require.NoError(t, err)
				case "close":
					storetest.CloseStore(t, s)
				}
				recovers(t, mem.Crash(), w)
				require.Equal(t, []string{"snapshots/00000001.snap"}, s.Metrics().LastSnapshot.Lost)
				require.Equal(t, s.Metrics().LastSnapshot, told[len(told)-1])
				require.Zero(t, s.Metrics().LastSnapshot.Shared)
				if end != "close" {
					commits(t, s, w, 3)
					_, err = s.Snapshot(storetest.Background)
					require.NoError(t, err)
					require.Empty(t, s.Metrics().LastSnapshot.Lost)
					storetest.CloseStore(t, s)
				}
				if name != "cut" { // A truncated file is reported while it exists.
					require.NoError(t, simVerify(mem, w))
				}
				recovers(t, mem, w)
			})
		}
	}
}

// An open store looks for its snapshot files once a second. If they are lost, a later Commit
// replaces them, even if the program calls only Commit.
func TestLostSnapshots_ReplacedByCommit(t *testing.T) {
	for name, lose := range lossCases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := disktest.New()
				w := storetest.New(0)
				s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1})
				require.NoError(t, err)
				lose(t, mem)
				for range 25 {
					commits(t, s, w, 1)
					time.Sleep(100 * time.Millisecond)
				}
				require.Equal(t, []string{"snapshots/00000001.snap"}, s.Metrics().LastSnapshot.Lost)
				require.NoError(t, s.Sync(storetest.Background))
				recovers(t, mem.Crash(), w)
				storetest.CloseStore(t, s)
			})
		})
	}
}

// A store that cannot replace its snapshots fails, and Resume begins with a new snapshot.
func TestLostSnapshots_CannotBeReplaced(t *testing.T) {
	for name, lose := range lossCases {
		t.Run(name, func(t *testing.T) {
			mem := disktest.New()
			w := storetest.New(0)
			s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Sync: journal.SyncNever, SnapshotBytes: -1})
			require.NoError(t, err)
			commits(t, s, w, 10)
			lose(t, mem)
			mem.OnCall(func(n int, call string) {
				if strings.HasPrefix(call, "create snapshots/") {
					mem.Fail(n, syscall.ENOSPC)
				}
			})
			err = s.Sync(storetest.Background)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorContains(t, err, "snapshots/00000001.snap")
			require.ErrorIs(t, s.Err(), fs.ErrNotExist)
			require.ErrorIs(t, s.Metrics().Err, fs.ErrNotExist)
			require.Error(t, s.Commit())
			require.Error(t, s.Resume(storetest.Background))
			mem.OnCall(nil)
			require.NoError(t, s.Resume(storetest.Background))
			recovers(t, mem.Crash(), w)
			commits(t, s, w, 10)
			storetest.CloseStore(t, s)
			recovers(t, mem, w)
		})
	}
}

// If another program removes an older segment, the journal fails within a second. Resume saves the
// present world.
func TestResume_SegmentLost(t *testing.T) {
	for _, end := range []string{"second", "roll", "close"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := disktest.New()
				size := int64(2000)
				if end != "roll" {
					size = 1 << 20
				}
				options := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1}, size)
				for range 2 { // At least two segments.
					w := storetest.New(0)
					s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(mem, options))
					require.NoError(t, err)
					commits(t, s, w, 3)
					storetest.CloseStore(t, s)
				}
				w := storetest.New(0)
				s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(mem, options))
				require.NoError(t, err)
				require.NoError(t, mem.Remove("journal/00000001.seg"))
				var failed error
				for range 100 {
					w.Seed.Set(w.Seed.Get() + 1)
					if failed = s.Commit(); failed != nil || end == "close" {
						break
					}
					if end == "second" {
						time.Sleep(200 * time.Millisecond)
						failed = s.Sync(storetest.Background)
					} else {
						synctest.Wait()
					}
					if failed != nil {
						break
					}
				}
				if end == "close" {
					err := s.Close(storetest.Background)
					require.ErrorIs(t, err, fs.ErrNotExist)
					return
				}
				require.ErrorIs(t, failed, fs.ErrNotExist)
				require.ErrorContains(t, failed, "00000001.seg")
				require.NoError(t, s.Resume(storetest.Background))
				recovers(t, mem.Crash(), w)
				commits(t, s, w, 3)
				storetest.CloseStore(t, s)
				recovers(t, mem, w)
			})
		})
	}
}
