package natslog_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// set changes the configuration of a stream.
func set(t testing.TB, js jetstream.JetStream, stream string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := js.Stream(background, stream)
	require.NoError(t, err)
	config := s.CachedInfo().Config
	change(&config)
	_, err = js.UpdateStream(background, config)
	require.NoError(t, err)
}

// Many worlds recover and are claimed at the same time, on a stream that allows few consumers.
func TestFollow_MoreWorldsThanConsumers(t *testing.T) {
	t.Parallel()
	worlds := deep.Or(150, 500)
	c := newCluster(t, 1, nil)
	c.create("WORLDS", 1)
	logs := make([]*natslog.Log, worlds)
	js := c.js(c.connect("owner"))
	for w := range logs {
		var err error
		logs[w], err = natslog.Open(background, js, "WORLDS", fmt.Sprintf("w%d", w), natslog.Options{Replicas: 1})
		require.NoError(t, err)
	}
	all := func(do func(w int) error) {
		t.Helper()
		errs := make([]error, worlds)
		var running sync.WaitGroup
		for w := range worlds {
			running.Go(func() { errs[w] = do(w) })
		}
		running.Wait()
		for w, err := range errs {
			require.NoError(t, err, "world %d", w)
		}
	}
	all(func(w int) error { // Each world has several batches of entries.
		at := replica.Position(0)
		for i := range 3 {
			var err error
			if at, err = logs[w].Append(background, at, []byte(fmt.Sprintf("%d of %d", i, w))); err != nil {
				return err
			}
		}
		return nil
	})
	set(t, js, "WORLDS", func(c *jetstream.StreamConfig) { c.MaxConsumers = 5 })
	all(func(w int) error {
		ctx, done := context.WithTimeout(background, 30*time.Second)
		defer done()
		n := 0
		for e, err := range logs[w].Entries(ctx, 0) {
			if err != nil {
				return err
			}
			if want := fmt.Sprintf("%d of %d", n, w); string(e.Data) != want {
				return fmt.Errorf("%q, want %q", e.Data, want)
			}
			// The loop also yields an entry that is appended now.
			if n++; n == 3 {
				go func() { _, _ = logs[w].Append(background, e.Position, []byte(fmt.Sprintf("3 of %d", w))) }()
			}
			if n == 4 {
				return nil
			}
		}
		return nil
	})
}

// A batch ends after 2 MiB, and the next batch continues after the last entry.
func TestEntries_SeveralBatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	js := c.create("WORLDS", 3)
	one, two := open(t, js, "WORLDS", "one"), open(t, js, "WORLDS", "two")
	var want []string
	var at, other replica.Position
	for i := range 15 {
		text := fmt.Sprintf("%d %s", i, strings.Repeat("x", 400<<10))
		want = append(want, text)
		at = add(t, one, at, text)
		other = add(t, two, other, "of another world")
	}
	reader := open(t, c.js(c.connect("follower")), "WORLDS", "one")
	assert.Equal(t, want, texts(t, reader, 0, at))
	s, err := js.Stream(background, "WORLDS")
	require.NoError(t, err)
	info, err := s.Info(background)
	require.NoError(t, err)
	assert.LessOrEqual(t, info.State.Consumers, 1)
}

// A consumer yields all entries if direct requests are not allowed. Streams of older programs do
// not allow them, and a login may lack the right.
func TestEntries_WithoutDirectRequests(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	owner := openOne(t, js, "WORLDS")
	at := add(t, owner, add(t, owner, 0, "a"), "b")
	reader := openOne(t, c.js(c.connect("reader")), "WORLDS")
	assert.Equal(t, []string{"a", "b"}, texts(t, reader, 0, at))
	set(t, js, "WORLDS", func(c *jetstream.StreamConfig) { c.AllowDirect, c.MaxConsumers = false, -1 })
	assert.Equal(t, []string{"a", "b"}, texts(t, openOne(t, js, "WORLDS"), 0, at))
	require.NoError(t, natslog.Create(background, js, "WORLDS", natslog.Options{Replicas: 1}), "Create must accept a stream of an older program")
}

// A reader that ends removes its consumer.
func TestEntries_RemovesConsumer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	owner := openOne(t, js, "WORLDS")
	at := add(t, owner, 0, "a")
	consumers := func() int {
		s, err := js.Stream(background, "WORLDS")
		require.NoError(t, err)
		return s.CachedInfo().State.Consumers
	}
	ctx, done := context.WithCancel(background)
	ended := make(chan error, 1)
	go func() { ended <- firstError(ctx, owner, at) }()
	c.until(func() bool { return consumers() == 1 }, "the reader has no consumer")
	begun := time.Now()
	done()
	require.ErrorIs(t, <-ended, context.Canceled)
	c.until(func() bool { return consumers() == 0 }, "the consumer still exists")
	assert.Less(t, time.Since(begun), 8*time.Second, "the servers removed it")
}

// A waiting reader needs little memory.
func TestEntries_WaitingReaderNeedsLittleMemory(t *testing.T) {
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	const readers = 30
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	ctx, done := context.WithCancel(background)
	var running sync.WaitGroup
	for w := range readers {
		log, err := natslog.Open(background, js, "WORLDS", fmt.Sprintf("w%d", w), natslog.Options{Replicas: 1})
		require.NoError(t, err)
		running.Go(func() { _ = firstError(ctx, log, 0) })
	}
	c.until(func() bool {
		s, err := js.Stream(background, "WORLDS")
		return err == nil && s.CachedInfo().State.Consumers == readers
	}, "readers have no consumers")
	assert.Less(t, int64(heap()-before)/readers, int64(1<<20))
	done()
	running.Wait()
}
