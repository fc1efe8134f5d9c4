package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// wasmLimit is the maximum size of testdata/wasmsize in bytes, without debug information. A new
// dependency of ecs or persist often adds 0.3 MB; docs/decisions/browser-size.md says what the
// bytes are. Raise the limit only for a feature that every program with a store needs.
const wasmLimit = 10_000_000

// The program must be small, because browsers download it.
func TestWasmSize_ProgramWithStore(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the standard library for another system")
	}
	if !strings.HasPrefix(runtime.Version(), "go1.26") {
		t.Skip("the limit is that of Go 1.26")
	}
	out := filepath.Join(t.TempDir(), "size.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "./testdata/wasmsize")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	info, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if size := info.Size(); size > wasmLimit {
		t.Errorf("the program has %d bytes, at most %d; go list -deps ./persist shows new dependencies", size, wasmLimit)
	}
}
