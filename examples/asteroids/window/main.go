// Window is Asteroids in a window, and in a browser. Hold R, and time runs backwards. Release it
// anywhere, and press a key to go on from there.
//
//	Update   input ──▶ control.Frame ──▶ a tick, or another tick of the history
//	Draw     world ──▶ lines; history ──▶ time bar
//
// Usage:
//
//	window [-dir DIR]
//
// The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hajimehoshi/ebiten/v2"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/examples/asteroids/window/control"
)

func main() {
	if err := run(context.Background()); err != nil {
		report(err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, files, err := openFiles(ctx)
	if err != nil {
		return err
	}
	if files != nil {
		defer func() { err = errors.Join(err, files.Close()) }()
	}
	g, err := game.Open(ctx, dir, files)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close(context.Background())) }()
	ebiten.SetWindowTitle("Asteroids, with time")
	ebiten.SetWindowSize(1280, 800)
	ebiten.SetWindowResizingMode(ebiten.WindowResizingModeEnabled)
	w := &window{ctx: ctx, control: control.New(g)}
	publish(w)
	return ebiten.RunGame(w)
}

// A window shows a game. It implements ebiten.Game.
type window struct {
	ctx           context.Context
	control       *control.Control
	width, height int
	pointer       pointer
}

func (w *window) Layout(width, height int) (int, int) {
	w.width, w.height = max(width, 200), max(height, 150)
	return w.width, w.height
}

func (w *window) Update() error {
	if err := w.control.Frame(w.ctx, w.input()); err != nil {
		return fmt.Errorf("tick %d: %w", w.control.Game.World.Tick(), err)
	}
	return nil
}
