package persist_test

import (
	"encoding/binary"
	"flag"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/background"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

var budgetTicks = flag.Int("ticks", 600, "the `number` of ticks that BenchmarkBudgetTick runs, 60 a second; each is 1.6 MB of journal")

// BenchmarkBudgetTick measures what a store adds to a tick that writes all positions of a hundred
// thousand entities. There are 60 ticks a second, an fsync every 100 ms, and one snapshot after
// another. Two worlds take turns, one with a store and one without.
//
//   - median: the store adds at most a millisecond
//   - worst: the store adds at most four milliseconds to any tick
//   - p99: the 99th percentile, compared with that of a store without snapshots
//   - p99-copied: the same, compared with a store where hand-written code copies all rows
func BenchmarkBudgetTick(b *testing.B) {
	measured := map[snapshotMode]tickTimes{}
	measure := func(b *testing.B, how snapshotMode) tickTimes {
		if _, ok := measured[how]; !ok {
			ticks := *budgetTicks
			if testing.Short() {
				ticks = min(ticks, 150)
			}
			measured[how] = timeTicks(b, ticks, how)
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
	always              // A new snapshot begins when the previous one ends.
	// A handCopy begins every third tick, as often as snapshots begin in mode always.
	byHand
)

// tickTimes are the times of ticks without and with a store, ascending.
type tickTimes struct {
	plain, stored []time.Duration
	snapshots     int
}

// added returns a quantile of the ticks with a store, minus the median of the ticks without a
// store.
func (t tickTimes) added(share float64) time.Duration {
	return at(t.stored, share) - at(t.plain, 0.5)
}

// at returns a quantile of ascending times: share 0.5 is the median, and share 1 the longest time.
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

// BenchmarkBudgetLargeRows measures ticks that write to large rows. The time begins with the first
// write and ends when the rows are in the journal's buffer with a checksum. It is compared with a
// copy and a checksum of the whole rows, the minimum for a tick that writes whole rows.
func BenchmarkBudgetLargeRows(b *testing.B) {
	type tiles struct{ Cells [256][256]uint8 }
	type chunk struct{ Cells [64][64]uint8 }
	type canvas struct{ Pixels []uint8 }
	w := ecs.NewWorld(ecs.Options{})
	land := ecs.Must(ecs.RegisterResource(w, tiles{}))
	drawn := ecs.Must(ecs.RegisterResource(w, canvas{make([]uint8, 1<<16)}))
	chunks := ecs.MustRegister[chunk](w)
	for range 100 {
		chunks.Set(w.Create(), chunk{})
	}
	tick := uint8(0)
	var all [2]tiles
	for i := range 256 * 256 {
		all[0].Cells[i>>8][i&255], all[1].Cells[i>>8][i&255] = uint8(i*i>>3), uint8(i*i>>3)+1
	}
	for _, c := range []struct {
		name   string
		size   int // Bytes of all rows written.
		budget float64
		write  func()
	}{
		{"byte-of-64K", 1 << 16, 1, func() { land.Mut().Cells[100][tick]++ }},
		{"byte-of-each-100-of-4K", 100 << 12, 1.5, func() {
			for _, e := range w.Entities() {
				chunks.Mut(e).Cells[3][tick&63]++
			}
		}},
		{"byte-of-64K-that-varies", 1 << 16, 2, func() { drawn.Mut().Pixels[int(tick)*100]++ }},
		{"all-of-64K", 1 << 16, 6, func() {
			*land.Mut() = all[tick&1]
		}},
		{"all-of-100-of-4K", 100 << 12, 6, func() {
			for _, e := range w.Entities() {
				*chunks.Mut(e) = *(*chunk)(unsafe.Pointer(&all[tick&1]))
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := &encodingRecorder{encoder: persist.NewTickRecorder(format.SchemaOf(w))}
			if err := w.Raw().Attach(r, w.Tick()); err != nil {
				b.Fatal(err)
			}
			// A recorder that stays attached would also record the next run.
			defer func() { _ = w.Raw().Detach(r) }()
			src, dst := filled(c.size), filled(c.size)
			var sum uint32
			ours, limit := shortest(20*budgetRounds, func() time.Duration {
				tick++
				return timed(func() {
					c.write()
					w.Commit()
				})
			}, func() time.Duration {
				return timed(func() {
					copy(dst, src)
					sum += crc32.Checksum(dst, crc32.MakeTable(crc32.Castagnoli))
				})
			})
			reportBudget(b, ours, limit, c.budget)
			b.ReportMetric(float64(len(r.buf)), "bytes/tick")
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}

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

// BenchmarkBudgetSnapshot measures snapshots of a million rows of 16 bytes:
//
//   - a full snapshot; its time is compared with that of writing a limitFile
//   - a snapshot after a contiguous hundredth of the rows was written; its time and bytes are
//     compared with those of a full one
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
// at scattered places. The budget is 2 ms.
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

// BenchmarkBudgetFollow measures a follower with a world of a million rows, tick by tick. Each tick
// of the store writes a thousand random rows. The time is compared with hand-written code that
// reads the new bytes of a growing file and copies the rows to their places.
func BenchmarkBudgetFollow(b *testing.B) {
	const n, rows = 1_000_000, 1000
	w, s := points(b, n, 0)
	dir := b.TempDir()
	options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1}
	store, err := persist.Open(storetest.Background, filepath.Join(dir, "store"), w, options)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close(storetest.Background)
	seen := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[point](seen)
	follower, err := persist.Follow(storetest.Background, filepath.Join(dir, "store"), seen)
	if err != nil {
		b.Fatal(err)
	}
	defer follower.Close()

	rng := rand.New(rand.NewPCG(1, 9))
	picked := make([]int, rows)
	ours := func() time.Duration {
		entities := s.Entities()
		for range rows {
			s.Mut(entities[rng.IntN(n)]).X++
		}
		if err := store.Commit(); err != nil {
			b.Fatal(err)
		}
		if err := store.Sync(storetest.Background); err != nil {
			b.Fatal(err)
		}
		return timed(func() {
			if changed, err := follower.Advance(storetest.Background); err != nil || !changed {
				b.Fatal(changed, err)
			}
		})
	}

	name := filepath.Join(dir, "rows")
	write, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer write.Close()
	read, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer read.Close()
	live, at, buf := make([]point, n), int64(0), []byte(nil)
	limit := func() time.Duration {
		for i := range picked {
			picked[i] = rng.IntN(n)
		}
		slices.Sort(picked)
		var tick []byte
		for _, row := range picked {
			tick = binary.LittleEndian.AppendUint32(tick, uint32(row))
			tick = binary.LittleEndian.AppendUint64(tick, math.Float64bits(1))
			tick = binary.LittleEndian.AppendUint64(tick, math.Float64bits(2))
		}
		if _, err := write.Write(tick); err != nil {
			b.Fatal(err)
		}
		return timed(func() {
			info, err := os.Stat(name)
			if err != nil {
				b.Fatal(err)
			}
			buf = slices.Grow(buf[:0], int(info.Size()-at))[:info.Size()-at]
			if _, err := read.ReadAt(buf, at); err != nil {
				b.Fatal(err)
			}
			at = info.Size()
			for src := buf; len(src) > 0; src = src[20:] {
				row := &live[binary.LittleEndian.Uint32(src)]
				row.X = math.Float64frombits(binary.LittleEndian.Uint64(src[4:]))
				row.Y = math.Float64frombits(binary.LittleEndian.Uint64(src[12:]))
			}
		})
	}
	a, l := shortest(100, ours, limit)
	reportBudget(b, a, l, 10)
}
