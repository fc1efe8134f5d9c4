package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

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
