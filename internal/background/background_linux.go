package background

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// enter changes only a thread with the normal scheduling policy, and not one that chrt has changed.
// It ignores errors of the system calls.
func enter() {
	const self = 0
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
