//go:build !js

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/examples/asteroids/game"
)

// openFiles returns the directory of the store, and the point to begin at. The files are those of
// the operating system.
func openFiles(context.Context) (dir string, files disk.FS, point string, err error) {
	flag.StringVar(&dir, "dir", "asteroids.store", "keep the game in `DIR`")
	flag.StringVar(&point, "at", "", "begin at this `POINT`, such as record:1200, instead of the end")
	flag.Parse()
	return dir, nil, point, nil
}

// watchFiles is not used: the directory of a game can be read while another program plays it.
func watchFiles(context.Context) (disk.FS, error) { return nil, nil }

// keepFile writes a file into the current directory.
func keepFile(name string, data []byte) error { return os.WriteFile(name, data, 0o666) }

// keepLink prints how to come back to a point.
func keepLink(point string) (message string) {
	fmt.Println("window -at", point)
	return "come back here with: window -at " + point
}

// dropLink does nothing; see the version for browsers.
func dropLink() {}

// play plays nothing: the window has sounds only in a browser.
func play([]game.Sound) {}

// report prints an error that ends the game.
func report(err error) { fmt.Fprintln(os.Stderr, "asteroids:", err) }

// publish does nothing; see the version for browsers.
func publish(*window) {}
