package persist_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// snapshotStore is a store of a million entities with rows of 16 bytes.
func snapshotStore(b *testing.B, options persist.Options) (*persist.Store, *ecs.World, *ecs.Storage[point]) {
	w, s := points(b, budgetEntities, 0)
	store, err := persist.Open(storetest.Background, filepath.Join(b.TempDir(), "store"), w, options)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close(storetest.Background) })
	return store, w, s
}

func mustSnapshot(b *testing.B, s *persist.Store) persist.SnapshotResult {
	r, err := s.Snapshot(storetest.Background)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// BenchmarkBudgetSnapshot measures a full snapshot of a million rows of 16 bytes. The limit is
// hand-written code that also copies the rows before the next tick and sums them: a limitFile. The
// benchmark also measures bytes and time of a snapshot after a contiguous hundredth of the rows was
// written. It compares these with a full snapshot, without the constant bytes around the pages.
func BenchmarkBudgetSnapshot(b *testing.B) {
	store, _, points := snapshotStore(b, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	write := func() {
		points.Mut(points.Entities()[0]).X++
		if err := store.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	var full persist.SnapshotResult
	snapshotFull := func() time.Duration {
		write()
		store.ForgetPages()
		return timed(func() { full = mustSnapshot(b, store) })
	}
	b.Run("full", func(b *testing.B) {
		snapshotFull()
		byHand := limitFile{name: filepath.Join(b.TempDir(), "snapshot")}
		ours, limit := shortest(budgetRounds, snapshotFull, func() time.Duration {
			return timed(func() { byHand.snapshot(b, points) })
		})
		reportBudget(b, ours, limit, 1/0.6)
		b.ReportMetric(float64(full.Bytes)/ours.Seconds()/1e6, "MB/s")
	})
	const constant = 64 << 10
	var part persist.SnapshotResult
	partial := func() time.Duration {
		for i := range budgetEntities / 100 {
			points.Mut(points.Entities()[i]).X++
		}
		if err := store.Commit(); err != nil {
			b.Fatal(err)
		}
		return timed(func() { part = mustSnapshot(b, store) })
	}
	b.Run("dirty-bytes", func(b *testing.B) {
		snapshotFull()
		partial()
		b.ReportMetric(float64(part.Bytes-constant)/float64(full.Bytes), "x/limit")
		b.ReportMetric(0.03, "x/budget")
		b.ReportMetric(float64(part.Bytes), "bytes")
	})
	b.Run("dirty-time", func(b *testing.B) {
		ours, limit := shortest(5, partial, snapshotFull)
		b.ReportMetric(float64(ours)/float64(limit), "x/full")
		b.ReportMetric(milliseconds(ours), "ms")
	})
}

// BenchmarkBudgetStall measures the longest tick while a snapshot of a million entities is taken,
// minus the median tick without one, at the default pace. Every tick writes a hundredth of the rows
// at scattered places. The limit is 2 ms.
func BenchmarkBudgetStall(b *testing.B) {
	store, _, points := snapshotStore(b, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	n := 0
	tick := func() time.Duration {
		for range budgetEntities / 100 {
			n = (n + 7919) % budgetEntities
			points.Mut(points.Entities()[n]).X++
		}
		return timed(func() {
			if err := store.Commit(); err != nil {
				b.Fatal(err)
			}
		})
	}
	var quiet, copying []time.Duration
	for range 200 {
		time.Sleep(2 * time.Millisecond)
		quiet = append(quiet, tick())
	}
	for range 3 {
		store.Hurry(1)
		for range 60 {
			time.Sleep(2 * time.Millisecond)
			d := tick()
			if store.Snapshotting() {
				store.Hurry(-1)
				copying = append(copying, d)
			}
		}
		store.Settle()
	}
	slices.Sort(quiet)
	slices.Sort(copying)
	median := quiet[len(quiet)/2]
	reportBudget(b, copying[len(copying)-1]-median, 2*time.Millisecond, 1)
	b.ReportMetric(milliseconds(copying[len(copying)/2]-median), "median-ms")
	b.ReportMetric(milliseconds(quiet[len(quiet)-1]-median), "quiet-worst-ms")
	b.ReportMetric(float64(len(copying)), "ticks")
}
