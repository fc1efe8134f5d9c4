package persist_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Each BenchmarkBudget compares our code with hand-written code for the same work, or with a fixed
// time. Our code and the other code run alternately in one process, and the shortest times count.
// Run the benchmarks once:
//
//	go test -run '^$' -bench '^BenchmarkBudget' -benchtime 1x ./persist
//
// x/limit is our time divided by the other time, and x/budget is the largest allowed quotient.

const budgetRounds = 15

// shortest runs the two functions in turns, and returns the shortest time of each. Interference can
// only make a run longer.
func shortest(rounds int, ours, limit func() time.Duration) (a, b time.Duration) {
	a, b = ours(), limit()
	for range rounds {
		a, b = min(a, ours()), min(b, limit())
	}
	return a, b
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func reportBudget(b *testing.B, ours, limit time.Duration, budget float64) {
	b.ReportMetric(float64(ours)/float64(limit), "x/limit")
	b.ReportMetric(budget, "x/budget")
	b.ReportMetric(float64(ours.Nanoseconds()), "ns/op")
}

type point struct{ X, Y float64 }

func points(b *testing.B, n, history int) (*ecs.World, *ecs.Storage[point]) {
	w := ecs.NewWorld(ecs.Options{History: history})
	s, err := ecs.Register[point](w)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		s.Set(w.Create(), point{float64(i), 1})
	}
	return w, s
}

// An encodingRecorder encodes each tick as a Store does, but into one buffer instead of a journal.
type encodingRecorder struct {
	encoder *persist.TickRecorder
	buf     []byte
	crc     uint32
}

func (r *encodingRecorder) Record(c *raw.Change) uint64 {
	r.buf = r.encoder.Encode(r.buf[:0], c)
	r.crc = crc32.Checksum(r.buf, crc32.MakeTable(crc32.Castagnoli))
	return c.Tick
}

