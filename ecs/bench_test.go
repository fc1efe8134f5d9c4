package ecs_test

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
)

// The benchmarks of the files bench_*_test.go compare the package with a limit: the
// hand-written loop or copy that does the same work. Both sides run alternately in one process, so
// their ratio is valid on a machine whose speed varies. Every benchmark repeats its work itself, so
// run each benchmark once:
//
//	go test -run '^$' -bench '^BenchmarkBudget' -benchtime 1x ./ecs
//
// With -short they take a fifth of the time, and their figures vary more.
//
// The benchmarks report
//
//	ns/op       time of the package, per row or call
//	x/limit     time of the package divided by the time of the limit
//	x/budget    largest allowed x/limit
//	ns/more     time by which the first write in a frame is slower than later writes
//	ns/budget   largest allowed ns/more; in a benchmark without ns/more, largest allowed ns/op
//	ns/by-hand  ns/more of a hand-written undo log
//	allocs      allocations of one repetition, after warm-up

const (
	minRounds = 9 // Each side runs at least this many times.
	maxRounds = 20000
)

// enough returns the minimum running time of both sides.
func enough() time.Duration {
	if testing.Short() {
		return 80 * time.Millisecond
	}
	return 400 * time.Millisecond
}

// A side is one of the two implementations that a benchmark compares.
type side struct {
	prepare func() // Prepares the next repetition, untimed. May be nil.
	work    func()
}

// repeated returns a side that calls work the given number of times. Use it for work that is too
// short to be timed alone.
func repeated(times int, work func()) side {
	return side{work: func() {
		for range times {
			work()
		}
	}}
}

func (s side) ready() {
	if s.prepare != nil {
		s.prepare()
	}
}

func (s side) time() time.Duration {
	s.ready()
	start := now()
	s.work()
	return now() - start
}

func (s side) allocs() float64 {
	var before, after runtime.MemStats
	s.ready()
	runtime.ReadMemStats(&before)
	s.work()
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}

// inTurns runs the two sides alternately, and returns the lower quartile of the times of each side.
// The median would be too long, because other processes slow some of the runs down. The minimum
// would be too short, because the processor clock of a thread sometimes stops for a while.
func inTurns(ours, limit side) (a, b time.Duration) {
	for range 2 { // Warm up.
		ours.time()
		limit.time()
	}
	var as, bs []time.Duration
	var total time.Duration
	for round := 0; round < maxRounds && (round < minRounds || total < enough()); round++ {
		var x, y time.Duration
		if round%2 == 0 {
			x = ours.time()
			y = limit.time()
		} else {
			y = limit.time()
			x = ours.time()
		}
		as, bs, total = append(as, x), append(bs, y), total+x+y
	}
	return lowerQuartile(as), lowerQuartile(bs)
}

func lowerQuartile(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/4]
}

// quiet runs the loop of b on one thread, without garbage collections.
func quiet(b *testing.B, f func()) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		f()
	}
}

// compare reports the time per operation of the side ours. It also reports the ratio of this time
// to the time of the side limit, and the budget for the ratio.
func compare(b *testing.B, operations int, budget float64, ours, limit side) {
	var x, y time.Duration
	quiet(b, func() { x, y = inTurns(ours, limit) })
	b.ReportMetric(perOp(x, operations), "ns/op")
	b.ReportMetric(float64(x)/float64(y), "x/limit")
	b.ReportMetric(budget, "x/budget")
	b.ReportMetric(ours.allocs(), "allocs")
}

// compareMore reports how much slower the side first is than the side later, per operation. It also
// reports the budget for this difference. If byHand has two sides, it reports the difference of
// their times, too.
func compareMore(b *testing.B, operations int, budget float64, first, later side, byHand ...side) {
	var x, y, handX, handY time.Duration
	quiet(b, func() {
		if x, y = inTurns(first, later); byHand != nil {
			handX, handY = inTurns(byHand[0], byHand[1])
		}
	})
	b.ReportMetric(perOp(x, operations), "ns/op")
	b.ReportMetric(perOp(x-y, operations), "ns/more")
	b.ReportMetric(budget, "ns/budget")
	if byHand != nil {
		b.ReportMetric(perOp(handX-handY, operations), "ns/by-hand")
	}
	b.ReportMetric(first.allocs(), "allocs")
}

func perOp(d time.Duration, operations int) float64 {
	return float64(d.Nanoseconds()) / float64(operations)
}

// The hand-written code for structural changes and look-ups has sparse sets, without checkpoints
// and without generations in the rows. When it adds or removes a component, it checks that the
// entity is alive.

type position struct{ X, Y float64 }
type velocity struct{ X, Y float64 }

// A limitSet is a sparse set without tracking of changes.
type limitSet[T any] struct {
	sparse []uint32 // Maps an index to a row + 1. 0 means no row.
	dense  []uint32
	values []T
}

