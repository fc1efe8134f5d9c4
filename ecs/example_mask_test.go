package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// A mask that the program creates is restored with the world.
func ExampleMask() {
	world := ecs.NewWorld(ecs.Options{})
	visible := world.NewMask()
	for range 200 {
		e := world.Create()
		if e.Index()%80 == 0 {
			visible.Add(e.Index())
		}
	}

	cp := world.Checkpoint()
	visible.Clear()
	visible.Add(7)
	fmt.Println("now:", visible.Len(), visible.Has(80))
	world.Restore(cp)
	for i := range visible.Indices() {
		e, alive := world.EntityAt(i)
		fmt.Println(e, alive)
	}
	// Output:
	// now: 1 false
	// 0v1 true
	// 80v1 true
	// 160v1 true
}

// A storage registered with Masked has a mask that is always up to date. A combination of such
// masks is always up to date too, so the program creates it once.
func ExampleStorage_Mask() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister(world, ecs.Component[Position]{Masked: true})
	velocities := ecs.MustRegister(world, ecs.Component[Velocity]{Masked: true})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	for i := range 6 {
		e := world.Create()
		positions.Set(e, Position{})
		if i%2 == 0 {
			velocities.Set(e, Velocity{})
		}
		if i == 2 {
			frozen.Set(e, Frozen{})
		}
	}

	moving := positions.Mask().And(velocities.Mask()).AndNot(frozen.Mask())
	resting := world.AliveBits().AndNot(moving)
	fmt.Println(moving.Len(), "move,", resting.Len(), "rest")
	frozen.Clear()
	for i := range moving.Indices() {
		fmt.Print(i, " ")
	}
	// Output:
	// 2 move, 4 rest
	// 0 2 4
}
