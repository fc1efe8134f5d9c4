package inspect_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Diff compares two states of a store. Each row that differs has its old and its new value.
func ExampleView_Diff() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	ambush, err := view.Resolve("mark:ambush")
	check(err)
	d, err := view.Diff(ctx, ambush, view.Head())
	check(err)
	fmt.Println("same:", d.Same())
	valueOf := func(t *layout.Type, row []byte) layout.Value {
		v, err := t.Value(row)
		check(err)
		return v
	}
	for _, c := range d.Components {
		for _, r := range c.Rows {
			switch {
			case r.Added():
				fmt.Println(c.Name, r.Entity, "added:", valueOf(c.New, c.NewRow(r)))
			case r.Removed():
				fmt.Println(c.Name, r.Entity, "removed:", valueOf(c.Old, c.OldRow(r)))
			case r.Changed:
				fmt.Println(c.Name, r.Entity, "changed:", valueOf(c.Old, c.OldRow(r)), "to", valueOf(c.New, c.NewRow(r)))
			case r.Moved():
				fmt.Println(c.Name, r.Entity, "moved from row", r.OldRow, "to", r.NewRow)
			}
		}
	}
	// Output:
	// same: false
	// Unit 1v1 removed: {HP:15 Leader:0v1}
	// Unit 1v2 added: {HP:30 Leader:1v1}
	// Unit 2v1 moved from row 2 to 1
	// Gold 0v0 changed: 10 to 4
}

// Two runs of the same game should be equal. FindDivergence finds the first tick that differs,
// here because one program has another rule.
func ExampleView_FindDivergence() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	run := func(name string, reward func(tick int) int) *inspect.View {
		g := newGame()
		store, err := persist.Open(ctx, filepath.Join(dir, name), g.World, persist.Options{})
		check(err)
		for tick := range 9 {
			g.gold.Set(g.gold.Get() + reward(tick))
			check(store.Commit())
		}
		check(store.Close(ctx))
		view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, name))
		check(err)
		return view
	}
	old := run("old", func(tick int) int { return tick })
	defer old.Close()
	recent := run("new", func(tick int) int { return min(tick, 5) })
	defer recent.Close()

	found, err := old.FindDivergence(ctx, old.Head(), recent, recent.Head())
	check(err)
	fmt.Println("ticks compared:", found.Compared)
	fmt.Println("equal after tick", found.Equal.Tick, "different after tick", found.First.Tick)
	d, err := old.DiffTo(ctx, found.First.Old, recent, found.First.New)
	check(err)
	for _, c := range d.Components {
		for _, r := range c.Rows {
			fields, err := c.Fields(r)
			check(err)
			fmt.Println(c.Name, "is", fields[0].Old, "in the old run,", fields[0].New, "in the new run")
		}
	}
	// Output:
	// ticks compared: 10
	// equal after tick 6 different after tick 7
	// Gold is 31 in the old run, 30 in the new run
}
