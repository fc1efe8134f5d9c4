package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// A shot arrives after 7 ticks. It hits the entity that was at the target 7 ticks ago, wherever the
// entity is now.
func ExampleHistory_At() {
	type Box struct{ X, Width float64 }
	world := ecs.NewWorld(ecs.Options{History: 15})
	boxes := ecs.MustRegister[Box](world)
	runner, guard := world.Create(), world.Create()
	boxes.Set(runner, Box{0, 1})
	boxes.Set(guard, Box{30, 1})
	for range 20 {
		boxes.Mut(runner).X += 2
		world.Commit()
	}
	world.Destroy(guard)

	// Call History.At once, and past.At for later shots.
	past, err := world.History().At(world.Tick() - 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, box := range boxes.At(past).All() {
		if box.X <= 26.5 && 26.5 <= box.X+box.Width {
			now, _ := boxes.Get(e)
			fmt.Printf("hit %v at %v; it is at %v\n", e, box.X, now.X)
		}
	}
	fmt.Println("the guard was alive:", past.Alive(guard), "and is:", world.Alive(guard))
	// Output:
	// hit 0v1 at 26; it is at 40
	// the guard was alive: true and is: false
}

// An image that is drawn between two ticks shows each entity between its last two positions. An
// entity that was added in the last tick is drawn at its present position.
func ExamplePastStorage_Beside() {
	type Position struct{ X float64 }
	world := ecs.NewWorld(ecs.Options{History: 1})
	positions := ecs.MustRegister[Position](world)
	drawn := ecs.NewQuery1(ecs.Read(positions))
	positions.SetEach(world.CreateN(nil, 3), []Position{{0}, {10}, {20}})
	world.Commit()
	positions.Mut(world.Entities()[1]).X = 14
	positions.Set(world.Create(), Position{50})
	world.Commit()

	past, err := world.History().At(world.Tick() - 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	was := positions.At(past)
	for _, alpha := range []float64{0.25, 0.75} { // Draw two images before the next tick.
		var frame []float64
		for run := range drawn.Runs() {
			then := was.Beside(run.Entities)
			for i, now := range run.A {
				frame = append(frame, then[i].X+float64((now.X-then[i].X)*alpha))
			}
		}
		fmt.Println(frame)
	}
	// Output:
	// [0 11 20 50]
	// [0 13 20 50]
}

// After a rewind, the dice roll the same numbers again.
func ExampleRegisterRand() {
	world := ecs.NewWorld(ecs.Options{History: 1})
	dice := ecs.Must(ecs.RegisterRand(world, 1, 2))
	world.Commit()
	roll := func() (rolls []int) {
		for range 6 {
			rolls = append(rolls, 1+dice.IntN(6))
		}
		return rolls
	}
	fmt.Println(roll())
	fmt.Println(roll())
	_ = world.History().Rewind(0) // Rewind to the last commit.
	fmt.Println(roll())

	world.Commit()
	names := []string{"ann", "bob", "cid", "dan"}
	dice.Shuffle(4, func(i, j int) { names[i], names[j] = names[j], names[i] })
	fmt.Println(names)
	// Output:
	// [5 4 5 5 2 1]
	// [3 3 1 2 4 3]
	// [5 4 5 5 2 1]
	// [cid ann dan bob]
}
