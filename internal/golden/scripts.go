//go:build !wasm

package golden

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Scripts runs the scripts that p says. What they compare is written anew with
// -update.
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
