package ecs_test

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
)

// The query finds entities whose value differs from the value at the last commit.
func ExampleStorage_Changed() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	all := world.CreateN(nil, 3)
	positions.SetAll(all, Position{})
	changed := ecs.NewQuery1(ecs.Read(positions)).With(positions.Changed())
	world.Commit()

	positions.Mut(all[0]).X = 5
	positions.Mut(all[1]).X = 0 // The entity counts as written, but its value is the same.
	positions.Mut(all[2]).X = 9
	for e, p := range changed.All() {
		fmt.Println(e, *p)
	}
	world.Commit()
	fmt.Println(changed.Count())
	// Output:
	// 0v1 {5 0}
	// 2v1 {9 0}
	// 0
}

// The query finds entities that got the component after the last commit.
func ExampleStorage_Added() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	fresh := ecs.NewQuery1(ecs.Read(positions)).With(positions.Added())
	positions.Set(world.Create(), Position{})
	world.Commit()
	positions.Set(world.Create(), Position{X: 1})
	for e, p := range fresh.All() {
		fmt.Println(e, *p)
	}
	// Output: 1v1 {1 0}
}

// The query finds entities that lost the component after the last commit and are still alive.
func ExampleStorage_Removed() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	frozen := ecs.MustRegister[Frozen](world)
	all := world.CreateN(nil, 3)
	positions.SetAll(all, Position{})
	frozen.SetAll(all, Frozen{})
	thawed := ecs.NewQuery1(ecs.Write(positions)).With(frozen.Removed())
	world.Commit()

	frozen.Remove(all[1])
	for e := range thawed.All() {
		fmt.Println(e)
	}
	// Output: 1v1
}

// A Delta lists the changes in a tick that has not ended yet. The next call reuses the memory of
// the Delta.
func ExampleDelta() {
	world := ecs.NewWorld(ecs.Options{History: 1})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	positions.Set(e, Position{})
	delta, err := positions.SinceCommit()
	fmt.Println(delta.Empty(), err)

	world.Commit()
	fmt.Println(delta.SinceCommit(), delta.Empty())
	// Output:
	// false <nil>
	// <nil> true
}

func ExampleResource_Since() {
	world := ecs.NewWorld(ecs.Options{History: 5})
	gold := ecs.Must(ecs.RegisterResource(world, 10, ecs.Component[int]{Name: "Gold"}))
	world.Commit()
	*gold.Mut() += 5
	fmt.Println(gold.Since(1))
	fmt.Println(gold.Since(0))
	// Output:
	// {10 15} true <nil>
	// {10 15} true <nil>
}

// The hook gives a Velocity to each entity that gets a Position.
func ExampleStorage_OnAdd() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	positions.OnAdd(func(e ecs.Entity, _ Position) { velocities.Set(e, Velocity{X: 1}) })

	e := world.Create()
	positions.Set(e, Position{})
	fmt.Println(velocities.Get(e))
	// Output: {1 0} true
}

// In an OnRemove hook, the entity still has all of its components, even if it is being destroyed.
func ExampleStorage_OnRemove() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	names := ecs.MustRegister(world, ecs.Component[string]{Name: "Name"})
	positions.OnRemove(func(e ecs.Entity, p Position) {
		name, _ := names.Get(e)
		fmt.Println(name, "leaves", p)
	})
	e := world.Create()
	names.Set(e, "Ada")
	positions.Set(e, Position{X: 2})
	world.Destroy(e)
	// Output: Ada leaves {2 0}
}

// A Delta lists the changes of a storage since a tick.
func ExampleStorage_Since() {
	world := ecs.NewWorld(ecs.Options{History: 10})
	positions := ecs.MustRegister[Position](world)
	a, b, c := world.Create(), world.Create(), world.Create()
	positions.Set(a, Position{X: 1})
	positions.Set(b, Position{X: 2})
	positions.Set(c, Position{X: 3})
	world.Commit()
	tick := world.Tick()

	positions.Mut(a).X = 10
	world.Commit()
	positions.Set(b, Position{X: 2}) // The new value equals the old value.
	world.Destroy(c)
	positions.Set(world.Create(), Position{X: 4})

	changes, err := positions.Since(tick)
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, p := range changes.Added() {
		fmt.Println("added", e, p)
	}
	for e, p := range changes.Changed() {
		fmt.Println("changed", e, "from", p.Old, "to", p.New)
	}
	for e, p := range changes.Removed() {
		fmt.Println("removed", e, p)
	}
	// Output:
	// added 2v2 {4 0}
	// changed 0v1 from {1 0} to {10 0}
	// removed 2v1 {3 0}
}

