package chapters_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

func Example_designing() {
	type Keys struct{ Right bool } // All that a player can do in a tick.
	type Ship struct {
		X       int32
		Picture string // The name of a picture. The picture itself is outside of the world.
	}
	type Rock struct{ X int32 }
	world := ecs.NewWorld(ecs.Options{History: 100})
	ships, rocks := ecs.MustRegister[Ship](world), ecs.MustRegister[Rock](world)
	flying := ecs.NewQuery1(ecs.Write(ships))

	drawn := map[ecs.Entity]int32{} // Outside of the world, because it can be computed again.
	world.OnRestore(func() { clear(drawn) })

	systems := schedule.New[Keys](world).Seed(1)
	systems.Add("fly", flying, func(t *schedule.Tick[Keys]) {
		for _, ship := range flying.All() {
			if t.Input.Right {
				ship.X++
			}
		}
	})
	systems.Add("rocks", schedule.Uses(rocks, schedule.Creates), func(t *schedule.Tick[Keys]) {
		rocks.Set(t.World.Create(), Rock{int32(t.Rand().IntN(1000))})
	})
	ships.Set(world.Create(), Ship{Picture: "ship.png"})
	world.Commit()
	play := func() ecs.Digest {
		for _, keys := range []Keys{{Right: true}, {Right: false}, {Right: true}} {
			systems.Step(keys)
			world.Commit()
		}
		return world.Digest()
	}
	first := play()
	check(world.History().Rewind(3))
	fmt.Println("the same state:", first == play())
	// Output:
	// the same state: true
}
