// Package golden compares the output of tests with golden files, line by line.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

// Update is the flag -update: tests write the golden files instead of comparing.
var Update = flag.Bool("update", false, "write the golden files; files of earlier versions, which must stay readable, only if they are missing")

const hint = "if that is right, write it again: go test -update"

// Check requires that a text equals the contents of a golden file. With -update, it writes the text
// to the file instead.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := differs(t, file, got); d != "" {
		t.Errorf("%s; %s\n%s", file, hint, d)
	}
}

// Kept is like Check, for a file that is never rewritten.
func Kept(t testing.TB, file, got string) {
	t.Helper()
	if d := differs(t, file, got); d != "" {
		t.Errorf("%s must never change: correct the difference\n%s", file, d)
	}
}

func differs(t testing.TB, file, got string) string {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; %s", err, hint)
	}
	return string(diff.Diff("want", want, "got", []byte(got)))
}