// BenchmarkBudgetCommit measures a commit of 100k written rows of 16 bytes, until they are in the
// journal's buffer with a checksum. The time is compared with a copy and a checksum of the same
// rows. The written rows are:
//
//   - all: all rows of a world
//   - scattered: every tenth row of a million
//   - random: one random row of each ten, of a million
func BenchmarkBudgetCommit(b *testing.B) {
	const rows = 100_000
	for _, c := range []struct {
		name string
		of   int
		pick func(i int) int // Returns the i-th row to write; ascending.
		any  bool            // Write in random order.
	}{
		{"all", rows, func(i int) int { return i }, false},
		{"scattered", 10 * rows, func(i int) int { return 10 * i }, false},
		{"random", 10 * rows, func(i int) int { return 10*i + int(uint32(i)*2654435761>>16)%10 }, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, s := points(b, c.of, 0)
			r := &encodingRecorder{encoder: persist.NewTickRecorder(format.SchemaOf(w))}
			if err := w.Raw().Attach(r, 0); err != nil {
				b.Fatal(err)
			}
			picked := make([]int, rows)
			for i := range picked {
				picked[i] = c.pick(i)
			}
			order := slices.Clone(picked)
			if c.any {
				rand.New(rand.NewPCG(1, 2)).Shuffle(rows, func(i, j int) { order[i], order[j] = order[j], order[i] })
			}
			write := func() {
				entities := s.Entities()
				for _, row := range order {
					s.Mut(entities[row]).X++
				}
			}
			src, dst := filled(16*c.of), filled(16*rows)
			gather := func() {
				if c.of == rows {
					copy(dst, src)
					return
				}
				for i, row := range picked {
					copy(dst[16*i:16*i+16], src[16*row:])
				}
			}
			var sum uint32
			commit := func() time.Duration {
				write()
				return timed(w.Commit)
			}
			ours, limit := shortest(10*budgetRounds, commit, func() time.Duration {
				return timed(func() {
					gather()
					sum += crc32.Checksum(dst, crc32.MakeTable(crc32.Castagnoli))
				})
			})
			reportBudget(b, ours, limit, 4)
			b.ReportMetric(testing.AllocsPerRun(10, func() { write(); w.Commit() }), "allocs")
			b.ReportMetric(float64(len(r.buf))/rows, "bytes/row")
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}

// filled returns n bytes of memory that was written once. The system maps all unwritten memory to
// one page of zeros. That page would always be in the cache, so reads of it would be too fast.
func filled(n int) []byte { return bytes.Repeat([]byte{1}, n) }

const budgetEntities = 1_000_000

// BenchmarkBudgetSave measures a save of a million rows of 16 bytes that replaces an older one. The
// budget allows a multiple of the time of hand-written code, see limitFile.
func BenchmarkBudgetSave(b *testing.B) {
	dir := b.TempDir()
	w, s := points(b, budgetEntities, 0)
	file, byHand := filepath.Join(dir, "world.save"), limitFile{name: filepath.Join(dir, "limit")}
	ours, limit := shortest(budgetRounds, func() time.Duration {
		return timed(func() { mustSave(b, file, w) })
	}, func() time.Duration {
		return timed(func() { byHand.save(b, s) })
	})
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	reportBudget(b, ours, limit, 1/0.6)
	b.ReportMetric(float64(info.Size())/ours.Seconds()/1e6, "MB/s")
}

func mustSave(b *testing.B, file string, w *ecs.World) {
	if err := persist.Save(storetest.Background, file, w); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBudgetSaveBehind measures how long a call of SaveBehind takes, for 50,000 entities with
// three components. The budget is 3 ms.
func BenchmarkBudgetSaveBehind(b *testing.B) {
	w, positions := points(b, 50_000, 0)
	speeds, health := ecs.MustRegister(w, ecs.Component[struct{ X, Y float64 }]{Name: "speed"}), ecs.MustRegister(w, ecs.Component[struct{ HP, Max int32 }]{Name: "health"})
	for _, e := range positions.Entities() {
		speeds.Set(e, struct{ X, Y float64 }{1, 2})
		health.Set(e, struct{ HP, Max int32 }{3, 4})
	}
	w.Commit()
	file := filepath.Join(b.TempDir(), "save")
	var times []time.Duration
	for range 15 {
		start := time.Now()
		saved := persist.SaveBehind(storetest.Background, file, w)
		times = append(times, time.Since(start))
		if err := <-saved; err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(times)
	reportBudget(b, at(times, 0.5), 3*time.Millisecond, 1)
}

// BenchmarkCommitEvery measures the journal bytes of a tick and the duration of its Commit. Each
// tick writes about a third of 50,000 entities. Ticks 1 to 4 write the first third, ticks 5 to 8
// the second third, and so on.
func BenchmarkCommitEvery(b *testing.B) {
	for _, every := range []int{1, 4, 16} {
		b.Run(fmt.Sprint(every), func(b *testing.B) {
			w, positions := points(b, 50_000, 0)
			s, err := persist.Open(storetest.Background, b.TempDir(), w, persist.Options{CommitEvery: every, SnapshotBytes: -1})
			if err != nil {
				b.Fatal(err)
			}
			before, tick := s.Metrics().JournalBytes, 0
			for b.Loop() {
				b.StopTimer()
				for _, e := range positions.Entities()[tick/4%3*16_000:][:16_000] {
					positions.Mut(e).X++
				}
				tick++
				b.StartTimer()
				if err := s.Commit(); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Close(storetest.Background); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(s.Metrics().JournalBytes-before)/float64(tick), "B/tick")
		})
	}
}

// BenchmarkBudgetLoad measures loading a save of a million rows of 16 bytes, in the order of
// creation or in a random order. The time is compared with hand-written code that loads a
// limitFile.
func BenchmarkBudgetLoad(b *testing.B) {
	for _, c := range []struct {
		name string
		any  bool
	}{{"ordered", false}, {"random", true}} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			w, s := points(b, budgetEntities, 0)
			if c.any {
				s.SortFunc(func(x, y point) int { return cmp.Compare(mixed(x.X), mixed(y.X)) })
			}
			file, byHand := filepath.Join(dir, "world.save"), limitFile{name: filepath.Join(dir, "limit")}
			mustSave(b, file, w)
			byHand.saveNamed(b, w, s)
			ours, limit := shortest(budgetRounds, func() time.Duration {
				to := ecs.NewWorld(ecs.Options{})
				ecs.MustRegister[point](to)
				runtime.GC() // Free the memory of the previous run.
				return timed(func() {
					if err := persist.Load(storetest.Background, file, to); err != nil {
						b.Fatal(err)
					}
				})
			}, func() time.Duration {
				runtime.GC()
				return timed(func() { byHand.load(b, budgetEntities) })
			})
			reportBudget(b, ours, limit, 1.2)
			b.ReportMetric(16*budgetEntities/ours.Seconds()/1e6, "MB/s")
		})
	}
}

// mixed returns a hash of x, which serves as a random number.
func mixed(x float64) uint64 { return uint64(x) * 0x9e3779b97f4a7c15 }

// BenchmarkBudgetReplay measures decoding ticks and applying them to an image, with all checks. The
// world has a hundred thousand entities. The ticks change all positions, change every tenth
// position, or destroy a tenth of the entities and create as many. The budget is ten million row
// updates a second. Rows of the registry, rows of entities and rows of values all count as updates.
func BenchmarkBudgetReplay(b *testing.B) {
	const rows, ticks = 100_000, 20
	for _, c := range []struct {
		name string
		tick func(w *ecs.World, s *ecs.Storage[point])
	}{
		{"all", func(_ *ecs.World, s *ecs.Storage[point]) {
			for i := range s.MutValues() {
				s.MutValues()[i].X++
			}
		}},
		{"scattered", func(_ *ecs.World, s *ecs.Storage[point]) {
			for i := 0; i < rows; i += 10 {
				s.Mut(s.Entities()[i]).X++
			}
		}},
		{"structure", func(w *ecs.World, s *ecs.Storage[point]) {
			for i := range rows / 10 {
				w.Destroy(w.Entities()[i*7%w.Len()])
			}
			for range rows / 10 {
				s.Set(w.Create(), point{1, 2})
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, s := points(b, 0, 0)
			sch := format.SchemaOf(w)
			r := &encodingRecorder{encoder: persist.NewTickRecorder(sch)}
			if err := w.Raw().Attach(r, 0); err != nil {
				b.Fatal(err)
			}
			for range rows {
				s.Set(w.Create(), point{})
			}
			w.Commit()
			payloads, updates := [][]byte{bytes.Clone(r.buf)}, 0
			for range ticks {
				c.tick(w, s)
				w.Commit()
				payloads = append(payloads, bytes.Clone(r.buf))
				updates += updatesOf(b, r.buf)
			}
			var im *image.Image
			replay := func(payload []byte) {
				t, err := format.DecodeTick(payload)
				if err == nil {
					err = im.Apply(t, journal.ID{})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			ours, _ := shortest(budgetRounds, func() time.Duration {
				im = image.New(sch)
				replay(payloads[0])
				return timed(func() {
					for _, p := range payloads[1:] {
						replay(p)
					}
				})
			}, func() time.Duration { return 0 })
			if im.Digest() != w.Digest() {
				b.Fatal("replay led to another state")
			}
			reportBudget(b, ours, time.Duration(updates)*100, 1) // 100 ns for each update.
			b.ReportMetric(float64(updates)/ours.Seconds()/1e6, "Mrows/s")
		})
	}
}

// updatesOf counts the row updates of a tick.
func updatesOf(b *testing.B, payload []byte) (n int) {
	t, err := format.DecodeTick(payload)
	if err != nil {
		b.Fatal(err)
	}
	if t.Registry != nil {
		n += format.CountRows(t.Registry.Ranges)
	}
	for _, s := range t.Storages {
		n += format.CountRows(s.EntityRanges) + format.CountRows(s.ValueRanges)
	}
	return n
}

// Rows of several widths, and a row without a fixed width.
type (
	label  struct{ Text string }
	health int32
	matrix [16]float32
)

// BenchmarkLoadMixed loads a save with strings and with components of 4, 16 and 64 bytes. It has no
// budget. The reported bytes are those of the file.
func BenchmarkLoadMixed(b *testing.B) {
	register := func() (*ecs.World, func(i int, e ecs.Entity)) {
		w := ecs.NewWorld(ecs.Options{})
		points, healths := ecs.MustRegister[point](w), ecs.MustRegister[health](w)
		matrices, labels := ecs.MustRegister[matrix](w), ecs.MustRegister[label](w)
		return w, func(i int, e ecs.Entity) {
			points.Set(e, point{float64(i), 1})
			healths.Set(e, health(i))
			if i%2 == 0 {
				matrices.Set(e, matrix{float32(i)})
			}
			if i%4 == 0 {
				labels.Set(e, label{"entity " + strconv.Itoa(i)})
			}
		}
	}
	w, set := register()
	for i := range budgetEntities / 4 {
		set(i, w.Create())
	}
	file := filepath.Join(b.TempDir(), "world.save")
	if err := persist.Save(storetest.Background, file, w); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		to, _ := register()
		if err := persist.Load(storetest.Background, file, to); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBudgetShow measures ecsdump show for one entity of a save of a million entities,
// including the opening. The budget is 100 ms. A larger save needs no more reads, so a million
// entities are enough. The reported memory is the sum of all allocations.
func BenchmarkBudgetShow(b *testing.B) {
	const entities, limit = 1_000_000, 100 * time.Millisecond
	save := filepath.Join(b.TempDir(), "save")
	w, _ := points(b, entities, 0)
	if err := persist.Save(storetest.Background, save, w); err != nil {
		b.Fatal(err)
	}
	show := func() {
		v, err := inspect.OpenReadOnly(storetest.Background, save)
		if err != nil {
			b.Fatal(err)
		}
		defer v.Close()
		s, err := v.Peek(storetest.Background, ecs.NewEntity(entities/2, 1), 0)
		if err != nil || s.Components[0].Value.Index(0).Float() != entities/2 {
			b.Fatal(s, err)
		}
	}
	ours := timed(show)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range budgetRounds {
		ours = min(ours, timed(show))
	}
	runtime.ReadMemStats(&after)
	reportBudget(b, ours, limit, 1)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/budgetRounds/1024, "KiB")
}

// The budgets of snapshots, saves and loads compare with the code below. This hand-written code
// writes a world of one component to a file and reads it back. It knows the types, so the file
// describes nothing and no other program can read it. Each file is complete, and shares no pages
// with other files. Damage is detected but not located.

// limitPage is how many bytes each checksum covers.
const limitPage = 64 << 10

// A limitFile has the entities and the values of a world's rows, in row order, and then the
// checksums of all pages. load rebuilds the sparse array from the entities. A loaded world must
// also know the entity at each index, so that a new entity gets an unused ID. saveNamed writes
// these entities first.
type limitFile struct {
	name string
	buf  []byte // Reused buffer for the copy.
}

// bytesOf returns the bytes in memory of the slice rows, without a copy.
func bytesOf[T any](rows []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)*int(unsafe.Sizeof(rows[0])))
}

// save writes the rows of the storage s to the file.
func (l *limitFile) save(b *testing.B, s *ecs.Storage[point]) {
	l.publish(b, bytesOf(s.Entities()), bytesOf(s.Values()))
}

// saveNamed writes the entity at each index of the world w, and then the rows of the storage s. All
// entities of w are alive.
func (l *limitFile) saveNamed(b *testing.B, w *ecs.World, s *ecs.Storage[point]) {
	names := make([]ecs.Entity, w.Len())
	for _, e := range w.Entities() {
		names[e.Index()] = e
	}
	l.publish(b, bytesOf(names), bytesOf(s.Entities()), bytesOf(s.Values()))
}

// snapshot copies the rows of s, so that its world can continue, and writes the copy.
func (l *limitFile) snapshot(b *testing.B, s *ecs.Storage[point]) {
	l.buf = append(append(l.buf[:0], bytesOf(s.Entities())...), bytesOf(s.Values())...)
	l.publish(b, l.buf)
}

// publish writes the given byte slices and the checksums of all pages to a file. The file is
// complete and durable before it gets its name.
func (l *limitFile) publish(b *testing.B, parts ...[]byte) {
	unnamed := l.name + ".part"
	f, err := os.Create(unnamed)
	if err != nil {
		b.Fatal(err)
	}
	var sums []byte
	for _, part := range parts {
		for len(part) > 0 {
			page := part[:min(limitPage, len(part))]
			sums = binary.LittleEndian.AppendUint64(sums, xxh3.Hash(page))
			part = part[len(page):]
		}
	}
	for _, part := range append(parts, sums) {
		if _, err = f.Write(part); err != nil {
			b.Fatal(err)
		}
	}
	dir, openErr := os.Open(filepath.Dir(l.name))
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(unnamed, l.name), openErr, dir.Sync(), dir.Close()); err != nil {
		b.Fatal(err)
	}
}

// A limitWorld is a loaded world: a sparse set, and the entity at each index. It takes 36 bytes a
// row. A World takes a little more than 40.
type limitWorld struct {
	names    []ecs.Entity
	sparse   []uint32
	entities []ecs.Entity
	values   []point
}

// load reads a world of n entities with indices below n. It reads each page directly to its final
// place, and computes the checksum while the page is in the cache.
func (l *limitFile) load(b *testing.B, n int) *limitWorld {
	w := &limitWorld{
		names:    make([]ecs.Entity, n),
		sparse:   make([]uint32, n),
		entities: make([]ecs.Entity, n),
		values:   make([]point, n),
	}
	f, err := os.Open(l.name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var sums []byte
	for _, part := range [][]byte{bytesOf(w.names), bytesOf(w.entities), bytesOf(w.values)} {
		for len(part) > 0 {
			page := part[:min(limitPage, len(part))]
			if _, err := io.ReadFull(f, page); err != nil {
				b.Fatal(err)
			}
			sums = binary.LittleEndian.AppendUint64(sums, xxh3.Hash(page))
			part = part[len(page):]
		}
	}
	if stored, err := io.ReadAll(f); err != nil || !bytes.Equal(stored, sums) {
		b.Fatal("the sums differ", err)
	}
	for i, e := range w.names {
		if e.Index() != uint32(i) || e.Generation() == 0 {
			b.Fatal("the entity at an index is wrong")
		}
	}
	for row, e := range w.entities {
		if e.Index() >= uint32(n) || w.names[e.Index()] != e || w.sparse[e.Index()] != 0 {
			b.Fatal("an entity has an index out of range")
		}
		w.sparse[e.Index()] = uint32(row) + 1
	}
	return w
}
