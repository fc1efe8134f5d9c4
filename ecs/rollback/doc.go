// Package rollback plays a game over a network without waiting for it: each peer makes
// its ticks at once, guesses what the players elsewhere press, and makes ticks again
// where the guess was wrong, as GGPO and GGRS do.
//
//	Receive    takes what another peer says
//	Advance    goes back and makes ticks again where needed, then makes the next one
//	Report     fills the message for another peer
//
// Messages are the program's to carry. Each says again all that the other is not known
// to have: those that are lost, doubled or late do no harm.
//
// The systems must compute the same on all machines. Products of floats do not:
// write x + float64(v*dt), see docs/MACHINES.md.
//
// With a store of package persist, ticks that are made again are journaled as a branch,
// like those of any Seek; nothing keeps only confirmed ones.
package rollback
