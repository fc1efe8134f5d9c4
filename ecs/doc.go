// Package ecs holds the state of a simulation as entities and components, and restores earlier
// states exactly.
//
// A [World] creates entities. Each component type has one [Storage], a sparse set. The sparse
// array maps an entity index to a row. The dense arrays have the rows without gaps, so an iteration
// is a loop over slices.
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
// Removing a component moves the last row to the removed one. So the order of rows is part of the
// state, and every restore restores it.
//
// # From task to function
//
// Basics:
//
//	create a world                NewWorld with Options
//	register the components       Register, MustRegister; Component; Must
//	all handles in one call       Bind
//	create and destroy            World.Create, World.CreateAt, World.Destroy, World.Alive,
//	                              World.Clear
//	one entity's component        Storage.Set, Storage.Get, Storage.Mut, Storage.Has,
//	                              Storage.Remove
//	all rows of a component       Storage.All, Storage.Entities, Storage.Values,
//	                              Storage.MutValues, Storage.Clear
//	entities with some components NewQuery1 … NewQuery8 with Read and Write; All, Runs, Count
//	a single value                RegisterResource; Resource.Get, Resource.Read, Resource.Mut,
//	                              Resource.Set
//	events of a tick              RegisterEvent; Events.Send, Events.All,
//	                              Events.Last, Events.Reader
//	random numbers                RegisterRand; Rand
//	by name, without the type     World.Storage; AnyStorage: GetAny, SetAny, GetJSON, SetJSON
//	end a tick                    World.Commit
//
// Queries:
//
//	filter a query                With, Without, Or
//	optional components           Optional; AllOptional
//	test a single entity          Get, Has, First
//	several goroutines            ParallelRuns
//	pass the result to a batch    AppendEntities; World.DestroyFound
//	keep rows contiguous          World.NewGroup
//	make rows contiguous once     World.Align
//	find by a key                 NewIndex; Index.Of, Index.First, Index.Len, Index.Keys;
//	                              unique keys: Index.Set, Index.Replace
//	children, targets, trees      NewRelation with RelationOptions; Relation.Of, Target, Set,
//	                              Descendants, Ancestors, To
//	order rows                    Storage.SortFunc, Storage.SortEntities, Storage.SortLike
//	sets of entity indices        Storage.Mask, World.AliveBits, World.NewMask; Bits, Mask
//
// Batches and deferred changes:
//
//	create with components        NewBundle1 … NewBundle8: Create, CreateN, Set, Remove
//	change many entities          World.CreateN, Storage.SetAll, Storage.SetEach,
//	                              Storage.MutEach, Storage.RemoveAll, World.DestroyAll
//	change the world after a loop Commands; Storage.Later, World.Apply
//	copy entities                 World.CloneEntity, World.Copy, World.Move;
//	                              templates: Relation.Subtree
//	write entities to a file      package persist/part
//	find references to an entity  World.References
//	a work queue                  Storage.Drain
//	require other components      Storage.RequiredBy
//	keep only some components     World.KeepOnly
//
// Changes:
//
//	since a tick                  Storage.Since, Storage.SinceCommit, Resource.Since, World.Since
//	in queries                    Storage.Added, Storage.Changed, Storage.Removed
//	hooks                         Storage.OnAdd, Storage.OnSet, Storage.OnRemove, Storage.OnChange
//	                              World.OnCreate, World.OnDestroy, World.OnRestore
//
// Rollback, history and copies:
//
//	undo changes                  World.Checkpoint, World.Restore, World.Release, World.Try
//	go back and forward in time   Options.History; World.History: Rewind, Seek, Ticks, Nearest,
//	                              TickBytes
//	read the past as of a tick    History.At, Past; Storage.At, Resource.At
//	long history, bounded memory  Options.HistoryDense
//	run ticks of named systems    package schedule
//	an independent copy           World.Clone, without entities World.Blank; Storage.In,
//	                              Resource.In, Group.In
//	compare worlds                World.Digest, World.Digests
//	keep a world on disk          package persist
//	store it in another way       World.Raw; package ecs/raw
//	memory usage                  World.MemoryUsage, History.Bytes; World.Checkpoints,
//	                              World.CheckpointAs; World.Shrink
//	store an entity elsewhere     World.Restores
//
// # Kinds of storages
//
// Storages differ in how they find the row of an entity. The default is [Sparse]; a [Component]
// selects another kind. Types of size 0 get [Tag] without a setting. [Indexed] is for components
// that nearly every entity has, and [Hashed] for components that few entities have. An [Ordered]
// storage iterates in the order of entity indices.
//
// The kind determines cost, memory and the order of rows. All kinds have the same methods and
// guarantees. docs/STORAGES.md has figures.
//
// # Loops
//
// Put a loop over All of a query into a separate function:
//
//	func move(q *ecs.Query2[Position, Velocity]) {
//		for _, row := range q.All() {
//			row.A.X += row.B.X
//		}
//	}
//
// The compiler inlines the loop into this function, so no row costs a call. There are two limits:
//
//   - In a function of about 700 statements or more, one call remains for each run of rows. If rows
//     are scattered, two calls remain for each row.
//   - A loop body of some hundred statements or more becomes a function that is called for each
//     row. Move long blocks of the body into other functions.
//
// A loop over Runs receives slices and has none of these limits. Cut all slices of a run to one
// length, as in c := run.B[:len(run.A)]. In a loop with i in range of run.A, the compiler then
// omits the bounds checks.
//
// # Frames
//
// Checkpoints and the ends of ticks are boundaries. The span between two boundaries is a frame. A
// frame saves the value of each row before its first write, and the number of rows. A restore
// needs no other data. A checkpoint costs nanoseconds. The cost of a restore is proportional to the
// rows written since the checkpoint.
//
// Pointers and slices for writing are valid until the next boundary. The world does not detect a
// write through an older pointer.
//
// # Determinism
//
// Two worlds that start equal and receive the same calls in the same order stay equal, and so do
// their digests. The package reads no clock, uses no random numbers except those of [Rand], and
// never exposes the order of a Go map. Only ParallelRuns and loading start goroutines, and both
// wait for them.
//
// The arithmetic of the program may still differ between machines: arm64 fuses x + v*dt into one
// operation, amd64 does not. Write x + float64(v*dt). docs/guide/DETERMINISM.md lists the other
// cases.
//
// # Options
//
// The options of a constructor are one struct whose zero value is useful: [Options], [Component],
// [CopyOptions]. Filters of queries and operations on sets are methods.
//
// # Errors
//
// A lookup returns a second result, which is false if nothing was found. Changing an entity that is
// not alive returns false and changes nothing. Faults in external input return errors: types, saved
// states, ticks to seek to. A programming mistake, such as restoring a released checkpoint, panics
// with a text that says how to correct the program.
//
// # Debug build
//
// In a build with the tag stetdebug, a world compares its rows at every boundary with the rows at
// the previous boundary. It panics if the program has written a row without the world's knowledge.
// Such a write uses a component from Read, memory that a copy shares, or a pointer from before the
// last boundary or index lookup.
//
// A debug build also panics in these cases:
//
//   - The program writes through a pointer that it took before an entity was added to the
//     storage, removed or moved.
//   - A loop over Entities reaches a position at which the world now has another entity.
//   - The body of ParallelRuns writes the world other than through its run.
//   - The key function of an index writes the world.
//   - A system of package schedule writes another world than the one that it runs on, or uses
//     something that its access does not name.
//
// A debug build encodes all rows at every boundary that a restore could need, so use it for tests:
//
//	go test -tags stetdebug ./...
package ecs
