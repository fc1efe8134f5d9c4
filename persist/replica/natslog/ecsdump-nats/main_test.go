package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica/natslog"
)

const asProgram = "ECSDUMP_NATS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// dumped runs the program, with additional environment variables.
func dumped(env []string, args ...string) (string, error) {
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestCommands_ReadStoreFromLog(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
		Username: "me", Password: "secret"})
	require.NoError(t, err)
	s.Start()
	defer s.Shutdown()
	require.True(t, s.ReadyForConnections(20*time.Second))
	url := fmt.Sprintf("nats://me:secret@%s", s.Addr())

	ctx := context.Background()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, natslog.Create(ctx, js, "WORLDS", natslog.Options{Replicas: 1}))
	out, err := dumped(nil, "info", url+"/WORLDS/one")
	require.Error(t, err)
	assert.Contains(t, out, "no store of world one")
	assert.NotContains(t, out, "secret")

	found(t, nc)
	out, err = dumped(nil, "show", url+"/WORLDS/one", "0v1")
	require.NoError(t, err, "%s", out)
	assert.Contains(t, out, "1234567")
	for _, wrong := range []string{"", "/WORLDS", "/WORLDS/one/more"} {
		out, err = dumped(nil, "info", url+wrong)
		require.Error(t, err)
		assert.Contains(t, out, "does not name a world")
	}
}
