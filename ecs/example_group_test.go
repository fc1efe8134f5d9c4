package ecs_test

import (
	"cmp"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// A group keeps the rows of entities that have both components at the front of both storages, after
// any change.
func ExampleGroup() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	moving := ecs.Must(world.NewGroup(positions, velocities))

	var entities []ecs.Entity
	for i := range 6 {
		e := world.Create()
		positions.Set(e, Position{X: float64(i)})
		if i%2 == 1 {
			velocities.Set(e, Velocity{X: 1})
		}
		entities = append(entities, e)
	}
	fmt.Println(moving.Len(), "of", positions.Entities())

	velocities.Remove(entities[1])
	velocities.Set(entities[0], Velocity{X: 2})
	for run := range ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities)).Runs() {
		for i := range run.Entities {
			run.A[i].X += run.B[i].X
		}
		fmt.Println("one run of", run.Entities)
	}
	fmt.Println(positions.Values()[:moving.Len()])
	// Output:
	// 3 of [1v1 3v1 5v1 0v1 4v1 2v1]
	// one run of [5v1 3v1 0v1]
	// [{6 0} {4 0} {2 0}]
}

// The order of rows is part of the state, so a restore restores it.
func ExampleStorage_SortFunc() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	for _, x := range []float64{3, 1, 2} {
		positions.Set(world.Create(), Position{X: x})
	}
	unsorted := world.Checkpoint()
	positions.SortFunc(func(a, b Position) int { return cmp.Compare(a.X, b.X) })
	fmt.Println(positions.Entities(), positions.Values())
	world.Restore(unsorted)
	fmt.Println(positions.Entities(), positions.Values())
	// Output:
	// [1v1 2v1 0v1] [{1 0} {2 0} {3 0}]
	// [0v1 1v1 2v1] [{3 0} {1 0} {2 0}]
}

// The sort puts parents before their children. The function compares two entities by a component of
// another storage.
func ExampleStorage_SortEntities() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	depths := ecs.MustRegister(world, ecs.Component[int]{Name: "depth"})
	for _, depth := range []int{2, 0, 1} {
		e := world.Create()
		positions.Set(e, Position{Y: float64(depth)})
		depths.Set(e, depth)
	}
	positions.SortEntities(func(a, b ecs.Entity) int {
		x, _ := depths.Get(a)
		y, _ := depths.Get(b)
		return cmp.Compare(x, y)
	})
	fmt.Println(positions.Entities())
	// Output: [1v1 2v1 0v1]
}

// After SortLike, the entities that both storages have are in the same order in both.
func ExampleStorage_SortLike() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	var entities []ecs.Entity
	for range 4 {
		e := world.Create()
		positions.Set(e, Position{})
		entities = append(entities, e)
	}
	velocities.Set(entities[3], Velocity{})
	velocities.Set(entities[1], Velocity{})

	positions.SortLike(velocities)
	fmt.Println(velocities.Entities(), positions.Entities())
	// Output: [3v1 1v1] [3v1 1v1 0v1 2v1]
}
