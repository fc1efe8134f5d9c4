package persist_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// maxFiles bounds the number of files of a store with little activity.
const maxFiles = 64

// The number of files stays bounded over many openings, whatever the program does in each.
func TestOpen_RepeatedlyKeepsFileCount(t *testing.T) {
	for name, c := range map[string]struct {
		options  persist.Options
		ticks    int
		snapshot bool
	}{
		"nothing":           {ticks: 0},
		"a tick":            {ticks: 1},
		"last":              {ticks: 1, snapshot: true, options: persist.Options{Retain: persist.Retention{Last: 1}}},
		"last, no snapshot": {ticks: 1, options: persist.Options{Retain: persist.Retention{Last: 1}}},
		"ticks":             {ticks: 2, options: persist.Options{Retain: persist.Retention{Ticks: 10}}},
		"snapshots":         {ticks: 3, snapshot: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := disktest.New()
			seed := storetest.New(0).Seed.Get()
			for i := range 200 {
				w := storetest.New(0)
				s, err := persist.Open(storetest.Background, ".", w.World, storetest.In(mem, c.options))
				require.NoError(t, err)
				require.Empty(t, s.Report().Skipped)
				require.Equal(t, seed, w.Seed.Get())
				commits(t, s, w, c.ticks)
				if seed = w.Seed.Get(); c.snapshot {
					_, err := s.Snapshot(storetest.Background)
					require.NoError(t, err)
				}
				storetest.CloseStore(t, s)
				m := s.Metrics()
				require.NoError(t, m.LastSnapshot.Err)
				require.NoError(t, m.LastSnapshot.RemoveErr)
				require.LessOrEqual(t, len(mem.Files()), maxFiles, "opening %d: %v", i, mem.Files())
				if m.Kept.Record > 0 {
					require.NotContains(t, m.Kept.Reason, "all data that exists")
				}
				if i%50 == 0 {
					require.NoError(t, simVerify(mem, w))
				}
			}
		})
	}
}

// All segments stay if the program keeps everything or requests old data that needs them.
func TestOpen_RepeatedlyKeepsRequestedData(t *testing.T) {
	for name, retain := range map[string]persist.Retention{"all": {KeepAll: true}, "ticks": {Ticks: 1000}, "age": {Age: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := disktest.New()
			const openings = 80
			for range openings {
				w := storetest.New(0)
				s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Retain: retain})
				require.NoError(t, err)
				commits(t, s, w, 1)
				storetest.CloseStore(t, s)
			}
			segments := 0
			for _, f := range mem.Files() {
				if strings.HasSuffix(f, ".seg") {
					segments++
				}
			}
			require.Equal(t, openings, segments)
			w := storetest.New(0)
			s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Retain: retain, At: "1"})
			require.NoError(t, err)
			require.Equal(t, uint64(1), w.Tick())
			storetest.CloseStore(t, s)
		})
	}
}

// callsOfOpenings opens and closes a store the given number of times, with some ticks in each
// opening. For each opening, it returns the number of disk calls, and whether the opening wrote a
// snapshot or removed files.
func callsOfOpenings(t *testing.T, openings, ticks int, retain persist.Retention) (calls []int, wrote []bool) {
	mem := disktest.New()
	for range openings {
		before, files := mem.Calls(), mem.Files()
		w := storetest.New(0)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, Sync: journal.SyncNever, Retain: retain})
		require.NoError(t, err)
		require.Empty(t, s.Report().Skipped)
		commits(t, s, w, ticks)
		s.Settle()
		storetest.CloseStore(t, s)
		added := slices.DeleteFunc(mem.Files(), func(f string) bool { return slices.Contains(files, f) })
		calls, wrote = append(calls, mem.Calls()-before), append(wrote, len(added) != 2 || len(mem.Files()) != len(files)+1)
	}
	return calls, wrote
}

// However often a store was opened, an opening and its close make few disk calls: at most 1.5 times
// those of the second opening. Openings that write a snapshot or remove segments make more. These
// count only in the average.
func TestOpen_RepeatedlyKeepsDiskCallCount(t *testing.T) {
	for name, c := range map[string]struct {
		ticks  int
		retain persist.Retention
	}{
		"no tick":           {0, persist.Retention{}},
		"a tick":            {1, persist.Retention{}},
		"no tick, keep all": {0, persist.Retention{KeepAll: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const openings, cycle = 301, 12
			calls, wrote := callsOfOpenings(t, openings, c.ticks, c.retain)
			second, sum := calls[1], 0
			for i := openings - cycle; i < openings; i++ {
				t.Logf("opening %d of %d: %d calls, snapshot or removal %v; second %d", i, openings, calls[i], wrote[i], second)
				if sum += calls[i]; !wrote[i] {
					require.LessOrEqual(t, 2*calls[i], 3*second, "opening %d", i)
				}
			}
			require.LessOrEqual(t, 2*sum, 3*second*cycle)
		})
	}
}

// With KeepAll, all segments stay, and each opening adds one. But an opening reads only the
// segments after the last snapshot, and snapshots are taken often enough. An opening also reads the
// manifest of each snapshot, so the calls grow slowly.
func TestOpen_RepeatedlyWithKeepAll(t *testing.T) {
	t.Parallel()
	const openings = 301
	calls, _ := callsOfOpenings(t, openings, 1, persist.Retention{KeepAll: true})
	t.Logf("second %d, last %d calls", calls[1], calls[openings-1])
	require.LessOrEqual(t, calls[openings-1], 2*calls[1]+openings)
}

// openOnce opens a store, commits some ticks and closes it. It returns the duration of Open and
// Close.
func openOnce(b *testing.B, files disk.FS, ticks int) time.Duration {
	w := storetest.New(0)
	var s *persist.Store
	var err error
	took := timed(func() {
		s, err = persist.Open(storetest.Background, ".", w.World, persist.Options{Files: files, Sync: journal.SyncNever})
	})
	if err != nil {
		b.Fatal(err)
	}
	for range ticks {
		w.Seed.Set(w.Seed.Get() + 1)
		if err := s.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	if s.Snapshotting() { // Earlier openings made this snapshot due, so do not time it.
		s.Settle()
	}
	return took + timed(func() {
		if err := s.Close(storetest.Background); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkBudgetOpenMany opens and closes a store with a history of 10,000 openings (100,000 with
// STET_DEEP=1), with or without a tick in each opening. The time is compared with that of the
// second opening of a new store.
func BenchmarkBudgetOpenMany(b *testing.B) {
	const few = 16
	openings := deep.Or(10_000, 100_000)
	for _, ticks := range []int{0, 1} {
		b.Run(fmt.Sprintf("ticks=%d", ticks), func(b *testing.B) {
			old := disk.Memory()
			for range openings {
				openOnce(b, old, ticks)
			}
			for range b.N {
				ours, limit := shortest(budgetRounds, func() (took time.Duration) {
					for range few {
						took += openOnce(b, old, ticks)
					}
					return took
				}, func() (took time.Duration) {
					for range few {
						files := disk.Memory()
						openOnce(b, files, ticks)
						took += openOnce(b, files, ticks)
					}
					return took
				})
				reportBudget(b, ours/few, limit/few, 1.5)
			}
		})
	}
}
