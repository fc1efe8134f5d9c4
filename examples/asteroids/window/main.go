// Window is Asteroids in a window, and in a browser. Hold R, and time runs backwards. Release it
// anywhere, and press a key to go on from there.
//
// Update passes the input to package control, and plays sounds. Draw draws the View of that
// package, and the time bar.
//
// Usage:
//
//	window [-dir DIR] [-at POINT]
//
// The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hajimehoshi/ebiten/v2"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/examples/asteroids/window/control"
	"github.com/stet-ecs/stet/persist"
)

func main() {
	if err := run(context.Background()); err != nil {
		report(err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	p, err := openPlace(ctx)
	if err != nil {
		return err
	}
	if p.files != nil {
		defer func() { err = errors.Join(err, p.files.Close()) }()
	}
	g, err := p.open(ctx)
	if err != nil {
		return err
	}
	c := control.New(g)
	c.KeepFile, c.KeepLink = keepFile, keepLink
	defer func() { err = errors.Join(err, c.Close(context.Background())) }()
	if p.link != "" && g.Watched == nil {
		c.Visit(ctx, p.link)
	}
	ebiten.SetWindowTitle("Asteroids, with time")
	ebiten.SetWindowSize(1280, 800)
	ebiten.SetWindowResizingMode(ebiten.WindowResizingModeEnabled)
	w := &window{ctx: ctx, control: c}
	publish(w)
	return ebiten.RunGame(w)
}

// A place says where the game is stored, and which moment to show.
type place struct {
	dir   string
	files disk.FS // The file system of dir. Nil means the operating system's.
	watch bool    // Another program plays the game, so files can only be read.
	link  string  // The moment to begin at, or "" for the end.
}

// open opens the game. If another program plays it, open watches it.
func (p place) open(ctx context.Context) (*game.Game, error) {
	if !p.watch {
		g, err := game.Open(ctx, p.dir, p.files)
		if !errors.Is(err, persist.ErrLocked) {
			return g, err
		}
	}
	return game.Watch(ctx, p.dir, p.files)
}

// A window shows a game. It implements ebiten.Game.
type window struct {
	ctx           context.Context
	control       *control.Control
	width, height int
	pointer       pointer
	updated       time.Time // The time of the last Update.
}

func (w *window) Layout(width, height int) (int, int) {
	w.width, w.height = max(width, 200), max(height, 150)
	return w.width, w.height
}

func (w *window) Update() error {
	now := w.control.View.Now
	if err := w.control.Frame(w.ctx, w.input()); err != nil {
		return fmt.Errorf("tick %d: %w", now, err)
	}
	if w.updated = time.Now(); w.control.View.Playing {
		dropLink()
	}
	play(w.control.Heard)
	return nil
}
