//go:build !wasm

package golden

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts runs the test scripts that p selects. With -update it rewrites the golden files in them.
func Scripts(t *testing.T, p testscript.Params) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(hint)
		}
	})
	p.UpdateScripts = *Update
	p.RequireExplicitExec, p.RequireUniqueNames = true, true
	testscript.Run(t, p)
}
