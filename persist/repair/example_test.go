package repair_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// Edit changes a value in a save, and SaveStore writes the changed state to a new store.
func ExampleEdit() {
	type Gold struct{ Coins int32 }
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "stet")
	defer os.RemoveAll(dir)
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	world := ecs.NewWorld(ecs.Options{})
	gold := ecs.MustRegister[Gold](world)
	hero := world.Create()
	gold.Set(hero, Gold{5})
	check(persist.Save(ctx, filepath.Join(dir, "game.save"), world))

	view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "game.save"))
	check(err)
	defer view.Close()
	state, err := view.At(ctx, view.Head())
	check(err)
	c := state.Find("Gold")
	row := c.Find(hero)
	value, err := c.Layout.AppendPatched(nil, c.Row(row), []byte(`{"Coins": 500}`))
	check(err)
	edited, err := repair.Edit(state, []repair.RowEdit{{Component: c, Row: row, Value: value}})
	check(err)
	check(repair.SaveStore(ctx, edited, filepath.Join(dir, "game")))

	world = ecs.NewWorld(ecs.Options{})
	gold = ecs.MustRegister[Gold](world)
	store, err := persist.Open(ctx, filepath.Join(dir, "game"), world, persist.Options{})
	check(err)
	v, _ := gold.Get(hero)
	fmt.Println(v)
	check(store.Close(ctx))
	// Output: {500}
}
