package ecs

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// tryPanic calls f, which must panic, and recovers.
func tryPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// A panickingLoop writes some rows in a loop, and then panics.
type panickingLoop struct {
	name string
	run  func(w *World, a *Storage[plain], b *Storage[padded])
}

func panickingLoops() []panickingLoop {
	boom := func() { panic(errTried) }
	return []panickingLoop{
		{"All", func(w *World, a *Storage[plain], _ *Storage[padded]) {
			for _, p := range NewQuery1(Write(a)).All() {
				p.X++
				boom()
			}
		}},
		{"All in a function value", func(w *World, a *Storage[plain], _ *Storage[padded]) {
			all := NewQuery1(Write(a)).All()
			all(func(_ Entity, p *plain) bool {
				p.X++
				boom()
				return true
			})
		}},
		{"AllOptional", func(w *World, a *Storage[plain], b *Storage[padded]) {
			for _, row := range NewQuery2(Write(a), Optional(Write(b))).AllOptional() {
				row.A.X++
				boom()
			}
		}},
		{"Runs", func(w *World, a *Storage[plain], _ *Storage[padded]) {
			for run := range NewQuery1(Write(a)).Runs() {
				run.A[0].X++
				boom()
			}
		}},
		{"ParallelRuns", func(w *World, a *Storage[plain], _ *Storage[padded]) {
			NewQuery1(Write(a)).ParallelRuns(1, func(run Run1[plain]) {
				run.A[0].X++
				boom()
			})
		}},
		{"nested", func(w *World, a *Storage[plain], b *Storage[padded]) {
			for _, outer := range NewQuery1(Write(a)).All() {
				for _, inner := range NewQuery1(Write(b)).All() {
					outer.X++
					inner.B++
					boom()
				}
			}
		}},
		{"the loop's own panic", func(w *World, a *Storage[plain], _ *Storage[padded]) {
			for _, p := range NewQuery1(Write(a)).All() {
				p.X++
				a.SortEntities(byIndexBackwards)
			}
		}},
		{"the own panic of Runs", func(w *World, a *Storage[plain], _ *Storage[padded]) {
			for run := range NewQuery1(Write(a)).Runs() {
				run.A[0].X++
				w.Destroy(a.Entities()[50])
			}
		}},
	}
}

