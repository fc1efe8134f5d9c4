package deep

import (
	"runtime"
	"testing"
)

// Processes skips a test that starts other processes, or communicates with them, on systems without
// processes (WebAssembly).
func Processes(t testing.TB) {
	t.Helper()
	if runtime.GOARCH == "wasm" {
		t.Skip("there are no other processes under WebAssembly, and no pipes to them")
	}
}
