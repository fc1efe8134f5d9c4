package persist_test

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A standby follows the store of a game, and takes it over when the game has ended. The world
// continues where it was, with the history that it followed.
func ExampleFollower() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	newScore := func() (*ecs.World, *ecs.Resource[int]) {
		w := ecs.NewWorld(ecs.Options{History: 100})
		return w, ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "Score"}))
	}
	game, score := newScore()
	store, err := persist.Open(ctx, dir, game, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	standby, seen := newScore()
	follower, err := persist.Follow(ctx, dir, standby)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		score.Set(score.Get() + 10)
		if err := store.Commit(); err != nil {
			fmt.Println(err)
		}
	}
	if err := store.Sync(ctx); err != nil {
		fmt.Println(err)
	}
	changed, err := follower.Advance(ctx)
	fmt.Println("tick", standby.Tick(), "score", seen.Get(), changed, err)

	watcher, _ := newScore()
	viewer, err := persist.Follow(ctx, dir, watcher) // Any number of processes may follow.
	fmt.Println("viewer:", watcher.Tick(), err, viewer.Close())
	_, err = follower.Open(ctx, persist.Options{}) // The game still has the store open.
	fmt.Println("taken:", err == nil)
	if err := store.Close(ctx); err != nil {
		fmt.Println(err)
	}
	store, err = follower.Open(ctx, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The history has the followed ticks.
	if err := standby.History().Rewind(2); err != nil {
		fmt.Println(err)
	}
	seen.Set(seen.Get() + 1)
	fmt.Println("committed:", store.Commit() == nil, "tick", standby.Tick(), "score", seen.Get())
	fmt.Println("closed:", store.Close(ctx) == nil)
	// Output:
	// tick 5 score 50 true <nil>
	// viewer: 5 <nil> <nil>
	// taken: false
	// committed: true tick 4 score 31
	// closed: true
}
