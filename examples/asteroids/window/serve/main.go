// Serve compiles the game for browsers and serves it on this machine, or writes files for any web
// host.
//
// The page consists of index.html, game.wasm, and wasm_exec.js, which is part of Go.
//
// Usage:
//
//	serve [-addr ADDR] [-o DIR]
//
// The exit code is 0, 1 after a failure, and 2 for wrong flags.
package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
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
	var l net.Listener
	if dir == "" { // Before the compilation, which takes long.
		var err error
		if l, err = net.Listen("tcp", addr); err != nil {
			return fmt.Errorf("%w; choose another address with -addr", err)
		}
	}
	fmt.Println("compiling the game for browsers; the first time takes about two minutes")
	files, err := build()
	if err != nil {
		return err
	}
	if dir != "" {
		return write(files, dir)
	}
	fmt.Printf("play at http://%s (%.1f MB)\n", l.Addr(), float64(len(files["game.wasm"].compressed))/1e6)
	server := &http.Server{Handler: files, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// A file is a file of the page.
type file struct {
	contentType string
	data        []byte
	compressed  []byte // By gzip.
}

// A site has the files of the page, by name.
type site map[string]file

// build compiles the game.
func build() (site, error) {
	temp, err := os.MkdirTemp("", "asteroids")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	compiled := filepath.Join(temp, "game.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", compiled, "github.com/stet-ecs/stet/examples/asteroids/window")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, text)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	s := site{}
	for name, path := range map[string]string{
		"game.wasm":    compiled,
		"wasm_exec.js": filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"),
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s.add(name, data)
	}
	s.add("index.html", page)
	return s, nil
}

func (s site) add(name string, data []byte) {
	types := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript", ".wasm": "application/wasm"}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	s[name] = file{types[filepath.Ext(name)], data, b.Bytes()}
}

// ServeHTTP implements http.Handler.
func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	f, ok := s[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	data := f.data
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		data = f.compressed
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = w.Write(data)
}

// write writes the files to a directory.
func write(s site, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for name, f := range s {
		if err := os.WriteFile(filepath.Join(dir, name), f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
