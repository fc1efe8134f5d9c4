package inspect_test

import (
	"context"
	"os"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A unit is a component of the game in the examples.
type unit struct {
	HP     int32
	Leader ecs.Entity
}

// A game is a world with units, and gold as a resource.
type game struct {
	*ecs.World
	units *ecs.Storage[unit]
	gold  *ecs.Resource[int]
}

func newGame() *game {
	w := ecs.NewWorld(ecs.Options{})
	return &game{w, ecs.MustRegister(w, ecs.Component[unit]{Name: "Unit"}), ecs.Must(ecs.RegisterResource(w, 10, ecs.Component[int]{Name: "Gold"}))}
}

func (g *game) spawn(u unit) ecs.Entity {
	e := g.Create()
	g.units.Set(e, u)
	return e
}

// A battle is a recorded store in a directory, and the entities in it.
type battle struct {
	dir                            string
	captain, scout, guard, recruit ecs.Entity
}

// recordBattle records a store of three ticks:
//
//   - In tick 1 a captain appears, and a scout and a guard with the captain as their leader.
//   - In tick 2, with the mark "ambush", the input "attack" hits the scout. The slot "camp" has the
//     state after this tick.
//   - In tick 3 the scout dies. A recruit appears, with the dead scout as its leader.
func recordBattle() (b battle, remove func()) {
	ctx := context.Background()
	b.dir, remove = tempDir()
	g := newGame()
	store, err := persist.Open(ctx, b.dir, g.World, persist.Options{})
	check(err)
	b.captain = g.spawn(unit{HP: 100})
	b.scout = g.spawn(unit{HP: 40, Leader: b.captain})
	b.guard = g.spawn(unit{HP: 60, Leader: b.captain})
	check(store.Commit())

	check(store.Mark("ambush"))
	check(store.Input("attack", []byte("scout")))
	g.units.Set(b.scout, unit{HP: 15, Leader: b.captain})
	check(store.Commit())
	_, err = store.SaveSlot(ctx, "camp", "")
	check(err)

	g.gold.Set(4)
	g.Destroy(b.scout)
	b.recruit = g.spawn(unit{HP: 30, Leader: b.scout})
	check(store.Commit())
	check(store.Close(ctx))
	return b, remove
}

func tempDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "stet-example-")
	check(err)
	return dir, func() { os.RemoveAll(dir) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
