// Package background lowers the wake-up priority of goroutines that do background work.
package background

// Enter marks the calling goroutine as background work until the goroutine ends. The goroutine
// keeps its share of processor time. When it wakes up, it does not interrupt another thread: it
// waits for a free processor, or for the end of a time slice. So a thread can finish a frame first.
//
// Enter locks the goroutine to a thread of the operating system, which ends with the goroutine.
// Goroutines that this goroutine starts are not affected. On systems other than Linux, Enter does
// nothing.
func Enter() { enter() }
