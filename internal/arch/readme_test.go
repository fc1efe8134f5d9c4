package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme_ProgramRunsTwice runs the program in the README twice in one directory. The second run
// must continue the state of the first.
func TestReadme_ProgramRunsTwice(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	program, _, end := strings.Cut(rest, "```\n")
	if !ok || !end {
		t.Fatal("the README has no Go program")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "game.exe")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"tick 7 0v1 {7 0}\n", "tick 14 0v1 {14 0}\n"} {
		cmd := exec.Command(binary)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("the program prints %q, %v; want it to end with %q", out, err, want)
		}
	}
}
