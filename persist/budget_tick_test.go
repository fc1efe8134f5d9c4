package persist_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

var budgetTicks = flag.Int("ticks", 600, "the `number` of ticks that BenchmarkBudgetTick runs, 60 a second; each is 1.6 MB of journal")

// BenchmarkBudgetTick: what a store adds to a tick in which all positions of a
// hundred thousand entities are written, 60 times a second, with an fsync every
// 100 ms and snapshots one after the other. It is the time of writing and Commit,
// less the median time of the same in a world without a store, whose ticks run in
// turns. The limits are a millisecond for the median and four for the worst tick.
// One tick of a hundred is compared, whole, with that of a store that makes no snapshots.
func BenchmarkBudgetTick(b *testing.B) {
	measured := map[int64]tickTimes{}
	measure := func(b *testing.B, snapshotBytes int64) tickTimes {
		if _, ok := measured[snapshotBytes]; !ok {
			measured[snapshotBytes] = timeTicks(b, *budgetTicks, snapshotBytes)
		}
		return measured[snapshotBytes]
	}
	const always, never = 1, -1 // As Options.SnapshotBytes: as soon as none is under way.
	b.Run("median", func(b *testing.B) {
		reportBudget(b, measure(b, always).added(0.5), time.Millisecond, 1)
	})
	b.Run("p99", func(b *testing.B) {
		with, without := measure(b, always), measure(b, never)
		reportBudget(b, at(with.stored, 0.99), at(without.stored, 0.99), 1.5)
	})
	b.Run("worst", func(b *testing.B) {
		t := measure(b, always)
		reportBudget(b, t.added(1), 4*time.Millisecond, 1)
		b.ReportMetric(milliseconds(t.added(0.99)), "p99-ms")
		b.ReportMetric(milliseconds(at(t.plain, 1)-at(t.plain, 0.5)), "plain-worst-ms")
		b.ReportMetric(float64(t.snapshots), "snapshots")
	})
}

// tickTimes are the times of ticks, ascending.
type tickTimes struct {
	plain, stored []time.Duration
	snapshots     int
}

// added returns what the store added to a share of the ticks, at most.
func (t tickTimes) added(share float64) time.Duration {
	return at(t.stored, share) - at(t.plain, 0.5)
}

// at returns what a share of ascending times do not exceed.
func at(times []time.Duration, share float64) time.Duration {
	return times[int(share*float64(len(times)-1))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const budgetTickRows = 100_000

// timeTicks runs n ticks of two worlds, of which one has a store.
func timeTicks(b *testing.B, n int, snapshotBytes int64) (t tickTimes) {
	plainWorld, plain := points(b, budgetTickRows, 0)
	w, s := points(b, budgetTickRows, 0)
	snapshots := make(chan error, n+8)
	store, err := persist.Open(storetest.Background, b.TempDir(), w, persist.Options{
		Sync:          journal.SyncEvery(100 * time.Millisecond),
		SnapshotBytes: snapshotBytes,
		OnSnapshot:    func(r persist.SnapshotResult) { snapshots <- r.Err },
	})
	if err != nil {
		b.Fatal(err)
	}
	next := time.Now()
	for range n {
		next = next.Add(time.Second / 60)
		time.Sleep(time.Until(next))
		t.plain = append(t.plain, timed(func() {
			moveAll(plain)
			plainWorld.Commit()
		}))
		t.stored = append(t.stored, timed(func() {
			moveAll(s)
			if err := store.Commit(); err != nil {
				b.Fatal(err)
			}
		}))
	}
	if err := store.Close(storetest.Background); err != nil {
		b.Fatal(err)
	}
	close(snapshots)
	for err := range snapshots {
		if err != nil {
			b.Fatal(err)
		}
		t.snapshots++
	}
	slices.Sort(t.plain)
	slices.Sort(t.stored)
	return t
}

func moveAll(s *ecs.Storage[point]) {
	values := s.MutValues()
	for i := range values {
		values[i].X++
	}
}
