package schedule_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// The methods of a system restrict when it runs. A group switches several systems on and off, for
// example those that stand still while a menu is open.
func ExampleSchedule_Startup() {
	world := ecs.NewWorld(ecs.Options{})
	coins := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "Coins"}))
	s := schedule.New[struct{}](world).Seed(42).Workers(2)
	game := s.Group("game")
	s.Startup("begin", coins, func(*schedule.Tick[struct{}]) { coins.Set(100) })
	s.Add("wages", coins, func(*schedule.Tick[struct{}]) { *coins.Mut() -= 10 }).Every(2).In(game)
	s.Add("lottery", coins, func(t *schedule.Tick[struct{}]) {
		*coins.Mut() += 1 + t.Rand().IntN(6)
	}).If(func(t *schedule.Tick[struct{}]) bool { return t.Number == 3 }).In(game)
	fmt.Println(s.Systems())

	for range 4 {
		s.Step(struct{}{})
		s.World().Commit()
		fmt.Println("tick", world.Tick(), "coins", coins.Get())
	}
	game.Switch(false)
	s.Step(struct{}{})
	s.World().Commit()
	fmt.Println("tick", world.Tick(), "coins", coins.Get(), "running:", game.On())
	// Output:
	// [begin wages lottery]
	// tick 1 coins 100
	// tick 2 coins 90
	// tick 3 coins 91
	// tick 4 coins 81
	// tick 5 coins 81 running: false
}

// A debugger runs the systems of a tick one after another, and can undo each of them.
func ExampleSchedule_StepSystem() {
	world, positions, systems := newRace()
	systems.Add("stumble", ecs.Write(positions), func(t *schedule.Tick[Buttons]) {
		positions.Mut(t.World.Entities()[0]).X--
	})
	in := Buttons{5, 5}
	fmt.Println(systems.StepSystem(in), positions.Values())
	fmt.Println(systems.StepSystem(in), positions.Values())
	fmt.Println("undo", systems.BackSystem(), positions.Values())
	fmt.Println(systems.StepSystem(in), positions.Values())
	systems.EndStep() // Releases the checkpoints. The next step does this as well.
	world.Commit()
	// Output:
	// run [{5 0} {5 0}]
	// stumble [{4 0} {5 0}]
	// undo stumble [{5 0} {5 0}]
	// stumble [{4 0} {5 0}]
}

// Times says how long each system ran, and how many rows its loops visited.
func ExampleSchedule_Times() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	for range 1000 {
		positions.Set(world.Create(), Position{})
	}
	moving := ecs.NewQuery1(ecs.Write(positions))
	s := schedule.New[struct{}](world)
	s.Add("move", moving, func(*schedule.Tick[struct{}]) {
		for _, p := range moving.All() {
			p.X++
		}
	})
	for range 3 {
		s.Step(struct{}{})
		world.Commit()
	}
	for _, t := range s.Times() {
		fmt.Println(t.System, "ran", t.Runs, "times, the last over", t.Rows, "rows;", t.Worst >= t.Mean)
	}
	// Output:
	// move ran 3 times, the last over 1000 rows; true
}

// Commands collect changes that a loop cannot make. The schedule applies them after the system.
func ExampleTick_Commands() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	for x := range 5 {
		positions.Set(world.Create(), Position{X: float64(x)})
	}
	s := schedule.New[struct{}](world)
	s.Add("leave the screen", schedule.Uses(positions, schedule.Creates), func(t *schedule.Tick[struct{}]) {
		for e, p := range positions.All() {
			if p.X > 2 {
				t.Commands().Destroy(e)
			}
		}
		fmt.Println("in the system:", world.Len())
	})
	s.Step(struct{}{})
	fmt.Println("after it:", world.Len())
	// Output:
	// in the system: 5
	// after it: 3
}
