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

// publish sets the object game of the page, for its tests.
func publish(w *window) {
	oldest, now, newest := w.control.Bar()
	js.Global().Set("game", map[string]any{"oldest": oldest, "now": now, "newest": newest, "digest": w.control.Game.World.Digest().String()})
}
