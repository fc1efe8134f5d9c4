package persist_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

type budgetedCell [64]byte

// A budgetedStore is a store whose disk a test can stop.
type budgetedStore struct {
	*persist.Store
	world *ecs.World
	cells *ecs.Storage[budgetedCell]
	all   []ecs.Entity
	ticks int
}

// stoppable returns a disk whose journal writes hang between the calls of stop() and release().
// Writes that began before the call of stop() are completed.
func stoppable() (fs *disktest.Mem, stop, release func()) {
	fs = disktest.New()
	var mu sync.RWMutex
	var stopped atomic.Bool
	fs.OnCall(func(_ int, call string) {
		if stopped.Load() && strings.HasPrefix(call, "write journal/") {
			mu.RLock()
			mu.RUnlock() //nolint:staticcheck // The call waits until release.
		}
	})
	return fs, func() { mu.Lock(); stopped.Store(true) }, func() { mu.Unlock() }
}

func openBudgeted(t testing.TB, fs *disktest.Mem, options persist.Options) *budgetedStore {
	s := &budgetedStore{world: ecs.NewWorld(ecs.Options{})}
	s.cells = ecs.MustRegister[budgetedCell](s.world)
	s.all = s.world.CreateN(nil, 16)
	options.SnapshotBytes = -1
	var err error
	s.Store, err = persist.Open(storetest.Background, ".", s.world, storetest.In(fs, options))
	require.NoError(t, err)
	return s
}

// tick writes all cells and commits.
func (s *budgetedStore) tick() error {
	s.ticks++
	for i, e := range s.all {
		s.cells.Set(e, budgetedCell{byte(s.ticks), byte(s.ticks >> 8), byte(i)})
	}
	return s.Commit()
}

// Fifty stores share a budget, and their disks are stopped. Their queued ticks stay within the
// budget, both in the budget's own count and in the heap. Each store commits at least one tick, and
// no tick is lost.
func TestBudget_StoresOnStoppedDisks(t *testing.T) {
	const stores, memory = 50, 4 << 20
	b := budget.New(memory)
	var all []*budgetedStore
	var files []*disktest.Mem
	var releases []func()
	for range stores {
		fs, stop, release := stoppable()
		s := openBudgeted(t, fs, persist.Options{Budget: b, RefuseWhenFull: true})
		require.NoError(t, s.tick())
		require.NoError(t, s.Sync(storetest.Background))
		stop()
		all, files, releases = append(all, s), append(files, fs), append(releases, release)
	}
	_, before := heap(true)
	committed := make([]int, stores)
	refused := 0
	for range 400 {
		for i, s := range all {
			err := s.tick()
			if err == nil {
				committed[i]++
				continue
			}
			require.ErrorIs(t, err, persist.ErrBacklog)
			refused++
		}
	}
	for i, n := range committed {
		require.Positive(t, n, "store %d", i)
	}
	require.Positive(t, refused)
	const tick = 3000
	require.LessOrEqual(t, b.Used(), int64(memory+stores*tick))
	require.Greater(t, b.Used(), int64(memory*9/10))
	if !raceDetector {
		_, after := heap(true)
		// Without the budget the heap would be ten times as large. The limit leaves room for other
		// tests, which use the same heap.
		require.LessOrEqual(t, after-before, int64(4*memory), "heap")
	}
	for i, s := range all {
		releases[i]()
		require.NoError(t, s.Sync(storetest.Background))
		require.NoError(t, s.tick(), "the budget has free bytes again")
		require.NoError(t, s.Close(storetest.Background))
	}
	require.Zero(t, b.Used())
	for i, s := range all {
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister[budgetedCell](w)
		again, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: files[i]})
		require.NoError(t, err)
		require.Equal(t, s.world.Tick(), w.Tick())
		require.NoError(t, again.Close(storetest.Background))
	}
	runtime.KeepAlive(all)
}

// After all stores are closed, no part of their shared budget is in use. Before, the stores wait
// for the budget, fail, resume, change branches and close.
func TestBudget_ReturnedByClosedStores(t *testing.T) {
	for seed := range 3 {
		b := budget.New(20_000)
		var all sync.WaitGroup
		for n := range 6 {
			all.Go(func() {
				fs := disktest.New()
				s := openBudgeted(t, fs, persist.Options{Budget: b})
				for i := range 60 {
					err := s.tick()
					switch {
					case n%3 == 0 && i == 20+seed:
						fs.FailFrom(fs.Calls(), errors.New("no space"))
					case n%3 == 0 && err != nil:
						fs.FailFrom(math.MaxInt, nil)
						if err := s.Resume(storetest.Background); err != nil {
							t.Errorf("store %d: Resume = %v", n, err)
						}
						continue
					case n%3 == 1 && i%15 == 14:
						if err := s.Goto(storetest.Background, fmt.Sprint(s.world.Tick()-5)); err != nil {
							t.Errorf("store %d: Goto = %v", n, err)
						}
					}
					if err != nil && n%3 != 0 {
						t.Errorf("store %d: Commit = %v", n, err)
					}
				}
				if err := s.Close(storetest.Background); err != nil && n%3 != 0 {
					t.Errorf("store %d: Close = %v", n, err)
				}
			})
		}
		all.Wait()
		require.Zero(t, b.Used(), "seed %d", seed)
		s := b.Open(nil)
		require.EqualValues(t, 10_000, s.Add(0), "the whole budget is free")
	}
}
