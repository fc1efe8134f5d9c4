package persist_test

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

type total struct{ N int64 }

// A counted is a store whose world has a counter.
type counted struct {
	*persist.Store
	world *ecs.World
	n     *ecs.Resource[total]
}

func newCounted(t *testing.T, dir string) counted {
	w := ecs.NewWorld(ecs.Options{})
	n := ecs.Must(ecs.RegisterResource(w, total{}))
	s, err := persist.Open(t.Context(), dir, w, persist.Options{})
	require.NoError(t, err)
	return counted{s, w, n}
}

func (c counted) add(w *ecs.World) { c.n.In(w).Mut().N++ }

// later calls Do in another goroutine and returns a channel for the result. It returns when the
// function is in the queue.
func (c counted) later(ctx context.Context, f func(*ecs.World)) chan error {
	before, done := persist.Waiting(c.Store), make(chan error, 1)
	go func() { done <- c.Do(ctx, f) }()
	for persist.Waiting(c.Store) == before {
		runtime.Gosched()
	}
	return done
}

// Many goroutines call Do while the world ticks, and some cancel. Each function that Do reports as
// called was called once, between ticks, and its changes are in the journal.
func TestDo_ManyGoroutines(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s := newCounted(t, dir)
	var calls, said, given atomic.Int64
	var inside atomic.Bool
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for i := range 200 {
				patience := time.Hour
				if (i+k)%5 == 0 {
					patience = time.Duration(i) * time.Microsecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				switch err := s.Do(ctx, func(w *ecs.World) {
					assert.False(t, inside.Swap(true), "two at once, or in a tick")
					calls.Add(1)
					s.add(w)
					inside.Store(false)
				}); err {
				case nil:
					said.Add(1)
				default:
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					given.Add(1)
				}
				cancel()
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for ticking := true; ticking; {
		select {
		case <-done:
			ticking = false
		default:
		}
		assert.False(t, inside.Swap(true), "the tick")
		runtime.Gosched()
		inside.Store(false)
		require.NoError(t, s.Commit())
	}
	assert.Equal(t, int64(1600), said.Load()+given.Load())
	assert.Equal(t, calls.Load(), said.Load())
	assert.Equal(t, calls.Load(), s.n.Get().N)
	storetest.CloseStore(t, s.Store)
	again := newCounted(t, dir)
	assert.Equal(t, calls.Load(), again.n.Get().N, "the functions' changes are in the ticks")
	storetest.CloseStore(t, again.Store)
}

func TestDo_CallsInOrder(t *testing.T) {
	t.Parallel()
	s := newCounted(t, filepath.Join(t.TempDir(), "store"))
	defer storetest.CloseStore(t, s.Store)
	var order []int
	var done []chan error
	var late chan error
	done = append(done, s.later(t.Context(), func(*ecs.World) {
		order = append(order, 0)
		late = s.later(t.Context(), func(*ecs.World) { order = append(order, 9) })
	}))
	for i := range 3 {
		done = append(done, s.later(t.Context(), func(*ecs.World) { order = append(order, i+1) }))
	}
	require.NoError(t, s.Commit())
	for _, d := range done {
		require.NoError(t, <-d)
	}
	assert.Equal(t, []int{0, 1, 2, 3}, order)
	require.NoError(t, s.Commit())
	require.NoError(t, <-late)
	assert.Equal(t, []int{0, 1, 2, 3, 9}, order, "a function queued meanwhile waits for the next tick")
}

func TestDo_ContextCancelled(t *testing.T) {
	t.Parallel()
	s := newCounted(t, filepath.Join(t.TempDir(), "store"))
	defer storetest.CloseStore(t, s.Store)
	ctx, cancel := context.WithCancel(t.Context())
	given, other := s.later(ctx, func(*ecs.World) { t.Error("called") }), s.later(t.Context(), s.add)
	cancel()
	assert.ErrorIs(t, <-given, context.Canceled)
	require.NoError(t, s.Commit())
	require.NoError(t, <-other)

	// If ctx ends while the function runs, Do waits until the function returns.
	ctx, cancel = context.WithCancel(t.Context())
	called := s.later(ctx, func(w *ecs.World) {
		cancel()
		time.Sleep(10 * time.Millisecond)
		s.add(w)
	})
	require.NoError(t, s.Commit())
	require.NoError(t, <-called)
	assert.Equal(t, int64(2), s.n.Get().N)
}

func TestDo_FunctionPanics(t *testing.T) {
	t.Parallel()
	s := newCounted(t, filepath.Join(t.TempDir(), "store"))
	defer storetest.CloseStore(t, s.Store)
	bad, good := s.later(t.Context(), func(*ecs.World) { panic("bad") }), s.later(t.Context(), s.add)
	assert.PanicsWithValue(t, "bad", func() { _ = s.Commit() })
	assert.ErrorContains(t, <-bad, "did not return")
	require.NoError(t, s.Commit(), "others are called by the next")
	require.NoError(t, <-good)
}

func TestDo_StoreClosed(t *testing.T) {
	t.Parallel()
	s := newCounted(t, filepath.Join(t.TempDir(), "store"))
	waits := s.later(t.Context(), func(*ecs.World) { t.Error("called") })
	storetest.CloseStore(t, s.Store)
	assert.ErrorIs(t, <-waits, persist.ErrClosed)
	assert.ErrorIs(t, s.Do(t.Context(), s.add), persist.ErrClosed)

	s = newCounted(t, filepath.Join(t.TempDir(), "store"))
	closes := s.later(t.Context(), func(*ecs.World) { storetest.CloseStore(t, s.Store) })
	assert.ErrorIs(t, s.Commit(), persist.ErrClosed)
	assert.NoError(t, <-closes)
}

// The Commit that calls the functions ends the tick, so a Commit in a function is an error. Poll
// ends no tick, so a function that it calls may commit.
func TestDo_CommitInFunction(t *testing.T) {
	t.Parallel()
	s := newCounted(t, filepath.Join(t.TempDir(), "store"))
	var inside error
	commits := func(w *ecs.World) {
		s.add(w)
		inside = s.Commit()
	}
	waits := s.later(t.Context(), commits)
	require.NoError(t, s.Commit())
	require.NoError(t, <-waits)
	require.ErrorContains(t, inside, "Commit in a function given to Do")
	require.EqualValues(t, 1, s.n.In(s.world).Get().N)
	require.EqualValues(t, 1, s.world.Tick())

	waits = s.later(t.Context(), commits)
	require.NoError(t, s.Poll())
	require.NoError(t, <-waits)
	require.NoError(t, inside)
	require.EqualValues(t, 2, s.world.Tick())
	storetest.CloseStore(t, s.Store)
}

// A refused Commit calls no function.
func TestDo_RefusedCommit(t *testing.T) {
	t.Parallel()
	fs, stop, release := stoppable()
	s := openBudgeted(t, fs, persist.Options{QueueBytes: 1, RefuseWhenFull: true})
	require.NoError(t, s.Sync(t.Context()))
	stop()
	require.NoError(t, s.tick(), "the first tick fills the queue")
	called, waits := 0, make(chan error, 1)
	go func() { waits <- s.Do(context.Background(), func(*ecs.World) { called++ }) }()
	require.Eventually(t, func() bool { return persist.Waiting(s.Store) == 1 }, time.Minute, time.Millisecond)
	require.ErrorIs(t, s.Commit(), persist.ErrBacklog)
	assert.Zero(t, called)
	release()
	require.NoError(t, s.Sync(t.Context()))
	require.NoError(t, s.Commit())
	require.NoError(t, <-waits)
	assert.Equal(t, 1, called)
	require.NoError(t, s.Close(t.Context()))
}
