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
// A step has the result of running the systems from top to bottom on one goroutine. With
// [Schedule.Workers], systems run at the same time if that cannot change the result.
//
// # Access
//
// The access of a system says what it uses, and decides which systems may run at the same time:
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
// A system that creates or destroys entities runs after all systems before it, and before all
// systems after it. So the ids of entities depend only on the list. A system whose storage has
// hooks runs alone, because hooks may do anything. Register hooks before the first step.
//
// A debug build (-tags stetdebug) panics if a system uses something that its access does not name,
// and names the line to add. It runs all systems on one goroutine. A [SyncTest] with
// [SyncTest.Shuffle] finds missing names without this build.
//
// # State
//
// All state of a simulation belongs into the world, so that a rewind restores it. The schedule has
// none: rates depend on the number of the tick, [Tick.Rand] on seed, tick and system, and a [Group]
// is a resource.
package schedule
