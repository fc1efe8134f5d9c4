package schedule_test

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// Buttons are the buttons that both players press in one tick.
type Buttons [2]int

type Position struct{ X, Y float64 }

// newRace returns a world with two runners, and a schedule for it.
func newRace() (*ecs.World, *ecs.Storage[Position], *schedule.Schedule[Buttons]) {
	world := ecs.NewWorld(ecs.Options{History: 8})
	positions := ecs.MustRegister[Position](world)
	for range 2 {
		positions.Set(world.Create(), Position{})
	}
	world.Commit()

	systems := schedule.New[Buttons](world)
	systems.Add("run", ecs.Write(positions), func(t *schedule.Tick[Buttons]) {
		// Use the storage of the tick's world, because it may be a clone.
		of := positions.In(t.World)
		for i, e := range t.World.Entities() {
			of.Mut(e).X += float64(t.Input[i])
		}
	})
	return world, positions, systems
}

// In a rollback game, a peer predicts the buttons of the other player. When the real buttons
// arrive, it repeats the ticks that used a wrong prediction.
func ExampleSchedule_Step() {
	world, positions, systems := newRace()
	ours := []int{1, 1, 1, 1}
	for _, button := range ours {
		systems.Step(Buttons{button, 0}) // Predict that the other player presses nothing.
		world.Commit()
	}
	fmt.Println(world.Tick(), positions.Values())

	theirs := []int{0, 0, 3, 0} // The real buttons: the third prediction was wrong.
	if err := world.History().Rewind(2); err != nil {
		fmt.Println(err)
		return
	}
	for i := 2; i < 4; i++ {
		systems.Step(Buttons{ours[i], theirs[i]})
		world.Commit()
	}
	fmt.Println(world.Tick(), positions.Values())
	// Output:
	// 5 [{4 0} {0 0}]
	// 5 [{4 0} {3 0}]
}

// A clone simulates future ticks without a change to the world. For this, each system must use the
// storages of the world that it is given.
func ExampleSchedule_StepOn() {
	world, positions, systems := newRace()
	ahead := world.Clone()
	for range 3 {
		systems.StepOn(ahead, Buttons{1, 2})
		ahead.Commit()
	}
	fmt.Println(world.Tick(), positions.Values())
	fmt.Println(ahead.Tick(), positions.In(ahead).Values())
	// Output:
	// 1 [{0 0} {0 0}]
	// 4 [{3 0} {6 0}]
}

// State outside of the world is not restored. So a repeated tick can have a different result.
func ExampleSyncTest() {
	_, positions, systems := newRace()
	steps := 0 // The variable should be a resource.
	systems.Add("tire", ecs.Write(positions), func(t *schedule.Tick[Buttons]) {
		if steps++; steps%3 == 0 {
			positions.Mut(t.World.Entities()[1]).Y--
		}
	})
	test, err := systems.SyncTest(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var d *schedule.Divergence
	for !errors.As(err, &d) {
		err = test.Step(Buttons{1, 1})
	}
	fmt.Println("tick", d.Tick, "differs after system", d.System, "in", d.Storage)
	fmt.Println(positions.In(d.First).Values(), positions.In(d.Again).Values())
	// Output:
	// tick 3 differs after system tire in Position
	// [{2 0} {2 -1}] [{2 0} {2 0}]
}

// Explain says which systems may run at the same time, and why others wait.
func ExampleSchedule_Explain() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	lives := ecs.Must(ecs.RegisterResource(world, 3, ecs.Component[int]{Name: "Lives"}))
	moving := ecs.NewQuery1(ecs.Write(positions))

	s := schedule.New[Buttons](world)
	s.Add("move", moving, func(*schedule.Tick[Buttons]) {
		for _, p := range moving.All() {
			p.X++
		}
	})
	s.Add("bonus", lives, func(*schedule.Tick[Buttons]) { *lives.Mut()++ }).Every(600)
	s.Add("spawn", schedule.Uses(positions, schedule.Creates), func(t *schedule.Tick[Buttons]) {
		positions.Set(t.World.Create(), Position{X: t.Rand().Float64()})
	}).Every(30)
	s.Add("draw", schedule.Reads(positions, lives), func(*schedule.Tick[Buttons]) {})
	fmt.Print(s.Explain())
	// Output:
	// batch 1: move
	// batch 1: bonus (every 600 ticks)
	// batch 2: spawn (every 30 ticks) waits for move, bonus: creates or destroys entities
	// batch 3: draw waits for spawn: it creates or destroys entities
}
