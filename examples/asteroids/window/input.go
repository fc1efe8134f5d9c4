package main

import (
	"image"
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

// pads are the touch buttons, from left to right at the lower edge of a tall screen.
var pads = []struct {
	label string
	game.Buttons
	rewind bool
	slot   string // "save" or "load", for slot 1.
}{
	{"LEFT", game.Left, false, ""}, {"RIGHT", game.Right, false, ""}, {"REWIND", 0, true, ""}, {"SAVE", 0, false, "save"},
	{"LOAD", 0, false, "load"}, {"THRUST", game.Thrust, false, ""}, {"FIRE", game.Fire, false, ""},
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
	in.Dropped, in.Open = dropped(), opened()
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
		if pad := w.padUnder(tx, ty); pad >= 0 {
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
		if branch := b.branchAt(x, y); branch >= 0 {
			// The bar may show only the newest branches, so add the number of the others. Visit
			// counts from 1.
			in.Visit = branch + 1 + len(w.control.View.Branches) - len(b.branches)
		}
	}
	if w.pointer.dragging = w.pointer.dragging && pressed; w.pointer.dragging {
		in.Seek, in.Tick = true, b.tickAt(x)
	}
}

// dropped returns the content of a file that the player has dropped on the window. Without a file,
// it returns nil. If the file cannot be read, it returns an empty slice that is not nil.
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

// padUnder returns the touch button at a point of the screen, or -1.
func (w *window) padUnder(x, y int) int {
	if w.pointer.touched {
		for i := range pads {
			if image.Pt(x, y).In(w.padAt(i)) {
				return i
			}
		}
	}
	return -1
}

// padAt returns the place of a touch button. A tall screen has a row of buttons below the time bar.
// On a wide screen, the buttons are above the time bar, at the sides, near the thumbs:
//
//	REWIND                      SAVE   LOAD
//	LEFT   RIGHT              THRUST   FIRE
func (w *window) padAt(pad int) image.Rectangle {
	if w.tall() {
		width, height := w.width/len(pads), w.padHeight()
		return image.Rect(0, 0, width, height).Add(image.Pt(pad*width, w.height-height))
	}
	size := min(w.width/9, w.height/4)
	x := [...]int{0, size, 0, w.width - 2*size, w.width - size, w.width - 2*size, w.width - size}[pad]
	row := [...]int{0, 0, 1, 1, 1, 0, 0}[pad]
	return image.Rect(0, 0, size, size).Add(image.Pt(x, w.bar().y-12-size*(1+row)))
}

func (w *window) tall() bool { return w.height > w.width }

// padHeight returns the height of the touch buttons below the time bar.
func (w *window) padHeight() int {
	if !w.pointer.touched || !w.tall() {
		return 0
	}
	return min(w.width/len(pads)*3/2, w.height/4)
}
