package persist_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// commits ends n ticks, each with a change.
func commits(t testing.TB, s *persist.Store, w *storetest.World, n int) {
	t.Helper()
	for range n {
		w.Seed.Set(w.Seed.Get() + 1)
		require.NoError(t, s.Commit())
	}
}

// After the lock file was removed, another process can open the store. The former owner then cannot
// confirm any tick, and does not harm the new owner's files.
func TestStore_LostToOtherProcess(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, a *persist.Store, w *storetest.World) error{
		"sync": func(t *testing.T, a *persist.Store, w *storetest.World) error {
			commits(t, a, w, 1)
			return a.Sync(storetest.Background)
		},
		"sync without new ticks": func(t *testing.T, a *persist.Store, _ *storetest.World) error {
			return a.Sync(storetest.Background)
		},
		"roll": func(t *testing.T, a *persist.Store, w *storetest.World) error {
			for range 200 { // These ticks begin another segment.
				w.Fill(20)
				if err := a.Commit(); err != nil {
					return err
				}
			}
			return a.Sync(storetest.Background)
		},
		"snapshot": func(t *testing.T, a *persist.Store, _ *storetest.World) error {
			_, err := a.Snapshot(storetest.Background)
			return err
		},
		"backup": func(t *testing.T, a *persist.Store, _ *storetest.World) error {
			return a.Backup(storetest.Background, filepath.Join(t.TempDir(), "backup"))
		},
		"close": func(t *testing.T, a *persist.Store, _ *storetest.World) error {
			return a.Close(storetest.Background)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			told := uint64(0)
			options := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1, OnDurable: func(tick uint64) { told = max(told, tick) }}, 4<<10)
			w := storetest.New(0)
			a := storetest.Open(t, dir, w, options)
			w.Fill(5)
			commits(t, a, w, 20)
			require.NoError(t, a.Sync(storetest.Background))
			durable := w.Tick()
			commits(t, a, w, 3) // These ticks are not durable yet.
			for a.Metrics().QueuedBytes > 0 {
				// Wait, because the opening below fails while the owner writes.
				runtime.Gosched()
			}

			require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
			other := storetest.New(0)
			b := storetest.Open(t, dir, other, persist.Options{})
			require.GreaterOrEqual(t, other.Tick(), durable)
			commits(t, b, other, 100)
			require.NoError(t, b.Sync(storetest.Background))
			holder, err := os.ReadFile(filepath.Join(dir, "LOCK"))
			require.NoError(t, err)

			err = lose(t, a, w)
			require.ErrorIs(t, err, persist.ErrLost)
			// The error names the owner's process and the time.
			require.ErrorContains(t, err, "process ")
			if name != "close" {
				require.ErrorIs(t, a.Commit(), persist.ErrLost) // The error is permanent.
				require.ErrorIs(t, a.Sync(storetest.Background), persist.ErrLost)
				_, err = a.Snapshot(storetest.Background)
				require.ErrorIs(t, err, persist.ErrLost)
				require.ErrorIs(t, a.Close(storetest.Background), persist.ErrLost)
			}
			require.LessOrEqual(t, told, durable)

			still, err := os.ReadFile(filepath.Join(dir, "LOCK"))
			require.NoError(t, err)
			require.Equal(t, string(holder), string(still))
			commits(t, b, other, 1)
			_, err = b.Snapshot(storetest.Background)
			require.NoError(t, err)
			storetest.CloseStore(t, b)
			storetest.Verified(t, dir)
			again := storetest.New(0)
			c := storetest.Open(t, dir, again, persist.Options{})
			require.True(t, c.Report().Clean)
			require.Equal(t, other.Digest(), again.Digest())
			storetest.CloseStore(t, c)
		})
	}
}