func ExampleWorld_Since() {
	world := ecs.NewWorld(ecs.Options{History: 10})
	a := world.Create()
	world.Commit()
	world.Destroy(a)
	b := world.Create()
	world.Destroy(world.Create()) // This entity was created and destroyed after tick 1.

	lives, err := world.Since(1)
	fmt.Println(lives.Created(), lives.Destroyed(), b, err)
	_, err = world.Since(99)
	fmt.Println(err)
	// Output:
	// [0v2] [0v1] 0v2 <nil>
	// ecs: tick not held: changes of the registry since tick 99; retained ticks: 0 to 1
}

// OnAdd and OnRemove hooks run immediately. OnChange hooks run when the tick is committed. A
// restore runs none of these hooks.
func ExampleStorage_OnChange() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	positions.OnAdd(func(e ecs.Entity, p Position) { fmt.Println("added", e, p) })
	positions.OnRemove(func(e ecs.Entity, p Position) { fmt.Println("removed", e, p) })
	positions.OnChange(func(e ecs.Entity, before, now Position) { fmt.Println("changed", e, before, "->", now) })

	e := world.Create()
	positions.Set(e, Position{X: 1})
	world.Commit()
	positions.Mut(e).X = 2
	positions.Mut(e).X = 3
	world.Commit()

	cp := world.Checkpoint()
	world.Destroy(e)
	world.Restore(cp)
	world.Commit()
	// Output:
	// added 0v1 {1 0}
	// changed 0v1 {1 0} -> {3 0}
	// removed 0v1 {3 0}
}

// Systems send and receive events without a reference to each other. Events rewind with the world.
func ExampleRegisterEvent() {
	type Hit struct {
		Target ecs.Entity
		Damage int
	}
	w := ecs.NewWorld(ecs.Options{History: 10})
	hits := ecs.Must(ecs.RegisterEvent[Hit](w))
	sounds, _ := hits.Reader("sounds")
	orc := w.Create()

	hits.Send(Hit{orc, 7})
	hits.Send(Hit{orc, 2})
	w.Commit() // This ends tick 1. The events remain until the end of the next tick.

	for hit := range hits.All() {
		fmt.Println(hit.Target, "is hit:", hit.Damage)
	}
	for hit := range sounds.All() {
		fmt.Println("sound of", hit.Damage)
	}
	fmt.Println(sounds.Len(), "not heard")
	w.Commit()
	fmt.Println(hits.Len(), "left")

	w.History().Rewind(1)
	fmt.Println(hits.Len(), "again,", sounds.Len(), "not heard")
	// Output:
	// 0v1 is hit: 7
	// 0v1 is hit: 2
	// sound of 7
	// sound of 2
	// 0 not heard
	// 0 left
	// 2 again, 2 not heard
}

// Producers record commands in their goroutines. The goroutine that owns the world applies the
// commands in a fixed order.
func ExampleCommands() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	stale := world.Create()
	world.Destroy(stale)

	done := make(chan bool)
	producers := make([]ecs.Commands, 3)
	for i := range producers {
		go func() {
			c := &producers[i]
			e := c.Create()
			positions.Later(c).Set(e, Position{X: float64(i)})
			positions.Later(c).Set(stale, Position{})
			done <- true
		}()
	}
	for range producers {
		<-done
	}
	skipped := 0
	for i := range producers {
		skipped += world.Apply(&producers[i])
	}
	fmt.Println(positions.Values(), skipped, "skipped")
	// Output:
	// [{0 0} {1 0} {2 0}] 3 skipped
}

// A loop over a query must not destroy other entities. Commands are applied after the loop.
func ExampleWorld_Apply() {
	type Target struct{ Entity ecs.Entity }
	world := ecs.NewWorld(ecs.Options{})
	targets := ecs.MustRegister[Target](world)
	a, b, c := world.Create(), world.Create(), world.Create()
	targets.Set(a, Target{b})
	targets.Set(b, Target{c})

	var later ecs.Commands
	for e, target := range ecs.NewQuery1(ecs.Read(targets)).All() {
		later.Destroy(target.Entity)
		targets.Later(&later).Remove(e)
	}
	fmt.Println(later.Len(), "wait")
	fmt.Println(world.Apply(&later), "skipped,", world.Entities(), "left")
	// Output:
	// 4 wait
	// 1 skipped, [0v1] left
}

