package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// Producers record in goroutines of their own; the world's goroutine applies what
// they hand over, in an order that does not depend on them.
func ExampleCommands() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	stale := world.Create()
	world.Destroy(stale)

	done := make(chan bool)
	producers := make([]ecs.Commands, 3)
	for i := range producers {
		go func() {
			c := &producers[i]
			e := c.Create()
			positions.Later(c).Set(e, Position{X: float64(i)})
			positions.Later(c).Set(stale, Position{})
			done <- true
		}()
	}
	for range producers {
		<-done
	}
	skipped := 0
	for i := range producers {
		skipped += world.Apply(&producers[i])
	}
	fmt.Println(positions.Values(), skipped, "skipped")
	// Output:
	// [{0 0} {1 0} {2 0}] 3 skipped
}
