//go:build !js

package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/stet-ecs/stet/disk"
)

// openFiles returns the directory of the store. The files are those of the operating system.
func openFiles(context.Context) (dir string, files disk.FS, err error) {
	flag.StringVar(&dir, "dir", "asteroids.store", "keep the game in `DIR`")
	flag.Parse()
	return dir, nil, nil
}

// report prints an error that ends the game.
func report(err error) { fmt.Fprintln(os.Stderr, "asteroids:", err) }

// publish does nothing; see the version for browsers.
func publish(*window) {}
