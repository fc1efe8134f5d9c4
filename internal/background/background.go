// Package background lowers the wake-up priority of goroutines that do background work.
package background

// Enter marks the calling goroutine as background work until the goroutine ends. A background
// goroutine that wakes up does not preempt other threads. It waits for a free processor or for the
// end of another thread's time slice. Its share of processor time stays the same. Enter locks the
// goroutine to a thread of the operating system, which ends with the goroutine. Goroutines that it
// starts are not affected.
//
// On Linux, a thread may wake up on the processor of the waking thread even if another processor is
// free. So a goroutine that starts long work on a message can preempt the sender, although the
// sender may have a frame to finish. On other systems Enter does nothing.
func Enter() { enter() }
