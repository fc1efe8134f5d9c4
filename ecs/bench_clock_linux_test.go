package ecs_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// now returns the processor time of this thread. It excludes the time of other processes.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
