// Serve compiles the game for browsers and serves it on this machine, or writes files for any web
// host.
//
// The page consists of index.html, game.wasm, and wasm_exec.js, which is part of Go. Next to each
// file is the same file compressed by gzip.
//
// Usage:
//
//	serve [-addr ADDR] [-o DIR]
//
// The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/internal/webfiles"
)

//go:embed index.html
var page []byte

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "serve the game at `ADDR`")
	dir := flag.String("o", "", "write the files to `DIR` and serve nothing")
	flag.Parse()
	if err := run(*addr, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(addr, dir string) error {
	if dir != "" {
		return build(dir)
	}
	l, err := net.Listen("tcp", addr) // Before the compilation, which takes long.
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr", err)
	}
	temp, err := os.MkdirTemp("", "asteroids")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := build(temp); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(temp, "game.wasm.gz"))
	if err != nil {
		return err
	}
	fmt.Printf("play at http://%s (%.1f MB)\n", l.Addr(), float64(info.Size())/1e6)
	return webfiles.Serve(l, webfiles.Handler(os.DirFS(temp)))
}

// build writes the files of the page to a directory.
func build(dir string) error {
	fmt.Println("compiling the game for browsers; the first time takes about two minutes")
	if err := webfiles.Compile("", "github.com/stet-ecs/stet/examples/asteroids/window", dir, "game.wasm"); err != nil {
		return err
	}
	loader, err := webfiles.Loader()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"index.html": page, "wasm_exec.js": loader} {
		if err := webfiles.Write(dir, name, data); err != nil {
			return err
		}
	}
	return nil
}
