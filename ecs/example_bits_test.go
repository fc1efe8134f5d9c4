package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// Sets are combined 64 indices at a time, without being built.
func ExampleAnd() {
	world := ecs.NewWorld(ecs.Options{})
	seen, near := ecs.NewMask(world), ecs.NewMask(world)
	for i := range uint32(100_000) {
		if i%3000 == 0 {
			seen.Add(i)
		}
		if i%5000 == 0 {
			near.Add(i)
		}
	}
	both := ecs.And(seen, near)
	for i := range ecs.Indices(both) {
		fmt.Print(i, " ")
	}
	fmt.Println(ecs.CountBits(both), ecs.AnyBits(ecs.AndNot(both, near)))
	// Output: 0 15000 30000 45000 60000 75000 90000 7 false
}

func ExampleOr() {
	world := ecs.NewWorld(ecs.Options{})
	burning := ecs.MustRegister(world, ecs.Component[Velocity]{Masked: true})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	all := world.CreateN(nil, 5)
	burning.Set(all[1], Velocity{})
	frozen.SetAll(all[3:], Frozen{})
	for i := range ecs.Indices(ecs.Or(burning.Mask(), frozen.Mask())) {
		fmt.Print(i, " ")
	}
	// Output: 1 3 4
}

// The entities that a mask leaves out.
func ExampleAndNot() {
	world := ecs.NewWorld(ecs.Options{})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	frozen.SetAll(world.CreateN(nil, 5)[1:4], Frozen{})
	for i := range ecs.Indices(ecs.AndNot(world.AliveBits(), frozen.Mask())) {
		e, _ := world.EntityAt(i)
		fmt.Print(e, " ")
	}
	// Output: 0v1 4v1
}
