package dump

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// onTerminal runs the program on a terminal of this size, and returns what the terminal receives.
func onTerminal(t *testing.T, columns, rows uint16, args ...string) (code int, seen string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals: %v", err)
	}
	defer master.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	done := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // Reading returns an error when the terminal is closed.
		done <- strings.ReplaceAll(string(b), "\r\n", "\n")
	}()
	code = runArgs(args, terminal, terminal)
	require.NoError(t, terminal.Close())
	return code, <-done
}

func TestTerminal_ColorsAndPager(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	for name, value := range map[string]string{"COLUMNS": "", "NO_COLOR": "", "TERM": "xterm", "PAGER": "sed s/ENTITY/PAGED/", "ECSDUMP_PAGER": ""} {
		t.Setenv(name, value)
	}
	code, seen := onTerminal(t, 30, 24, "ls", dir, "--limit", "1")
	assert.Equal(t, exitOK, code)
	assert.Equal(t, "\x1b[1mENTITY\x1b[0m  \x1b[1mCOMPONENTS\x1b[0m\n0v1     Position{X:200 Y:0.5}…\n6 more of 7 entities;\n  --limit 0 prints all\n", seen)

	_, seen = onTerminal(t, 200, 5, "ls", dir)
	assert.Contains(t, seen, "PAGED", "output longer than the terminal needs the pager")
	_, seen = onTerminal(t, 200, 5, "ls", dir, "--no-pager")
	assert.Contains(t, seen, "ENTITY")
	_, seen = onTerminal(t, 200, 5, "ls", dir, "--color", "never", "--no-pager")
	assert.NotContains(t, seen, "\x1b")
	_, seen = onTerminal(t, 200, 24, "ls", dir, "--json")
	assert.NotContains(t, seen, "\x1b")
	t.Setenv("NO_COLOR", "1")
	_, seen = onTerminal(t, 200, 24, "ls", dir)
	assert.NotContains(t, seen, "\x1b")
	assert.Contains(t, seen, "ENTITY")
}

// Stored text may contain escape sequences, which must not reach a terminal. Files and pipes
// receive the text unchanged.
func TestTerminal_EscapeCodesInNames(t *testing.T) {
	const hostile = "\x1b]0;owned\a\u009b31m\x7f\r\u202eż\n"
	dir := t.TempDir()
	w := ecs.NewWorld(ecs.Options{})
	label := ecs.MustRegister(w, ecs.Component[Label]{Clone: func(l Label) Label { return l }})
	s, err := persist.Open(context.Background(), dir, w, persist.Options{})
	require.NoError(t, err)
	label.Set(w.Create(), Label{Text: hostile})
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(context.Background()))

	for _, args := range [][]string{
		{"export", dir, "--format", "csv", "--component", "Label"}, {"export", dir, "@first..@latest", "--format", "csv"},
		{"export", dir}, {"export", dir, "--ndjson"}, {"show", dir, "0v1", "--json"}, {"show", dir, "0v1"}, {"ls", dir},
	} {
		t.Setenv("NO_COLOR", "1")
		code, seen := onTerminal(t, 200, 0, args...)
		assert.Equal(t, exitOK, code, "%q: %q", args, seen)
		assert.Contains(t, seen, "owned", "%q", args)
		assert.Contains(t, seen, "ż", "%q", args)
		for _, r := range "\x1b\a\u009b\x7f\r\u202e" {
			assert.NotContains(t, seen, string(r), "%q", args)
		}
	}
	out := filepath.Join(t.TempDir(), "labels")
	code, seen := onTerminal(t, 200, 0, "export", dir, "--format", "csv", "-o", out)
	assert.Equal(t, exitOK, code, seen)
	written, err := os.ReadFile(filepath.Join(out, "Label.csv"))
	require.NoError(t, err)
	assert.Contains(t, string(written), hostile)
	var piped, stderr strings.Builder
	assert.Equal(t, exitOK, runArgs([]string{"export", dir, "--format", "csv", "--component", "Label"}, &piped, &stderr))
	assert.Contains(t, piped.String(), hostile)
	single := filepath.Join(t.TempDir(), "changes.csv")
	code, seen = onTerminal(t, 200, 0, "export", dir, "@first..@latest", "--format", "csv", "-o", single)
	assert.Equal(t, exitOK, code, seen)
	written, err = os.ReadFile(single)
	require.NoError(t, err)
	assert.Contains(t, string(written), "\u009b31m\x7f")
}
