package main

import (
	"github.com/hajimehoshi/ebiten/v2"
	"github.com/hajimehoshi/ebiten/v2/inpututil"

	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/examples/asteroids/window/control"
)

// keys maps keys to buttons.
var keys = map[ebiten.Key]game.Buttons{
	ebiten.KeyA: game.Left, ebiten.KeyArrowLeft: game.Left,
	ebiten.KeyD: game.Right, ebiten.KeyArrowRight: game.Right,
	ebiten.KeyW: game.Thrust, ebiten.KeyArrowUp: game.Thrust,
	ebiten.KeySpace: game.Fire,
}

// pads are the touch buttons, from left to right.
var pads = []struct {
	label string
	game.Buttons
	rewind bool
}{{"<", game.Left, false}, {">", game.Right, false}, {"R", 0, true}, {"^", game.Thrust, false}, {"o", game.Fire, false}}

// A pointer is the mouse or a finger on the time bar.
type pointer struct {
	dragging bool
	touched  bool // A finger has touched the screen, so the touch buttons are shown.
}

// input reads the keys, the mouse and the fingers.
func (w *window) input() (in control.Input) {
	for key, button := range keys {
		if ebiten.IsKeyPressed(key) {
			in.Buttons |= button
		}
	}
	in.Rewind = ebiten.IsKeyPressed(ebiten.KeyR)
	for i := range 3 {
		if inpututil.IsKeyJustPressed(ebiten.Key1 + ebiten.Key(i)) {
			in.Save = 1 + i
		}
		if inpututil.IsKeyJustPressed(ebiten.Key4 + ebiten.Key(i)) {
			in.Load = 1 + i
		}
	}
	x, y := ebiten.CursorPosition()
	pressed, began := ebiten.IsMouseButtonPressed(ebiten.MouseButtonLeft), inpututil.IsMouseButtonJustPressed(ebiten.MouseButtonLeft)
	touches := ebiten.AppendTouchIDs(nil)
	for _, id := range touches {
		tx, ty := ebiten.TouchPosition(id)
		if pad := w.padAt(tx, ty); pad >= 0 {
			in.Buttons |= pads[pad].Buttons
			in.Rewind = in.Rewind || pads[pad].rewind
		} else if !pressed {
			x, y, pressed, began = tx, ty, true, inpututil.TouchPressDuration(id) == 1
		}
	}
	w.drag(&in, x, y, pressed, began)
	w.pointer.touched = w.pointer.touched || len(touches) > 0 // Now the touch buttons are shown.
	return in
}

// drag seeks to the tick at x if the pointer is pressed, and was first pressed on the time bar.
func (w *window) drag(in *control.Input, x, y int, pressed, began bool) {
	b := w.bar()
	if began {
		w.pointer.dragging = y >= b.y-8 && y < b.y+b.height+8
	}
	if w.pointer.dragging = w.pointer.dragging && pressed; w.pointer.dragging {
		in.Seek, in.Tick = true, b.tickAt(x)
	}
}

// padAt returns the touch button at a point of the screen, or -1.
func (w *window) padAt(x, y int) int {
	size := w.padSize()
	if !w.pointer.touched || y < w.height-size || x < 0 || x >= w.width {
		return -1
	}
	return x * len(pads) / w.width
}

// padSize returns the height of the touch buttons.
func (w *window) padSize() int { return min(w.width/len(pads), w.height/4) }
