package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Peek reads the values of one entity, without loading the state. Living says which of several
// entities are alive.
func ExampleView_Peek() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	for _, point := range []string{"mark:ambush", "@latest"} {
		seq, err := view.Resolve(point)
		check(err)
		scout, err := view.Peek(ctx, b.scout, seq)
		check(err)
		fmt.Println("tick", scout.Tick, "alive:", scout.Alive)
		for _, c := range scout.Components {
			if c.Row >= 0 {
				fmt.Println(" ", c.Name, c.Value, "refers to entities in", c.EntityFields())
			}
		}
		alive, err := view.Living(ctx, []ecs.Entity{b.captain, b.scout, b.recruit}, seq)
		check(err)
		fmt.Println("  captain", alive[b.captain], "scout", alive[b.scout], "recruit", alive[b.recruit])
	}
	// Output:
	// tick 2 alive: true
	//   Unit {HP:15 Leader:0v1} refers to entities in [Leader]
	//   captain true scout true recruit false
	// tick 3 alive: false
	//   captain true scout false recruit true
}

// Referrers finds the values that refer to an entity, for example to a dead one.
func ExampleView_Referrers() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	referrers, total, err := view.Referrers(ctx, b.scout, view.Head(), 10)
	check(err)
	fmt.Println("values that refer to the dead scout:", total)
	for _, r := range referrers {
		fmt.Println(r.Entity, r.Component, r.Fields)
	}
	// Output:
	// values that refer to the dead scout: 1
	// 1v2 Unit [Leader]
}

// Tree follows a field that refers to other entities. Here it lists each leader before its units.
func ExampleView_Tree() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	nodes, rootless, err := view.Tree(ctx, ecs.None, "Unit", "Leader", view.Head())
	check(err)
	for _, n := range nodes {
		fmt.Printf("%s%v has %d below, leader dead: %v\n", strings.Repeat("  ", n.Depth), n.Entity, n.Below, n.TargetDead)
	}
	fmt.Println("units in a cycle:", rootless)
	// Output:
	// 0v1 has 1 below, leader dead: false
	//   2v1 has 0 below, leader dead: false
	// 1v2 has 0 below, leader dead: true
	// units in a cycle: []
}

// TraceBack reads the history of an entity backward, from one snapshot to the one before. Here it
// finds the last change of the scout, and then reads no older ticks.
func ExampleView_TraceBack() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	check(view.TraceBack(ctx, b.scout, view.Head(), func(s *inspect.Stretch) (more bool) {
		for _, event := range slices.Backward(s.Events) {
			if event.Kind == inspect.TraceSet {
				fmt.Println("tick", event.Tick, "set", event.Component, "from", event.Old, "to", event.New)
				return false
			}
		}
		fmt.Println("unchanged from tick", s.First.Tick, "to", s.Last.Tick)
		return true
	}))
	// Output:
	// unchanged from tick 2 to 3
	// tick 2 set Unit from {HP:40 Leader:0v1} to {HP:15 Leader:0v1}
}
