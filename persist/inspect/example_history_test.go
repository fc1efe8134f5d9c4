package inspect_test

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Commits returns the ticks of the journal, with their marks, inputs and operations.
func ExampleView_Commits() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	commits, err := view.Commits(2, view.Head())
	check(err)
	for _, c := range commits {
		fmt.Println("tick", c.Tick, "marks", c.Marks)
		for _, in := range c.Inputs {
			fmt.Printf("  input %s %q\n", in.Name, in.Data)
		}
		ops, err := c.Ops()
		check(err)
		for _, op := range ops {
			switch op.Kind {
			case raw.OpCreate:
				fmt.Println("  create", op.Entity)
			case raw.OpDestroy:
				fmt.Println("  destroy", op.Entity)
			case raw.OpAdd:
				fmt.Println("  add", c.Component(op.Component), "to", op.Entity)
			case raw.OpRemove, raw.OpClear:
			}
		}
		for _, row := range c.Rows {
			fmt.Println("  written rows of", c.Component(row.Component)+":", row.Written)
		}
	}
	// Output:
	// tick 2 marks [ambush]
	//   input attack "scout"
	//   written rows of Unit: 1
	// tick 3 marks []
	//   destroy 1v1
	//   create 1v2
	//   add Unit to 1v2
	//   written rows of Unit: 2
	//   written rows of Gold: 1
}

// Changes compares each state with the one before, and gives the tick that led to it.
func ExampleView_Changes() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	first, err := view.Resolve("@first")
	check(err)
	check(view.Changes(ctx, first, view.Head(), func(d *inspect.Diff, c *inspect.Commit) error {
		fmt.Println("tick", c.Tick, "created", d.Registry.Created, "destroyed", d.Registry.Destroyed)
		for _, of := range d.Components {
			added, removed, changed, _ := of.Count()
			fmt.Println("  "+of.Name+":", added, "added,", removed, "removed,", changed, "changed")
		}
		return nil
	}))
	// Output:
	// tick 1 created [0v1 1v1 2v1] destroyed []
	//   Unit: 3 added, 0 removed, 0 changed
	// tick 2 created [] destroyed []
	//   Unit: 0 added, 0 removed, 1 changed
	// tick 3 created [1v2] destroyed [1v1]
	//   Unit: 1 added, 1 removed, 0 changed
	//   Gold: 0 added, 0 removed, 1 changed
}

// Marks are names that the program gave to ticks. Each mark is a point in time.
func ExampleView_Marks() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	marks, err := view.Marks(ctx)
	check(err)
	for _, m := range marks {
		seq, err := view.Resolve("mark:" + m.Name)
		check(err)
		fmt.Println(m.Name, "is tick", m.Tick, "resolved:", seq == m.Seq)
	}
	// Output:
	// ambush is tick 2 resolved: true
}

// A program that goes back in time begins a branch. Tips are the ends of the branches, and Path
// has the ticks that lead to an end.
func ExampleView_Tips() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	g := newGame()
	store, err := persist.Open(ctx, b.dir, g.World, persist.Options{At: "1"})
	check(err)
	g.units.Set(b.scout, unit{HP: 50, Leader: b.captain}) // The scout hides from the ambush.
	check(store.Commit())
	check(store.Close(ctx))

	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	first, err := view.Resolve("@first")
	check(err)
	newest, err := view.Newest()
	check(err)
	for i, tip := range view.Tips() {
		fmt.Printf("tip:%d is tick %d, newest state: %v\n", i+1, tip.Tick, tip.ID.Seq == newest)
		path, err := view.Path(first, tip.ID.Seq)
		check(err)
		for _, e := range path {
			fmt.Println("  record", e.ID.Seq, "is tick", e.Tick)
		}
	}
	fmt.Println("records in the journal:", len(view.Log().Entries))
	// Output:
	// tip:1 is tick 3, newest state: false
	//   record 1 is tick 1
	//   record 2 is tick 2
	//   record 3 is tick 3
	// tip:2 is tick 2, newest state: true
	//   record 1 is tick 1
	//   record 4 is tick 2
	// records in the journal: 4
}
