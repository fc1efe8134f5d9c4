package persist_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// Do lets other goroutines use the world, for example those of network connections. The functions
// run in the goroutine of the world, at the next Commit.
func ExampleStore_Do() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	store, err := persist.Open(ctx, temp, w, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var clients sync.WaitGroup
	entities := make(chan int, 2)
	for range 2 {
		clients.Go(func() {
			if err := store.Do(ctx, func(w *ecs.World) { entities <- w.Len() }); err != nil {
				fmt.Println(err)
			}
		})
	}
	turn()
	for len(entities) < 2 {
		if err := store.Poll(); err != nil { // Serves the clients without a tick.
			fmt.Println(err)
		}
	}
	clients.Wait()
	fmt.Println(<-entities, <-entities, "in tick", w.Tick())
	if err := store.Commit(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("journal:", store.Err(), "closed:", store.Close(ctx))
	// Output:
	// 1 1 in tick 0
	// journal: <nil> closed: <nil>
}

// MarkLast names the tick that the last Commit ended, for example after a boss is beaten. The other
// calls start a snapshot in the background, copy the store into a zip file, and load a save from
// any reader.
func ExampleStore_MarkLast() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	store, err := persist.Open(ctx, temp, w, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close(ctx)
	turn()
	if err := store.Commit(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("mark:", store.MarkLast("first turn"))
	begun, err := store.BeginSnapshot()
	fmt.Println("snapshot:", begun, err)

	var save, backup bytes.Buffer
	if err := persist.SaveTo(ctx, &save, w); err != nil {
		fmt.Println(err)
	}
	turn()
	if err := store.Commit(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("load:", store.LoadFrom(ctx, &save), "with", w.Len())
	fmt.Println("zip:", store.BackupTo(ctx, &backup), backup.Len() > 0)
	// Output:
	// mark: <nil>
	// snapshot: true <nil>
	// load: <nil> with 1
	// zip: <nil> true
}
