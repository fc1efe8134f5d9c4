package background

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// enter does not change a thread that already has another scheduling policy, set by chrt. It
// ignores errors of the system call.
func enter() {
	const self = 0
	// Until the goroutine ends, no other goroutine gets this thread.
	runtime.LockOSThread()
	attr, err := unix.SchedGetAttr(self, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Policy = unix.SCHED_BATCH
		if err = unix.SchedSetAttr(self, attr, 0); err == nil {
			// Reschedule the thread under its new policy.
			_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			return
		}
	}
	runtime.UnlockOSThread()
}
