package persist_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// failDisk makes one of the store's next calls fail, commits some more ticks, and makes the disk
// work again.
func failDisk(t testing.TB, mem *disktest.Mem, s *persist.Store, w *storetest.World, rng *rand.Rand) {
	t.Helper()
	mem.FailFrom(mem.Calls()+1+rng.IntN(4), syscall.ENOSPC)
	for range 4 {
		change(w, rng)
		_ = s.Commit()
		_ = s.Sync(storetest.Background)
	}
	require.ErrorIs(t, s.Commit(), syscall.ENOSPC)
	mem.FailFrom(0, nil)
	// The failure is permanent until Resume.
	require.ErrorIs(t, s.Sync(storetest.Background), syscall.ENOSPC)
}

// change changes a world like a tick of a program.
func change(w *storetest.World, rng *rand.Rand) {
	w.ReleaseAll()
	w.Do(storetest.RandomActions(rng, 10)...)
	w.ReleaseAll()
	w.Seed.Set(storetest.Seed(rng.Uint32()))
}

func TestResume_SavesPresentState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0xf1))
			mem := disktest.New()
			w := storetest.New(4)
			w.Fill(20)
			// The ticks that OnDurable reported, and the tick of each Resume.
			var told, resumed []uint64
			options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1, OnDurable: func(tick uint64) { told = append(told, tick) }}
			s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(mem, options))
			require.NoError(t, err)
			for range 1 + rng.IntN(3) { // The disk may fail more than once.
				for range rng.IntN(4) {
					change(w, rng)
					require.NoError(t, s.Commit())
					if rng.IntN(2) == 0 {
						_, err := s.Snapshot(storetest.Background)
						require.NoError(t, err)
					}
				}
				failDisk(t, mem, s, w, rng)
				digest := storetest.Persistent(w.World)
				require.NoError(t, s.Resume(storetest.Background))
				require.Equal(t, digest, storetest.Persistent(w.World))
				resumed = append(resumed, w.Tick())
				for _, left := range []*disktest.Mem{mem.Crash(), mem.CrashSeed(seed), mem.Clone()} {
					again := storetest.New(0)
					recovered, err := persist.Open(storetest.Background, ".", again.World, persist.Options{Files: left})
					require.NoError(t, err)
					require.Empty(t, recovered.Report().Skipped)
					require.Equal(t, digest, storetest.Persistent(again.World))
					require.NoError(t, recovered.Close(storetest.Background))
				}
				// Resume does nothing if the store has not failed.
				require.NoError(t, s.Resume(storetest.Background))
			}
			for range 3 {
				change(w, rng)
				require.NoError(t, s.Commit())
			}
			// The rewind ends at a tick after the Resume.
			require.NoError(t, w.History().Rewind(2))
			change(w, rng)
			require.NoError(t, s.Commit())
			storetest.CloseStore(t, s)
			require.Subset(t, told, resumed)
			require.NoError(t, simVerify(mem, w))
			again := storetest.New(0)
			s, err = persist.Open(storetest.Background, ".", again.World, persist.Options{Files: mem})
			require.NoError(t, err)
			require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(again.World))
			storetest.CloseStore(t, s)
		})
	}
}

// If a Resume fails, at any call, the store stays failed and durable data is unchanged. The next
// Resume succeeds.
func TestResume_RetryAfterFailure(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 0xf2))
	calls := 1 // Number of calls of a Resume.
	for n := 0; n <= calls; n++ {
		mem := disktest.New()
		w := storetest.New(0)
		w.Fill(20)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Sync: journal.SyncNever, SnapshotBytes: -1})
		require.NoError(t, err)
		failDisk(t, mem, s, w, rng)
		digest := storetest.Persistent(w.World)
		before := mem.Calls()
		mem.Fail(before+n, syscall.EIO) // With n = 0, no call fails.
		err = s.Resume(storetest.Background)
		s.Settle() // Finish the snapshot that Resume began.
		// If Resume made fewer than n calls, the fault is still set. Remove it.
		mem.Fail(before+n, nil)
		switch {
		case n == 0:
			require.NoError(t, err)
			calls = mem.Calls() - before
		case err == nil && s.Err() != nil: // The store failed again after Resume.
			require.ErrorIs(t, s.Err(), syscall.EIO)
			require.NoError(t, s.Resume(storetest.Background), "call %d", n)
		case err != nil:
			require.ErrorIs(t, err, syscall.EIO)
			require.ErrorIs(t, s.Commit(), syscall.ENOSPC, "call %d", n)
			_, err := persist.Open(storetest.Background, ".", storetest.New(0).World, persist.Options{Files: mem.Crash()})
			require.NoError(t, err)
			// Commit failed, but the tick has ended in memory.
			digest = storetest.Persistent(w.World)
			require.NoError(t, s.Resume(storetest.Background), "call %d", n)
		}
		again := storetest.New(0)
		recovered, err := persist.Open(storetest.Background, ".", again.World, persist.Options{Files: mem.Crash()})
		require.NoError(t, err)
		require.Equal(t, digest, storetest.Persistent(again.World))
		require.NoError(t, recovered.Close(storetest.Background))
		storetest.CloseStore(t, s)
	}
}

func TestResume_Errors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(4)
	s := storetest.Open(t, dir, w, persist.Options{})
	// The store has not failed, so Resume does nothing.
	require.NoError(t, s.Resume(storetest.Background))
	s.Fail(syscall.EIO)
	w.Fill(1)
	require.ErrorIs(t, s.Resume(storetest.Background), persist.ErrUncommitted)
	w.Commit()
	c := w.Checkpoint()
	require.ErrorIs(t, s.Resume(storetest.Background), raw.ErrCheckpointHeld)
	w.Release(c)
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	require.ErrorIs(t, s.Resume(ended), context.Canceled)
	require.NoError(t, s.Resume(storetest.Background))
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	s.Fail(syscall.EIO)
	require.ErrorIs(t, s.Resume(storetest.Background), persist.ErrLost)
	_ = s.Close(storetest.Background)
	require.ErrorIs(t, s.Resume(storetest.Background), persist.ErrClosed)
}
