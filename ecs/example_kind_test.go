package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// A component's kind of storage is chosen when the component is registered. The rest of the API is
// the same for all kinds.
func ExampleKind() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	frozen := ecs.MustRegister[Frozen](world) // The type has size 0, so it becomes a tag.
	velocities := ecs.MustRegister(world, ecs.Component[Velocity]{Kind: ecs.Hashed})
	fmt.Println(positions.Kind(), frozen.Kind(), velocities.Kind())
	// Output: sparse tag hashed
}

// In an Indexed storage, the row of an entity is its index. Rows never move, so Values can be
// indexed directly.
func ExampleIndexed() {
	world := ecs.NewWorld(ecs.Options{})
	heights := ecs.MustRegister(world, ecs.Component[int]{Name: "Height", Kind: ecs.Indexed})
	for i := range 4 {
		heights.Set(world.Create(), 10+i)
	}
	world.Destroy(world.Entities()[1])
	fmt.Println(heights.Values(), heights.Len(), "of", len(heights.Values()))
	fmt.Println(heights.Entities()[1] == ecs.Vacant, heights.Entities()[2])
	// Output:
	// [10 0 12 13] 3 of 4
	// true 2v1
}

// The gaps of an Indexed storage hold the default value. So a loop over Values need not check which
// entities have the component.
func ExampleComponent_default() {
	world := ecs.NewWorld(ecs.Options{})
	factors := ecs.MustRegister(world, ecs.Component[int]{Name: "Factor", Kind: ecs.Indexed, Default: 1})
	all := world.CreateN(nil, 4)
	factors.Set(all[3], 5)
	factors.Set(all[1], 3)
	product := 1
	for _, f := range factors.Values() {
		product *= f
	}
	fmt.Println(factors.Values(), product)
	// Output: [1 3 1 5] 15
}

// A Hashed storage with few components takes a fraction of the memory of other kinds. It has the
// same methods.
func ExampleHashed() {
	world := ecs.NewWorld(ecs.Options{})
	plain := ecs.MustRegister(world, ecs.Component[Position]{Name: "plain"})
	rare := ecs.MustRegister(world, ecs.Component[Position]{Name: "rare", Kind: ecs.Hashed})
	for i, e := range world.CreateN(nil, 1_000_000) {
		if i%100_001 == 0 {
			plain.Set(e, Position{X: 1})
			rare.Set(e, Position{X: 1})
		}
	}
	memory := world.MemoryUsage().Storages
	fmt.Println(rare.Len(), memory[0].Sparse > 8*memory[1].Sparse)
	// Output: 10 true
}

// A loop over an Ordered storage visits entities by ascending index, whatever the order in which
// components were added.
func ExampleOrdered() {
	world := ecs.NewWorld(ecs.Options{})
	ranks := ecs.MustRegister(world, ecs.Component[string]{Name: "Rank", Kind: ecs.Ordered})
	all := world.CreateN(nil, 3)
	ranks.Set(all[2], "last")
	ranks.Set(all[0], "first")
	ranks.Set(all[1], "second")
	for e, rank := range ecs.NewQuery1(ecs.Read(ranks)).All() {
		fmt.Println(e, *rank)
	}
	// Output:
	// 0v1 first
	// 1v1 second
	// 2v1 last
}

// A component without fields is a tag.
func ExampleTag() {
	world := ecs.NewWorld(ecs.Options{})
	frozen := ecs.MustRegister[Frozen](world)
	e := world.Create()
	frozen.Set(e, Frozen{})
	fmt.Println(frozen.Kind(), frozen.Has(e), world.MemoryUsage().Storages[0].Data)
	// Output: tag true 0
}
