package replica_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

// A counted is a file system that counts the bytes read from its segments and snapshots.
type counted struct {
	disk.FS
	bytes atomic.Int64
}

func (c *counted) Open(name string) (disk.File, error)      { return c.opened(name, c.FS.Open) }
func (c *counted) OpenWrite(name string) (disk.File, error) { return c.opened(name, c.FS.OpenWrite) }

func (c *counted) opened(name string, open func(string) (disk.File, error)) (disk.File, error) {
	f, err := open(name)
	if err == nil && (strings.HasSuffix(name, ".seg") || strings.HasSuffix(name, ".snap")) {
		f = &countedFile{f, c}
	}
	return f, err
}

type countedFile struct {
	disk.File
	of *counted
}

func (f *countedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.of.bytes.Add(int64(n))
	return n, err
}

// A standby that is offered a store reads only the ticks since its last read.
func TestHandover_ReadsOnlyNewTicks(t *testing.T) {
	log := &replica.Memory{}
	files := &counted{FS: disktest.New()}
	b := follow(t, log, files, replica.Options{Name: "b"})
	g, o, store := own(t, follow(t, log, disktest.New(), replica.Options{Name: "a"}))
	for i := range 300 {
		g.play(t, store)
		if i%100 == 50 {
			_, err := store.Snapshot(background)
			require.NoError(t, err)
		}
	}
	require.NoError(t, store.Sync(background))
	require.NoError(t, b.Wait(background, o.Position()))
	h := newGame()
	standby, err := persist.Follow(background, ".", h.World, persist.FileOptions{Files: b.Files()})
	require.NoError(t, err)
	whole := files.bytes.Swap(0)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Offer(background, "b"))
	require.NoError(t, o.Close())
	<-b.Offered()
	_, err = standby.Advance(background)
	require.NoError(t, err)
	t.Logf("following read %d bytes, the last Advance %d", whole, files.bytes.Swap(0))
	taken, err := b.Claim(background)
	require.NoError(t, err)
	next, err := standby.Open(background, persist.Options{Epoch: taken.Epoch()})
	require.NoError(t, err)
	assert.Less(t, files.bytes.Load(), int64(512), "only the newest tick is read again, of %d bytes", whole)
	assert.EqualValues(t, 300, h.score.Get())
	h.play(t, next)
	require.NoError(t, next.Close(background))
	require.NoError(t, taken.Close())
}

// An offer is valid until the next claim, even for a machine that was down.
func TestOffer_ValidUntilClaim(t *testing.T) {
	log := &replica.Memory{}
	offered := func(f *replica.Follower) bool {
		select {
		case <-f.Offered():
			return true
		default:
			return false
		}
	}
	files, others := disktest.New(), disktest.New()
	b, c := follow(t, log, files, replica.Options{Name: "b"}), follow(t, log, others, replica.Options{Name: "c"})
	g, o, store := own(t, follow(t, log, disktest.New(), replica.Options{Name: "a"}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.NoError(t, b.Wait(background, o.Position()))
	require.NoError(t, b.Close())
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Offer(background, "b"))
	at := o.Position()
	require.NoError(t, o.Close())

	for _, again := range []string{"the machine was down", "the machine had read the offer"} {
		b = follow(t, log, files, replica.Options{Name: "b"})
		assert.True(t, offered(b), again)
		require.NoError(t, b.Close())
	}
	require.NoError(t, c.Wait(background, at))
	assert.False(t, offered(c), "the offer was for another machine")
	_, second, store := own(t, c)
	b = follow(t, log, files, replica.Options{Name: "b"})
	assert.False(t, offered(b), "a claim ended the offer")
	require.NoError(t, store.Close(background))
	require.NoError(t, second.Offer(background, "b"))
	require.NoError(t, second.Offer(background, "d"))
	require.NoError(t, b.Wait(background, second.Position()))
	assert.False(t, offered(b), "the last offer counts")
	require.NoError(t, second.Close())
	require.NoError(t, b.Close())
}

// After a handover that is cut off at any append, no confirmed tick is lost, and one machine has
// the store.
func TestHandover_CutAtEveryAppend(t *testing.T) {
	for cut := 1; ; cut++ {
		log := &replicatest.Log{}
		link, files, others := log.Link(1), disktest.New(), disktest.New()
		g, o, store := own(t, follow(t, link, files, replica.Options{Name: "a"}))
		for range 3 {
			g.play(t, store)
		}
		require.NoError(t, store.Sync(background))
		g.play(t, store) // The log may not get this tick.
		b := follow(t, log, others, replica.Options{Name: "b"})
		h := newGame()
		standby, err := persist.Follow(background, ".", h.World, persist.FileOptions{Files: b.Files()})
		require.NoError(t, err)
		link.CutAfter(cut)

		ctx, done := context.WithTimeout(background, 50*time.Millisecond)
		err = store.Close(ctx)
		if err == nil {
			err = o.Offer(ctx, "b")
		}
		done()
		whole := err == nil
		// If the handover needed fewer appends than cut, CutAfter has not cut the link yet.
		link.Cut(true)
		crashed := files.Crash() // This machine remains cut off until the end of the test.
		taken, err := b.Claim(background)
		// Retry until machine b has read all entries.
		for errors.Is(err, replica.ErrTaken) {
			taken, err = b.Claim(background)
		}
		require.NoError(t, err)
		next, err := standby.Open(background, persist.Options{Epoch: taken.Epoch(), Sync: journal.SyncAlways})
		require.NoError(t, err)
		assert.GreaterOrEqual(t, h.score.Get(), score(3), "cut after %d appends", cut)
		if whole {
			assert.EqualValues(t, 4, h.score.Get())
		}
		h.play(t, next)
		require.NoError(t, next.Sync(background))
		link.CutAfter(0)
		link.Cut(false)
		assert.ErrorIs(t, o.Offer(background, "a"), persist.ErrLost, "the old owner is none")
		require.NoError(t, o.Close())
		_ = store.Close(background)

		a := follow(t, log, crashed, replica.Options{Name: "a"})
		require.NoError(t, a.Wait(background, taken.Position()))
		shown := newGame()
		f, err := persist.Follow(background, ".", shown.World, persist.FileOptions{Files: a.Files()})
		require.NoError(t, err)
		assert.Equal(t, h.score.Get(), shown.score.Get())
		require.NoError(t, f.Close())
		require.NoError(t, a.Close())
		require.NoError(t, next.Close(background))
		require.NoError(t, taken.Close())
		if whole {
			assert.Greater(t, cut, 2)
			return
		}
	}
}
