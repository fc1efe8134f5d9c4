package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// Masks are combined 64 indices at a time, without building a new mask.
func ExampleBits_And() {
	world := ecs.NewWorld(ecs.Options{})
	seen, near := world.NewMask(), world.NewMask()
	for i := range uint32(100_000) {
		if i%3000 == 0 {
			seen.Add(i)
		}
		if i%5000 == 0 {
			near.Add(i)
		}
	}
	both := seen.And(near.Bits)
	for i := range both.Indices() {
		fmt.Print(i, " ")
	}
	fmt.Println(both.Len(), both.AndNot(near.Bits).Any())
	// Output: 0 15000 30000 45000 60000 75000 90000 7 false
}

func ExampleBits_Or() {
	world := ecs.NewWorld(ecs.Options{})
	burning := ecs.MustRegister(world, ecs.Component[Velocity]{Masked: true})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	all := world.CreateN(nil, 5)
	burning.Set(all[1], Velocity{})
	frozen.SetAll(all[3:], Frozen{})
	for i := range burning.Mask().Or(frozen.Mask()).Indices() {
		fmt.Print(i, " ")
	}
	// Output: 1 3 4
}

// AndNot finds the alive entities that are not in a mask.
func ExampleBits_AndNot() {
	world := ecs.NewWorld(ecs.Options{})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	frozen.SetAll(world.CreateN(nil, 5)[1:4], Frozen{})
	for i := range world.AliveBits().AndNot(frozen.Mask()).Indices() {
		e, _ := world.EntityAt(i)
		fmt.Print(e, " ")
	}
	// Output: 0v1 4v1
}
