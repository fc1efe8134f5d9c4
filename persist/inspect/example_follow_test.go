package inspect_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A view can follow a store while a program writes to it, for example to show the newest state.
func ExampleView_Refresh() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	g := newGame()
	store, err := persist.Open(ctx, dir, g.World, persist.Options{})
	check(err)
	view, err := inspect.OpenReadOnly(ctx, dir)
	check(err)
	defer view.Close()

	for range 2 {
		g.gold.Set(g.gold.Get() + 5)
		check(store.Commit())
		check(store.Sync(ctx))

		changed, err := view.Refresh(ctx)
		check(err)
		newest, err := view.Newest()
		check(err)
		im, err := view.At(ctx, newest)
		check(err)
		gold, err := im.Find("Gold").Value(0)
		check(err)
		fmt.Println("changed:", changed, "tick", im.Tick, "gold", gold)
	}
	changed, err := view.Refresh(ctx)
	check(err)
	fmt.Println("changed:", changed)
	check(store.Close(ctx))
	// Output:
	// changed: true tick 1 gold 15
	// changed: true tick 2 gold 20
	// changed: false
}

// A tool sees which program has a store open, and notices when it closes the store or is killed.
func ExampleView_WatchWriter() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	store, err := persist.Open(ctx, dir, newGame().World, persist.Options{})
	check(err)
	view, err := inspect.OpenReadOnly(ctx, dir)
	check(err)
	defer view.Close()
	fmt.Println("in use:", view.InUse(), "by a known process:", view.LockHolder() != "")

	ended := false
	look := view.WatchWriter(func(_ string, running, closed bool) {
		fmt.Println("running:", running, "closed:", closed)
		ended = !running
	})
	look() // Stores the present status.
	check(store.Close(ctx))
	for !ended {
		look()
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("in use when the view was opened:", view.InUse(), "now:", view.InUseNow())
	// Output:
	// in use: true by a known process: true
	// running: false closed: true
	// in use when the view was opened: true now: false
}
