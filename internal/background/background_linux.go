package background

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// enter leaves a thread alone that was given a policy (chrt), and does without where the
// system refuses.
func enter() {
	const self = 0
	runtime.LockOSThread() // To the goroutine's end: no other gets this thread.
	attr, err := unix.SchedGetAttr(self, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Policy = unix.SCHED_BATCH
		if err = unix.SchedSetAttr(self, attr, 0); err == nil {
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // As if it woke now.
			return
		}
	}
	runtime.UnlockOSThread()
}
