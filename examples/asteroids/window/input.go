package main

import (
	"io/fs"

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
	slot   string // "save" or "load", for slot 1.
}{
	{"<", game.Left, false, ""}, {">", game.Right, false, ""}, {"R", 0, true, ""},
	{"^", game.Thrust, false, ""}, {"o", game.Fire, false, ""}, {"S", 0, false, "save"}, {"L", 0, false, "load"},
}

// A pointer is the mouse or a finger on the time bar.
type pointer struct {
	dragging bool
	touched  bool // A finger has touched the screen, so the touch buttons are shown.
}

// input reads the keys, the mouse and the fingers.
func (w *window) input() (in control.Input) {
	// Keys with Control, Alt or Meta are commands of the browser or the desktop.
	command := ebiten.IsKeyPressed(ebiten.KeyControl) || ebiten.IsKeyPressed(ebiten.KeyMeta) || ebiten.IsKeyPressed(ebiten.KeyAlt)
	pressed := func(key ebiten.Key) bool { return !command && inpututil.IsKeyJustPressed(key) }
	for key, button := range keys {
		if ebiten.IsKeyPressed(key) {
			in.Buttons |= button
		}
	}
	in.Rewind = ebiten.IsKeyPressed(ebiten.KeyR) && !command
	in.Replay, in.Link, in.File = pressed(ebiten.KeyP), pressed(ebiten.KeyL), pressed(ebiten.KeyF8)
	in.Dropped = dropped()
	for i := range 3 {
		if pressed(ebiten.Key1 + ebiten.Key(i)) {
			in.Save = 1 + i
		}
		if pressed(ebiten.Key4 + ebiten.Key(i)) {
			in.Load = 1 + i
		}
	}
	x, y := ebiten.CursorPosition()
	held, began := ebiten.IsMouseButtonPressed(ebiten.MouseButtonLeft), inpututil.IsMouseButtonJustPressed(ebiten.MouseButtonLeft)
	touches := ebiten.AppendTouchIDs(nil)
	for _, id := range touches {
		tx, ty := ebiten.TouchPosition(id)
		if pad := w.padAt(tx, ty); pad >= 0 {
			in.Buttons |= pads[pad].Buttons
			in.Rewind = in.Rewind || pads[pad].rewind
			if began := inpututil.TouchPressDuration(id) == 1; began && pads[pad].slot == "save" {
				in.Save = 1
			} else if began && pads[pad].slot == "load" {
				in.Load = 1
			}
		} else if !held {
			x, y, held, began = tx, ty, true, inpututil.TouchPressDuration(id) == 1
		}
	}
	w.drag(&in, x, y, held, began)
	w.pointer.touched = w.pointer.touched || len(touches) > 0
	return in
}

// drag seeks to the tick at x if the pointer is pressed, and was first pressed on the time bar.
func (w *window) drag(in *control.Input, x, y int, pressed, began bool) {
	b := w.bar()
	if began {
		w.pointer.dragging = y >= b.y-4 && y < b.y+b.height+12
		if branch := b.branchAt(x, y); branch > 0 {
			// The bar may show only the newest branches.
			in.Visit = branch + len(w.control.View.Branches) - len(b.branches)
		}
	}
	if w.pointer.dragging = w.pointer.dragging && pressed; w.pointer.dragging {
		in.Seek, in.Tick = true, b.tickAt(x)
	}
}

// dropped returns the content of a file that the player has dropped on the window. It returns nil
// if there is none, and no bytes if it cannot be read.
func dropped() []byte {
	files := ebiten.DroppedFiles()
	if files == nil {
		return nil
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil || len(entries) == 0 {
		return []byte{}
	}
	content, err := fs.ReadFile(files, entries[0].Name())
	if err != nil {
		return []byte{}
	}
	return content
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
