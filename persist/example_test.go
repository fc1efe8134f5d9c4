package persist_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

type Score struct{ Points int }

// newGame returns a world, and a function that adds an entity with a score.
func newGame() (w *ecs.World, turn func()) {
	w = ecs.NewWorld(ecs.Options{History: 10})
	scores := ecs.MustRegister[Score](w)
	return w, func() { scores.Set(w.Create(), Score{w.Len()}) }
}

// tempDir returns a directory for an example, and a function that removes it.
func tempDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "stet-example-")
	if err != nil {
		panic(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// A directory keeps a world. Every tick is journaled, and the next run continues where the last one
// ended, even after a crash.
func ExampleOpen() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	for range 2 {
		w, turn := newGame()
		store, err := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("tick", w.Tick(), "with", w.Len())
		for range 3 {
			turn()
			// Commit ends the tick and does not wait for the disk.
			if err := store.Commit(); err != nil {
				fmt.Println(err)
			}
		}
		if err := store.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// tick 0 with 0
	// tick 3 with 3
}

// A save is one file, which is complete before it gets its name.
func ExampleSave() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	turn()
	file := filepath.Join(temp, "game1.save")
	if err := persist.Save(ctx, file, w); err != nil {
		fmt.Println(err)
	}
	again, _ := newGame()
	if err := persist.Load(ctx, file, again); err != nil {
		fmt.Println(err)
	}
	fmt.Println(again.Len(), again.Digest() == w.Digest())
	// Output: 1 true
}

// A save can also be bytes: for a browser, a database, or a connection.
func ExampleSaveTo() {
	ctx := context.Background()
	w, turn := newGame()
	turn()
	var slot bytes.Buffer
	if err := persist.SaveTo(ctx, &slot, w); err != nil {
		fmt.Println(err)
	}
	again, _ := newGame()
	if err := persist.LoadFrom(ctx, &slot, again); err != nil {
		fmt.Println(err)
	}
	fmt.Println(again.Len(), again.Digest() == w.Digest())
	// Output: 1 true
}

// A slot is a point in time that retention keeps. A store can be opened at any point that it holds,
// and continues from there.
func ExampleStore_SaveSlot() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	dir := filepath.Join(temp, "game")
	w, turn := newGame()
	store, _ := persist.Open(ctx, dir, w, persist.Options{Retain: persist.Retention{Last: 2}})
	turn()
	_ = store.Commit()
	if _, err := store.SaveSlot(ctx, "before the boss", ""); err != nil {
		fmt.Println(err)
	}
	turn()
	_ = store.Commit()
	_ = store.Close(ctx)

	again, _ := newGame()
	store, err := persist.Open(ctx, dir, again, persist.Options{At: "snap:before the boss"})
	fmt.Println(again.Tick(), again.Len(), err)
	_ = store.Close(ctx)
	// Output: 1 1 <nil>
}

// Saving a slot again replaces it. Components with NoRewind keep their values when a slot is
// loaded.
func ExampleStore_LoadSlot() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	store, _ := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{})
	for level := range 3 {
		turn()
		_ = store.Commit()
		if _, err := store.SaveSlot(ctx, "quick", fmt.Sprint("level ", level)); err != nil {
			fmt.Println(err)
		}
	}
	for range 5 {
		turn()
		_ = store.Commit()
	}
	for _, slot := range store.Slots() {
		fmt.Println(slot.Name, slot.Note, slot.Tick)
	}
	fmt.Println(store.LoadSlot(ctx, "quick"), w.Tick())
	fmt.Println(store.DeleteSlot(ctx, "quick"), store.Slots())
	fmt.Println(errors.Is(store.LoadSlot(ctx, "quick"), persist.ErrNotFound))
	_ = store.Close(ctx)
	// Output:
	// quick level 2 3
	// <nil> 3
	// <nil> []
	// true
}

// The Commit that ends the tick saves the slot, in the background.
func ExampleStore_BeginSlot() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	store, _ := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{
		OnSnapshot: func(r persist.SnapshotResult) {
			if r.Err != nil {
				fmt.Println("not saved:", r.Err)
			}
		},
	})
	turn()
	_ = store.BeginSlot("quick", "") // The player pressed the key in this tick.
	_ = store.Commit()
	_ = store.Close(ctx) // Waits for the slot.

	again, _ := newGame()
	store, _ = persist.Open(ctx, filepath.Join(temp, "game"), again, persist.Options{})
	fmt.Println(store.Slots()[0].Name, store.Slots()[0].Tick)
	_ = store.Close(ctx)
	// Output: quick 1
}

