package chapters_test

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
)

func Example_timeUndo() {
	type Order struct{ Player, Word string }
	world := ecs.NewWorld(ecs.Options{History: 100})
	story := ecs.Must(ecs.RegisterResource(world, "", ecs.Component[string]{Name: "Story"}))
	orders := ecs.Must(ecs.RegisterResource(world, nil, ecs.Component[[]Order]{Name: "Orders", NoRewind: true}))
	turn := func(o Order) {
		*story.Mut() += o.Word // The rules of the game.
		*orders.Mut() = append(*orders.Mut(), o)
		world.Commit()
	}
	undo := func(n int) { // Undoes turn n, and plays the later turns again.
		all := slices.Clone(orders.Get())
		check(world.History().Seek(uint64(n)))
		orders.Set(slices.Clone(all[:n]))
		for _, o := range all[n+1:] {
			turn(o)
		}
	}
	turn(Order{"Ada", "Once "})
	turn(Order{"Ben", "there was "})
	turn(Order{"Ada", "a ship."})
	fmt.Println("turn", world.Tick(), story.Get())
	undo(0)
	fmt.Println("turn", world.Tick(), story.Get())
	// Output:
	// turn 3 Once there was a ship.
	// turn 2 there was a ship.
}