// A placeholder stands for an entity that Apply creates later.
func ExampleCommands_Create() {
	type Rider struct{ Horse ecs.Entity }
	world := ecs.NewWorld(ecs.Options{})
	riders := ecs.MustRegister[Rider](world)
	positions := ecs.MustRegister[Position](world)

	var later ecs.Commands
	horse, knight := later.Create(), later.Create()
	positions.Later(&later).Set(horse, Position{X: 3})
	riders.Later(&later).Set(knight, Rider{horse})
	world.Apply(&later)

	rider, _ := riders.Get(later.Resolve(knight))
	fmt.Println(later.Resolve(knight), rider)
	fmt.Println(positions.Get(rider.Horse))
	// Output:
	// 1v1 {0v1}
	// {3 0} true
}

// Changes since a tick tell a renderer or a server what to update.
func ExampleEntityDelta() {
	world := ecs.NewWorld(ecs.Options{History: 10})
	positions := ecs.MustRegister[Position](world)
	round := ecs.Must(ecs.RegisterResource(world, 1, ecs.Component[int]{Name: "Round"}))
	moved := positions.Changed()
	a := world.Create()
	positions.Set(a, Position{})
	world.Commit()
	positions.Mut(a).X = 5
	b := world.Create()
	positions.Set(b, Position{})
	round.Set(2)

	entities, err := world.SinceCommit()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("created since the commit:", entities.Created())
	edit, changed, err := round.SinceCommit()
	fmt.Println("round:", edit.Old, "to", edit.New, changed, err)
	world.Commit()

	// Use the same EntityDelta for another tick.
	if err := entities.Since(0); err != nil {
		fmt.Println(err)
	}
	fmt.Println("created since tick 0:", entities.Created())
	delta, err := positions.Since(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := delta.Since(1); err != nil {
		fmt.Println(err)
	}
	for e, edit := range delta.Changed() {
		fmt.Println("since tick 1:", e, edit.Old, "to", edit.New)
	}
	if err := moved.Since(1); err != nil {
		fmt.Println(err)
	}
	for e := range ecs.NewQuery1(ecs.Read(positions)).With(moved).All() {
		fmt.Println("a query of what changed:", e)
	}
	if err := entities.SinceCommit(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("created since the commit:", len(entities.Created()))
	// Output:
	// created since the commit: [1v1]
	// round: 1 to 2 true <nil>
	// created since tick 0: [0v1 1v1]
	// since tick 1: 0v1 {0 0} to {5 0}
	// a query of what changed: 0v1
	// created since the commit: 0
}

// Hooks keep data outside of the world up to date. RequiredBy adds a component to each entity that
// gets a certain other component.
func ExampleStorage_RequiredBy() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	velocities.RequiredBy(positions, Velocity{X: 1})
	world.OnCreate(func(e ecs.Entity) { fmt.Println("create", e) })
	positions.OnSet(func(e ecs.Entity, old, now Position) { fmt.Println("set", e, old, "to", now) })
	world.OnDestroy(func(e ecs.Entity) { fmt.Println("destroy", e, "with", velocities.Has(e)) })

	e := world.Create()
	positions.Set(e, Position{1, 1})
	positions.Set(e, Position{2, 2})
	fmt.Println(world.KeepOnly(e, velocities), "removed;", positions.Has(e), velocities.Has(e))
	world.Clear()
	// Output:
	// create 0v1
	// set 0v1 {1 1} to {2 2}
	// 1 removed; false true
	// destroy 0v1 with true
}

// A command may be any function of the world. It runs when the commands are applied.
func ExampleCommands_Do() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	positions.Set(world.Create(), Position{X: 10})
	var commands ecs.Commands
	for e, p := range positions.All() {
		if p.X > 5 {
			commands.Do(func(w *ecs.World) {
				twin, _ := w.CloneEntity(e)
				positions.Mut(twin).X = p.X / 2
			})
		}
	}
	world.Apply(&commands)
	fmt.Println(positions.Values())
	// Output:
	// [{10 0} {5 0}]
}

// The world stores which events each reader has read. So a rewind restores the position of the
// reader, too.
func ExampleEventReader() {
	type Hit struct{ Damage int }
	world := ecs.NewWorld(ecs.Options{})
	hits := ecs.Must(ecs.RegisterEvent[Hit](world))
	reader := ecs.Must(hits.Reader("sound"))
	hits.Send(Hit{1})
	world.Commit()
	fmt.Println("last tick:", slices.Collect(hits.Last()))
	hits.Send(Hit{2})
	fmt.Println("unread:", slices.Collect(reader.All()), "missed:", reader.Missed())

	clone := world.Clone()
	hits.In(clone).Send(Hit{3})
	fmt.Println("in the clone:", slices.Collect(reader.In(clone).All()), "here:", reader.Len())
	// Output:
	// last tick: [{1}]
	// unread: [{1} {2}] missed: 0
	// in the clone: [{3}] here: 0
}
