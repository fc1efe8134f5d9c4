//go:build !wasm

package dump

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// startServe starts serve with args and returns the first line of its output. The returned function
// interrupts serve and returns the exit status.
func startServe(t *testing.T, args ...string) (first string, end func() int) {
	t.Helper()
	// These variables set the cache directory on different systems.
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, filepath.Join(filepath.Dir(args[0]), "cache"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, cancel, nil, append([]string{"serve"}, args...), out, os.Stderr)
		_ = out.Close()
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, in) }()
	return strings.TrimSpace(line), func() int {
		cancel()
		return <-code
	}
}

func TestServe_UntilInterrupted(t *testing.T) {
	dir := t.TempDir()
	store, save := filepath.Join(dir, "D"), filepath.Join(dir, "game.save")
	require.NoError(t, buildStore(store))
	require.NoError(t, buildSave(save))
	for path, kind := range map[string]string{store: "store", save: "save"} {
		before, err := treeOf(path)
		require.NoError(t, err)
		url, end := startServe(t, path)
		jar, _ := cookiejar.New(nil)
		client := &http.Client{Jar: jar}
		page, err := client.Get(url)
		require.NoError(t, err, url)
		defer page.Body.Close()
		text, err := io.ReadAll(page.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, page.StatusCode)
		assert.Contains(t, string(text), "<!doctype html>")
		base, _, _ := strings.Cut(url, "?")
		answer, err := client.Get(base + "api/v1/info")
		require.NoError(t, err)
		defer answer.Body.Close()
		var info struct{ Name, Kind string }
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&info))
		assert.Equal(t, path, info.Name)
		assert.Equal(t, kind, info.Kind)
		assert.Equal(t, exitOK, end())
		_, err = client.Get(base) //nolint:bodyclose // An error has no body.
		assert.Error(t, err, "the server still answers")
		after, err := treeOf(path)
		require.NoError(t, err)
		assert.Empty(t, before.diff(after))
	}
}

func TestServe_PrintsURLAsJSON(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	require.NoError(t, buildStore(store))
	line, end := startServe(t, store, "--ndjson")
	var doc struct{ Format, URL string }
	require.NoError(t, json.Unmarshal([]byte(line), &doc), line)
	assert.Equal(t, "ecsdump.serve/1", doc.Format)
	assert.Contains(t, doc.URL, "http://127.0.0.1:")
	assert.Equal(t, exitOK, end())
}

func TestServe_CachesRowCounts(t *testing.T) {
	dir := t.TempDir()
	store, cache := filepath.Join(dir, "D"), filepath.Join(dir, "cache")
	w := ecs.NewWorld(ecs.Options{})
	s, err := persist.Open(t.Context(), store, w, persist.Options{Sync: journal.SyncNever})
	require.NoError(t, err)
	for range 1100 {
		w.Create()
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Close(t.Context()))
	before, err := treeOf(store)
	require.NoError(t, err)
	for _, args := range [][]string{{store, "--no-cache"}, {store}} {
		_, end := startServe(t, args...)
		files := func() []string {
			user, err := os.UserCacheDir()
			assert.NoError(t, err)
			assert.True(t, strings.HasPrefix(user, cache), user)
			list, err := filepath.Glob(filepath.Join(user, "stet", "rows", "*"))
			assert.NoError(t, err)
			return list
		}
		if len(args) == 1 {
			assert.Eventually(t, func() bool { return len(files()) == 1 }, time.Minute, 5*time.Millisecond)
		} else {
			time.Sleep(100 * time.Millisecond)
		}
		assert.Equal(t, exitOK, end())
		assert.Len(t, files(), 2-len(args), args)
	}
	after, err := treeOf(store)
	require.NoError(t, err)
	assert.Empty(t, before.diff(after))
}
