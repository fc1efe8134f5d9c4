package ecs

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// scatteredMembers returns a world with n entities. The rows of the second component are in another
// order, so the query finds runs of every length.
func scatteredMembers(n int) (*World, *Storage[plain], *Storage[padded]) {
	w, a, b, entities := members(n, Options{})
	for i, e := range entities {
		if i%1000 < 300 && i%3 != 0 {
			b.Remove(e)
		}
	}
	for i := len(entities) - 1; i >= 0; i-- {
		if i%2000 < 900 {
			b.Set(entities[i], padded{B: int64(i)})
		}
	}
	return w, a, b
}

func TestParallelRuns_EveryRowOnce(t *testing.T) {
	for _, n := range []int{0, 1, 63, 1024, 1025, 5000, 20_000} {
		for _, workers := range []int{-1, 0, 1, 2, 7} {
			w, a, b := scatteredMembers(n)
			before := w.Digest()
			cp := w.Checkpoint()
			q := NewQuery2(Write(a), Optional(Write(b)))
			for range 2 {
				q.ParallelRuns(workers, func(run Run2[plain, padded]) {
					for i := range run.A {
						run.A[i].X += 7
					}
					for i := range run.B {
						run.B[i].B -= 7
					}
				})
			}
			for e, v := range a.All() {
				if v.X != -v.Y+14 {
					t.Fatalf("%d rows, %d workers: %v is %v", n, workers, e, v)
				}
			}
			for e, v := range b.All() {
				if p, _ := a.Get(e); int64(p.X)-14 != v.B+14 {
					t.Fatalf("%d rows, %d workers: %v has %v", n, workers, e, v)
				}
			}
			w.Restore(cp)
			if got := w.Digest(); got != before {
				t.Fatalf("%d rows, %d workers: the digest is %v after restoring, want %v", n, workers, got, before)
			}
		}
	}
}

func TestParallelRuns_SplitsAtBlocksOfDriver(t *testing.T) {
	_, a, b := scatteredMembers(9000)
	for r := range b.Len() {
		if row := a.row(b.Entities()[r]); row < 0 {
			t.Fatal("b drives")
		}
	}
	starts := make([]Entity, 0, 100)
	q := NewQuery1(Read(a))
	q.ParallelRuns(1, func(run Run1[plain]) { starts = append(starts, run.Entities[0]) })
	for _, e := range starts {
		if row := a.row(e); row%64 != 0 {
			t.Errorf("a run begins with row %d", row)
		}
	}
	if size := partRows(9000); size != 128 || len(starts) != (9000+size-1)/size {
		t.Errorf("%d runs in parts of %d rows", len(starts), size)
	}
}

func TestParallelRuns_PanicInBody(t *testing.T) {
	for range 20 {
		_, a, _ := scatteredMembers(20_000)
		q := NewQuery1(Write(a))
		var calls atomic.Int32
		bad := 3 * partRows(20_000)
		body := func(run Run1[plain]) {
			calls.Add(1)
			time.Sleep(minSharedWork)
			if first := int(run.Entities[0].Index()); first >= bad {
				panic(fmt.Sprint("row ", first))
			}
		}
		mustPanic(t, fmt.Sprint("row ", bad), func() { q.ParallelRuns(4, body) })
		if calls.Load() > 8 {
			t.Errorf("%d runs visited, want no more than 4 after the first that panics", calls.Load())
		}
		n := 0
		q.ParallelRuns(1, func(run Run1[plain]) { n += len(run.A) })
		if n != 20_000 {
			t.Errorf("%d rows visited after a panic, want 20000", n)
		}
	}
}

