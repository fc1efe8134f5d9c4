package dump

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// A failingWriter fails every write.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestOutput_BrokenPipe(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	var stderr bytes.Buffer
	code := runArgs([]string{"ls", dir}, failingWriter{&os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}, &stderr)
	assert.Equal(t, exitOK, code)
	assert.Empty(t, stderr.String())
}

func TestOutput_FullDisk(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	var stderr bytes.Buffer
	code := runArgs([]string{"ls", dir}, failingWriter{errors.New("disk full")}, &stderr)
	assert.Equal(t, exitSystem, code)
	assert.Equal(t, "ecsdump: disk full\n", stderr.String())
}

func TestInfo_UnreadableStoreExitStatus(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOARCH == "wasm" {
		// This path is too long on every system.
		code, _, stderr := ecsdump("info", strings.Repeat("x", 5000))
		assert.Equal(t, exitSystem, code, stderr)
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0))
	code, _, stderr := ecsdump("info", dir)
	assert.Equal(t, exitSystem, code, stderr)
}

func TestOutput_EscapeCodesInNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "game.save")
	w := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[Health](w).Set(w.Create(), 7)
	plain := filepath.Join(t.TempDir(), "plain.save")
	require.NoError(t, persist.Save(context.Background(), plain, w))
	v, err := inspect.OpenReadOnly(context.Background(), plain)
	require.NoError(t, err)
	im, err := v.At(context.Background(), v.Head())
	require.NoError(t, err)
	require.NoError(t, v.Close())
	im.Internal().Components[0].Name = "a\x1b[2Jb\nc" // A program cannot register such a name.
	require.NoError(t, repair.SaveImage(context.Background(), im, file))
	for _, args := range [][]string{{"info", file}, {"ls", file}, {"show", file, "0v1"}, {"schema", file}, {"arrays", file, "a\x1b[2Jb\nc"}} {
		code, stdout, stderr := ecsdump(args...)
		require.Equal(t, exitOK, code, stderr)
		assert.Contains(t, stdout, `a\x1b[2Jb\nc`, args)
		assert.NotContains(t, stdout, "\x1b", args)
	}
	_, _, stderr := ecsdump("ls", file, "--with", "a\x1b[2Jb")
	assert.NotContains(t, stderr, "\x1b")
}

func TestInfo_LockHolder(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, test := range []struct {
		holder string
		inUse  bool
		want   string
	}{
		{"process 12 on " + host + " since 2026-03-04T05:06:00Z: game", true, "yes"},
		{"process 12 on " + host + " since 2026-03-04T05:06:00Z: game", false, "no"},
		{"process 12 on " + host, false, "no"}, // An older form of the lock text.
		{"process 12 on " + host + "x since then: game", false, "unknown"},
		{"rubbish", false, "unknown"},
		{"", true, "yes"},
	} {
		assert.Equal(t, test.want, lockOf(test.holder, test.inUse).Running, test.holder)
	}
	assert.NotEmpty(t, lockOf("", true).Holder)
	assert.Nil(t, lockOf("", false))
}
