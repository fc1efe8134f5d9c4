// Package ecs holds the state of a simulation as entities and components, and
// can put that state back to an earlier point exactly.
//
// A [World] hands out entities. Each component type has one [Storage], a sparse
// set: the sparse array answers "which row?", the dense arrays hold the rows
// with no gaps, so that iteration is a walk over slices.
//
//	entity index    0   1   2   3   4
//	              +---+---+---+---+---+
//	sparse        | 1 | . | 0 | . | 2 |    entity index -> row
//	              +---+---+---+---+---+
//	dense         | 2 | 0 | 4 |            row -> entity
//	              +---+---+---+
//	data          | c | a | e |            row -> component
//	              +---+---+---+
//
// Removing a component moves the last row into the hole. The order of rows is
// therefore state, not an accident: whatever puts a world back keeps it.
//
// # From task to function
//
//	make a world                  NewWorld
//	name the components           Register, RegisterResource; Named, CloneWith, NoRewind, NoPersist
//	create and destroy            World.Create, World.Destroy, World.Clear
//	one entity's component        Storage.Get, Storage.Set, Storage.Mut, Storage.Remove, Storage.Has
//	many entities                 NewQuery1 … NewQuery4 with Read and Write; All, Runs, With, Without
//	a value of which there is one Resource.Get, Resource.Mut
//	take a move back              World.Checkpoint, World.Restore, World.Release, World.Try
//	end a tick                    World.Commit
//	go back and forth in time     World.History: Rewind, Seek
//	tell whether worlds are equal World.Digest, World.Digests
//	an independent copy           World.Clone
//	keep a world on disk          package persist
//
// # Frames
//
// A checkpoint and the end of a tick are boundaries in one line of frames. While
// a frame is open, every row's value from before its first write is kept, and so
// are the lengths; that is all that putting back needs. A checkpoint costs
// nanoseconds, a restore as much as was written since.
//
// Pointers and slices for writing are valid until the next boundary: a write
// through an older one is not seen.
//
// # Determinism
//
// Two worlds that start equal and receive the same calls in the same order stay
// equal, digests included. The package reads no clock, draws no random number,
// starts no goroutine, and never lets the order of a Go map reach its caller.
//
// # Errors
//
// A lookup that can miss returns a second bool; a change of an entity that is not
// alive reports false and changes nothing. What comes from outside (types, saved
// states, ticks to go to) gives errors. A programmer's mistake that cannot be
// answered, such as restoring a released checkpoint, panics with a text that says
// how to repair it.
package ecs
