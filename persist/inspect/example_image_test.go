package inspect_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// At loads a state. The image has its entities and values, without the Go types of the program that
// recorded the store.
func ExampleView_At() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	seq, err := view.Resolve("2") // Tick 2.
	check(err)
	im, err := view.At(ctx, seq)
	check(err)

	fmt.Println("tick", im.Tick, "has the entities", im.Entities())
	fmt.Println(b.recruit, "is alive:", im.IsAlive(b.recruit))
	holder, alive := im.EntityAt(b.captain.Index())
	fmt.Println("index 0 belongs to", holder, "which is alive:", alive)
	for _, c := range im.Components {
		fmt.Println("rows of", c.Name+":", c.Len())
	}
	units := im.Find("Unit")
	value, err := units.Value(units.Find(b.scout))
	check(err)
	fmt.Println("scout:", value)
	// Output:
	// tick 2 has the entities [0v1 1v1 2v1]
	// 1v2 is alive: false
	// index 0 belongs to 0v1 which is alive: true
	// rows of Unit: 3
	// rows of Gold: 1
	// scout: {HP:15 Leader:0v1}
}

// World turns an image into a world without Go types. The world can be saved, for example to send a
// tick of a store to another program.
func ExampleImage_World() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	ambush, err := view.Resolve("mark:ambush")
	check(err)
	im, err := view.At(ctx, ambush)
	check(err)
	w, err := im.World(ecs.Options{})
	check(err)
	fmt.Println("tick", w.Tick(), "same state:", w.Digest() == im.Digest())

	var save bytes.Buffer
	check(persist.SaveTo(ctx, &save, w))
	other := newGame() // The other program has Go types.
	check(persist.LoadFrom(ctx, &save, other.World))
	scout, _ := other.units.Get(b.scout)
	fmt.Println("scout:", scout.HP)
	// Output:
	// tick 2 same state: true
	// scout: 15
}

// A cursor holds a state and moves to other states, for example in a viewer with a time bar.
func ExampleView_Cursor() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	first, err := view.Resolve("1")
	check(err)
	cursor, err := view.Cursor(ctx, first)
	check(err)
	before := cursor.Clone() // Stays at tick 1.
	check(cursor.Seek(ctx, view.Head()))

	for _, c := range []*inspect.Cursor{before, cursor} {
		im := c.Image()
		gold, err := c.State().Value(im.Find("Gold"), 0)
		check(err)
		fmt.Println("record", c.Seq(), "is tick", im.Tick, "with", im.Living, "units and", gold, "gold")
	}
	// Output:
	// record 1 is tick 1 with 3 units and 10 gold
	// record 3 is tick 3 with 3 units and 4 gold
}
