// Package webfiles builds files for a web host, and serves them: pages, and programs that are
// compiled for browsers. Next to each text and each program is a compressed file, for browsers that
// accept gzip.
package webfiles

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// types maps the extension of a file to its content type.
var types = map[string]string{
	".css":  "text/css; charset=utf-8",
	".gif":  "image/gif",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".png":  "image/png",
	".svg":  "image/svg+xml",
	".wasm": "application/wasm",
}

// Write writes a file below dir, and its compressed file.
func Write(dir, name string, data []byte) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	return compress(file, data)
}

// Compile compiles a Go package for browsers and writes the program below dir, as the file name.
// The package is a path or a directory, relative to the directory from. The output is the same for
// equal sources.
func Compile(from, pkg, dir, name string) error {
	file, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pkg)
	cmd.Dir = from
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return compress(file, data)
}

// Loader returns the script of the Go installation that runs compiled programs in a page.
func Loader() ([]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
}

// compress writes the compressed file of a file, unless it exists. Images are compressed already.
func compress(file string, data []byte) error {
	switch filepath.Ext(file) {
	case ".gif", ".png":
		return nil
	}
	// A gzip file ends with the checksum and the length of its content.
	end := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	end = binary.LittleEndian.AppendUint32(end, uint32(len(data)))
	if old, err := os.ReadFile(file + ".gz"); err == nil && bytes.HasSuffix(old, end) {
		return nil
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(file+".gz", b.Bytes(), 0o644)
}

// Handler serves the files of fsys. A path that ends with a slash is the file index.html there.
func Handler(fsys fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		if strings.HasSuffix(r.URL.Path, "/") || name == "" {
			name = path.Join(name, "index.html")
		} else if info, err := fs.Stat(fsys, name); err == nil && info.IsDir() {
			http.Redirect(w, r, path.Base(name)+"/", http.StatusMovedPermanently)
			return
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		if kind, ok := types[path.Ext(name)]; ok {
			w.Header().Set("Content-Type", kind)
		}
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			if compressed, err := fs.ReadFile(fsys, name+".gz"); err == nil {
				w.Header().Set("Content-Encoding", "gzip")
				data = compressed
			}
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data)
	})
}

// Serve answers requests until the user interrupts the process, or until l fails.
func Serve(l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(interrupted, func() { _ = server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
