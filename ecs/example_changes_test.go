package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

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
	positions.Set(b, Position{X: 2}) // The new value equals the old one.
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
	// ecs: changes of the registry since tick 99: ecs: tick not held; retained ticks: 0 to 1
}
