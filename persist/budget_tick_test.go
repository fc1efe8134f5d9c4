package persist_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/background"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

var budgetTicks = flag.Int("ticks", 600, "the `number` of ticks that BenchmarkBudgetTick runs, 60 a second; each is 1.6 MB of journal")

// BenchmarkBudgetTick measures what a store adds to a tick that writes all positions of a hundred
// thousand entities. There are 60 ticks a second, an fsync every 100 ms, and one snapshot after
// another. The result is the time of writing and Commit minus the median time in a world without a
// store, whose ticks run in turns. The limits are a millisecond for the median and four for the
// worst tick. The 99th percentile is also compared with two other runs. One has a store without
// snapshots. In the other one, hand-written code copies all rows instead.
func BenchmarkBudgetTick(b *testing.B) {
	measured := map[snapshotMode]tickTimes{}
	measure := func(b *testing.B, how snapshotMode) tickTimes {
		if _, ok := measured[how]; !ok {
			measured[how] = timeTicks(b, *budgetTicks, how)
		}
		return measured[how]
	}
	b.Run("median", func(b *testing.B) {
		reportBudget(b, measure(b, always).added(0.5), time.Millisecond, 1)
	})
	b.Run("p99", func(b *testing.B) {
		with, without := measure(b, always), measure(b, never)
		reportBudget(b, at(with.stored, 0.99), at(without.stored, 0.99), 1.5)
	})
	b.Run("p99-copied", func(b *testing.B) {
		with, copied := measure(b, always), measure(b, byHand)
		reportBudget(b, at(with.stored, 0.99), at(copied.stored, 0.99), 1.25)
	})
	b.Run("worst", func(b *testing.B) {
		t := measure(b, always)
		reportBudget(b, t.added(1), 4*time.Millisecond, 1)
		b.ReportMetric(milliseconds(t.added(0.99)), "p99-ms")
		b.ReportMetric(milliseconds(at(t.plain, 1)-at(t.plain, 0.5)), "plain-worst-ms")
		b.ReportMetric(float64(t.snapshots), "snapshots")
	})
}

// A snapshotMode says how and when the timed world gets snapshots.
type snapshotMode int

const (
	never  snapshotMode = iota
	always              // A snapshot begins whenever none is under way.
	// A handCopy every third tick, which is as often as a store takes snapshots in mode always.
	byHand
)

// tickTimes are the times of ticks without and with a store, ascending.
type tickTimes struct {
	plain, stored []time.Duration
	snapshots     int
}

// added returns what the store adds to the tick at quantile share, above the plain median.
func (t tickTimes) added(share float64) time.Duration {
	return at(t.stored, share) - at(t.plain, 0.5)
}

// at returns the time at quantile share of the ascending times.
func at(times []time.Duration, share float64) time.Duration {
	return times[int(share*float64(len(times)-1))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

const budgetTickRows = 100_000

// timeTicks runs n ticks of two worlds, one of which has a store.
func timeTicks(b *testing.B, n int, how snapshotMode) (t tickTimes) {
	plainWorld, plain := points(b, budgetTickRows, 0)
	w, s := points(b, budgetTickRows, 0)
	snapshots := make(chan error, n+8)
	options := persist.Options{
		Sync:          100 * time.Millisecond,
		SnapshotBytes: -1,
		OnSnapshot:    func(r persist.SnapshotResult) { snapshots <- r.Err },
	}
	if how == always {
		options.SnapshotBytes = 1
	}
	store, err := persist.Open(storetest.Background, b.TempDir(), w, options)
	if err != nil {
		b.Fatal(err)
	}
	hand := newHandCopy(b)
	defer hand.end()
	next := time.Now()
	for tick := range n {
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
			if how == byHand && tick%3 == 0 {
				hand.copy(s)
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

// A handCopy is a hand-written snapshot. It copies all entities and rows at once, if one of two
// buffers is free, and another goroutine writes and syncs the copy.
type handCopy struct {
	free, full chan []byte
}

func newHandCopy(b *testing.B) handCopy {
	h := handCopy{free: make(chan []byte, 2), full: make(chan []byte, 2)}
	for range cap(h.free) {
		h.free <- make([]byte, 0, budgetTickRows*24)
	}
	path := filepath.Join(b.TempDir(), "copy")
	go func() {
		background.Enter()
		for rows := range h.full {
			if err := writeAndSync(path, rows); err != nil {
				b.Error(err)
			}
			h.free <- rows[:0]
		}
	}()
	return h
}

func (h *handCopy) copy(s *ecs.Storage[point]) {
	select {
	case dst := <-h.free:
		entities, values := s.Entities(), s.Values()
		dst = append(dst, unsafe.Slice((*byte)(unsafe.Pointer(&entities[0])), len(entities)*8)...)
		h.full <- append(dst, unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*16)...)
	default:
	}
}

// end waits until all copies are on the disk.
func (h *handCopy) end() {
	close(h.full)
	for range cap(h.free) {
		<-h.free
	}
}

func writeAndSync(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

func moveAll(s *ecs.Storage[point]) {
	values := s.MutValues()
	for i := range values {
		values[i].X++
	}
}
