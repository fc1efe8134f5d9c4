package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// A wave of entities is created, changed and destroyed in batches.
func ExampleWorld_CreateN() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)

	wave := world.CreateN(nil, 4)
	positions.SetAll(wave, Position{X: 1})
	velocities.SetEach(wave[:2], []Velocity{{X: 5}, {X: 6}})
	fmt.Println(wave, velocities.Values())

	moving := ecs.NewQuery2(ecs.Read(positions), ecs.Read(velocities))
	fmt.Println(world.DestroyFound(moving), "destroyed,", world.Entities(), "left")
	// Output:
	// [0v1 1v1 2v1 3v1] [{5 0} {6 0}]
	// 2 destroyed, [2v1 3v1] left
}

// The entities that a query finds can be passed to any batch.
func ExampleQuery1_AppendEntities() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	frozen := ecs.MustRegister[Frozen](world)
	all := world.CreateN(nil, 4)
	positions.SetAll(all, Position{})
	velocities.SetAll(all[1:3], Velocity{})

	still := ecs.NewQuery1(ecs.Read(positions)).Without(velocities)
	frozen.SetAll(still.AppendEntities(nil), Frozen{})
	fmt.Println(frozen.Entities())
	// Output:
	// [0v1 3v1]
}

// RemoveAll works from the last entity to the first, so rows at the end need not move. The argument
// may be the slice that Entities of the same storage returned.
func ExampleStorage_RemoveAll() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	all := world.CreateN(nil, 4)
	fmt.Println(positions.SetAll(all, Position{}))
	fmt.Println(positions.RemoveAll(positions.Entities()[1:]), positions.Entities())
	// Output:
	// 4
	// 3 [0v1]
}

// If the entities of a batch are destroyed together, new entities reuse their indices in the same
// order.
func ExampleWorld_DestroyAll() {
	world := ecs.NewWorld(ecs.Options{})
	wave := world.CreateN(nil, 3)
	fmt.Println(world.DestroyAll(wave), world.CreateN(wave[:0], 3))
	// Output: 3 [0v2 1v2 2v2]
}

// An explosion hits entities whose rows are scattered over the storage.
func ExampleStorage_MutEach() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	all := world.CreateN(nil, 4)
	positions.SetAll(all[1:], Position{})

	hit, push := []ecs.Entity{all[3], all[0], all[1]}, []float64{7, 8, 9}
	for i, p := range positions.MutEach(hit) {
		p.X += push[i]
	}
	fmt.Println(positions.Values())
	// Output:
	// [{9 0} {0 0} {7 0}]
}