// After a panic in the body of a loop, the next commit records the rows of the loop. Later commits
// do not record them again.
func TestPanicInLoop_RowsRecordedOnce(t *testing.T) {
	for _, loop := range panickingLoops() {
		for _, history := range []int{0, 4} {
			t.Run(fmt.Sprint(loop.name, " with history ", history), func(t *testing.T) {
				w := NewWorld(Options{History: history})
				a, b := MustRegister[plain](w), MustRegister[padded](w)
				for _, e := range w.CreateN(nil, 100) {
					a.Set(e, plain{})
					b.Set(e, padded{})
				}
				recorded := 0
				if err := w.Raw().Attach(recorderFunc(func(c *raw.Change) uint64 {
					recorded = 0
					for _, s := range c.Storages {
						for _, rows := range c.Of(s).Values {
							recorded += rows.N
						}
					}
					return 1
				}), 0); err != nil {
					t.Fatal(err)
				}
				tryPanic(t, func() { loop.run(w, a, b) })
				if !w.Raw().Dirty() {
					t.Error("rows were written, but the world is not dirty")
				}
				if w.Commit(); recorded == 0 {
					t.Error("the commit after the panic records no row")
				}
				for tick := range 3 {
					if w.Raw().Dirty() {
						t.Errorf("the world is dirty in idle tick %d", tick)
					}
					if w.Commit(); recorded > 0 {
						t.Errorf("idle tick %d records %d rows, want none", tick, recorded)
					}
				}
				if len(w.activeCursors) > 0 {
					t.Errorf("%d cursors are left", len(w.activeCursors))
				}
				if err := w.check(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The world never commits. A loop panics after a checkpoint. Later checkpoints must not save the
// rows of this loop again.
func TestPanicInLoop_LaterCheckpointsSaveNoRows(t *testing.T) {
	for _, loop := range panickingLoops() {
		t.Run(loop.name, func(t *testing.T) {
			w := NewWorld(Options{})
			a, b := MustRegister[plain](w), MustRegister[padded](w)
			for _, e := range w.CreateN(nil, 100) {
				a.Set(e, plain{})
				b.Set(e, padded{})
			}
			w.Checkpoint()
			tryPanic(t, func() { loop.run(w, a, b) })
			w.Checkpoint()
			last := w.Checkpoint()
			if n := last.Bytes(); n > 0 {
				t.Errorf("%d bytes are saved for a checkpoint after which nothing was written", n)
			}
		})
	}
}

// In the body of an outer loop, many inner loops panic. The world must keep the cursor of the outer
// loop, so that its rows can still be written.
func TestPanicInLoop_OuterLoopStillWrites(t *testing.T) {
	w, a, b, _ := members(2, Options{History: 2})
	outer, inner := NewQuery1(Write(a)), NewQuery1(Write(b))
	w.Commit()
	for e, p := range outer.All() {
		for range 3 * maxActiveCursors {
			func() {
				defer func() { _ = recover() }()
				for range inner.All() {
					panic(errTried)
				}
			}()
		}
		x := p.X
		cp := w.Checkpoint()
		p.X++
		w.Restore(cp)
		if got, _ := a.Get(e); got.X != x {
			t.Errorf("restore leaves X = %d, want %d", got.X, x)
		}
		p.X++
		w.Commit()
		p.X++
		if err := w.History().Seek(w.Tick()); err != nil {
			t.Fatal(err)
		}
		if got, _ := a.Get(e); got.X != x+1 {
			t.Errorf("seek leaves X = %d, want %d", got.X, x+1)
		}
	}
	if len(w.activeCursors) > 0 {
		t.Errorf("%d cursors are left", len(w.activeCursors))
	}
}

// A loop that panicked leaves its cursor in the world until the next boundary. Without boundaries,
// the number of these cursors stays limited.
func TestPanicInLoop_CursorsDoNotAccumulate(t *testing.T) {
	w, a, _, _ := members(2, Options{})
	q := NewQuery1(Write(a))
	for range 5 * maxActiveCursors {
		tryPanic(t, func() {
			for range q.All() {
				panic(errTried)
			}
		})
	}
	if n := len(w.activeCursors); n > maxActiveCursors {
		t.Errorf("%d active cursors", n)
	}
}

// While a loop runs, its storage logs which rows move. After a panic, the loop no longer needs the
// log. So the storage drops the log at the next boundary, or when the log is long.
func TestPanicInLoop_DropsMoveLog(t *testing.T) {
	loops := map[string]func(w *World, a *Storage[plain]){
		"query": func(_ *World, a *Storage[plain]) {
			for range NewQuery1(Read(a)).All() {
				panic(errTried)
			}
		},
		"storage": func(_ *World, a *Storage[plain]) {
			for range a.All() {
				panic(errTried)
			}
		},
	}
	options := map[string]Options{"": {}, " with a history": {History: 1}}
	for _, name := range []string{"query", "storage", "query with a history", "storage with a history"} {
		kind, _, _ := strings.Cut(name, " ")
		loop := loops[kind]
		t.Run(name, func(t *testing.T) {
			w, a, b, _ := members(5, options[strings.TrimPrefix(name, kind)])
			tryPanic(t, func() { loop(w, a) })
			move := func(n int) {
				for range n {
					e := w.Create()
					a.Set(e, plain{})
					w.Destroy(e)
				}
			}
			if move(10); len(a.log.moves) != 10 {
				t.Errorf("%d moves are logged, want 10", len(a.log.moves))
			}
			if move(longLog); a.log.loops != 0 || a.log.moves != nil {
				t.Errorf("%d loops and %d moves are left after many moves", a.log.loops, len(a.log.moves))
			}
			tryPanic(t, func() { loop(w, a) })
			for range NewQuery1(Read(b)).All() {
				// A loop is running, and might need the log. So the storage keeps it.
				move(longLog)
			}
			if len(a.log.moves) == 0 {
				t.Error("the log ended in a running loop")
			}
			if w.Commit(); a.log.loops != 0 || a.log.moves != nil || w.longLogs {
				t.Errorf("%d loops and %d moves are left after a commit", a.log.loops, len(a.log.moves))
			}
			if loop := NewQuery1(Read(a)); loop.Count() != 5 || a.log.loops != 0 {
				t.Errorf("%d loops are left", a.log.loops)
			}
		})
	}
}

// A loop that iter.Pull runs is not on the call stack, so the world cannot tell that it still runs.
// The storage may drop its log of moves. Then the loop must panic, because it would miss entities.
func TestIterPull_PanicsAfterManyMovedRows(t *testing.T) {
	w, a, _, entities := members(100, Options{})
	next, stop := iter.Pull2(NewQuery1(Read(a)).All())
	defer stop()
	next()
	a.Remove(entities[50])
	if e, _, ok := next(); e != entities[1] || !ok {
		t.Errorf("visited %v, want %v", e, entities[1])
	}
	for range longLog + 1 {
		e := w.Create()
		a.Set(e, plain{})
		w.Destroy(e)
	}
	mustPanic(t, "ecs: rows of plain moved while a loop over Query1(plain) was visiting 1v1", func() { next() })
}

// After a panic of a hook in World.Clear, new relations still work.
func TestPanicInClear_NewRelationsWork(t *testing.T) {
	w := NewWorld(Options{})
	type link struct{ To Entity }
	links := MustRegister[link](w)
	fails := true
	w.OnDestroy(func(Entity) {
		if fails {
			panic(errTried)
		}
	})
	target := w.Create()
	tryPanic(t, w.Clear)
	fails = false
	NewRelation(links, func(l link) Entity { return l.To }, RelationOptions{Policy: Refuse})
	links.Set(w.Create(), link{To: target})
	if w.Destroy(target) {
		t.Error("Destroy destroyed a target although its relation refuses")
	}
}
