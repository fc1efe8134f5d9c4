//go:build stetdebug

package chapters_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// printPanic prints the value of a panic. A deferred call ends the panic.
func printPanic() {
	printError(fmt.Errorf("%v", recover()))
}

// newHero returns a world with one entity.
func newHero() (world *ecs.World, positions *ecs.Storage[Pos], hero ecs.Entity) {
	world = ecs.NewWorld(ecs.Options{History: 10})
	positions, hero = ecs.MustRegister[Pos](world), world.Create()
	positions.Set(hero, Pos{})
	return world, positions, hero
}

func Example_pointersMoved() {
	defer printPanic()
	world, positions, hero := newHero() // A world with a history, and with one entity.
	p := positions.Mut(hero)
	positions.Set(world.Create(), Pos{}) // A new row: the rows may move.
	p.X = 5
	world.Commit()
	// Output:
	// ecs: Pos of 0v1 was written through a pointer from before an entity was added to the
	// storage, removed or moved: the write is lost, or it changes another entity's component;
	// take the pointer again, by Mut, MutValues or the next step of a loop, after Set of a new
	// component, Remove, Destroy, Clear, Reserve and sorts
}

func Example_pointersCommit() {
	defer printPanic()
	world, positions, hero := newHero()
	p := positions.Mut(hero)
	world.Commit()
	p.X = 5 // In the next tick.
	world.Commit()
	// Output:
	// ecs: Pos of 0v1, row 0, was written in the tick after 1 without the world's knowledge;
	// write through the pointers of Write and Mut, or call Set, and never to what Read, Get,
	// All, Values or Entities return; take pointers and slices again after Checkpoint, Commit,
	// Restore, Release, Seek and a look-up in an index
}

func Example_pointersShared() {
	type Bag struct{ Items []string }
	defer printPanic()
	world, _, hero := newHero()
	bags := ecs.MustRegister[Bag](world)
	bags.Set(hero, Bag{[]string{"sword"}})
	world.Commit()
	bag, _ := bags.Get(hero)
	bag.Items[0] = "shield" // The slice of the copy is that of the world.
	bags.Set(hero, bag)
	// Output:
	// ecs: Bag of 0v1, row 0, was written in the tick after 1 before the world could save it;
	// Get, Read, All, Values and Set share slices, maps and pointers with the world: write
	// through the pointers of Mut and Write, or Set a deep copy
}
