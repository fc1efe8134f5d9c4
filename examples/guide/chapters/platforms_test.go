package chapters_test

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
)

// A pressed says what the player does in a frame.
type pressed struct {
	Buttons            byte
	Rewind, Save, Load bool
}

// A windowGame is what a window of Ebitengine updates and draws.
type windowGame struct {
	world   *ecs.World
	store   *persist.Store
	systems *schedule.Schedule[byte]
	x       *ecs.Resource[int]
	loading chan error     // Receives the result of a load. Nil if the world is not loaded now.
	saved   chan error     // Receives the results of saved slots.
	keys    func() pressed // Returns what the player presses.
	drawn   int            // The copy that Draw shows.
	message string         // Draw shows it too.
}

func newWindowGame(dir string) *windowGame {
	g := &windowGame{world: ecs.NewWorld(ecs.Options{History: 600}), saved: make(chan error, 10)}
	g.x = ecs.Must(ecs.RegisterResource(g.world, 0, ecs.Component[int]{Name: "X"}))
	g.systems = schedule.New[byte](g.world)
	g.systems.Add("move", g.x, func(t *schedule.Tick[byte]) { *g.x.Mut() += int(t.Input) })
	var err error
	g.store, err = persist.Open(ctx, dir, g.world, persist.Options{OnSnapshot: func(r persist.SnapshotResult) {
		if r.Slot != "" {
			g.saved <- r.Err
		}
	}})
	check(err)
	return g
}

// Update is called 60 times a second. An error that it returns ends ebiten.RunGame.
func (g *windowGame) Update() error {
	if err := g.frame(g.keys()); err != nil {
		g.message = err.Error() // For the player. The game goes on.
	}
	if g.loading == nil { // If a goroutine loads, only that goroutine may use the world.
		g.drawn = g.x.Get()
	}
	return nil
}

// frame runs a tick. While the player rewinds, or while a slot is loaded, it runs none.
func (g *windowGame) frame(in pressed) error {
	if g.loading != nil {
		select {
		case err := <-g.loading:
			g.loading = nil
			return err
		default:
			return nil // The goroutine that loads still uses the world.
		}
	}
	if in.Rewind {
		now, history := g.world.Tick(), g.world.History()
		return history.Seek(max(now-min(2, now), history.Oldest())) // Two ticks back.
	}
	if in.Load {
		loading := make(chan error, 1)
		go func() { loading <- g.store.LoadSlot(ctx, "quick") }()
		g.loading = loading
		return nil
	}
	if in.Save {
		_ = g.store.BeginSlot("quick", "") // Saves this tick, and does not wait.
	}
	err := g.store.Input("buttons", []byte{in.Buttons})
	g.systems.Step(in.Buttons)
	return errors.Join(err, g.store.Commit())
}

func Example_platformsFrame() {
	g := newWindowGame(tempDir())
	play := func(frames int, in pressed) {
		g.keys = func() pressed { return in }
		for range frames {
			check(g.Update())
		}
		fmt.Println("tick", g.world.Tick(), "x", g.drawn)
	}
	play(10, pressed{Buttons: 1})
	play(3, pressed{Rewind: true})
	play(1, pressed{Save: true})
	play(5, pressed{Buttons: 2})
	check(<-g.saved)
	load := func() {
		g.keys = func() pressed { return pressed{Load: g.loading == nil} }
		check(g.Update())
		for g.loading != nil {
			check(g.Update())
		}
		fmt.Printf("tick %d x %d %q\n", g.world.Tick(), g.drawn, g.message)
	}
	load()
	check(g.store.DeleteSlot(ctx, "quick"))
	load() // The slot is gone, so this shows a message.
	check(g.store.Close(ctx))
	// Output:
	// tick 10 x 10
	// tick 4 x 4
	// tick 5 x 4
	// tick 10 x 14
	// tick 5 x 4 ""
	// tick 5 x 4 "persist: not found: slot \"quick\"; there are none"
}
