package chapters_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

func Example_systemsStep() {
	type Place struct{ X int }
	type Speed struct{ X int }
	world := ecs.NewWorld(ecs.Options{})
	places, speeds := ecs.MustRegister[Place](world), ecs.MustRegister[Speed](world)
	cars := ecs.NewBundle2(places, speeds)
	moving := ecs.NewQuery2(ecs.Write(places), ecs.Read(speeds))
	type tick = schedule.Tick[int] // The input of a tick is an int.

	systems := schedule.New[int](world)
	systems.Startup("begin", cars, func(*tick) { cars.Create(Place{0}, Speed{1}) })
	systems.Add("push", ecs.Write(speeds), func(t *tick) { speeds.MutValues()[0].X += t.Input })
	systems.Add("move", moving, func(*tick) {
		for _, row := range moving.All() {
			place, speed := row.Get()
			place.X += speed.X
		}
	})
	systems.Add("arrive", cars, func(t *tick) { cars.Create(Place{100}, Speed{-1}) }).Every(3)
	for _, input := range []int{0, 4, 0, 0} {
		systems.Step(input)
		world.Commit() // Or store.Commit().
		fmt.Println("tick", world.Tick(), places.Values())
	}
	// Output:
	// tick 1 [{1}]
	// tick 2 [{6}]
	// tick 3 [{11} {100}]
	// tick 4 [{16} {99}]
}

func Example_systemsBatches() {
	type Place struct{ X int }
	type Health struct{ HP int }
	world := ecs.NewWorld(ecs.Options{})
	places, healths := ecs.MustRegister[Place](world), ecs.MustRegister[Health](world)
	shoot := schedule.Uses(places, schedule.Creates)
	die := schedule.Uses(healths, schedule.Creates)
	run := func(*schedule.Tick[int]) {} // What the systems do.

	systems := schedule.New[int](world)
	systems.Add("shoot", shoot, run)
	systems.Add("die", die, run)
	systems.Add("move", ecs.Write(places), run)
	systems.Add("heal", ecs.Write(healths), run)
	fmt.Print(systems.Explain())
	// Output:
	// batch 1: shoot
	// batch 2: die waits for shoot: it creates or destroys entities
	// batch 3: move waits for die: it creates or destroys entities
	// batch 3: heal waits for die: it creates or destroys entities
}
