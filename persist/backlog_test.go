package persist_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A hangingStore is a store whose journal writer hangs after its first tick, as on a hung disk. The
// test ends the hang.
type hangingStore struct {
	*persist.Store
	world *storetest.World
	dir   string
	leave chan struct{}
}

func openHanging(t *testing.T, options persist.Options) *hangingStore {
	h := &hangingStore{world: storetest.New(5), dir: t.TempDir(), leave: make(chan struct{})}
	hang := true
	options.Sync = journal.SyncAlways
	options.OnDurable = func(uint64) {
		if hang { // Only the journal's goroutine gets here.
			hang = false
			<-h.leave
		}
	}
	s, err := persist.Open(storetest.Background, h.dir, h.world.World, options)
	require.NoError(t, err)
	h.Store = s
	require.NoError(t, s.Commit())
	synctest.Wait() // Wait until the writer hangs.
	return h
}

// reopened closes the store and returns the world recovered from it.
func (h *hangingStore) reopened(t *testing.T) *storetest.World {
	require.NoError(t, storetest.Closed(h.Close(storetest.Background)))
	again := storetest.New(5)
	s, err := persist.Open(storetest.Background, h.dir, again.World, persist.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close(storetest.Background))
	return again
}

func TestCommit_RefusedWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t, persist.Options{QueueBytes: 2000, RefuseWhenFull: true, SnapshotBytes: -1})
		w, refused := h.world, 0
		for range 40 {
			w.Fill(3)
			before, changed, history := w.Tick(), w.Digest(), w.History().Newest()
			err := h.Commit()
			if err == nil {
				continue
			}
			require.ErrorIs(t, err, persist.ErrBacklog)
			require.Equal(t, changed, w.Digest(), "a refused commit changes nothing")
			require.Equal(t, before, w.Tick())
			require.Equal(t, history, w.History().Newest())
			require.True(t, w.Raw().Dirty())
			require.NoError(t, h.Err(), "the journal has not failed")
			refused++
		}
		require.Greater(t, refused, 10)
		require.Less(t, h.Journal().Backlog(), int64(2*2000))

		close(h.leave)
		require.NoError(t, h.Sync(storetest.Background))
		require.NoError(t, h.Commit(), "the changes of all refused ticks are in one tick")
		require.Equal(t, uint64(1+40-refused+1), w.Tick())
		require.NoError(t, w.History().Rewind(1), "a rewind undoes that tick as a whole")
		require.NoError(t, w.History().Seek(w.Tick()+1))
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(h.reopened(t).World))
	})
}

func TestCommit_EmptyQueueAcceptsNewComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t, persist.Options{QueueBytes: 1, RefuseWhenFull: true, SnapshotBytes: -1})
		type late struct{ N int32 }
		e := h.world.Create()
		s := ecs.MustRegister[late](h.world.World)
		s.Set(e, late{7})
		require.NoError(t, h.Commit(), "nothing waits yet")
		require.ErrorIs(t, h.Commit(), persist.ErrBacklog)
		close(h.leave)

		require.NoError(t, h.Close(storetest.Background))
		again := storetest.New(0)
		s = ecs.MustRegister[late](again.World)
		store, err := persist.Open(storetest.Background, h.dir, again.World, persist.Options{})
		require.NoError(t, err)
		got, ok := s.Get(e)
		require.Equal(t, late{7}, got)
		require.True(t, ok)
		require.NoError(t, store.Close(storetest.Background))
	})
}

func TestCommit_WaitsForDisk(t *testing.T) {
	for _, tt := range []struct {
		name   string
		refuse bool
		commit func(*hangingStore) error
	}{
		{"Store.Commit", false, func(h *hangingStore) error { return h.Commit() }},
		{"World.Commit", true, func(h *hangingStore) error { h.world.Commit(); return h.Err() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHanging(t, persist.Options{QueueBytes: 1000, RefuseWhenFull: tt.refuse, SnapshotBytes: -1})
				done := 0
				go func() {
					for range 20 {
						h.world.Fill(2)
						if err := tt.commit(h); err != nil {
							t.Error(err)
						}
						done++
					}
				}()
				synctest.Wait()
				require.Less(t, done, 20, "the queue holds few ticks")
				close(h.leave)
				synctest.Wait()
				require.Equal(t, 20, done)
				require.Equal(t, storetest.Persistent(h.world.World), storetest.Persistent(h.reopened(t).World))
			})
		})
	}
}

// If the queue is full, Close cannot save changed NoRewind values without waiting. So it reports
// them as uncommitted.
func TestClose_NoRewindValuesAndFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHanging(t, persist.Options{QueueBytes: 1, SnapshotBytes: -1})
		h.world.Fill(3)
		require.NoError(t, h.Commit())
		h.world.Clock.Set(9)
		ended, cancel := context.WithTimeout(storetest.Background, time.Second)
		defer cancel()
		require.ErrorIs(t, h.Close(ended), context.DeadlineExceeded)
		close(h.leave)
		require.ErrorIs(t, h.Close(storetest.Background), persist.ErrUncommitted)
	})
}
