package repair_test

import (
	"context"
	"os"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// newGame returns a world with gold as its resource.
func newGame() (w *ecs.World, gold *ecs.Resource[int]) {
	w = ecs.NewWorld(ecs.Options{})
	return w, ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "Gold"}))
}

// recordGame records a store of 100 ticks. Each tick adds 1 to the gold. The slot "half" has the
// state after tick 50.
func recordGame(ctx context.Context, dir string) {
	w, gold := newGame()
	store, err := persist.Open(ctx, dir, w, persist.Options{})
	check(err)
	for tick := range 100 {
		if tick == 50 {
			_, err = store.SaveSlot(ctx, "half", "")
			check(err)
		}
		gold.Set(gold.Get() + 1)
		check(store.Commit())
	}
	check(store.Close(ctx))
}

func tempDir() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "stet-example-")
	check(err)
	return dir, func() { os.RemoveAll(dir) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
