package main

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// readAll returns the body of a response.
func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(body)
}

// A logText is a writer that stores the log.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestRun_ServesMetrics(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var log logText
	code := make(chan int)
	go func() { code <- run(ctx, []string{"-addr", "localhost:0"}, &log) }()
	url := regexp.MustCompile(`url=(\S+)`)
	for !url.MatchString(log.String()) {
		select {
		case <-code:
			t.Fatal(log.String())
		default:
		}
	}
	tick := func() float64 {
		r, err := http.Get(url.FindStringSubmatch(log.String())[1])
		require.NoError(t, err)
		defer r.Body.Close()
		all, err := parse(readAll(t, r))
		require.NoError(t, err)
		return all["stet_tick"].samples["world"]
	}
	first := tick()
	for tick() == first {
	}
	stop()
	require.Zero(t, <-code, log.String())
	require.Contains(t, log.String(), "msg=open")
	require.Contains(t, log.String(), "msg=snapshot snapshot.tick=0")
}

func TestRun_StopsAfterTicks(t *testing.T) {
	var log logText
	dir := filepath.Join(t.TempDir(), "world")
	for range 2 {
		require.Zero(t, run(t.Context(), []string{"-addr", "localhost:0", "-ticks", "3", "-dir", dir}, &log), log.String())
	}
	require.Contains(t, log.String(), "recovered tick 3")
}

func TestRun_WrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-ticks", "-1"}, {"more"}, {"-none"}} {
		require.Equal(t, 2, run(t.Context(), args, io.Discard), args)
	}
	require.Zero(t, run(t.Context(), []string{"-help"}, io.Discard))
	require.Equal(t, 1, run(t.Context(), []string{"-addr", "nowhere.invalid:http", "-ticks", "1"}, io.Discard))
}
