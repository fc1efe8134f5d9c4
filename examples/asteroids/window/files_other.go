//go:build !js

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/examples/asteroids/game"
)

// openPlace returns the place in the flags.
func openPlace(context.Context) (p place, err error) {
	flag.StringVar(&p.dir, "dir", "asteroids.store", "keep the game in `DIR`")
	flag.StringVar(&p.link, "at", "", "begin at this `POINT`, such as record:1200, instead of the end")
	flag.Parse()
	return p, nil
}

// keepFile writes a file into the current directory. If the name is in use, it adds a number.
func keepFile(name string, data []byte) (where string, err error) {
	base, extension := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
	for n := 2; ; n++ {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			name = fmt.Sprintf("%s-%d%s", base, n, extension)
			continue
		}
		if err != nil {
			return name, err
		}
		_, err = f.Write(data)
		return name, errors.Join(err, f.Close())
	}
}

// keepLink prints how to come back to the moment of a link.
func keepLink(link string) (message string) {
	at := ""
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "dir" {
			at = "-dir " + f.Value.String() + " "
		}
	})
	at += "-at " + link
	fmt.Println(at)
	return "to come back, start with: " + at
}

// watchHelp says how to play instead of watching.
const watchHelp = "To play here, close it there and start this again"

// opened returns no link; see the version for browsers.
func opened() string { return "" }

// dropLink does nothing; see the version for browsers.
func dropLink() {}

// play plays nothing: the window has sounds only in a browser.
func play([]game.Sound) {}

// report prints an error that ends the game.
func report(err error) { fmt.Fprintln(os.Stderr, "asteroids:", err) }

// publish does nothing; see the version for browsers.
func publish(*window) {}
