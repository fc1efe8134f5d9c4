package chapters_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

func Example_concepts() {
	type Position struct{ X int }
	type Velocity struct{ X int }
	world := ecs.NewWorld(ecs.Options{History: 10})
	positions, velocities := ecs.MustRegister[Position](world), ecs.MustRegister[Velocity](world)
	moving := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
	move := func() { // A system: a function that loops over a query.
		for _, row := range moving.All() {
			position, velocity := row.Get()
			position.X += velocity.X
		}
	}

	rock, ship := world.Create(), world.Create()
	positions.Set(rock, Position{5})
	positions.Set(ship, Position{0})
	velocities.Set(ship, Velocity{2})
	for range 3 {
		move()
		world.Commit() // Ends the tick.
	}
	fmt.Println("tick", world.Tick(), positions.Values())
	check(world.History().Rewind(2))
	fmt.Println("tick", world.Tick(), positions.Values())
	// Output:
	// tick 3 [{5} {6}]
	// tick 1 [{5} {2}]
}
