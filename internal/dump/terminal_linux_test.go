package dump

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// onTerminal runs the program on a terminal of that size and returns what is seen.
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
		b, _ := io.ReadAll(master) // It ends with an error when the terminal is closed.
		done <- strings.ReplaceAll(string(b), "\r\n", "\n")
	}()
	code = runArgs(args, terminal, terminal)
	require.NoError(t, terminal.Close())
	return code, <-done
}

func TestOnATerminal(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	for name, value := range map[string]string{"COLUMNS": "", "NO_COLOR": "", "TERM": "xterm", "PAGER": "sed s/ENTITY/PAGED/", "ECSDUMP_PAGER": ""} {
		t.Setenv(name, value)
	}
	code, seen := onTerminal(t, 30, 24, "ls", dir, "--limit", "1")
	assert.Equal(t, exitOK, code)
	assert.Equal(t, "\x1b[1mENTITY\x1b[0m  \x1b[1mCOMPONENTS\x1b[0m\n0v1     Position{X:200 Y:0.5}…\n6 more of 7 entities; --limit 0 prints all\n", seen)

	_, seen = onTerminal(t, 200, 5, "ls", dir)
	assert.Contains(t, seen, "PAGED", "it does not fit")
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
