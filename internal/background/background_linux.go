package background

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// If the thread has the normal scheduling policy, enter changes the policy to SCHED_BATCH. It keeps
// any other policy, which the user may have set with chrt. It ignores errors of the system calls.
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
