package chapters_test

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The cheat sheet shows the imports and functions of this file.

func cheatQueries(show showFunc) {
	world := ecs.NewWorld(ecs.Options{History: 600}) // Can rewind 600 ticks.
	positions, velocities := ecs.MustRegister[Pos](world), ecs.MustRegister[Vel](world)
	frozen := ecs.MustRegister[Frozen](world) // Its size is 0, so it is a tag.
	units := ecs.MustRegister(world, ecs.Component[Unit]{Name: "unit", Kind: ecs.Indexed})
	e := world.Create()          // 0v1: index 0, generation 1.
	positions.Set(e, Pos{X: 1})  // Adds or replaces. Returns false if e is not alive.
	p, ok := positions.Get(e)    // A copy.
	positions.Mut(e).X = p.X + 1 // A pointer for writing. Nil if e has no position.
	show(ok, positions.Has(e), world.Alive(e), units.Remove(e))
	world.Destroy(e)
	ecs.NewBundle2(positions, velocities).Create(Pos{X: 2}, Vel{X: 2})  // Also CreateN and Set.
	moving := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities)) // Create a query once.
	free := ecs.NewQuery1(ecs.Read(positions)).With(velocities).Without(frozen)
	either := ecs.NewQuery1(ecs.Read(positions)).Or(velocities, frozen)
	// Loop over maybe with AllOptional. The pointer to a missing velocity is nil.
	maybe := ecs.NewQuery2(ecs.Read(positions), ecs.Optional(ecs.Read(velocities)))
	// changed finds the positions that differ from the last Commit.
	changed := ecs.NewQuery1(ecs.Read(positions)).With(positions.Changed())
	show(free.Count(), either.Count(), maybe.Count(), changed.Count())
	for run := range moving.Runs() { // Slices. The body must not add or remove.
		show(run.A, run.B)
	}
	for e, row := range moving.All() { // The body may add, remove, create and destroy.
		position, velocity := row.Get()
		position.X += velocity.X
		if position.X > 3 && free.Has(e) {
			world.Destroy(e) // World.DestroyFound destroys all that a query finds.
		}
	}
}

func cheatThings(show showFunc, check checkFunc, world *ecs.World, positions *ecs.Storage[Pos], car, wheel ecs.Entity) {
	score := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "score"}))
	*score.Mut() += 10                              // Get returns a copy.
	dice := ecs.Must(ecs.RegisterRand(world, 1, 2)) // Its state rewinds with the world.
	hits := ecs.Must(ecs.RegisterEvent[Hit](world))
	sounds := ecs.Must(hits.Reader("sounds"))             // Reads each event once.
	hits.Send(Hit{Target: car, Damage: 1 + dice.IntN(6)}) // Kept until the end of the next tick.
	for hit := range hits.All() {
		show(hit, sounds.Len())
	}
	parent := func(c ChildOf) ecs.Entity { return c.Parent }
	children := ecs.NewRelation(ecs.MustRegister[ChildOf](world), parent, ecs.RelationOptions{})
	check(children.Set(wheel, ChildOf{car})) // When car is destroyed, wheel is destroyed too.
	show(children.First(car))                // Of iterates. Also Descendants, Ancestors, To.
	cells := ecs.NewIndex(positions, func(p Pos) Cell { return Cell{int(p.X) / 16, int(p.Y) / 16} })
	show(cells.First(Cell{0, 0})) // Of iterates over all of them.
}

func cheatSystems(check checkFunc, world *ecs.World) {
	type Game struct { // Bind finds these handles, or registers them.
		Positions *ecs.Storage[Pos]
		Heights   *ecs.Storage[float32] `ecs:"height,indexed"` // Name, kind, masked, nopersist.
		Best      *ecs.Resource[int]    `ecs:"best,norewind"`  // A rewind keeps its value.
		Moving    *ecs.Query2[Pos, Vel] `ecs:"write,read"`     // With "read?" for Optional.
	}
	var game Game
	check(ecs.Bind(world, &game))
	systems := schedule.New[string](world) // The type of the input of a tick.
	systems.Add("move", game.Moving, func(t *schedule.Tick[string]) {
		for _, row := range game.Moving.All() {
			row.A.X += row.B.X + float64(len(t.Input))
		}
	})
	spawn := func(t *schedule.Tick[string]) {
		later := t.Commands() // Records changes. In other code: ecs.Commands, World.Apply.
		game.Positions.Later(later).Set(later.Create(), Pos{X: t.Rand().Float64()})
	}
	systems.Add("spawn", schedule.Uses(game.Positions, schedule.Creates), spawn).Every(30)
	systems.Step("left") // Once a tick.
	world.Commit()       // Ends the tick. With a store: store.Commit.
}

func cheatTime(show showFunc, check checkFunc, world *ecs.World, positions *ecs.Storage[Pos], e ecs.Entity) {
	world.OnRestore(func() { show("tick", world.Tick()) })
	before := world.Checkpoint() // Takes nanoseconds.
	world.Restore(before)        // Undoes all changes since then. Can be repeated.
	world.Release(before)        // Frees the memory of old values.
	show(world.Try(func() error { return errors.New("undone") }))
	check(world.History().Rewind(3))        // Three ticks back.
	check(world.History().Seek(9))          // Forward to tick 9. Possible until the next change.
	past := ecs.Must(world.History().At(7)) // Reads tick 7. The world stays at tick 9.
	show(positions.At(past).Get(e))
	for e, edit := range ecs.Must(positions.Since(7)).Changed() { // Also Added and Removed.
		show(e, edit.Old, edit.New)
	}
	show(world.Clone().Digest() == world.Digest()) // A copy, and a hash of all state.
}

func cheatStore(ctx context.Context, show showFunc, check checkFunc, dir string, world *ecs.World) {
	store := ecs.Must(persist.Open(ctx, dir, world, persist.Options{}))
	check(store.Input("keys", []byte("left"))) // Records what the player did, for replays.
	check(store.BeginSlot("quick", "level 3")) // The next Commit saves it in the background.
	check(store.Commit())                      // Ends the tick, durable after about 100 ms.
	check(store.Sync(ctx))                     // Waits until all ticks are durable.
	check(store.MarkLast("boss"))              // Names the last tick.
	check(store.Goto(ctx, "mark:boss"))        // Or "1200", "@latest~10", "@-5s", "tip:1".
	check(store.LoadSlot(ctx, "quick"))        // Also SaveSlot, Slots, DeleteSlot.
	check(persist.Save(ctx, dir+".save", world))
	check(store.Load(ctx, dir+".save"))
	check(store.Backup(ctx, dir+".copy")) // While the store is open.
	show(store.Metrics().Tick)
	check(store.Close(ctx))                          // A crash before Close loses no durable tick.
	view := ecs.Must(inspect.OpenReadOnly(ctx, dir)) // Needs no Go types. The store may be in use.
	image := ecs.Must(view.At(ctx, ecs.Must(view.Resolve("mark:boss"))))
	show(image.Find("Pos").Entities(), view.Close())
}
