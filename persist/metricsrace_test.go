package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// watch starts three goroutines that read the metrics of s repeatedly, until the returned function
// is called.
func watch(t *testing.T, s *persist.Store, look func(before, m *persist.Metrics)) (stop func()) {
	var wg sync.WaitGroup
	var ended atomic.Bool
	for range 3 {
		wg.Go(func() {
			before := s.Metrics()
			for last := false; !last && !t.Failed(); {
				last = ended.Load()
				m := s.Metrics()
				look(&before, &m)
				before = m
			}
		})
	}
	return func() {
		ended.Store(true)
		wg.Wait()
	}
}

// Metrics that other goroutines read are consistent and never decrease, whatever the store does.
// The store's own goroutine sees the effects of its calls.
func TestMetrics_ConcurrentReaders(t *testing.T) {
	for seed := range deep.Or[uint64](3, 40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rng, mem, ctx := rand.New(rand.NewPCG(seed, 0x3a)), disktest.New(), storetest.Background
			w := storetest.New(8)
			w.Fill(30)
			var s *persist.Store
			var ended atomic.Int64
			options := persist.Segmented(persist.Options{
				Sync:          []time.Duration{journal.SyncAlways, journal.SyncNever, time.Millisecond}[seed%3],
				SnapshotBytes: 3000, SnapshotPace: 2000, Retain: persist.Retention{Last: 1, Bytes: 60_000},
				OnSnapshot: func(persist.SnapshotResult) {
					// The first snapshot ends during Open, when s is still nil.
					if n := ended.Add(1); n > 1 {
						m := s.Metrics()
						assert.EqualValues(t, n, m.Snapshots+m.SnapshotsFailed, "the snapshot is counted when OnSnapshot is called")
					}
				},
			}, 4000)
			var err error
			s, err = persist.Open(ctx, ".", w.World, storetest.In(mem, options))
			require.NoError(t, err)
			save := filepath.Join(t.TempDir(), "save")
			require.NoError(t, persist.Save(ctx, save, w.World))
			stop := watch(t, s, func(before, m *persist.Metrics) {
				coherent(t, m)
				grows(t, before, m)
			})
			var wg sync.WaitGroup
			over, end := context.WithCancel(ctx)
			defer func() {
				stop()
				end()
				wg.Wait()
			}()
			// Any goroutine may call Backup, also while the journal is resumed.
			wg.Go(func() {
				never, cancel := context.WithCancel(ctx)
				cancel()
				for open := true; open; {
					select {
					case <-over.Done():
						open = false
					case <-time.After(time.Millisecond):
						assert.Error(t, s.Backup(never, filepath.Join(t.TempDir(), "backup")))
					}
				}
			})
			for range 150 {
				switch k := rng.IntN(40); k {
				case 0:
					require.NoError(t, w.History().Rewind(rng.IntN(int(w.Tick()-w.History().Oldest())+1)))
				case 1:
					storetest.SnapshotOf(t, s)
				case 2:
					require.NoError(t, s.Goto(ctx, "@latest"))
				case 3:
					require.NoError(t, s.Load(ctx, save))
				case 4:
					mem.FailFrom(mem.Calls()+1, syscall.EIO)
					for s.Sync(ctx) == nil {
						t.Log("a sync succeeded before the disk failed")
					}
					mem.FailFrom(0, nil)
					require.Error(t, s.Metrics().Err)
					require.NoError(t, s.Resume(ctx))
					require.NoError(t, s.Metrics().Err)
				default:
					if k < 10 {
						require.NoError(t, s.Mark("m"))
					}
					w.Fill(1)
					w.Seed.Set(storetest.Seed(rng.Uint32()))
					require.NoError(t, s.Commit())
				}
				require.Equal(t, w.Tick(), s.Metrics().Tick)
			}
			storetest.CloseStore(t, s)
			closed := s.Metrics()
			require.Zero(t, closed.LagTicks)
			require.NoError(t, closed.Err)
			w.Fill(1)
			w.Commit()
			require.Equal(t, closed, s.Metrics(), "the world is no longer the store's")
			require.Positive(t, closed.PrunedMarks)
		})
	}
}

// If the world never goes back, Tick always equals DurableTick plus LagTicks.
func TestMetrics_DurablePlusPendingTicks(t *testing.T) {
	w := storetest.New(0)
	var s *persist.Store
	ready := make(chan struct{})
	options := persist.Options{
		Sync: journal.SyncAlways, SnapshotBytes: 20_000,
		OnDurable: func(tick uint64) {
			<-ready
			assert.GreaterOrEqual(t, s.Metrics().DurableTick, tick)
		},
	}
	s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(disktest.New(), options))
	require.NoError(t, err)
	close(ready)
	defer watch(t, s, func(before, m *persist.Metrics) {
		require.Equal(t, m.Tick, m.DurableTick+m.LagTicks)
		require.GreaterOrEqual(t, m.Tick, before.Tick)
		require.GreaterOrEqual(t, m.DurableTick, before.DurableTick)
		coherent(t, m)
	})()
	for range 1000 {
		w.Seed.Set(*w.Seed.Mut() + 1)
		require.NoError(t, s.Commit())
		require.Equal(t, w.Tick(), s.Metrics().Tick)
	}
	storetest.CloseStore(t, s)
}

// A tick allocates nothing, even if metrics are read between ticks.
func TestMetrics_NoAllocations(t *testing.T) {
	w := storetest.New(0)
	w.Fill(20)
	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	seen := uint64(0)
	tick := func() {
		w.Seed.Set(*w.Seed.Mut() + 1)
		if err := s.Commit(); err != nil {
			t.Error(err)
		}
		for s.Metrics().QueuedBytes > 0 { // At 0, the buffer can be reused.
			runtime.Gosched()
		}
		seen = s.Metrics().Tick
	}
	for range 20 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(100, tick))
	require.Equal(t, w.Tick(), seen)
	storetest.CloseStore(t, s)
}
