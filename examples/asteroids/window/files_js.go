package main

import (
	"context"
	"syscall/js"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/browser"
)

// openFiles returns the files of the game in the browser, and the directory of the store.
func openFiles(ctx context.Context) (dir string, files disk.FS, err error) {
	files, err = browser.Open(ctx, "asteroids")
	return ".", files, err
}

// report shows an error that ends the game.
func report(err error) {
	document := js.Global().Get("document")
	p := document.Call("createElement", "p")
	p.Set("textContent", "asteroids: "+err.Error())
	p.Set("id", "error")
	document.Get("body").Call("appendChild", p)
}

// publish gives the page a function game that describes the state, for its tests.
func publish(w *window) {
	js.Global().Set("game", js.FuncOf(func(js.Value, []js.Value) any {
		_, now, newest := w.control.Bar()
		return map[string]any{"now": now, "newest": newest, "digest": w.control.Game.World.Digest().String()}
	}))
}
