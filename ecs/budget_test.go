package ecs_test

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// The benchmarks of this file and of budget_*_test.go compare the package with a limit: the
// hand-written loop or copy that does the same work. Both sides run alternately in one process, so
// their ratio is valid on a machine whose speed varies. Every benchmark repeats its work itself, so
// run each benchmark once:
//
//	go test -run '^$' -bench '^BenchmarkBudget' -benchtime 1x ./ecs
//
// The benchmarks report
//
//	ns/op     time of the package, per row or call
//	x/limit   that time divided by the limit's
//	x/budget  the allowed value of x/limit
//	ns/more   for first writes in a frame: their extra cost over later writes
//	ns/budget the allowed value of ns/more, or of ns/op without ns/more
//	ns/by-hand the value of ns/more for a hand-written undo log
//	allocs    allocations of one repetition, once warm

const (
	minRounds = 9                      // Each side runs at least this many times.
	enough    = 400 * time.Millisecond // The sides run until both have run for at least this long.
	maxRounds = 20000
)

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

// inTurns runs the two sides alternately and returns the lower quartile of the times of each side.
// Disturbances make a run longer. The minimum would be too short, because the processor time of a
// thread sometimes stops for a while.
func inTurns(ours, limit side) (a, b time.Duration) {
	for range 2 { // Warm up.
		ours.time()
		limit.time()
	}
	var as, bs []time.Duration
	var total time.Duration
	for round := 0; round < maxRounds && (round < minRounds || total < enough); round++ {
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

// compare reports the time of ours per operation, its ratio to limit, and the budget.
func compare(b *testing.B, operations int, budget float64, ours, limit side) {
	var x, y time.Duration
	quiet(b, func() { x, y = inTurns(ours, limit) })
	b.ReportMetric(perOp(x, operations), "ns/op")
	b.ReportMetric(float64(x)/float64(y), "x/limit")
	b.ReportMetric(budget, "x/budget")
	b.ReportMetric(ours.allocs(), "allocs")
}

// compareMore reports how much longer first takes than later, per operation, and the budget in
// nanoseconds. If byHand has two sides, it also reports how much longer the first of them takes
// than the second.
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
