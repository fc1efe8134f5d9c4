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
// To begin with:
//
//	make a world                  NewWorld with Options
//	name the components           Register, MustRegister; Component
//	all handles in one call       Bind
//	create and destroy            World.Create, World.CreateAt, World.Destroy, World.Alive, World.Clear
//	one entity's component        Storage.Set, Storage.Get, Storage.Mut, Storage.Has, Storage.Remove
//	all of a component            Storage.All, Storage.Entities, Storage.Values, Storage.MutValues, Storage.Clear
//	entities with some components NewQuery1 … NewQuery8 with Read and Write; All, Runs, Count
//	a value of which there is one RegisterResource; Resource.Get, Resource.Read, Resource.Mut, Resource.Set
//	what happened in a tick       RegisterEvent, MustRegisterEvent; Events.Send, Events.All, Events.Last, Events.Reader
//	random numbers                RegisterRand, MustRegisterRand; Rand
//	by name, without the type     World.Storage; AnyStorage: GetAny, SetAny, GetJSON, SetJSON
//	end a tick                    World.Commit
//
// Queries:
//
//	narrow them                   With, Without, Or
//	components that may be absent Optional; AllOptional
//	ask about one entity          Get, Has, First
//	several goroutines            ParallelRuns
//	hand what is found to a batch AppendEntities; World.DestroyFound
//	keep rows side by side        World.NewGroup
//	put them so once              World.Align
//	find by a key                 NewIndex; Index.Of, Index.First, Index.Len, Index.Keys; of one entity each: Index.Set, Index.Replace
//	children, targets, trees      NewRelation with RelationOptions; Relation.Of, Target, Set, Descendants, Ancestors, To
//	order rows                    Storage.SortFunc, Storage.SortEntities, Storage.SortLike
//	sets of entity indices        Storage.Mask, World.AliveBits, World.NewMask; Bits, Mask
//
// Many at once, now or later:
//
//	create with components        NewBundle1 … NewBundle12: Create, CreateN, Set, Remove
//	create, give, take, destroy   World.CreateN, Storage.SetAll, Storage.SetEach, Storage.MutEach, Storage.RemoveAll, World.DestroyAll
//	change the world after a loop Commands; Storage.Later, World.Apply
//	copy entities                 World.CloneEntity, World.Copy, World.Move; templates: Relation.Subtree
//	to a file, out of it          package persist/part
//	who refers to an entity       World.References
//	a queue of work               Storage.Drain
//	a component brings others     Storage.RequiredBy
//	all but some components go    World.KeepOnly
//
// What changed:
//
//	since a tick                  Storage.Since, Storage.SinceCommit, Resource.Since, World.Since
//	in queries                    Storage.Added, Storage.Changed, Storage.Removed
//	be told                       Storage.OnAdd, Storage.OnSet, Storage.OnRemove, Storage.OnChange
//	                              World.OnCreate, World.OnDestroy, World.OnRestore
//
// Back, forth and elsewhere:
//
//	take a move back              World.Checkpoint, World.Restore, World.Release, World.Try
//	go to other ticks             Options.History; World.History: Rewind, Seek, Ticks, Nearest, TickBytes
//	read one beside the present   History.At, Past; Storage.At, Resource.At
//	reach far back within bounds  Options.HistoryDense
//	make ticks of named systems   Stepper
//	check that ticks come out the same when made again  Stepper.SyncTest; Divergence
//	an independent copy           World.Clone, without entities World.Blank; Storage.In, Resource.In, Group.In
//	tell whether worlds are equal World.Digest, World.Digests
//	keep a world on disk          package persist
//	store it in another way       World.Raw; package ecs/raw
//	what memory it takes          World.MemoryUsage, History.Bytes; World.Checkpoints, World.CheckpointAs; World.Shrink
//	keep an entity outside        World.Restores
//
// # Kinds of storages
//
// Storages differ in how they find the row of an entity: [Sparse] unless its
// [Component] says otherwise; [Tag] for types of size 0, which need not be asked for;
// [Indexed] where nearly every entity has the component; [Hashed] where hardly any
// has it; [Ordered] where iteration must go by entity index. A kind changes cost,
// memory and the order of rows, and nothing else: methods and promises are the
// same. docs/STORAGES.md has figures.
//
// # Loops
//
// A loop over All of a query is compiled into the function that it stands in: its body
// is called for no row. In a function of some 700 statements or more the compiler
// leaves calls in it, one for each run of rows: none that matters where rows lie side by
// side, two a row where they lie here and there. A body of some hundred statements or
// more becomes a function, called for each row. So put a loop into a function of its own,
//
//	func move(q *ecs.Query2[Position, Velocity]) {
//		for _, row := range q.All() {
//			row.A.X += row.B.X
//		}
//	}
//
// and what is long in its body into another. A loop over Runs gets slices, and does not
// depend on any of that; inside of it, cut all of them to one length, and the compiler
// checks no index (for c := run.B[:len(run.A)] and i in range of run.A).
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
// equal, digests included. The package reads no clock, draws no random number of its
// own, and never lets the order of a Go map reach its caller. Goroutines are started by
// ParallelRuns only, which waits for them.
//
// What the program computes may still differ from machine to machine: arm64 fuses x + v*dt
// into one operation, amd64 does not. Write x + float64(v*dt). docs/MACHINES.md has the others.
//
// # Options
//
// What a constructor can be told is one struct, useful when zero: [Options],
// [Component], [CopyOptions]. What narrows a query or combines sets is a method of it.
//
// # Errors
//
// A lookup that can miss returns a second bool; a change of an entity that is not
// alive reports false and changes nothing. What comes from outside (types, saved
// states, ticks to go to) gives errors. A programmer's mistake that cannot be
// answered, such as restoring a released checkpoint, panics with a text that says
// how to repair it.
//
// # Debug build
//
// Built with the tag stetdebug, a world compares its rows at every boundary with
// what they were at the one before, and panics if one was written without its
// knowledge: through Read, through a pointer from before the boundary or an index look-up,
// through memory that a copy shares. It finds a write through a pointer from before an entity
// came to the storage, left it or moved in it. It panics as well where a loop over Entities comes to a
// place that has another entity by now. Each write asks whether the program may write the
// world: not in the body of ParallelRuns, but through the run; not in the key function of an
// index; not in a system of a [Stepper] that was given another world. It costs the encoding
// of every row, for tests:
//
//	go test -tags stetdebug ./...
package ecs
