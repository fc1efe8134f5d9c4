package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// Systems send and receive events without a reference to each other. Events rewind with the world.
func ExampleRegisterEvent() {
	type Hit struct {
		Target ecs.Entity
		Damage int
	}
	w := ecs.NewWorld(ecs.Options{History: 10})
	hits := ecs.Must(ecs.RegisterEvent[Hit](w))
	sounds, _ := hits.Reader("sounds")
	orc := w.Create()

	hits.Send(Hit{orc, 7})
	hits.Send(Hit{orc, 2})
	w.Commit() // This ends tick 1. The events remain until the end of the next tick.

	for hit := range hits.All() {
		fmt.Println(hit.Target, "is hit:", hit.Damage)
	}
	for hit := range sounds.All() {
		fmt.Println("sound of", hit.Damage)
	}
	fmt.Println(sounds.Len(), "not heard")
	w.Commit()
	fmt.Println(hits.Len(), "left")

	w.History().Rewind(1)
	fmt.Println(hits.Len(), "again,", sounds.Len(), "not heard")
	// Output:
	// 0v1 is hit: 7
	// 0v1 is hit: 2
	// sound of 7
	// sound of 2
	// 0 not heard
	// 0 left
	// 2 again, 2 not heard
}
