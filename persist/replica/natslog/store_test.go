package natslog_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/natslog"
)

type score int64

// A game is a world with one number.
type game struct {
	*ecs.World
	score *ecs.Resource[score]
}

func newGame() *game {
	w := ecs.NewWorld(ecs.Options{})
	return &game{w, ecs.Must(ecs.RegisterResource(w, score(0), ecs.Component[score]{Name: "score"}))}
}

// play makes ticks, and waits until they are confirmed.
func (g *game) play(t testing.TB, s *persist.Store, ticks int) {
	t.Helper()
	for range ticks {
		g.score.Set(g.score.Get() + 1)
		require.NoError(t, s.Commit())
		require.NoError(t, s.Sync(background))
	}
}

func follow(t testing.TB, log replica.Log, o replica.Options) *replica.Follower {
	t.Helper()
	f, err := replica.Follow(background, log, disk.Memory(), o)
	require.NoError(t, err)
	return f
}

func own(t testing.TB, f *replica.Follower) (*game, *replica.Owner, *persist.Store) {
	t.Helper()
	o, err := f.Claim(background)
	require.NoError(t, err)
	g := newGame()
	s, err := o.Open(background, g.World, persist.Options{Sync: journal.SyncAlways})
	require.NoError(t, err)
	return g, o, s
}

func TestStore_MovesBetweenMachines(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	js := c.create("WORLDS", 3)
	a := follow(t, open(t, js, "WORLDS", "one"), replica.Options{Name: "a"})
	b := follow(t, open(t, c.js(c.connect("owner")), "WORLDS", "one"), replica.Options{Name: "b"})
	reader := follow(t, open(t, c.js(c.connect("follower")), "WORLDS", "one"), replica.Options{Name: "reader"})
	g, first, store := own(t, a)
	g.play(t, store, 5)
	down := c.leader("WORLDS")
	c.stop(down)
	g.play(t, store, 5)
	c.start(down)
	_, err := store.Snapshot(background)
	require.NoError(t, err)
	require.NoError(t, first.Rebase(background))
	g.play(t, store, 5)

	ctx, done := context.WithTimeout(background, 30*time.Second)
	defer done()
	require.NoError(t, b.Wait(ctx, first.Position()))
	h, second, next := own(t, b)
	assert.EqualValues(t, 15, h.score.Get())
	h.play(t, next, 1)
	_ = store.Commit() // Commit may already report the loss. Sync must report it.
	require.ErrorIs(t, store.Sync(background), persist.ErrLost)

	require.NoError(t, reader.Wait(ctx, second.Position()))
	shown := newGame()
	p, err := persist.Follow(background, ".", shown.World, persist.FileOptions{Files: reader.Files()})
	require.NoError(t, err)
	assert.EqualValues(t, 16, shown.score.Get())
	require.NoError(t, p.Close())

	late := follow(t, open(t, js, "WORLDS", "one"), replica.Options{})
	assert.Equal(t, second.Position(), late.Position())
	require.NoError(t, late.Close())
	require.NoError(t, next.Close(background))
	assert.Error(t, store.Close(background))
	for _, end := range []interface{ Close() error }{first, second, reader} {
		require.NoError(t, end.Close())
	}
}

func TestFollow_ReadOnlyLogin(t *testing.T) {
	c := newCluster(t, 3, nil)
	owner := open(t, c.create("WORLDS", 3), "WORLDS", "one")
	at := add(t, owner, 0, "a")
	log := open(t, c.js(c.connect("follower")), "WORLDS", "one")
	assert.Equal(t, []string{"a"}, texts(t, log, 0, at))
	ctx, done := context.WithTimeout(background, 300*time.Millisecond)
	defer done()
	_, err := log.Append(ctx, at, []byte("b"))
	require.ErrorIs(t, err, replica.ErrUnknown)
	require.Error(t, log.Trim(ctx, at+1))
	first, last, err := owner.Bounds(background)
	require.NoError(t, err)
	assert.Equal(t, [2]replica.Position{at, at}, [2]replica.Position{first, last})
}

// A follower reports that no server answers, and continues when a server answers.
func TestFollower_ServersDown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	log, err := natslog.Open(background, c.create("WORLDS", 1), "WORLDS", "one", natslog.Options{Replicas: 1})
	require.NoError(t, err)
	g, o, store := own(t, follow(t, log, replica.Options{}))
	f := follow(t, log, replica.Options{})
	g.play(t, store, 1)
	c.stop(0)
	require.Eventually(t, func() bool {
		_, err := f.Stuck()
		_, owners := o.Stuck()
		return err != nil && owners != nil
	}, time.Minute, 20*time.Millisecond)
	c.start(0)
	ctx, done := context.WithTimeout(background, time.Minute)
	defer done()
	g.score.Set(g.score.Get() + 1)
	require.NoError(t, store.Commit())
	require.NoError(t, store.Sync(ctx))
	require.NoError(t, f.Wait(ctx, o.Position()))
	_, err = f.Stuck()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, store.Close(ctx))
	require.NoError(t, o.Close())
}

// A stream is removed and created again. Its follower keeps its files, and reports that an operator
// must decide.
func TestFollower_StreamRecreated(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	js := c.create("WORLDS", 1)
	open := func() *natslog.Log {
		log, err := natslog.Open(background, js, "WORLDS", "one", natslog.Options{Replicas: 1})
		require.NoError(t, err)
		return log
	}
	g, o, store := own(t, follow(t, open(), replica.Options{}))
	g.play(t, store, 3)
	f := follow(t, open(), replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))

	require.NoError(t, js.DeleteStream(background, "WORLDS"))
	require.Eventually(t, func() bool {
		_, err := f.Stuck()
		_, owners := o.Stuck()
		return replica.ClassOf(err) == replica.Operator && replica.ClassOf(owners) == replica.Operator
	}, time.Minute, 20*time.Millisecond)

	// The first owner may append its entries to the empty stream before the second machine claims
	// it. In that case, create the stream again.
	var p *replica.Owner
	for p == nil {
		c.create("WORLDS", 1)
		second := follow(t, open(), replica.Options{})
		claimed, err := second.Claim(background)
		if err == nil {
			p = claimed
			continue
		}
		require.NoError(t, second.Close())
		require.NoError(t, js.DeleteStream(background, "WORLDS"))
	}
	h := newGame()
	other, err := p.Open(background, h.World, persist.Options{Sync: journal.SyncAlways})
	require.NoError(t, err)
	for p.Position() < o.Position()+5 {
		h.play(t, other, 1)
	}
	// The new stream has entries at the positions that f has read. Rebase trims these entries.
	require.NoError(t, p.Rebase(background))
	require.Eventually(t, func() bool { return replica.ClassOf(f.Err()) == replica.Operator }, time.Minute, 20*time.Millisecond)
	require.Eventually(t, func() bool { return errors.Is(o.Err(), persist.ErrLost) }, time.Minute, 20*time.Millisecond)
	assert.True(t, f.Ready(), "the files must remain")
	shown := newGame()
	w, err := persist.Follow(background, ".", shown.World, persist.FileOptions{Files: f.Files()})
	require.NoError(t, err)
	assert.EqualValues(t, 3, shown.score.Get())
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	_ = store.Close(background) // Close may fail, because the log is lost.
	require.NoError(t, o.Close())
	require.NoError(t, other.Close(background))
	require.NoError(t, p.Close())
}
