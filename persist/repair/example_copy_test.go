package repair_test

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// Compact copies the newest state and the last ticks to a new store, for example to send them with
// a bug report.
func ExampleCompact() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	recordGame(ctx, filepath.Join(dir, "game"))
	view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "game"))
	check(err)
	defer view.Close()

	report, err := repair.Compact(ctx, view, filepath.Join(dir, "last"), repair.CompactOptions{Keep: "@latest~10", NoNames: true})
	check(err)
	fmt.Println("copied ticks", report.From, "to", report.Tick)
	fmt.Println("left out", report.DroppedTicks, "ticks and the slots", report.DroppedNames)
	fmt.Println("smaller:", report.After < report.Before)
	// Output:
	// copied ticks 90 to 100
	// left out 90 ticks and the slots [half]
	// smaller: true
}

// Backup copies a store that another program may have open. A program continues from the copy as
// from the original.
func ExampleBackup() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	w, gold := newGame()
	store, err := persist.Open(ctx, filepath.Join(dir, "game"), w, persist.Options{})
	check(err)
	gold.Set(7)
	check(store.Commit())
	check(store.Sync(ctx))

	// Another program can do this.
	view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "game"))
	check(err)
	check(repair.Backup(ctx, view, filepath.Join(dir, "backup")))
	check(view.Close())
	check(store.Close(ctx))

	w, gold = newGame()
	store, err = persist.Open(ctx, filepath.Join(dir, "backup"), w, persist.Options{})
	check(err)
	fmt.Println("tick", w.Tick(), "gold", gold.Get())
	check(store.Close(ctx))
	// Output:
	// tick 1 gold 7
}

// SaveImage writes a tick of a store to a save, which a player can load.
func ExampleSaveImage() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	recordGame(ctx, filepath.Join(dir, "game"))
	view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "game"))
	check(err)
	defer view.Close()
	seq, err := view.Resolve("30")
	check(err)
	im, err := view.At(ctx, seq)
	check(err)
	file := filepath.Join(dir, "tick30.save")
	check(repair.SaveImage(ctx, im, file))

	w, gold := newGame()
	check(persist.Load(ctx, file, w))
	fmt.Println("tick", w.Tick(), "gold", gold.Get())
	// Output:
	// tick 30 gold 30
}
