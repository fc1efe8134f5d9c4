package dump

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// failingWriter fails every write.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestABrokenPipeIsNoError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	var stderr bytes.Buffer
	code := run([]string{"ls", dir}, failingWriter{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}, &stderr)
	assert.Equal(t, exitOK, code)
	assert.Empty(t, stderr.String())
}

func TestAFullDiskExitsWith5(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	var stderr bytes.Buffer
	code := run([]string{"ls", dir}, failingWriter{errors.New("disk full")}, &stderr)
	assert.Equal(t, exitSystem, code)
	assert.Equal(t, "ecsdump: disk full\n", stderr.String())
}

func TestAnUnreadableStoreExitsWith5(t *testing.T) {
	if os.Getuid() == 0 {
		// Root reads everything; a name that is too long fails for anyone.
		code, _, stderr := call("info", strings.Repeat("x", 5000))
		assert.Equal(t, exitSystem, code, stderr)
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0))
	code, _, stderr := call("info", dir)
	assert.Equal(t, exitSystem, code, stderr)
}

func TestGridKeepsItsColumnsBeyondOneBlock(t *testing.T) {
	var out bytes.Buffer
	g := (&app{stdout: bufio.NewWriter(&out)}).grid(">N", "NAME")
	const rows = 2*gridRows + 500
	for i := range rows {
		g.row(1000*i, fmt.Sprint("row ", i))
	}
	require.NoError(t, g.end())
	require.NoError(t, g.w.(*bufio.Writer).Flush())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, rows+1)
	assert.Equal(t, "     N  NAME", lines[0])
	for i, line := range lines[1:] {
		last := min((i+1)/gridRows*gridRows+gridRows-2, rows-1) // In its block; the header is a row.
		width := len(fmt.Sprint(1000 * last))
		require.Equal(t, fmt.Sprintf("%*d  row %d", width, 1000*i, i), line)
	}
}

func TestCleanTakesTheTricksOutOfText(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"Grüße, 世界 →", "Grüße, 世界 →"},
		{"a\x1b[31mred", `a\x1b[31mred`},
		{"two\nlines\tand a tab", `two\nlines\tand a tab`},
		{"bad \xff byte", `bad � byte`},
		{"right\u202eleft", `right\u202eleft`},
	} {
		assert.Equal(t, test.want, clean(test.in), "clean(%q)", test.in)
	}
}

func TestNamesInAStoreCannotPlayTricks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "game.save")
	w := ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister[Health](w, ecs.Named("a\x1b[2Jb\nc"))
	health.Set(w.Create(), 7)
	require.NoError(t, persist.Save(context.Background(), file, w))
	for _, args := range [][]string{{"info", file}, {"ls", file}, {"show", file, "0v1"}, {"schema", file}, {"arrays", file, "a\x1b[2Jb\nc"}} {
		code, stdout, stderr := call(args...)
		require.Equal(t, exitOK, code, stderr)
		assert.Contains(t, stdout, `a\x1b[2Jb\nc`, args)
		assert.NotContains(t, stdout, "\x1b", args)
	}
	_, _, stderr := call("ls", file, "--with", "a\x1b[2Jb")
	assert.NotContains(t, stderr, "\x1b")
}

func TestCutTo(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string
	}{{0, "four words of text"}, {18, "four words of text"}, {17, "four words of te…"}, {1, "…"}} {
		assert.Equal(t, test.want, cutTo(test.width, "four words of text"), "cutTo(%d)", test.width)
	}
}

func TestSize(t *testing.T) {
	for _, test := range []struct {
		bytes int64
		want  string
	}{
		{0, "0 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"}, {5 << 20, "5.0 MiB"},
		{3 << 40, "3.0 TiB"}, {math.MaxInt64, "8388608.0 TiB"},
	} {
		assert.Equal(t, test.want, size(test.bytes), "size(%d)", test.bytes)
	}
}

func TestNearestNames(t *testing.T) {
	names := []string{"Position", "Velocity", "Health", "HealthBar", "Frozen", "é"}
	for _, test := range []struct {
		name string
		want []string
	}{
		{"position", []string{"Position"}},
		{"Positon", []string{"Position"}},
		{"health", []string{"Health", "HealthBar"}},
		{"Heatlh", []string{"Health"}},
		{"Unlike", nil},
		{"", []string{}},
	} {
		assert.ElementsMatch(t, test.want, nearest(test.name, names), "nearest(%q)", test.name)
	}
	assert.Equal(t, []string{"Health", "HealthBar"}, nearest("health", names), "the best comes first")
}

func TestLockSaysWhetherItsProcessIsThere(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, test := range []struct {
		holder string
		inUse  bool
		want   string
	}{
		{"process 12 on " + host + " since 2026-03-04T05:06:00Z: game", true, "yes"},
		{"process 12 on " + host + " since 2026-03-04T05:06:00Z: game", false, "no"},
		{"process 12 on " + host, false, "no"}, // As it was written once.
		{"process 12 on " + host + "x since then: game", false, "unknown"},
		{"rubbish", false, "unknown"},
		{"", true, "yes"},
	} {
		assert.Equal(t, test.want, lockOf(test.holder, test.inUse).Running, test.holder)
	}
	assert.NotEmpty(t, lockOf("", true).Holder)
	assert.Nil(t, lockOf("", false))
}
