package ecs_test

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// Buttons are the buttons that both players press in one tick.
type Buttons [2]int

// newRace returns a world with two runners, and a stepper for it.
func newRace() (*ecs.World, *ecs.Storage[Position], *ecs.Stepper[Buttons]) {
	world := ecs.NewWorld(ecs.Options{History: 8})
	positions := ecs.MustRegister[Position](world)
	for range 2 {
		positions.Set(world.Create(), Position{})
	}
	world.Commit()

	stepper := new(ecs.Stepper[Buttons])
	stepper.Add("run", func(w *ecs.World, pressed Buttons) {
		// Use the storage of w, because w may be a clone.
		of := positions.In(w)
		for i, e := range w.Entities() {
			of.Mut(e).X += float64(pressed[i])
		}
	})
	return world, positions, stepper
}

// In a rollback game, a peer predicts the buttons of the other player. When the real buttons
// arrive, it repeats the ticks that used a wrong prediction.
func ExampleStepper() {
	world, positions, stepper := newRace()
	ours := []int{1, 1, 1, 1}
	for _, button := range ours {
		stepper.Step(world, Buttons{button, 0}) // Predict that the other player presses nothing.
	}
	fmt.Println(world.Tick(), positions.Values())

	theirs := []int{0, 0, 3, 0} // The real buttons: the third prediction was wrong.
	if err := world.History().Rewind(2); err != nil {
		fmt.Println(err)
		return
	}
	for i := 2; i < 4; i++ {
		stepper.Step(world, Buttons{ours[i], theirs[i]})
	}
	fmt.Println(world.Tick(), positions.Values())
	// Output:
	// 5 [{4 0} {0 0}]
	// 5 [{4 0} {3 0}]
}

// A clone simulates future ticks without a change to the world. For this, each system must use the
// storages of the world that it is given.
func ExampleStepper_Step() {
	world, positions, stepper := newRace()
	ahead := world.Clone()
	for range 3 {
		stepper.Step(ahead, Buttons{1, 2})
	}
	fmt.Println(world.Tick(), positions.Values())
	fmt.Println(ahead.Tick(), positions.In(ahead).Values())
	// Output:
	// 1 [{0 0} {0 0}]
	// 4 [{3 0} {6 0}]
}

// State outside of the world is not restored. So a repeated tick can have a different result.
func ExampleSyncTest() {
	world, positions, stepper := newRace()
	steps := 0 // The variable should be a resource.
	stepper.Add("tire", func(w *ecs.World, _ Buttons) {
		if steps++; steps%3 == 0 {
			positions.In(w).Mut(w.Entities()[1]).Y--
		}
	})
	test, err := stepper.SyncTest(world, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var d *ecs.Divergence
	for !errors.As(err, &d) {
		err = test.Step(Buttons{1, 1})
	}
	fmt.Println("tick", d.Tick, "differs after system", d.System, "in", d.Storage)
	fmt.Println(positions.In(d.First).Values(), positions.In(d.Again).Values())
	// Output:
	// tick 3 differs after system tire in Position
	// [{2 0} {2 -1}] [{2 0} {2 0}]
}
