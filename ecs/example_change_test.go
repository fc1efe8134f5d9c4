package ecs_test

import (
	"fmt"

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

// A Delta lists the changes in a tick that has not ended yet. The next call reuses its memory.
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

// A hook keeps a component up to date that is derived from another component.
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
