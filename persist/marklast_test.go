package persist_test

import (
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// MarkLast names a tick that has ended. The mark needs no later Commit, and adds no tick to the
// history.
func TestMarkLast_NamesEndedTick(t *testing.T) {
	for _, every := range []int{0, 4} {
		mem := disktest.New()
		var durable []uint64
		options := persist.Options{Files: mem, CommitEvery: every, History: 10, OnDurable: func(tick uint64) { durable = append(durable, tick) }}
		w := storetest.New(10)
		s, err := persist.Open(storetest.Background, ".", w.World, options)
		require.NoError(t, err)
		for range 3 {
			w.Fill(1)
			require.NoError(t, s.Commit())
		}
		require.NoError(t, s.MarkLast("boss"))
		require.NoError(t, s.MarkLast("boss"))
		want := storetest.Persistent(w.World)
		w.Fill(1)
		require.ErrorIs(t, s.MarkLast("dirty"), persist.ErrUncommitted)
		require.ErrorIs(t, s.MarkLast("3\x1b[0m"), persist.ErrName)
		require.NoError(t, s.Commit())
		require.Equal(t, []uint64{0, 1, 2, 3, 4}, slices.Collect(w.History().Ticks()))
		require.NoError(t, w.History().Rewind(2))
		require.NoError(t, s.MarkLast("two"))
		storetest.CloseStore(t, s)
		require.ErrorIs(t, s.MarkLast("late"), persist.ErrClosed)
		require.Equal(t, []uint64{1, 2, 3, 4}, durable)

		w = storetest.New(10)
		s, err = persist.Open(storetest.Background, ".", w.World, options)
		require.NoError(t, err)
		require.EqualValues(t, 2, w.Tick())
		require.NoError(t, s.Goto(storetest.Background, "mark:boss"))
		require.EqualValues(t, 3, w.Tick())
		require.Equal(t, want, storetest.Persistent(w.World))
		if every == 0 {
			require.NoError(t, s.Goto(storetest.Background, "mark:boss~1"))
			require.EqualValues(t, 2, w.Tick(), "the records of marks are not counted")
		}
		require.NoError(t, s.Goto(storetest.Background, "mark:boss"))
		w.Fill(1)
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)

		w = storetest.New(10)
		s, err = persist.Open(storetest.Background, ".", w.World, options)
		require.NoError(t, err)
		held := []uint64{0, 1, 2, 3, 4}
		if every > 0 {
			// Ticks 1 to 3 share one record, so the loaded history has only tick 3 of them.
			held = []uint64{0, 3, 4}
		}
		require.Equal(t, held, slices.Collect(w.History().Ticks()))
		require.NoError(t, w.History().Seek(3))
		require.Equal(t, want, storetest.Persistent(w.World))
		storetest.CloseStore(t, s)
	}
}

// A follower keeps its history when a tick gets a mark, and a player does not run the tick again.
func TestMarkLast_FollowerAndPlayer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w, seen, again := storetest.New(0), storetest.New(10), storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	step := func(w *storetest.World) { w.Do(storetest.Action{Kind: 1, A: uint32(w.Tick())}) }
	commit := func() {
		step(w)
		require.NoError(t, s.Commit())
	}
	commit()
	require.NoError(t, s.Sync(storetest.Background))
	f, err := persist.Follow(storetest.Background, dir, seen.World, persist.FileOptions{})
	require.NoError(t, err)
	require.NoError(t, s.MarkLast("one"))
	commit()
	w.Clock.Set(7)
	require.NoError(t, s.MarkLast("two"))
	require.NoError(t, s.Sync(storetest.Background))
	changed, err := f.Advance(storetest.Background)
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(seen.World))
	require.Equal(t, []uint64{1, 2}, slices.Collect(seen.History().Ticks()))
	require.Equal(t, w.Raw().Seq(), seen.Raw().Seq())
	commit()
	require.NoError(t, s.Sync(storetest.Background))
	_, err = f.Advance(storetest.Background)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, slices.Collect(seen.History().Ticks()))
	require.NoError(t, f.Close())
	storetest.CloseStore(t, s)

	ran := 0
	p := openPlayer(t, dir, again.World, inspect.PlayerOptions{Step: func(_ *ecs.World, tick uint64, _ []inspect.Input) error {
		ran++
		require.EqualValues(t, ran, tick)
		step(again)
		return nil
	}})
	for err = nil; err == nil; err = p.Step(storetest.Background) {
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 3, ran)
	tick, storage, diverged := p.Diverged()
	require.False(t, diverged, "tick %d: %s", tick, storage)
}

// After a rewind, MarkLast drops the undone ticks from the history, as Commit does. Otherwise the
// history could have a later tick with an older record.
func TestMarkLast_AfterRewind(t *testing.T) {
	mem := disktest.New()
	options := persist.Options{Files: mem, Retain: persist.Retention{KeepAll: true}}
	w := storetest.New(3000)
	s, err := persist.Open(storetest.Background, ".", w.World, options)
	require.NoError(t, err)
	commit := func(n int) {
		for range n {
			w.Clock.Set(storetest.Clock(w.Tick()))
			w.Seed.Set(storetest.Seed(w.Tick()))
			require.NoError(t, s.Commit())
		}
	}
	commit(500)
	require.NoError(t, w.History().Seek(0))
	require.NoError(t, s.MarkLast("start"))
	require.ErrorIs(t, w.History().Seek(500), ecs.ErrNotHeld)
	commit(1100) // By now, the store has dropped record IDs that are older than the history.
	require.NoError(t, w.History().Seek(300))
	commit(1)
	want := storetest.Persistent(w.World)
	storetest.CloseStore(t, s)
	w = storetest.New(0)
	s, err = persist.Open(storetest.Background, ".", w.World, options)
	require.NoError(t, err)
	require.EqualValues(t, 301, w.Tick())
	require.Equal(t, want, storetest.Persistent(w.World))

	w.OnRestore(func() {
		require.ErrorContains(t, s.MarkLast("in OnRestore"), "OnRestore")
	})
	require.NoError(t, s.Goto(storetest.Background, "mark:start"))
	require.NoError(t, s.MarkLast("after"))
	storetest.CloseStore(t, s)
}