// The game continues while a copy of the world is saved.
func ExampleSaveBehind() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	turn()
	w.Commit()
	saved := persist.SaveBehind(ctx, filepath.Join(temp, "game1.save"), w)
	turn()
	w.Commit()
	fmt.Println(<-saved)
	again, _ := newGame()
	_ = persist.Load(ctx, filepath.Join(temp, "game1.save"), again)
	fmt.Println(w.Tick(), again.Tick())
	// Output:
	// <nil>
	// 2 1
}

// A backup of a running store is an independent store.
func ExampleStore_Backup() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	store, _ := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{})
	turn()
	_ = store.Commit()
	_ = store.Sync(ctx) // Only durable ticks are copied.
	if err := store.Backup(ctx, filepath.Join(temp, "backup")); err != nil {
		fmt.Println(err)
	}
	_ = store.Close(ctx)

	copied, _ := newGame()
	store, err := persist.Open(ctx, filepath.Join(temp, "backup"), copied, persist.Options{})
	fmt.Println(copied.Digest() == w.Digest(), err)
	_ = store.Close(ctx)
	// Output: true <nil>
}

// Long operations report their progress.
func ExampleWithProgress() {
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	turn()
	last := persist.Progress{}
	ctx := persist.WithProgress(context.Background(), func(p persist.Progress) { last = p })
	if err := persist.Save(ctx, filepath.Join(temp, "game1.save"), w); err != nil {
		fmt.Println(err)
	}
	fmt.Println(last.Phase, last.Done == last.Total)
	// Output: writing a snapshot true
}

// A store can be read without Go types, also while a program has it open.
func ExampleOpenReadOnly() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	dir := filepath.Join(temp, "game")
	w, turn := newGame()
	store, _ := persist.Open(ctx, dir, w, persist.Options{})
	turn()
	_ = store.Commit()
	_ = store.Sync(ctx)

	v, err := inspect.OpenReadOnly(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	im, _ := v.At(ctx, v.Head())
	scores := im.Find("Score")
	value, _ := scores.Value(0)
	fmt.Println(im.Tick, scores.Entities()[0], value)
	_ = v.Close()
	_ = store.Close(ctx)
	// Output: 1 0v1 {Points:1}
}

// A game goes back to a tick that it marked, and loads a slot, while its store stays open.
func ExampleStore_Goto() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	slot := filepath.Join(temp, "game1.save")
	w, turn := newGame()
	store, err := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	play := func(turns int) {
		for range turns {
			turn()
			if err := store.Commit(); err != nil {
				fmt.Println(err)
			}
		}
		fmt.Println("tick", w.Tick(), "with", w.Len())
	}
	play(2)
	// Mark names the tick that the next Commit ends.
	if err := store.Mark("boss"); err != nil {
		fmt.Println(err)
	}
	play(1)
	if err := persist.Save(ctx, slot, w); err != nil {
		fmt.Println(err)
	}
	play(20) // More ticks than the history holds.
	if err := store.Goto(ctx, "mark:boss"); err != nil {
		fmt.Println(err)
	}
	play(4)
	if err := store.Load(ctx, slot); err != nil {
		fmt.Println(err)
	}
	play(1)
	// A point before the slot was loaded.
	if err := store.Goto(ctx, "@latest~2"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("tick", w.Tick(), "with", w.Len())
	fmt.Println(store.Goto(ctx, "mark:end"))
	if err := store.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tick 2 with 2
	// tick 3 with 3
	// tick 23 with 23
	// tick 7 with 7
	// tick 4 with 4
	// tick 7 with 7
	// persist: not found: mark "end"; there are ["boss"]
}

// A game undoes turns from before it was closed.
func ExampleOptions_history() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	for range 2 {
		w, turn := newGame() // The world has a history of 10 ticks.
		store, err := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{History: 10})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("tick", w.Tick(), "with", w.Len(), "back to", w.History().Oldest())
		if err := w.History().Rewind(min(3, int(w.Tick()))); err != nil {
			fmt.Println(err)
		}
		for range 5 {
			turn()
			if err := store.Commit(); err != nil {
				fmt.Println(err)
			}
		}
		if err := store.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// tick 0 with 0 back to 0
	// tick 5 with 5 back to 0
}
