package repair_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// Recover writes the good data of a damaged store to a new store. Recoverable only says what
// Recover would save.
func ExampleRecover() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	game, rescued := filepath.Join(dir, "game"), filepath.Join(dir, "rescued")
	recordGame(ctx, game)
	damage(ctx, game, 97)

	w, gold := newGame()
	_, err := persist.Open(ctx, game, w, persist.Options{})
	fmt.Println("corrupt:", errors.Is(err, persist.ErrCorrupt))

	view, err := inspect.OpenReadOnly(ctx, game)
	check(err)
	defer view.Close()
	report, err := repair.Recoverable(ctx, view)
	check(err)
	fmt.Println("recoverable tick:", report.Tick, "complete:", report.Complete())

	report, err = repair.Recover(ctx, game, rescued, repair.RecoverOptions{})
	check(err)
	fmt.Println("saved ticks", report.From, "to", report.Tick, "and lost", report.Lost, "records")
	store, err := persist.Open(ctx, rescued, w, persist.Options{})
	check(err)
	fmt.Println("tick", w.Tick(), "gold", gold.Get())
	check(store.Close(ctx))
	// Output:
	// corrupt: true
	// recoverable tick: 96 complete: false
	// saved ticks 0 to 96 and lost 4 records
	// tick 96 gold 96
}

// damage changes a byte in the record of a tick, as a bad disk does.
func damage(ctx context.Context, dir string, tick uint64) {
	view, err := inspect.OpenReadOnly(ctx, dir)
	check(err)
	defer view.Close()
	log := view.Log()
	for _, e := range log.Entries {
		if e.Tick != tick {
			continue
		}
		file := filepath.Join(dir, "journal", log.Segments[e.Segment].Name)
		data, err := os.ReadFile(file)
		check(err)
		data[e.Offset] ^= 1
		check(os.WriteFile(file, data, 0o600))
	}
}
