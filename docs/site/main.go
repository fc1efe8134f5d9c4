// Site builds the web site of the documentation, and serves it on this machine.
//
// The site has the pages of the guide and the reference, and the source files to which they link.
// Some pages run programs, and one is a game. Each page is a file, so any web host can serve the
// site.
//
// Usage:
//
//	site [-o DIR] [-addr ADDR] [-build] [-game=false]
//
// While it serves, a page that is loaded again shows the changes of its source. The exit code is 0,
// 1 after a failure, and 2 for wrong flags.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stet-ecs/stet/internal/webfiles"
)

func main() {
	dir := flag.String("o", "", "write the files to `DIR` (default: site, in the root of the project)")
	addr := flag.String("addr", "127.0.0.1:8080", "serve the site at `ADDR`")
	only := flag.Bool("build", false, "write the files, and do not serve them")
	game := flag.Bool("game", true, "build the game too")
	flag.Parse()
	if err := run(*dir, *addr, *only, *game); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(dir, addr string, only, game bool) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	if dir == "" {
		dir = filepath.Join(root, "site")
	}
	b := &builder{root: root, fsys: os.DirFS(root), dir: dir}
	if only {
		return b.build(game)
	}
	l, err := net.Listen("tcp", addr) // Before the compilation, which takes long.
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr", err)
	}
	if err := b.build(game); err != nil {
		return err
	}
	fmt.Printf("read the guide at http://%s\n", l.Addr())
	return webfiles.Serve(l, b.handler())
}

// projectRoot returns the directory of the root module, which is the working directory or above it.
func projectRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/stet-ecs/stet\n") {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("the working directory is not in a checkout of Stet")
	}
}

// A builder writes the site to a directory.
type builder struct {
	root string // The root of the project.
	fsys fs.FS  // The files of the project.
	dir  string // Where the site is written.

	mu    sync.Mutex
	sizes map[string]int64 // The compressed size of each compiled program.
	built time.Time        // The newest change of a source when the pages were written.
}

// build compiles the programs and writes the pages.
func (b *builder) build(game bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if game {
		dir, err := filepath.Abs(filepath.Join(b.dir, "game"))
		if err != nil {
			return err
		}
		cmd := exec.Command("go", "run", "./serve", "-o", dir)
		cmd.Dir = filepath.Join(b.root, "examples", "asteroids", "window")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building the game: %w", err)
		}
	}
	return b.write()
}

// write writes the pages. It compiles only the programs that are not compiled yet.
func (b *builder) write() error {
	_, err := os.Stat(filepath.Join(b.dir, "game", "index.html"))
	s, err := load(b.fsys, err == nil)
	if err != nil {
		return err
	}
	if b.sizes == nil {
		b.sizes = map[string]int64{}
	}
	for _, program := range s.programs() {
		if _, done := b.sizes[program]; done {
			continue
		}
		name := programFile(program)
		if err := webfiles.Compile(filepath.Join(b.root, program), ".", b.dir, name); err != nil {
			return err
		}
		info, err := os.Stat(filepath.Join(b.dir, filepath.FromSlash(name+".gz")))
		if err != nil {
			return err
		}
		b.sizes[program] = info.Size()
	}
	files, err := s.render(b.sizes)
	if err != nil {
		return err
	}
	if files["wasm_exec.js"], err = webfiles.Loader(); err != nil {
		return err
	}
	for name, data := range files {
		if err := webfiles.Write(b.dir, name, data); err != nil {
			return err
		}
	}
	b.built = b.changed()
	return b.prune(files)
}

// prune removes the pages of an earlier build that the site no longer has.
func (b *builder) prune(files map[string][]byte) error {
	return fs.WalkDir(os.DirFS(b.dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "game/index.html" || path.Ext(name) != ".html" || files[name] != nil {
			return err
		}
		file := filepath.Join(b.dir, filepath.FromSlash(name))
		return errors.Join(os.Remove(file), os.Remove(file+".gz"))
	})
}

// changed returns the time of the last change of a page or an image.
func (b *builder) changed() (newest time.Time) {
	for _, root := range []string{home, "docs", "examples"} {
		_ = fs.WalkDir(b.fsys, root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || path.Ext(name) == ".go" {
				return err
			}
			if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return nil
		})
	}
	return newest
}

// handler serves the site. Before it serves a page, it writes all pages again if the documentation
// has changed.
func (b *builder) handler() http.Handler {
	files := webfiles.Handler(os.DirFS(b.dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") || strings.HasSuffix(r.URL.Path, ".html") {
			b.mu.Lock()
			var err error
			if b.changed().After(b.built) {
				err = b.write()
			}
			b.mu.Unlock()
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		files.ServeHTTP(w, r)
	})
}
