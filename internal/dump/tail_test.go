package dump

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
)

// A watchedBuffer is a buffer whose contents a test can wait for.
type watchedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watchedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *watchedBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// waitFor waits until w contains text n times.
func (w *watchedBuffer) waitFor(t *testing.T, n int, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(w.String(), text) >= n }, time.Minute, 2*time.Millisecond, "%d times %q in %v", n, text, w)
}

// startTail runs tail -f until the caller calls end().
func startTail(t *testing.T, out *watchedBuffer, args ...string) (end func() (code int)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, stop, nil, append([]string{"tail", "-f", "--interval", "1ms"}, args...), out, out)
	}()
	t.Cleanup(stop)
	return func() int { stop(); return <-done }
}

// openSample creates or opens a store, and returns it with its sample world.
func openSample(t *testing.T, dir string) (*sample, *persist.Store) {
	s := newSample()
	store, err := persist.Open(context.Background(), dir, s.world, persist.Options{Now: clock(), SnapshotBytes: -1})
	require.NoError(t, err)
	return s, store
}

func TestTail_GrowingStore(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s, store := openSample(t, dir)
	commit := func(f func() error) {
		require.NoError(t, f())
		require.NoError(t, store.Commit())
		require.NoError(t, store.Sync(ctx))
	}
	commit(s.begin)
	var people, lines watchedBuffer
	endPeople, endLines := startTail(t, &people, dir), startTail(t, &lines, dir, "--ndjson", "--new")
	people.waitFor(t, 1, "created 8")
	lines.waitFor(t, 1, `"earlier":1`)

	for range 3 {
		commit(s.move)
	}
	lines.waitFor(t, 1, `"tick":4,"record":4,"parent":3`)
	require.NoError(t, s.world.History().Rewind(2))
	commit(s.move)
	people.waitFor(t, 1, "rewound 2 records, to record 2, tick 2\n")
	lines.waitFor(t, 1, `"undone":2`)

	require.NoError(t, store.Close(ctx))
	people.waitFor(t, 1, "closed by the program\n")
	s, store = openSample(t, dir)
	people.waitFor(t, 1, "opened by a program\n")
	commit(s.move)
	_, err := store.Snapshot(ctx) // A snapshot prunes the journal.
	require.NoError(t, err)
	commit(s.move)
	lines.waitFor(t, 1, `"record":7,`)
	people.waitFor(t, 6, "Position wrote 2; score wrote 1\n")
	require.NoError(t, store.Close(ctx))
	people.waitFor(t, 2, "closed by the program\n")

	_, store = openSample(t, dir)
	require.NoError(t, store.Goto(ctx, "@latest~1"))
	require.NoError(t, store.Close(ctx))
	people.waitFor(t, 1, "rewound 1 record, to record 6")
	s, store = openSample(t, dir)
	commit(s.move)
	lines.waitFor(t, 1, `"undone":1`) // Record 7 was rewound, whenever tail polled.
	require.NoError(t, store.Close(ctx))
	people.waitFor(t, 4, "closed by the program\n")

	_, store = openSample(t, dir)
	// Tail may learn of the last commit only after this Close.
	require.NoError(t, store.Close(ctx))
	people.waitFor(t, 5, "closed by the program\n")
	assert.Equal(t, exitOK, endPeople())
	assert.Equal(t, exitOK, endLines())
	assert.Equal(t, 7, strings.Count(lines.String(), `{"tick":`), lines.String())
	assert.Equal(t, 2, strings.Count(lines.String(), "undone"), lines.String())
	assert.NotContains(t, lines.String(), "closed")
}

// Tail prints one message when the program that has the store open is killed. It then reports that
// another program opens the store. JSON output contains only ticks.
func TestTail_ProgramKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	program := exec.Command("keep", dir)
	stdout, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	t.Cleanup(func() { _ = program.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", line)
	var people, lines watchedBuffer
	endPeople, endLines := startTail(t, &people, dir), startTail(t, &lines, dir, "--ndjson")
	people.waitFor(t, 1, "Label +1")
	lines.waitFor(t, 8, `"tick":`)
	time.Sleep(2 * time.Second)
	assert.NotContains(t, people.String(), "ended")
	require.NoError(t, program.Process.Kill())
	_ = program.Wait()
	people.waitFor(t, 1, "the program that wrote the store has ended without closing it, seen at 20")
	people.waitFor(t, 1, fmt.Sprintf("Z: process %d on ", program.Process.Pid))

	s, store := openSample(t, dir)
	people.waitFor(t, 1, "opened by a program\n")
	require.NoError(t, s.move())
	require.NoError(t, store.Commit())
	require.NoError(t, store.Close(t.Context()))
	people.waitFor(t, 1, "closed by the program\n")
	time.Sleep(time.Second)
	assert.Equal(t, exitOK, endPeople())
	assert.Equal(t, exitOK, endLines())
	assert.Equal(t, 1, strings.Count(people.String(), "ended"), people.String())
	assert.NotContains(t, lines.String(), "ended", "JSON output contains only ticks")
}

func TestTail_StopsOnInterrupt(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	var out watchedBuffer
	end := startTail(t, &out, dir, "--json", "-n", "1")
	out.waitFor(t, 1, `"record": 8`)
	assert.Equal(t, exitOK, end())
	assert.True(t, strings.HasSuffix(out.String(), "}\n  ]\n}\n"), out.String())
}

func TestTail_StoreRemoved(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir+"/D"))
	var out watchedBuffer
	end := startTail(t, &out, dir+"/D")
	out.waitFor(t, 1, "head")
	require.NoError(t, os.RemoveAll(dir+"/D"))
	out.waitFor(t, 1, "removed")
	assert.Equal(t, exitNotFound, end())
}
