package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// MemoryUsage lists the bytes of undo logs separately from the bytes of rows.
func ExampleWorld_MemoryUsage() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	entities := world.CreateN(nil, 256)
	positions.SetAll(entities, Position{})
	before := world.MemoryUsage().Storages[0]

	world.Checkpoint()
	positions.SetAll(entities, Position{X: 1})
	after := world.MemoryUsage().Storages[0]
	fmt.Println(before.Name, before.Data, before.Dense, before.Undo)
	fmt.Println(after.Data, after.Undo >= 256*16)
	// Output:
	// Position 4096 2048 0
	// 4096 true
}
