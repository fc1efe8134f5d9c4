package persist_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestOpen_LockErrorNamesProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	_, err := persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("process %d on ", os.Getpid()))
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	require.NoError(t, err)
	require.Contains(t, v.LockHolder(), fmt.Sprint("process ", os.Getpid()))
	require.True(t, v.InUse())
	require.NoError(t, v.Close())

	w.Fill(2) // The owner can continue.
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v = storetest.Verified(t, dir)
	require.Empty(t, v.LockHolder())
	again := storetest.New(0)
	s = storetest.Open(t, dir, again, persist.Options{})
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
}

func TestLock_KilledProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := startChild(t, "hold", dir, "")
	c.await(t, "holding", 1)
	holder := "process " + c.said("holding")[0]
	_, err := persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrLocked)
	require.ErrorContains(t, err, holder)
	host, _ := os.Hostname()
	require.Regexp(t, "^persist: in use by "+holder+" on "+regexp.QuoteMeta(host)+` since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: persist\.test`, err.Error())
	c.kill(t)
	v := storetest.Verified(t, dir)
	require.Contains(t, v.LockHolder(), holder)
	require.False(t, v.InUse()) // The lock file still names the killed process.
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	require.False(t, s.Report().Clean)
	require.Equal(t, 3, w.Len())
	storetest.CloseStore(t, s)
}

func TestLockFile_IrregularFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	storetest.CloseStore(t, s)
	elsewhere := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(elsewhere, []byte("precious"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "LOCK")))
	_, err := persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrForeign)
	data, err := os.ReadFile(elsewhere)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
}

func TestLockFile_LongOrEmptyContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	text := "process 1 on \x1b[31mred\nsecond line" + strings.Repeat("x", 1<<20)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LOCK"), []byte(text), 0o600))
	_, err := persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorIs(t, err, persist.ErrLocked)
	require.Equal(t, "persist: in use by process 1 on ?[31mred", err.Error())
	v := storetest.Verified(t, dir)
	require.Equal(t, "process 1 on ?[31mred", v.LockHolder())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LOCK"), []byte(strings.Repeat("ł", 1<<20)), 0o600))
	require.LessOrEqual(t, len(v.LockHolder()), 512)
	// The lock file is empty for a short time while a process takes the lock.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o600))
	_, err = persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
	require.ErrorContains(t, err, "in use by another process")
	require.True(t, storetest.Verified(t, dir).InUse())
	// The lock file now has the text of another process.
	require.ErrorIs(t, s.Close(storetest.Background), persist.ErrLost)
}

// Readers that test the lock do not prevent a program from opening the store.
func TestOpen_WhileReadersTestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	storetest.CloseStore(t, s)
	stop, stopped := make(chan bool), make(chan bool)
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					stopped <- true
					return
				default:
					held(t, dir)
				}
			}
		}()
	}
	for range 15 {
		s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
		require.True(t, held(t, dir))
		storetest.CloseStore(t, s)
	}
	close(stop)
	<-stopped
	<-stopped
	require.False(t, held(t, dir))
	require.False(t, held(t, t.TempDir()))
}

func TestClose_ContextEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(3)
	require.NoError(t, s.Commit())
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	if err := s.Close(ended); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	again := storetest.New(0)
	require.Eventually(t, func() bool {
		var err error
		if s, err = persist.Open(storetest.Background, dir, again.World, persist.Options{}); err != nil {
			require.ErrorIs(t, err, persist.ErrLocked)
		}
		return err == nil
	}, 30*time.Second, time.Millisecond)
	require.True(t, s.Report().Clean)
	require.Equal(t, w.Digest(), again.Digest())
	storetest.CloseStore(t, s)
}

func TestSnapshot_ContextEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever})
	w.Fill(3)
	require.NoError(t, s.Commit())
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	_, err := s.Snapshot(ended)
	require.ErrorIs(t, err, context.Canceled)
	storetest.CloseStore(t, s)
	require.Equal(t, []string{"snapshots/00000001.snap"}, storetest.Snapshots(t, dir))
	storetest.Verified(t, dir)
}