func TestParallelRuns_GoexitInBody(t *testing.T) {
	_, a, _ := scatteredMembers(20_000)
	q := NewQuery1(Read(a))
	caller := make(chan struct{})
	go func() {
		defer close(caller)
		q.ParallelRuns(1, func(Run1[plain]) { runtime.Goexit() })
	}()
	<-caller
	count := 0
	q.ParallelRuns(1, func(run Run1[plain]) { count += len(run.A) })
	if count != 20_000 {
		t.Errorf("%d rows visited after a Goexit, want 20000", count)
	}

	// mustEnd runs ParallelRuns on two goroutines. The second goroutine ends in the body. The
	// goroutine of the test waits for this, except in its first call of the body.
	var other atomic.Bool
	first := true
	mustEnd := func() {
		q.ParallelRuns(2, func(Run1[plain]) {
			if !calledBy("testing.tRunner") {
				other.Store(true)
				runtime.Goexit()
			}
			for !first && !other.Load() {
				runtime.Gosched()
			}
			first = false
			time.Sleep(minSharedWork)
		})
	}
	mustPanic(t, "ecs: the body of ParallelRuns ended its goroutine", mustEnd)
}

// calledBy reports whether function is among the callers.
func calledBy(function string) bool {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for {
		f, more := frames.Next()
		if f.Function == function {
			return true
		}
		if !more {
			return false
		}
	}
}

func TestParallelRuns_WorldChangedInBody(t *testing.T) {
	w, a, _ := scatteredMembers(10)
	q := NewQuery1(Read(a))
	mustPanic(t, changedInParallelRuns(), func() {
		q.ParallelRuns(1, func(run Run1[plain]) { w.Destroy(run.Entities[0]) })
	})
	mustPanic(t, "ecs: ParallelRuns inside of its own loop", func() {
		q.ParallelRuns(1, func(Run1[plain]) { q.ParallelRuns(1, func(Run1[plain]) {}) })
	})
	mustPanic(t, "ecs: the world's structure changed in ParallelRuns", func() {
		q.ParallelRuns(1, func(Run1[plain]) { w.Checkpoint() })
	})
}

func TestParallelRuns_RunsOfOneRowShareParts(t *testing.T) {
	_, a, b, entities := members(5000, Options{})
	b.Clear()
	for _, e := range slices.Backward(entities) {
		b.Set(e, padded{})
	}
	q := NewQuery2(Read(a), Read(b))
	rows := 0
	q.ParallelRuns(1, func(run Run2[plain, padded]) { rows += len(run.A) })
	if got, want := len(q.parallel.parts)-1, 5000/64+1; got != want || rows != 5000 {
		t.Errorf("%d parts of %d rows, want %d of 5000", got, rows, want)
	}
}

func TestParallelRuns_FewSlowRowsShared(t *testing.T) {
	_, a, _, _ := members(1000, Options{})
	q := NewQuery1(Read(a))
	var others, rows atomic.Int32
	q.ParallelRuns(2, func(run Run1[plain]) {
		if !calledBy("testing.tRunner") {
			others.Add(1)
		}
		rows.Add(int32(len(run.A)))
		for end := time.Now().Add(10 * minSharedWork); time.Now().Before(end) || others.Load() == 0 && rows.Load() > 64 && calledBy("testing.tRunner"); {
			runtime.Gosched()
		}
	})
	if others.Load() == 0 || rows.Load() != 1000 {
		t.Errorf("other goroutines processed %d parts; %d rows", others.Load(), rows.Load())
	}
}

func TestWorthSharing_TrueAtPowersOfTwo(t *testing.T) {
	p := parallel[int]{parts: make([]int, 65)} // 64 parts.
	long := time.Now().Add(-time.Hour)
	for done := 1; done <= 64; done++ {
		want := done < 64 && done&(done-1) == 0
		if got := p.worthSharing(done, long); got != want {
			t.Errorf("worthSharing after an hour for %d parts of 64 = %v, want %v", done, got, want)
		}
	}
	if p.worthSharing(1, time.Now().Add(time.Hour)) {
		t.Error("worthSharing = true for parts that took no time")
	}
}

// ParallelRuns detects a changed world by a count of changes. If the world keeps no ticks, Commit
// does not increase this count. So ParallelRuns must detect a Commit in another way.
func TestParallelRuns_CommitInBody(t *testing.T) {
	w, a, _, _ := members(3, Options{})
	q := NewQuery1(Read(a))
	mustPanic(t, "ecs: Commit in the body of ParallelRuns", func() {
		q.ParallelRuns(1, func(Run1[plain]) { w.Commit() })
	})
	w.Commit()
}