// A store whose files are missing or replaced confirms no tick.
func TestStore_FilesMissing(t *testing.T) {
	segment := filepath.Join(catalog.JournalDir, "00000001.seg")
	for name, remove := range map[string]func(t *testing.T, dir string){
		"store": func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
		"journal": func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, catalog.JournalDir)))
		},
		"segment": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, segment))) },
		"segment replaced": func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, segment))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "copy"), b, 0o600))
			require.NoError(t, os.Rename(filepath.Join(dir, "copy"), filepath.Join(dir, segment)))
		},
		"segment linked": func(t *testing.T, dir string) {
			name := filepath.Join(dir, segment)
			require.NoError(t, os.Rename(name, name+".old"))
			require.NoError(t, os.Symlink(filepath.Base(name)+".old", name))
		},
		"ledger": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, catalog.JournalDir, "00000001.ledger")))
		},
		"lock": func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "LOCK"))) },
		"moved away": func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, catalog.JournalDir), filepath.Join(dir, "elsewhere")))
		},
	} {
		for _, end := range []string{"sync", "snapshot", "close"} {
			t.Run(name+" "+end, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				told := uint64(0)
				w := storetest.New(0)
				s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1, OnDurable: func(tick uint64) { told = max(told, tick) }})
				commits(t, s, w, 10)
				require.NoError(t, s.Sync(storetest.Background))
				durable := w.Tick()
				remove(t, dir)
				commits(t, s, w, 200)
				var err error
				switch end {
				case "sync":
					err = s.Sync(storetest.Background)
				case "snapshot":
					_, err = s.Snapshot(storetest.Background)
				}
				closed := s.Close(storetest.Background)
				if end == "close" {
					err = closed
				}
				require.Error(t, err)
				require.Error(t, closed)
				switch name {
				case "store":
				case "lock":
					require.ErrorIs(t, err, persist.ErrLost)
				case "ledger":
					require.ErrorIs(t, err, fs.ErrNotExist)
					require.ErrorContains(t, err, "00000001.ledger")
				default:
					require.ErrorIs(t, err, fs.ErrNotExist)
					require.ErrorContains(t, err, "00000001.seg")
				}
				require.LessOrEqual(t, told, durable)
			})
		}
	}
}

// An open store continues after its directory was moved.
func TestStore_DirectoryMoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(dir, moved))
	commits(t, s, w, 10)
	require.NoError(t, s.Sync(storetest.Background))
	storetest.CloseStore(t, s)
	again := storetest.New(0)
	s = storetest.Open(t, moved, again, persist.Options{})
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
}

// If another program removes or truncates a file with shared pages during a copy, the snapshot
// fails. The next snapshot is a full one.
func TestSnapshot_SharedFileMissing(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			for try := range 20 {
				if refersToWhatIsGone(t, spoil) {
					return
				}
				t.Logf("try %d: the snapshot did not notice the damage", try)
			}
			t.Error("no snapshot noticed the damage")
		})
	}
}

// refersToWhatIsGone begins a snapshot that shares pages with an older file, and damages that file
// during the write. It reports whether the snapshot failed, which depends on the time of the
// damage.
func refersToWhatIsGone(t *testing.T, spoil func(path string) error) bool {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, SnapshotPace: 1})
	w.Fill(20_000)
	require.NoError(t, s.Commit())
	full, err := s.Snapshot(storetest.Background)
	require.NoError(t, err)
	commits(t, s, w, 1)
	begun, err := s.BeginSnapshot()
	require.NoError(t, err)
	require.True(t, begun)
	require.NoError(t, spoil(filepath.Join(dir, full.Name)))
	if err = s.Settle().Err; err == nil {
		_ = s.Close(storetest.Background) // Close reports the missing file.
		return false
	}
	require.ErrorContains(t, err, "which it shares pages with")
	require.ErrorContains(t, err, full.Name)
	r, err := s.Snapshot(storetest.Background)
	require.NoError(t, err)
	require.Zero(t, r.Shared)
	require.Equal(t, []string{full.Name}, r.Lost)
	storetest.CloseStore(t, s)
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
	return true
}