func TestClosedStore_Errors(t *testing.T) {
	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), storetest.New(0), persist.Options{})
	storetest.CloseStore(t, s)
	require.ErrorIs(t, s.Commit(), persist.ErrClosed)
	require.ErrorIs(t, s.Sync(storetest.Background), persist.ErrClosed)
	_, err := s.Snapshot(storetest.Background)
	require.ErrorIs(t, err, persist.ErrClosed)
	require.ErrorIs(t, s.Close(storetest.Background), persist.ErrClosed)
}

func TestOpenClose_RefusedWithCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(3)
	w.Fill(2)
	cp := w.Checkpoint()
	_, err := persist.Open(storetest.Background, dir, w.World, persist.Options{})
	require.ErrorIs(t, err, raw.ErrCheckpointHeld)
	require.True(t, cp.Valid())
	w.Release(cp)
	s := storetest.Open(t, dir, w, persist.Options{})
	require.True(t, s.Report().Fresh)

	cp = w.Checkpoint()
	w.Fill(1)
	require.ErrorIs(t, s.Close(storetest.Background), raw.ErrCheckpointHeld)
	w.Restore(cp)
	w.Release(cp)
	w.Fill(2)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	require.Equal(t, 4, w.Len())

	empty := storetest.New(3)
	cp = empty.Checkpoint()
	before := storetest.ReadTree(t, dir)
	_, err = persist.Open(storetest.Background, dir, empty.World, persist.Options{})
	require.ErrorIs(t, err, raw.ErrCheckpointHeld)
	require.Equal(t, before, storetest.ReadTree(t, dir))
	empty.Release(cp)
	s = storetest.Open(t, dir, empty, persist.Options{})
	require.Equal(t, w.Digest(), empty.Digest())
	storetest.CloseStore(t, s)
}

func TestOpenClose_LeavesNoFilesOpen(t *testing.T) {
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // This system does not report open files.
		}
		return len(open)
	}
	dir := filepath.Join(t.TempDir(), "store")
	once := func() {
		s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
		storetest.CloseStore(t, s)
		v := storetest.Verified(t, dir)
		require.NoError(t, v.Close())
		_, err := persist.Open(storetest.Background, dir, component[storetest.Rules]().world(), persist.Options{})
		require.ErrorIs(t, err, persist.ErrSchema)
	}
	once()
	before := count()
	for range 10 {
		once()
	}
	require.LessOrEqual(t, count(), before+2)
}

// If the context of a Close ends, the next Close waits for the result.
func TestClose_AgainAfterContextEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(30)
	require.NoError(t, s.Commit())
	gate := make(chan error)
	s.Leave(gate) // This is the state after a Close whose context ended.
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	require.ErrorIs(t, s.Close(ended), context.Canceled)
	require.ErrorIs(t, s.Close(ended), context.Canceled)
	go func() { gate <- fs.ErrPermission }()
	require.ErrorIs(t, s.Close(storetest.Background), fs.ErrPermission)
	require.ErrorIs(t, s.Close(storetest.Background), persist.ErrClosed)
	s.Leave(nil)
	require.ErrorIs(t, firstOf(s.Close(ended), context.Canceled), context.Canceled)
	if s.Closing() {
		require.Equal(t, uint64(1), s.Metrics().Tick, "Metrics still returns the last values")
		require.NoError(t, s.Close(storetest.Background))
	}
	require.ErrorIs(t, s.Close(storetest.Background), persist.ErrClosed)
	require.False(t, held(t, dir))
	require.Equal(t, w.Digest(), opened(t, dir).Digest())
}

// firstOf returns err if it is not nil, and otherwise the second error.
func firstOf(err, otherwise error) error {
	if err == nil {
		return otherwise
	}
	return err
}

// held reports whether a process has the store in dir open.
func held(t testing.TB, dir string) bool {
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	return catalog.Held(files)
}
