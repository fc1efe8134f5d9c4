//go:build js && wasm

// Program is the page of the tests. It opens a store in the browser, and commits ticks until the
// tab ends. It reports its state in the global object stet:
//
//	backend    "OPFS" or "IndexedDB"
//	recovered  the tick of the store after it was opened
//	durable    the newest durable tick
//	followed   the newest tick that a follower has seen
//	error      the error that ended the program
//
// If the URL contains "follow", the program follows the store of another tab.
//
// If the window has the property paused, the program commits no ticks. If it has the property
// resume, the program calls Store.Resume.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall/js"
	"time"

	"github.com/stet-ecs/stet/disk/browser"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A row is so large that segments and snapshots begin every few seconds.
type row struct {
	Tick uint64
	Rest [200]byte
}

var page = js.Global().Get("Object").New()

func main() {
	js.Global().Set("stet", page)
	program := run
	if strings.Contains(js.Global().Get("location").Get("search").String(), "follow") {
		program = follow
	}
	if err := program(context.Background()); err != nil {
		page.Set("error", err.Error())
	}
	select {}
}

func run(ctx context.Context) error {
	files, err := browser.Open(ctx, "browsertest")
	if err != nil {
		return err
	}
	page.Set("backend", browser.Backend(files))
	w := ecs.NewWorld(ecs.Options{History: 10})
	rows := ecs.MustRegister[row](w)
	store, err := persist.Open(ctx, ".", w, persist.Options{Files: files, SnapshotBytes: 128 << 10})
	if err != nil {
		return err
	}
	if w.Len() == 0 {
		for range 20 {
			rows.Set(w.Create(), row{})
		}
		if err := store.Commit(); err != nil {
			return err
		}
	}
	if err := check(w, rows); err != nil {
		return err
	}
	page.Set("recovered", w.Tick())
	for ; ; time.Sleep(time.Millisecond) {
		if !js.Global().Get("paused").IsUndefined() {
			continue
		}
		if err := tick(ctx, store, w, rows); err != nil {
			page.Set("error", err.Error())
			for js.Global().Get("resume").IsUndefined() {
				time.Sleep(10 * time.Millisecond)
			}
			if err := errors.Join(store.Resume(ctx), store.Sync(ctx)); err != nil {
				return err
			}
			page.Set("resumed", w.Tick())
			return nil
		}
	}
}

// check returns an error unless all rows have the tick of the world.
func check(w *ecs.World, rows *ecs.Storage[row]) error {
	for e, r := range rows.All() {
		if tick := max(w.Tick(), 1); r.Tick != tick && tick > 1 {
			return fmt.Errorf("entity %v has tick %d, and the store tick %d", e, r.Tick, tick)
		}
	}
	return nil
}

func follow(ctx context.Context) error {
	files, err := browser.OpenRead(ctx, "browsertest")
	if err != nil {
		return err
	}
	page.Set("backend", browser.Backend(files))
	w := ecs.NewWorld(ecs.Options{History: 10})
	rows := ecs.MustRegister[row](w)
	follower, err := persist.Follow(ctx, ".", w, persist.FileOptions{Files: files})
	if err != nil {
		return err
	}
	for ; ; time.Sleep(time.Millisecond) {
		if _, err := follower.Advance(ctx); err != nil {
			return err
		}
		if err := check(w, rows); err != nil {
			return err
		}
		page.Set("followed", w.Tick())
	}
}

// tick writes the number of the tick into every row. Every fourth tick becomes durable.
func tick(ctx context.Context, store *persist.Store, w *ecs.World, rows *ecs.Storage[row]) error {
	for _, e := range rows.Entities() {
		rows.Mut(e).Tick = w.Tick() + 1
	}
	if err := store.Commit(); err != nil {
		return err
	}
	if w.Tick()%4 != 0 {
		return nil
	}
	if err := store.Sync(ctx); err != nil {
		return err
	}
	page.Set("durable", w.Tick())
	return nil
}
