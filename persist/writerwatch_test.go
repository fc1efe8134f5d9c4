package persist_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A writerWatch records the reports of a watch.
type writerWatch struct {
	look            func()
	changes         int
	program         string
	running, closed bool
}

func watchWriter(v *inspect.View) *writerWatch {
	w := new(writerWatch)
	w.look = v.WatchWriter(func(program string, running, closed bool) {
		w.changes, w.program, w.running, w.closed = w.changes+1, program, running, closed
	})
	w.look()
	return w
}

// await waits for the next change.
func (w *writerWatch) await(t *testing.T) {
	t.Helper()
	before := w.changes
	require.Eventually(t, func() bool {
		w.look()
		return w.changes > before
	}, 20*time.Second, time.Millisecond)
}

// A watch reports that a killed process has ended, and that another program opens and closes the
// store.
func TestWatchWriter_KilledProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := startChild(t, "hold", dir, "")
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	c.await(t, "holding", 1)
	holder := "process " + c.said("holding")[0] + " on "
	v := storetest.Verified(t, dir)
	watch := watchWriter(v)
	require.True(t, v.InUseNow())

	c.kill(t)
	before := stamps(t, dir)
	require.Zero(t, watch.changes, "nothing happened")
	watch.await(t)
	require.False(t, watch.running)
	require.False(t, watch.closed)
	require.Contains(t, watch.program, holder, "the name of the program that ended stays")
	require.False(t, v.InUseNow())
	require.True(t, v.InUse(), "the view was opened in this state")
	require.Equal(t, before, stamps(t, dir), "a look changes nothing")
	late := watchWriter(v)

	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	watch.await(t)
	require.True(t, watch.running)
	require.NotContains(t, watch.program, holder)
	require.True(t, v.InUseNow())
	storetest.CloseStore(t, s)
	watch.await(t)
	require.False(t, watch.running)
	require.True(t, watch.closed)
	require.Empty(t, watch.program)
	require.Equal(t, 3, watch.changes)
	require.Zero(t, late.changes)
	late.look()
	require.True(t, late.closed, "the watch did not look while the program ran")
}

// Watches that look again and again do not prevent a program from opening the store. They look at
// most twice a second.
func TestWatchWriter_OwnerNotDelayed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	storetest.CloseStore(t, storetest.Open(t, dir, storetest.New(0), persist.Options{}))
	stop, changes := make(chan bool), make(chan int)
	for range 4 {
		watch := watchWriter(storetest.Verified(t, dir))
		go func() {
			for {
				select {
				case <-stop:
					changes <- watch.changes
					return
				default:
					watch.look()
				}
			}
		}()
	}
	begin := time.Now()
	for range 100 {
		storetest.CloseStore(t, storetest.Open(t, dir, storetest.New(0), persist.Options{}))
	}
	most := 1 + int(time.Since(begin)/(400*time.Millisecond))
	close(stop)
	for range 4 {
		require.LessOrEqual(t, <-changes, most)
	}
}

// For a short time after the lock is taken and before it is released, the lock file names no owner.
// During that time the watch reports nothing.
func TestWatchWriter_LockNotSignedYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	lock := filepath.Join(dir, "LOCK")
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	signed, err := os.ReadFile(lock)
	require.NoError(t, err)
	watch := watchWriter(storetest.Verified(t, dir))
	unchanged := func() {
		t.Helper()
		before := watch.changes
		time.Sleep(600 * time.Millisecond)
		watch.look()
		require.Equal(t, before, watch.changes)
	}
	// The lock file is empty shortly before the lock is released.
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	unchanged()
	require.NoError(t, os.WriteFile(lock, signed, 0o600))
	storetest.CloseStore(t, s)
	watch.await(t)
	require.True(t, watch.closed)

	// A process opened the store and was killed between two looks.
	require.NoError(t, os.WriteFile(lock, []byte("process 1 on a machine\n"), 0o600))
	watch.await(t)
	require.Equal(t, "process 1 on a machine", watch.program)
	s = storetest.Open(t, dir, storetest.New(0), persist.Options{})
	signed, err = os.ReadFile(lock)
	require.NoError(t, err)
	// The lock file still names the previous owner shortly after the lock is taken.
	require.NoError(t, os.WriteFile(lock, []byte("process 1 on a machine\n"), 0o600))
	unchanged()
	require.NoError(t, os.WriteFile(lock, signed, 0o600))
	watch.await(t)
	require.True(t, watch.running)
	storetest.CloseStore(t, s)
}

func TestWatchWriter_OfSaveFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "game.save")
	require.NoError(t, persist.Save(storetest.Background, file, storetest.New(0).World))
	v := storetest.Verified(t, file)
	require.False(t, v.InUseNow())
	require.Zero(t, watchWriter(v).changes)
}
