package webfiles

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestHandler_PathsTypesAndCompression(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"index.html", "a/index.html", "a/b.wasm", "a/c.png"} {
		for _, text := range []string{"old", "content of " + name} {
			if err := Write(dir, name, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := Handler(os.DirFS(dir))
	for _, c := range []struct {
		path, content, kind string
		status              int
		compressed          bool
	}{
		{"/", "content of index.html", "text/html; charset=utf-8", 200, true},
		{"/a/", "content of a/index.html", "text/html; charset=utf-8", 200, true},
		{"/a/b.wasm", "content of a/b.wasm", "application/wasm", 200, true},
		{"/a/c.png", "content of a/c.png", "image/png", 200, false},
		{"/a/../index.html", "content of index.html", "text/html; charset=utf-8", 200, true},
		{"/missing", "", "", 404, false},
		{"/../webfiles.go", "", "", 404, false},
	} {
		for _, accept := range []string{"", "gzip, br"} {
			r, w := httptest.NewRequest(http.MethodGet, c.path, nil), httptest.NewRecorder()
			r.Header.Set("Accept-Encoding", accept)
			h.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("%s: status %d, want %d", c.path, w.Code, c.status)
			}
			if c.status != 200 {
				continue
			}
			body := io.Reader(w.Body)
			compressed := w.Header().Get("Content-Encoding") == "gzip"
			if compressed {
				var err error
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			content, err := io.ReadAll(body)
			if err != nil || string(content) != c.content || w.Header().Get("Content-Type") != c.kind || compressed != (c.compressed && accept != "") {
				t.Errorf("%s: %q, %v, %v", c.path, content, w.Header(), err)
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a", nil))
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/a/" {
		t.Errorf("a directory: status %d, to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestCompile_SameOutput(t *testing.T) {
	source, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { println(1) }\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	for _, dir := range []string{first, first, second} {
		if err := Compile(source, ".", dir, "m.wasm"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"m.wasm", "m.wasm.gz"} {
		a, _ := os.ReadFile(filepath.Join(first, name))
		b, _ := os.ReadFile(filepath.Join(second, name))
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s has %d bytes, and then other %d bytes", name, len(a), len(b))
		}
	}
	if err := Compile(source, "./missing", first, "m.wasm"); err == nil {
		t.Error("a missing package has no error")
	}
}

func TestLoader_FindsScript(t *testing.T) {
	if script, err := Loader(); err != nil || len(script) < 1000 {
		t.Errorf("%d bytes, %v", len(script), err)
	}
}
