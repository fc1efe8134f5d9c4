// Small is a small game in a window, with a store. docs/guide/PLATFORMS.md shows it.
package main

import (
	"context"
	"errors"
	"log"

	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/ebitenutil"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

type Position struct{ X, Y int }

type game struct {
	world     *ecs.World
	store     *persist.Store
	positions *ecs.Storage[Position]
	shown     []Position // What Draw shows.
}

func (g *game) Update() (err error) {
	if history := g.world.History(); ebiten.IsKeyPressed(ebiten.KeyR) {
		err = history.Seek(max(g.world.Tick(), history.Oldest()+1) - 1) // One tick back.
	} else {
		if g.world.Tick() == 0 {
			g.positions.Set(g.world.Create(), Position{Y: 100})
		}
		if ebiten.IsKeyPressed(ebiten.KeyRight) {
			g.positions.MutValues()[0].X++
		}
		err = g.store.Commit()
	}
	g.shown = append(g.shown[:0], g.positions.Values()...)
	return err
}

func (g *game) Draw(screen *ebiten.Image) {
	for _, p := range g.shown {
		ebitenutil.DebugPrintAt(screen, "@", p.X, p.Y)
	}
}

func (g *game) Layout(int, int) (int, int) { return 320, 240 }

func main() {
	ctx, world := context.Background(), ecs.NewWorld(ecs.Options{History: 600})
	g := &game{world: world, positions: ecs.MustRegister[Position](world)}
	g.store = ecs.Must(persist.Open(ctx, "small.store", world, persist.Options{}))
	if err := errors.Join(ebiten.RunGame(g), g.store.Close(ctx)); err != nil {
		log.Fatal(err)
	}
}
