// Package rollback implements rollback netcode, like GGPO and GGRS. Each peer runs its ticks at
// once with predicted inputs of the remote players. When the real inputs arrive and differ, the
// peer goes back and runs the ticks again.
//
//	Receive    processes a message of another peer
//	Advance    reruns ticks where needed, then runs the next one
//	Report     fills the message for another peer
//
// The program transports the messages. Each message repeats everything that the receiver may not
// have yet. So lost, repeated and late messages do no harm.
//
// The systems must compute the same results on all machines. Fused products of floats differ
// between machines: write x + float64(v*dt), see docs/MACHINES.md.
//
// With a store of package persist, ticks that run again are journaled as a branch, like the ticks
// after any Seek. No mode journals only confirmed ticks.
package rollback
