package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestSpectators_OwnerKilled(t *testing.T) {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Minute)
	defer done()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var out bytes.Buffer
	code := run(ctx, []string{"-kills", "2", "-every", "700ms"}, &out, &out)
	t.Logf("%s", &out)
	require.Zero(t, code)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left, "no process leaves a directory")
	text := out.String()
	assert.Equal(t, 2, strings.Count(text, "kill -9 of "))
	assert.Equal(t, 2, strings.Count(text, "a tick is confirmed again"))
	assert.Contains(t, text, "the owner was killed 2 times")
	assert.Contains(t, text, "0 were lost, and of")
	assert.Contains(t, text, "the page: http://127.0.0.1:")
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,/\n", r) }) {
		if host, _, err := net.SplitHostPort(word); err == nil && net.ParseIP(host) != nil {
			assert.True(t, net.ParseIP(host).IsLoopback(), word)
		}
	}
}

func TestCluster_ListensOnLoopback(t *testing.T) {
	_, servers, err := cluster(t.TempDir())
	require.NoError(t, err)
	for _, s := range servers {
		assert.Equal(t, "127.0.0.1", s.Addr().(*net.TCPAddr).IP.String())
		assert.Equal(t, "127.0.0.1", s.ClusterAddr().IP.String())
		assert.Nil(t, s.MonitorAddr())
		assert.Nil(t, s.GatewayAddr())
		s.Shutdown()
		s.WaitForShutdown()
	}
}

func TestRun_WrongArguments(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-kills", "-1"}, {"-play", "a"}, {"-every", "0s"}, {"-nothing"}} {
		var text bytes.Buffer
		assert.Equal(t, 2, run(context.Background(), args, io.Discard, &text), "%q", args)
		assert.NotEmpty(t, text.String())
	}
	var text bytes.Buffer
	assert.Equal(t, 1, run(context.Background(), []string{"-watch", "x", "-servers", "nats://me:secret@127.0.0.1:1"}, io.Discard, &text))
	assert.NotContains(t, text.String(), "secret")
}
