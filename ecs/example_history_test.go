package ecs_test

import (
	"fmt"
	"slices"

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

// The history says which ticks it holds, and how much memory they need.
func ExampleHistory_Ticks() {
	world := ecs.NewWorld(ecs.Options{History: 3})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	for range 5 {
		positions.Set(e, Position{})
		world.Commit()
	}
	history := world.History()
	fmt.Println("ticks:", slices.Collect(history.Ticks()))
	nearest, ok := history.Nearest(1)
	fmt.Println("nearest to tick 1:", nearest, ok)
	fmt.Println("memory:", history.Bytes() > 0, "of tick 3:", history.TickBytes(3) > 0)
	// Output:
	// ticks: [2 3 4 5]
	// nearest to tick 1: 2 true
	// memory: true of tick 3: true
}

// Past reads the world of an earlier tick, while the world stays in the present.
func ExamplePast() {
	world := ecs.NewWorld(ecs.Options{History: 3})
	positions := ecs.MustRegister[Position](world)
	lives := ecs.Must(ecs.RegisterResource(world, 3, ecs.Component[int]{Name: "Lives"}))
	a := world.Create()
	positions.Set(a, Position{X: 1})
	world.Commit()
	positions.Mut(a).X = 2
	lives.Set(2)
	b := world.Create()
	world.Commit()

	past, err := world.History().At(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	then := positions.At(past)
	for e := range past.Entities() {
		position, ok := then.Get(e)
		fmt.Println("tick", past.Tick(), e, position, ok, lives.At(past))
	}
	fmt.Println(past.Len(), "entity,", then.Len(), "position,", past.Alive(b), then.Has(b))
	// The storage in the variable then now reads tick 2, too.
	if err := past.At(2); err != nil {
		fmt.Println(err)
	}
	position, _ := then.Get(a)
	fmt.Println("tick", past.Tick(), position, lives.At(past))
	for range 4 {
		world.Commit()
	}
	fmt.Println("still retained:", past.Valid())
	// Output:
	// tick 1 0v1 {1 0} true 3
	// 1 entity, 1 position, false false
	// tick 2 {2 0} 2
	// still retained: false
}

// The source of random numbers belongs to the world. A rewind repeats its numbers.
func ExampleNewRand() {
	world := ecs.NewWorld(ecs.Options{History: 5})
	rand := ecs.Must(ecs.RegisterRand(world, 1, 2))
	world.Commit()
	first := rand.Uint64()
	if err := world.History().Rewind(0); err != nil {
		fmt.Println(err)
	}
	fmt.Println(rand.Uint64() == first)
	rand.Seed(3, 4)
	free := ecs.NewRand(3, 4) // A source outside of the world.
	fmt.Println(rand.Uint64N(1000) == free.Uint64N(1000), rand.In(world.Clone()).Uint64() == free.Uint64())
	// Output:
	// true
	// true true
}
