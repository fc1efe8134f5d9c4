package natslog_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica/natslog"
)

func TestOpen_StreamSettings(t *testing.T) {
	c := newCluster(t, 1, nil)
	js := c.create("RIGHT", 1)
	require.NoError(t, natslog.Create(background, js, "RIGHT", natslog.Options{Replicas: 1}), "the stream already exists")
	_, err := natslog.Open(background, js, "RIGHT", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	for name, wrong := range map[string]struct {
		change func(*jetstream.StreamConfig)
		text   string
	}{
		"M1":  {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "--storage file"},
		"M2":  {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "it removes messages after 1h0m0s: set --max-age"},
		"M3":  {func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }, "--discard new"},
		"M4":  {func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "--discard new"},
		"M5":  {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 }, "--max-msgs-per-subject"},
		"M6":  {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "--retention limits"},
		"M7":  {func(c *jetstream.StreamConfig) { c.NoAck = true }, "--no-ack"},
		"M8":  {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }, "--max-msg-size"},
		"M9":  {func(c *jetstream.StreamConfig) { c.Subjects = []string{"other.>"} }, `its subjects are ["other.>"]`},
		"M10": {func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, "before it writes"},
		"M11": {func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "M11.x", Destination: "M11.y"}
		}, "transform"},
		"M12": {func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "RIGHT"}} }, "other streams"},
	} {
		config := jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}}
		wrong.change(&config)
		_, err := js.CreateStream(background, config)
		require.NoError(t, err, name)
		_, err = natslog.Open(background, js, name, "one", natslog.Options{Replicas: 1})
		require.ErrorIs(t, err, natslog.ErrSettings, name)
		assert.ErrorContains(t, err, wrong.text)
	}
	_, err = js.CreateStream(background, jetstream.StreamConfig{Name: "FULL", Subjects: []string{"FULL.>"}, MaxBytes: 1 << 20, Discard: jetstream.DiscardNew})
	require.NoError(t, err)
	_, err = natslog.Open(background, js, "FULL", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err, "a full stream refuses entries and loses none")

	_, err = natslog.Open(background, js, "RIGHT", "one", natslog.Options{})
	require.ErrorIs(t, err, natslog.ErrSettings)
	assert.ErrorContains(t, err, "1 servers keep it: set --replicas 3")
	for _, world := range []string{"", "a.b", "*", ">", "a b"} {
		_, err = natslog.Open(background, js, "RIGHT", world, natslog.Options{Replicas: 1})
		assert.ErrorContains(t, err, "letters, digits")
	}
	small := newCluster(t, 1, func(o *server.Options) { o.MaxPayload = 500 << 10 })
	_, err = natslog.Open(background, small.create("SMALL", 1), "SMALL", "one", natslog.Options{Replicas: 1})
	require.ErrorIs(t, err, natslog.ErrSettings)
	assert.ErrorContains(t, err, "max_payload")
}

func TestCheckServers_LoginAndSettings(t *testing.T) {
	t.Parallel()
	ctx, done := context.WithTimeout(background, 20*time.Second)
	defer done()
	c := newCluster(t, 3, nil)
	require.NoError(t, natslog.CheckServers(ctx, c.connect("system")))
	short, done := context.WithTimeout(ctx, 100*time.Millisecond)
	defer done()
	assert.ErrorContains(t, natslog.CheckServers(short, c.connect("owner")), "use a login of the system account")

	c = newCluster(t, 3, func(o *server.Options) { o.SyncAlways = o.ServerName != "s1" })
	err := natslog.CheckServers(ctx, c.connect("system"))
	require.ErrorIs(t, err, natslog.ErrSettings)
	assert.ErrorContains(t, err, "servers: s1 syncs every 2m0s: set jetstream { sync_interval: always }")
	assert.NotContains(t, err.Error(), "s0")
}
