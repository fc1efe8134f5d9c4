package persist

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

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
)

func TestASecondOpenIsToldWhoHasTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	_, err := Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, fmt.Sprintf("process %d on ", os.Getpid()))
	v, err := OpenReadOnly(background, dir)
	require.NoError(t, err)
	require.Contains(t, v.LockHolder(), fmt.Sprint("process ", os.Getpid()))
	require.True(t, v.InUse())
	require.NoError(t, v.Close())

	w.fill(2) // The one that has it is not disturbed.
	require.NoError(t, s.Commit())
	closeStore(t, s)
	v = verified(t, dir)
	require.Empty(t, v.LockHolder())
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, w.Digest(), again.Digest())
	closeStore(t, s)
}

func TestTheLockOfAKilledProcessDoesNotStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := startChild(t, "hold", dir, "")
	c.await(t, "holding", 1)
	holder := "process " + c.said("holding")[0]
	_, err := Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, holder)
	host, _ := os.Hostname()
	require.Regexp(t, "^persist: in use by "+holder+" on "+regexp.QuoteMeta(host)+` since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: persist\.test`, err.Error())
	c.kill(t)
	v := verified(t, dir)
	require.Contains(t, v.LockHolder(), holder)
	require.False(t, v.InUse()) // What the file says is stale.
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	require.False(t, s.Report().Clean)
	require.Equal(t, 3, w.Len())
	closeStore(t, s)
}

func TestALockThatIsNoFileIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, newTestWorld(0), Options{})
	closeStore(t, s)
	elsewhere := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(elsewhere, []byte("precious"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, lockFile)))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, lockFile)))
	_, err := Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrForeign)
	data, err := os.ReadFile(elsewhere)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
}

func TestALockFileIsNotBelievedMoreThanALine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, newTestWorld(0), Options{})
	text := "process 1 on \x1b[31mred\nsecond line" + strings.Repeat("x", 1<<20)
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockFile), []byte(text), 0o600))
	_, err := Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrLocked)
	require.Equal(t, "persist: in use by process 1 on ?[31mred", err.Error())
	v := verified(t, dir)
	require.Equal(t, "process 1 on ?[31mred", v.LockHolder())
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockFile), []byte(strings.Repeat("ł", 1<<20)), 0o600))
	require.LessOrEqual(t, len(v.LockHolder()), maxHolder)
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockFile), nil, 0o600)) // As in the moment it is taken.
	_, err = Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorContains(t, err, "in use by another process")
	require.True(t, verified(t, dir).InUse())
	closeStore(t, s)
}

// endlessFiles are a tree in which every file is endless.
type endlessFiles struct {
	disk.FS
	disk.File
	read int64
}

func (e *endlessFiles) Open(string) (disk.File, error) { return e, nil }
func (e *endlessFiles) Close() error                   { return nil }

func (e *endlessFiles) ReadAt(b []byte, offset int64) (int, error) {
	e.read = max(e.read, offset+int64(len(b)))
	return copy(b, strings.Repeat("x", len(b))), nil
}

func TestALockFileIsNotReadFurtherThanItIsBelieved(t *testing.T) {
	files := new(endlessFiles)
	require.Len(t, readHolder(files), maxHolder)
	require.EqualValues(t, maxHolder, files.read)
}

// Readers ask for the lock; nobody who opens the store for writing notices.
func TestReadersDoNotKeepAStoreFromBeingOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, newTestWorld(0), Options{})
	closeStore(t, s)
	stop, stopped := make(chan bool), make(chan bool)
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					stopped <- true
					return
				default:
					held(dir)
				}
			}
		}()
	}
	for range 15 {
		s := open(t, dir, newTestWorld(0), Options{})
		require.True(t, held(dir))
		closeStore(t, s)
	}
	close(stop)
	<-stopped
	<-stopped
	require.False(t, held(dir))
	require.False(t, held(t.TempDir()))
}

func TestAClosingThatIsNotWaitedForGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	w.fill(3)
	require.NoError(t, s.Commit())
	ended, cancel := context.WithCancel(background)
	cancel()
	if err := s.Close(ended); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	again := newTestWorld(0)
	require.Eventually(t, func() bool {
		var err error
		if s, err = Open(background, dir, again.World, Options{}); err != nil {
			require.ErrorIs(t, err, ErrLocked)
		}
		return err == nil
	}, 30*time.Second, time.Millisecond)
	require.True(t, s.Report().Clean)
	require.Equal(t, w.Digest(), again.Digest())
	closeStore(t, s)
}

// The second Close waits for the first, whose outcome nobody has heard.
func TestASecondCloseWaitsForTheFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{})
	w.fill(30)
	require.NoError(t, s.Commit())
	gate := make(chan error)
	s.closed, s.closing = true, gate // As a Close leaves it whose context ended.
	ended, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, s.Close(ended), context.Canceled)
	require.ErrorIs(t, s.Close(ended), context.Canceled)
	go func() { gate <- fs.ErrPermission }()
	require.ErrorIs(t, s.Close(background), fs.ErrPermission)
	require.ErrorIs(t, s.Close(background), ErrClosed)
	s.closed = false
	s.closing = nil
	require.ErrorIs(t, firstOf(s.Close(ended), context.Canceled), context.Canceled)
	if s.closing != nil {
		require.Equal(t, uint64(1), s.Metrics().Tick, "what was true before")
		require.NoError(t, s.Close(background))
	}
	require.ErrorIs(t, s.Close(background), ErrClosed)
	require.False(t, held(dir))
	require.Equal(t, w.Digest(), opened(t, dir).Digest())
}

// firstOf returns err, or otherwise if that is nil.
func firstOf(err, otherwise error) error {
	if err == nil {
		return otherwise
	}
	return err
}

func TestASnapshotWhoseContextHasEndedIsNotBegun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{Sync: journal.SyncNever()})
	w.fill(3)
	require.NoError(t, s.Commit())
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err := s.Snapshot(ended)
	require.ErrorIs(t, err, context.Canceled)
	closeStore(t, s)
	require.Equal(t, []string{"snapshots/00000001.snap"}, snapshots(t, dir))
	verified(t, dir)
}

func TestAClosedStoreSaysSo(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "store"), newTestWorld(0), Options{})
	closeStore(t, s)
	require.ErrorIs(t, s.Commit(), ErrClosed)
	require.ErrorIs(t, s.Sync(background), ErrClosed)
	_, err := s.Snapshot(background)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Close(background), ErrClosed)
}

func TestWhileACheckpointIsHeldAStoreIsNeitherOpenedNorClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(3)
	w.fill(2)
	cp := w.Checkpoint()
	_, err := Open(background, dir, w.World, Options{})
	require.ErrorIs(t, err, ecs.ErrCheckpointHeld)
	require.True(t, cp.Valid())
	w.Release(cp)
	s := open(t, dir, w, Options{})
	require.True(t, s.Report().Fresh)

	cp = w.Checkpoint()
	w.fill(1)
	require.ErrorIs(t, s.Close(background), ecs.ErrCheckpointHeld)
	w.Restore(cp)
	w.Release(cp)
	w.fill(2)
	require.NoError(t, s.Commit())
	closeStore(t, s)
	require.Equal(t, 4, w.Len())

	empty := newTestWorld(3)
	cp = empty.Checkpoint()
	before := readTree(t, dir)
	_, err = Open(background, dir, empty.World, Options{})
	require.ErrorIs(t, err, ecs.ErrCheckpointHeld)
	require.Equal(t, before, readTree(t, dir))
	empty.Release(cp)
	s = open(t, dir, empty, Options{})
	require.Equal(t, w.Digest(), empty.Digest())
	closeStore(t, s)
}

func TestOpeningAndClosingLeavesNoFilesOpen(t *testing.T) {
	count := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // Not a system that tells.
		}
		return len(open)
	}
	dir := filepath.Join(t.TempDir(), "store")
	once := func() {
		s := open(t, dir, newTestWorld(0), Options{})
		closeStore(t, s)
		v := verified(t, dir)
		require.NoError(t, v.Close())
		_, err := Open(background, dir, component[rules]().world(), Options{})
		require.ErrorIs(t, err, ErrSchema)
	}
	once()
	before := count()
	for range 10 {
		once()
	}
	require.LessOrEqual(t, count(), before+2)
}
