//go:build !wasm

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stet-ecs/stet/internal/golden"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rollback": main})
}

func TestScripts_GiveExpectedOutput(t *testing.T) {
	golden.Scripts(t, testscript.Params{Dir: "testdata/script"})
}

// The blocks of README.md show the printed output.
func TestReadme_ShowsPrintedOutput(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, args := range [][]string{nil, {"-bug", "-dir", "worlds"}} {
		var out, errs bytes.Buffer
		run(args, &out, &errs)
		want := "$ go run ./examples/rollback " + strings.Join(args, " ")
		want = strings.TrimSpace(want) + "\n" + out.String() + errs.String()
		if !strings.Contains(string(readme), indented(want)) {
			t.Errorf("README.md does not have\n%s", indented(want))
		}
	}
}

func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