func (s *limitSet[T]) get(i uint32) *T {
	if int(i) < len(s.sparse) {
		if r := s.sparse[i]; r != 0 {
			return &s.values[r-1]
		}
	}
	return nil
}

func (s *limitSet[T]) set(i uint32, v T) {
	if int(i) >= len(s.sparse) {
		s.grow(i)
	}
	if r := s.sparse[i]; r != 0 {
		s.values[r-1] = v
		return
	}
	s.dense = append(s.dense, i)
	s.values = append(s.values, v)
	s.sparse[i] = uint32(len(s.dense))
}

func (s *limitSet[T]) grow(i uint32) {
	for int(i) >= len(s.sparse) {
		s.sparse = append(s.sparse, make([]uint32, max(1024, len(s.sparse)))...)
	}
}

func (s *limitSet[T]) remove(i uint32) bool {
	if int(i) >= len(s.sparse) || s.sparse[i] == 0 {
		return false
	}
	r, last := s.sparse[i]-1, len(s.dense)-1
	moved := s.dense[last]
	s.dense[r], s.values[r] = moved, s.values[last]
	s.sparse[moved] = r + 1
	s.sparse[i] = 0
	s.dense, s.values = s.dense[:last], s.values[:last]
	return true
}

type limitEntity struct{ index, generation uint32 }

// A limitWorld has entities and two components.
type limitWorld struct {
	generations []uint32
	free        []uint32
	positions   limitSet[position]
	velocities  limitSet[velocity]
}

func (w *limitWorld) create() limitEntity {
	if k := len(w.free) - 1; k >= 0 {
		i := w.free[k]
		w.free = w.free[:k]
		return limitEntity{i, w.generations[i]}
	}
	w.generations = append(w.generations, 1)
	return limitEntity{uint32(len(w.generations) - 1), 1}
}

func (w *limitWorld) alive(e limitEntity) bool {
	return int(e.index) < len(w.generations) && w.generations[e.index] == e.generation
}

func (w *limitWorld) setPosition(e limitEntity, v position) bool {
	if !w.alive(e) {
		return false
	}
	w.positions.set(e.index, v)
	return true
}

func (w *limitWorld) setVelocity(e limitEntity, v velocity) bool {
	if !w.alive(e) {
		return false
	}
	w.velocities.set(e.index, v)
	return true
}

func (w *limitWorld) removeVelocity(e limitEntity) bool {
	return w.alive(e) && w.velocities.remove(e.index)
}

func (w *limitWorld) destroy(e limitEntity) bool {
	if !w.alive(e) {
		return false
	}
	w.positions.remove(e.index)
	w.velocities.remove(e.index)
	w.generations[e.index]++
	w.free = append(w.free, e.index)
	return true
}

// A benchWorld has a world with two components. For comparison, it has a limitWorld with the same
// entities in the same order.
type benchWorld struct {
	w          *ecs.World
	positions  *ecs.Storage[position]
	velocities *ecs.Storage[velocity]
	entities   []ecs.Entity

	limit   limitWorld
	handles []limitEntity
}

// newBenchWorld returns a world of n entities without components.
func newBenchWorld(n int) *benchWorld {
	p := &benchWorld{w: ecs.NewWorld(ecs.Options{})}
	p.positions = ecs.MustRegister[position](p.w)
	p.velocities = ecs.MustRegister[velocity](p.w)
	for range n {
		p.entities = append(p.entities, p.w.Create())
		p.handles = append(p.handles, p.limit.create())
	}
	return p
}

// moving returns a world of n entities that have both components, added in the same order.
func moving(n int) *benchWorld {
	p := newBenchWorld(n)
	for i := range n {
		p.setPosition(i)
		p.setVelocity(i)
	}
	return p
}

// shuffled returns a world of n entities that have both components, added in two random orders.
func shuffled(n int) *benchWorld {
	p := newBenchWorld(n)
	for _, i := range permutation(n, 1) {
		p.setPosition(i)
	}
	for _, i := range permutation(n, 2) {
		p.setVelocity(i)
	}
	return p
}

func (p *benchWorld) setPosition(i int) {
	v := position{float64(i), 1}
	p.positions.Set(p.entities[i], v)
	p.limit.positions.set(p.handles[i].index, v)
}

func (p *benchWorld) setVelocity(i int) {
	v := velocity{1, float64(i)}
	p.velocities.Set(p.entities[i], v)
	p.limit.velocities.set(p.handles[i].index, v)
}

// permutation returns a random order of 0 .. n-1 that depends only on the seed.
func permutation(n int, seed uint64) []int {
	return rand.New(rand.NewPCG(seed, 0)).Perm(n)
}

// sink stores results, so that the compiler does not remove their computation.
var sink float64
