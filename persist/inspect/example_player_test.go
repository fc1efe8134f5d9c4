package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A player without a Step shows a recorded game in a world, for example in the window of the game.
func ExamplePlayer_Seek() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	g := newGame()
	player, err := inspect.OpenPlayer(ctx, b.dir, g.World, inspect.PlayerOptions{})
	check(err)
	defer player.Close()
	fmt.Println("ticks", player.First(), "to", player.End())

	show := func() {
		scout, alive := g.units.Get(b.scout)
		fmt.Println("tick", player.Tick(), "scout", scout.HP, alive)
	}
	check(player.Seek(ctx, 2))
	show()
	check(player.Step(ctx))
	show()
	fmt.Println("same state:", player.Recorded().Digest() == g.Digest())
	fmt.Println("recorded by a known program:", player.Build() != "")
	if err := player.Step(ctx); errors.Is(err, io.EOF) { // No tick is left: begin again.
		check(player.Restart(ctx))
	}
	show()
	// Output:
	// ticks 0 to 3
	// tick 2 scout 15 true
	// tick 3 scout 0 false
	// same state: true
	// recorded by a known program: true
	// tick 0 scout 0 false
}

// A player follows a store that grows, so other programs can watch a game.
func ExamplePlayer_Refresh() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	g := newGame()
	store, err := persist.Open(ctx, dir, g.World, persist.Options{})
	check(err)
	watched := newGame()
	player, err := inspect.OpenPlayer(ctx, dir, watched.World, inspect.PlayerOptions{})
	check(err)
	defer player.Close()

	for range 3 {
		g.gold.Set(g.gold.Get() * 2)
		check(store.Commit())
	}
	check(store.Close(ctx))
	more, err := player.Refresh(ctx)
	check(err)
	fmt.Println("more ticks:", more)
	for player.Tick() < player.End() {
		check(player.Step(ctx))
		fmt.Println("tick", player.Tick(), "gold", watched.gold.Get())
	}
	// Output:
	// more ticks: true
	// tick 1 gold 20
	// tick 2 gold 40
	// tick 3 gold 80
}

// If a replay differs from the record, SaveBoth saves both states. The command shows the
// difference.
func ExamplePlayer_SaveBoth() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	g := newGame()
	// The new program forgets the attack.
	step := func(_ *ecs.World, tick uint64, _ []inspect.Input) error {
		if tick == 1 {
			g.spawn(unit{HP: 100})
			g.spawn(unit{HP: 40, Leader: b.captain})
			g.spawn(unit{HP: 60, Leader: b.captain})
		}
		return nil
	}
	player, err := inspect.OpenPlayer(ctx, b.dir, g.World, inspect.PlayerOptions{Step: step})
	check(err)
	defer player.Close()
	for {
		check(player.Step(ctx))
		if tick, component, diverged := player.Diverged(); diverged {
			fmt.Println("tick", tick, "differs in", component)
			break
		}
	}
	dir := filepath.Join(b.dir, "differences")
	command, err := player.SaveBoth(ctx, dir)
	check(err)
	fmt.Println(strings.ReplaceAll(command, dir, "DIR"))
	// Output:
	// tick 2 differs in Unit
	// ecsdump diff DIR/tick2-recorded.save DIR/tick2-played.save
}
