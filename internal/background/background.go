// Package background says to the operating system that a goroutine works behind the others
// of its process.
package background

// Enter makes the calling goroutine, to its end, one that takes no processor from another
// when it has something to do again: it waits until one is free or the other has had its
// turn. Its share of the processors stays as it is. It costs a thread of the system, which
// ends with the goroutine; those that the goroutine starts are as others are.
//
// Linux may wake a thread on the processor of who wakes it while another one is free. So a
// goroutine that works long after a message can take the processor from who sent it, who may
// have a frame to finish. Elsewhere Enter does nothing.
func Enter() { enter() }
