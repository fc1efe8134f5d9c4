package ecs

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A parallel distributes the rows of a query over several goroutines. Before it starts them, the
// caller finds the rows and saves those that the body may write. The goroutines then use slices
// that do not overlap.
//
// The field runs has the runs of consecutive rows. A part is several runs, one after the other.
// Each goroutine takes the next part until all parts are taken.
type parallel[R any] struct {
	run  func(entities []Entity, rows []uint32) R
	body func(R) // Body of the running loop, or nil.
	work func()  // The function that the other goroutines run. It calls runParts.

	w      *World // Nil if the loop is nested in another parallel loop.
	driver *set
	// Number of values for each run: a row for each column, the row in the driver, and the length.
	stride int
	runs   []uint32
	// parts[i] is the position in runs at which part i begins. The last element is len(runs).
	parts []int

	taken  atomic.Int64 // The number of parts that any goroutine has started.
	group  sync.WaitGroup
	failed sync.Mutex // Guards the fields first and reason.
	first  int        // Number of the first part that panicked.
	reason any        // Panic value of that part, or nil.
}

// partRows returns the number of rows of a part, for a driver with the given number of rows. A
// driver with 4096 or more rows has at least 64 parts, enough for 64 goroutines. The result is a
// multiple of 64 from 64 to 1024. It must not depend on the machine.
func partRows(rows int) int { return min(max(rows/64&^63, 64), 1024) }

// minSharedWork is the minimum remaining time for which other goroutines are started. Starting a
// goroutine takes some microseconds.
const minSharedWork = 20 * time.Microsecond

func (p *parallel[R]) runAll(j *join, workers int, body func(R)) {
	if p.body != nil {
		panic("ecs: ParallelRuns inside of its own loop; use one query for each")
	}
	p.body = body
	defer p.end()
	if !j.w.parallel { // The loop is not nested in another parallel loop.
		j.w.refreshIndexes()
		p.gather(j)
		p.w, j.w.parallel = j.w, true
	} else {
		p.gather(j)
	}
	changes, entities := j.w.changes, j.w.entities.border()
	p.start(workers)
	p.group.Wait()
	if p.reason != nil {
		panic(p.reason)
	}
	if j.w.changes != changes || j.w.entities.border() != entities {
		panic("ecs: the world's structure changed in ParallelRuns; collect the changes and make them afterwards")
	}
}

// end also runs if a body on this goroutine calls runtime.Goexit.
func (p *parallel[R]) end() {
	p.group.Wait()
	if p.w != nil {
		p.w.parallel, p.w = false, nil
	}
	p.body, p.driver, p.reason = nil, nil, nil
}

// gather finds the runs and divides them into parts.
func (p *parallel[R]) gather(j *join) {
	c := j.walk(j.columns)
	p.driver, p.stride = c.set, len(j.columns)+2
	size := partRows(c.set.rows.N)
	p.runs, p.parts = p.runs[:0], append(p.parts[:0], 0)
	rows := 0
	for run := c.nextRun(); run != nil; run = c.nextRun() {
		for lo, n := 0, int(run[p.stride-1]); lo < n; {
			hi := min(n, lo+size-int(run[p.stride-2]+uint32(lo))%size)
			p.runs = append(p.runs, run...)
			p.trimLast(lo, hi)
			if rows += hi - lo; rows >= size {
				p.parts, rows = append(p.parts, len(p.runs)), 0
			}
			lo = hi
		}
	}
	if rows > 0 {
		p.parts = append(p.parts, len(p.runs))
	}
}

// trimLast shortens the last run to the rows lo to hi-1, counted from the first row of the run.
func (p *parallel[R]) trimLast(lo, hi int) {
	run := p.runs[len(p.runs)-p.stride:]
	for i, row := range run[:p.stride-1] {
		if row != missing {
			run[i] += uint32(lo)
		}
	}
	run[p.stride-1] = uint32(hi - lo)
}

// start visits all parts, on this goroutine and up to workers-1 others.
func (p *parallel[R]) start(workers int) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p.taken.Store(0)
	if p.work == nil {
		// Create the closure only once, because it allocates memory.
		p.work = func() { p.runParts(0) }
	}
	p.group.Add(1)
	p.runParts(min(workers, len(p.parts)-1) - 1)
}

// runParts visits parts in order until all parts are taken. When much work remains, it starts the
// given number of other goroutines. If several parts panic, the first part determines the panic
// value.
func (p *parallel[R]) runParts(others int) {
	part := 0
	defer p.group.Done()
	defer func() { p.recordPanic(part, recover()) }()
	began := time.Now()
	for part = p.take(); part < len(p.parts)-1; part = p.take() {
		p.visit(p.runs[p.parts[part]:p.parts[part+1]])
		if others > 0 && p.worthSharing(part+1, began) {
			for ; others > 0; others-- {
				p.group.Add(1)
				go p.work()
			}
		}
	}
}

// worthSharing reports whether other goroutines should help with the remaining parts. The parameter
// done is the number of finished parts. It reads the clock only after 1, 2, 4, … parts, because
// reading the clock is slow.
func (p *parallel[R]) worthSharing(done int, began time.Time) bool {
	if done&(done-1) != 0 {
		return false
	}
	left := len(p.parts) - 1 - done
	return time.Since(began)/time.Duration(done)*time.Duration(left) >= minSharedWork
}

func (p *parallel[R]) take() int { return int(p.taken.Add(1)) - 1 }

func (p *parallel[R]) visit(runs []uint32) {
	for ; len(runs) > 0; runs = runs[p.stride:] {
		entities := p.driver.dense.Live[runs[p.stride-2]:][:runs[p.stride-1]]
		p.body(p.run(entities, runs))
	}
}

// recordPanic records the panic of a part, and stops the other goroutines after their current
// parts. reason is nil after a Goexit. If runParts has visited all parts, recordPanic does nothing.
func (p *parallel[R]) recordPanic(part int, reason any) {
	if part >= len(p.parts)-1 {
		return
	}
	if reason == nil {
		reason = "ecs: the body of ParallelRuns ended its goroutine (runtime.Goexit, or FailNow of a test); return from it instead"
	}
	p.failed.Lock()
	defer p.failed.Unlock()
	if p.reason == nil || part < p.first {
		p.first, p.reason = part, reason
	}
	p.taken.Add(int64(len(p.parts)))
}
