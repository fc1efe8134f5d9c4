package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// OnAdd and OnRemove hooks run immediately. OnChange hooks run when the tick is committed. A
// restore runs none of these hooks.
func ExampleStorage_OnChange() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	positions.OnAdd(func(e ecs.Entity, p Position) { fmt.Println("added", e, p) })
	positions.OnRemove(func(e ecs.Entity, p Position) { fmt.Println("removed", e, p) })
	positions.OnChange(func(e ecs.Entity, before, now Position) { fmt.Println("changed", e, before, "->", now) })

	e := world.Create()
	positions.Set(e, Position{X: 1})
	world.Commit()
	positions.Mut(e).X = 2
	positions.Mut(e).X = 3
	world.Commit()

	cp := world.Checkpoint()
	world.Destroy(e)
	world.Restore(cp)
	world.Commit()
	// Output:
	// added 0v1 {1 0}
	// changed 0v1 {1 0} -> {3 0}
	// removed 0v1 {3 0}
}
