package background

import (
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// waits is how long a test waits for the end of a thread.
const waits = 10 * time.Second

// policy returns the scheduling policy and the niceness of the calling thread.
func policy(t *testing.T) [2]int {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Error(err)
		return [2]int{}
	}
	return [2]int{int(attr.Policy), int(attr.Nice)}
}

// threads returns the number of background threads in this process.
func threads(t *testing.T) (n int) {
	tasks, err := filepath.Glob("/proc/self/task/*")
	require.NoError(t, err)
	for _, task := range tasks {
		id, err := strconv.Atoi(filepath.Base(task))
		require.NoError(t, err)
		attr, err := unix.SchedGetAttr(id, 0)
		// An error means that the thread has ended.
		if err == nil && attr.Policy == unix.SCHED_BATCH {
			n++
		}
	}
	return n
}

func TestEnter_PolicyEndsWithGoroutine(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := policy(t)
	if before[0] != unix.SCHED_NORMAL {
		t.Skip("the tests run under another policy")
	}
	is, leave, gone := make(chan [2]int), make(chan bool), make(chan bool)
	go func() {
		defer close(gone)
		Enter()
		is <- policy(t)
		<-leave
		for range 1000 {
			runtime.Gosched()
		}
		is <- policy(t)
	}()
	want := [2]int{unix.SCHED_BATCH, before[1]}
	require.Equal(t, want, <-is)
	require.Equal(t, 1, threads(t))
	require.Equal(t, before, policy(t), "policy of another goroutine")
	close(leave)
	require.Equal(t, want, <-is, "after it waited and yielded")
	<-gone
	require.Eventually(t, func() bool { return threads(t) == 0 }, waits, waits/1000, "the thread ends with the goroutine")
}

func TestEnter_KeepsIdlePolicy(t *testing.T) {
	is := make(chan [2]int)
	go func() {
		// The goroutine does not unlock the thread, so the thread ends with it.
		runtime.LockOSThread()
		attr, err := unix.SchedGetAttr(0, 0)
		if err == nil {
			attr.Policy = unix.SCHED_IDLE
			err = unix.SchedSetAttr(0, attr, 0)
		}
		if err != nil {
			t.Error(err)
		}
		Enter()
		is <- policy(t)
	}()
	require.Equal(t, unix.SCHED_IDLE, (<-is)[0])
}
