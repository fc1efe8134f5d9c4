// Package rollback implements rollback netcode, like GGPO and GGRS. Each peer runs a tick without
// waiting for remote players, whose inputs it predicts. If a real input arrives later and differs,
// the peer goes back and runs the ticks again.
//
//	Receive    processes a message of another peer
//	Advance    reruns ticks where needed, then runs the next one
//	Report     fills the message for another peer
//
// The program transports the messages. Each message repeats everything that the receiver has not
// confirmed yet. So lost, repeated and late messages do no harm.
//
// The systems must compute the same results on all machines. Some machines fuse x + v*dt into one
// operation with another result, so write x + float64(v*dt). See docs/MACHINES.md.
//
// A store of package persist journals predicted ticks too. Repeated ticks are a new branch of the
// journal, like the ticks after any Seek.
package rollback
