// Package schedule runs the systems of a simulation. A system is a function that changes the world
// once a tick.
//
//	s := schedule.New[Input](world)
//	s.Add("move", moving, func(t *schedule.Tick[Input]) {
//		for _, r := range moving.All() { … }
//	})
//	s.Add("spawn", schedule.Uses(bullets, schedule.Creates), spawn).Every(30)
//	fmt.Print(s.Explain())
//
//	for in := range inputs {
//		s.Step(in)
//		err := store.Commit() // or world.Commit()
//	}
//
// The list of systems is the meaning: a step has the result of running the systems from top to
// bottom on one goroutine. With [Schedule.Workers], systems run at the same time if that cannot
// change the result. The access of each system decides this: the queries, storages, resources,
// events, indexes and relations that it uses.
//
//	a query, ecs.Read(s), ecs.Write(s)     as the query or access says
//	a storage                              adds, removes and sets components
//	a resource, Events, a Rand             writes
//	an EventReader                         reads events, and moves its position
//	an index, a relation                   reads
//	a bundle, Creates                      creates entities, and adds components of the bundle
//	Reads(x)                               only reads x
//	Alone, or nil                          may do anything
//
// Creating and destroying entities separates the systems before from the systems after, so the ids
// of entities follow from the list. Adding a component of one type does not affect systems that use
// other types.
//
// A system whose storage has hooks runs alone, because hooks may do anything. Register hooks before
// the first step.
//
// A system must name what it uses. A debug build (-tags stetdebug) runs all systems on one
// goroutine, and panics if a system uses something else. It names the line to add. A [SyncTest]
// with [SyncTest.Shuffle] finds missing names without this build.
//
// All state of a simulation belongs into the world, so that a rewind restores it. The schedule has
// none: rates depend on the number of the tick, [Tick.Rand] on seed, tick and system, and a [Group]
// is a resource.
package schedule
