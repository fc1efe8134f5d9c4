package main

import (
	"context"
	"errors"
	"strings"
	"syscall/js"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/browser"
)

// openPlace opens the file system of the game in the browser, and reads the link in the address. If
// another tab plays the game, this tab can only watch it.
func openPlace(ctx context.Context) (p place, err error) {
	// Do not wait for the answer. The browser may ask the player whether it may keep the data.
	go func() { _, _ = browser.Persist(ctx) }()
	p.dir = "."
	p.link = hash()
	linked = p.link != ""
	p.files, err = browser.Open(ctx, "asteroids")
	if p.watch = errors.Is(err, disk.ErrLocked); p.watch {
		p.files, err = browser.OpenRead(ctx, "asteroids")
		go func() {
			if browser.Wait(ctx, "asteroids") == nil {
				js.Global().Get("location").Call("reload")
			}
		}()
	}
	js.Global().Call("addEventListener", "hashchange", js.FuncOf(func(js.Value, []js.Value) any {
		select {
		case links <- hash():
		default: // Drop the link, because an earlier link is still waiting.
		}
		return nil
	}))
	return p, err
}

// watchHelp says how to play instead of watching.
const watchHelp = "Close it there to play here"

// links has the link that the player has put into the address bar.
var links = make(chan string, 1)

// opened returns the link that the player has put into the address bar, or "".
func opened() string {
	select {
	case link := <-links:
		linked = link != ""
		return link
	default:
		return ""
	}
}

// hash returns the link in the address bar, or "".
func hash() string {
	return strings.TrimPrefix(js.Global().Get("location").Get("hash").String(), "#")
}

// linked is true while the address bar has a link to a moment.
var linked bool

// keepFile lets the browser download a file.
func keepFile(name string, data []byte) (where string, err error) {
	global := js.Global()
	bytes := global.Get("Uint8Array").New(len(data))
	js.CopyBytesToJS(bytes, data)
	blob := global.Get("Blob").New([]any{bytes}, map[string]any{"type": "application/zip"})
	url := global.Get("URL").Call("createObjectURL", blob)
	link := global.Get("document").Call("createElement", "a")
	link.Set("href", url)
	link.Set("download", name)
	link.Call("click")
	time.AfterFunc(time.Minute, func() { global.Get("URL").Call("revokeObjectURL", url) })
	return name, nil
}

// keepLink shows a link in the address bar, and copies it if the browser allows that.
func keepLink(link string) (message string) {
	global := js.Global()
	setHash("#" + link)
	linked = true
	if clipboard := global.Get("navigator").Get("clipboard"); clipboard.Truthy() {
		clipboard.Call("writeText", global.Get("location").Get("href")).Call("catch", ignore)
	}
	return "the address of this page leads here, until you play on"
}

// setHash replaces the fragment of the URL, such as "#record:7".
func setHash(hash string) {
	js.Global().Get("history").Call("replaceState", nil, "", js.Global().Get("location").Get("pathname").String()+hash)
}

// dropLink removes the link from the address bar when the game continues. A reload of the page then
// continues the game instead of going back to the link.
func dropLink() {
	if linked {
		setHash("")
		linked = false
	}
}

var ignore = js.FuncOf(func(js.Value, []js.Value) any { return nil })

// report shows an error that ends the game.
func report(err error) {
	text := "asteroids: " + err.Error()
	if errors.Is(err, browser.ErrUnsupported) {
		text = "Your browser does not let this page keep a game. Try a window that is not private, or another browser. (" + err.Error() + ")"
	}
	document := js.Global().Get("document")
	p := document.Call("createElement", "p")
	p.Set("textContent", text)
	p.Set("id", "error")
	document.Get("body").Call("appendChild", p)
}

// publish sets a JavaScript function game, which returns the state of the game to the tests.
func publish(w *window) {
	c, digest := w.control, ""
	js.Global().Set("game", js.FuncOf(func(js.Value, []js.Value) any {
		if !c.Busy() {
			digest = c.Game.World.Digest().String()
		}
		v := &c.View
		ends, b := []any{}, w.bar()
		for i, branch := range b.branches {
			ends = append(ends, b.column(branch.To), b.row(i))
		}
		return map[string]any{
			"now": v.Now, "newest": v.Newest, "digest": digest, "message": c.Message, "sprites": len(v.Sprites),
			"branches": len(v.Branches), "ends": ends, "replaying": v.Replaying, "watching": v.Watching, "ghost": v.Ghost != nil,
		}
	}))
}
