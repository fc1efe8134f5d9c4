package ecs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
)

type (
	Position struct{ X, Y float64 }
	Velocity struct{ X, Y float64 }
	Frozen   struct{} // The type has size 0, so it becomes a tag.
)

// The query is declared with Write for positions, so its loop may change them.
func Example() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	frozen := ecs.MustRegister[Frozen](world)
	moving := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities)).Without(frozen)

	for i := range 3 {
		e := world.Create()
		positions.Set(e, Position{})
		velocities.Set(e, Velocity{X: float64(i)})
		if i == 1 {
			frozen.Set(e, Frozen{})
		}
	}
	for _, row := range moving.All() {
		row.A.X += row.B.X
	}
	for e, p := range positions.All() {
		fmt.Println(e, p)
	}
	// Output:
	// 0v1 {0 0}
	// 1v1 {0 0}
	// 2v1 {2 0}
}

// A restore restores which entities are alive, the next entity to create, the order of rows, and
// the values.
func ExampleWorld_Restore() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	a, b := world.Create(), world.Create()
	positions.Set(a, Position{X: 1})
	positions.Set(b, Position{X: 2})

	cp := world.Checkpoint()
	world.Destroy(a)
	positions.Mut(b).X = 99
	fmt.Println(world.Create(), positions.Values())

	world.Restore(cp)
	fmt.Println(world.Create(), positions.Values())
	world.Restore(cp) // A checkpoint can be restored repeatedly, until its Release.
	world.Release(cp)
	// Output:
	// 0v2 [{99 0}]
	// 2v1 [{1 0} {2 0}]
}

// Try reverts all changes of its function if the function returns an error.
func ExampleWorld_Try() {
	world := ecs.NewWorld(ecs.Options{})
	gold := ecs.Must(ecs.RegisterResource(world, 10, ecs.Component[int]{Name: "Gold"}))
	pay := func(price int) error {
		*gold.Mut() -= price
		if gold.Get() < 0 {
			return errors.New("not enough gold")
		}
		return nil
	}
	fmt.Println(world.Try(func() error { return pay(7) }), gold.Get())
	fmt.Println(world.Try(func() error { return pay(7) }), gold.Get())
	// Output:
	// <nil> 3
	// not enough gold 3
}

// Seek goes back to committed ticks. It can go forward again until the world is written.
func ExampleHistory_Seek() {
	world := ecs.NewWorld(ecs.Options{History: 100})
	score := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "Score"}))
	for range 5 {
		*score.Mut() += 10
		world.Commit()
	}
	history := world.History()
	show := func(err error) {
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println("tick", world.Tick(), "score", score.Get())
	}
	show(history.Rewind(3))
	show(history.Seek(4))
	show(history.Seek(9))
	// Output:
	// tick 2 score 20
	// tick 4 score 40
	// ecs: tick not held: seek tick 9; the oldest retained tick is 0, the newest 5
	// tick 4 score 40
}

// The world copies values deeply, with slices, maps and pointers. A type that cannot be copied in
// this way needs a Clone. Change a value through Mut, and never through the result of Get.
func ExampleComponent_clone() {
	type Inventory struct{ Items []string }
	type Sprite struct {
		Frames []string
		Drawn  func()
	}
	world := ecs.NewWorld(ecs.Options{})
	inventories := ecs.MustRegister[Inventory](world)
	e := world.Create()
	inventories.Set(e, Inventory{Items: []string{"sword", "rope"}})
	before := world.Checkpoint()
	inventories.Mut(e).Items[0] = "shield"
	world.Restore(before)
	fmt.Println(inventories.Get(e))

	_, err := ecs.Register(world, ecs.Component[Sprite]{NoPersist: true})
	fmt.Println("refused:", err != nil)
	sprites, err := ecs.Register(world, ecs.Component[Sprite]{NoPersist: true, Clone: func(s Sprite) Sprite {
		s.Frames = slices.Clone(s.Frames)
		return s
	}})
	fmt.Println(sprites.Len(), err)
	// Output:
	// {[sword rope]} true
	// refused: true
	// 0 <nil>
}

// Where the rows of all storages are in the same order, Runs returns them as slices.
func ExampleQuery2_Runs() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	for i := range 4 {
		e := world.Create()
		positions.Set(e, Position{X: float64(i)})
		if i != 1 {
			velocities.Set(e, Velocity{X: 10})
		}
	}
	query := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
	for run := range query.Runs() {
		for i := range run.A {
			run.A[i].X += run.B[i].X
		}
		fmt.Println(run.Entities, run.A)
	}
	// Output:
	// [0v1] [{10 0}]
	// [2v1 3v1] [{12 0} {13 0}]
}

func ExampleErrNotHeld() {
	world := ecs.NewWorld(ecs.Options{}) // Without ecs.Options.History.
	world.Commit()
	err := world.History().Rewind(1)
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// ecs:
	// tick not held:
	// rewind 1 ticks from tick 1; the world has no history, because ecs.Options.History is 0:
	// set it to the number of ticks to retain, and create the world with it
}

func ExampleRegister_channel() {
	type Door struct{ Opened chan bool }
	_, err := ecs.Register[Door](ecs.NewWorld(ecs.Options{}))
	fmt.Println(strings.ReplaceAll(err.Error(), ": ", ":\n"))
	// Output:
	// layout:
	// Door.Opened:
	// chan values cannot be stored:
	// register ecs_test.Door:
	// it cannot be saved; change the type, or set NoPersist and Component.Clone
}

func ExampleStorage_Mut() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	positions.Set(e, Position{X: 1})
	p := positions.Mut(e)
	p.X = 2
	positions.Set(world.Create(), Position{}) // May move the rows, so p is stale now.
	positions.Mut(e).X++                      // Take the pointer again.
	fmt.Println(positions.Values())
	// Output:
	// [{3 0} {0 0}]
}
