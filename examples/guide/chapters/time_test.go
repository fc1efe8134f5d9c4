package chapters_test

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
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

func Example_timeOldTicks() {
	dir := filepath.Join(tempDir(), "battle")
	check(recordBattle(dir)) // Another program wrote this store.

	view, err := inspect.OpenReadOnly(ctx, dir) // Or a save, or a zip file of BackupTo.
	check(err)
	from, err := view.Resolve("7") // Any point in time, such as "@first" or "mark:boss".
	check(err)
	to, err := view.Resolve("@latest")
	check(err)
	orc := ecs.Must(ecs.ParseEntity("2v1"))
	check(view.Walk(ctx, from, to, func(im *inspect.Image, _ *inspect.Commit) error {
		healths := im.Find("Health") // Nil before the program registered it.
		row := healths.Find(orc)     // -1 if it has no health. Or loop over healths.Entities().
		value, err := healths.Value(row)
		hp, _ := value.Field("HP")
		fmt.Println("tick", im.Tick, "HP", hp.Int())
		return err
	}))
	check(view.Close())
	// Output:
	// tick 7 HP 5
	// tick 8 HP 2
	// tick 9 HP -1
	// tick 10 HP -4
}
