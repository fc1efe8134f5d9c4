// First is the first program of the guide: a ship moves, and the game goes back in time.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

type Ship struct{ X, Speed int }

func main() {
	ctx, world := context.Background(), ecs.NewWorld(ecs.Options{History: 60})
	ships := ecs.MustRegister[Ship](world)
	store, err := persist.Open(ctx, "first.store", world, persist.Options{})
	check(err)
	if world.Tick() == 0 {
		ships.Set(world.Create(), Ship{Speed: 2})
	}
	for range 10 {
		for e, ship := range ships.All() {
			ships.Mut(e).X += ship.Speed
		}
		check(store.Commit())
	}
	check(world.History().Rewind(3))
	fmt.Println("tick", world.Tick(), ships.Values())
	check(store.Close(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
