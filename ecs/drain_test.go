package ecs

import (
	"fmt"
	"iter"
	"slices"
	"testing"
)

// queueWorld is a world with a storage of five jobs, and a checkpoint.
type queueWorld struct {
	*World
	jobs *Storage[plain]
	cp   Checkpoint
}

func newQueueWorld(t *testing.T, kind Kind) *queueWorld {
	w := &queueWorld{World: NewWorld(Options{History: 3})}
	checkAtEnd(t, w.World)
	w.jobs = MustRegister(w.World, Component[plain]{Kind: kind})
	w.jobs.SetAll(w.CreateN(nil, 5), plain{})
	w.Commit()
	w.cp = w.Checkpoint()
	return w
}

// drain runs a loop over Drain until f returns false, and returns the number of removed jobs. It
// stops after 1,000 jobs.
func (w *queueWorld) drain(f func(n int) bool) (n int) {
	for range w.jobs.Drain() {
		if n++; n == 1000 || !f(n) {
			break
		}
	}
	return n
}

const drainRestored = "ecs: a loop over Drain of plain continues after a restore to a state before "

// A loop over Drain panics if its body restores the rows that the loop removed. Without the panic,
// the loop would never end.
func TestDrain_RestoreInBodyPanics(t *testing.T) {
	for how, back := range map[string]func(w *queueWorld){
		"Restore": func(w *queueWorld) { w.Restore(w.cp) },
		"Rewind":  func(w *queueWorld) { _ = w.History().Rewind(0) },
		"Seek": func(w *queueWorld) {
			w.Commit()
			if err := w.History().Seek(1); err != nil {
				t.Error(err)
			}
		},
		"Load": func(w *queueWorld) {
			state := stateOf(w.World)
			w.Release(w.cp)
			if err := w.Raw().Load(state); err != nil {
				t.Error(err)
			}
		},
		"Restore and another checkpoint": func(w *queueWorld) {
			w.Restore(w.cp)
			w.Release(w.cp)
			w.cp = w.Checkpoint()
		},
	} {
		for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
			t.Run(fmt.Sprint(how, " ", kind), func(t *testing.T) {
				w := newQueueWorld(t, kind)
				defer func() {
					if slices.ContainsFunc(w.drains, func(l *drainLoop) bool { return l.running }) {
						t.Error("a loop is still running")
					}
				}()
				mustPanic(t, drainRestored+"2v1 was removed", func() {
					w.drain(func(n int) bool {
						if n == 3 {
							back(w)
						}
						return true
					})
				})
			})
		}
	}
}

// A loop that breaks right after a restore leaves the restored rows in the storage.
func TestDrain_BreakAfterRestoreKeepsRows(t *testing.T) {
	w := newQueueWorld(t, Sparse)
	before := w.Digest()
	if n := w.drain(func(n int) bool {
		if n == 3 {
			w.Restore(w.cp)
		}
		return n < 3
	}); n != 3 || w.Digest() != before {
		t.Errorf("%d rows were removed, %d are left", n, w.jobs.Len())
	}
	if n := w.drain(func(int) bool { return true }); n != 5 || w.jobs.Len() != 0 {
		t.Errorf("%d rows were removed by the second loop, %d are left", n, w.jobs.Len())
	}
}

// The loop removes a row before it calls the body. So if the body sets and restores a checkpoint,
// the row does not come back, and the loop continues.
func TestDrain_BodyRestoresOwnCheckpoint(t *testing.T) {
	for how, body := range map[string]func(w *queueWorld){
		"Restore": func(w *queueWorld) {
			cp := w.Checkpoint()
			w.Create()
			w.jobs.Clear()
			w.Restore(cp)
			w.Restore(cp)
			w.Release(cp)
		},
		"checkpoints that stay": func(w *queueWorld) {
			cp := w.Checkpoint()
			w.jobs.Clear()
			w.Restore(cp)
		},
		"Try": func(w *queueWorld) {
			_ = w.Try(func() error { w.jobs.Clear(); return errTried })
		},
		"Commit and Rewind": func(w *queueWorld) {
			w.Commit()
			w.jobs.Clear()
			if err := w.History().Rewind(0); err != nil {
				t.Error(err)
			}
		},
		"another Drain": func(w *queueWorld) {
			_ = w.Try(func() error {
				w.drain(func(int) bool { return true })
				return errTried
			})
		},
	} {
		w := newQueueWorld(t, Sparse)
		if n := w.drain(func(int) bool { body(w); return true }); n != 5 || w.jobs.Len() != 0 {
			t.Errorf("%s: %d rows were removed, %d are left", how, n, w.jobs.Len())
		}
	}
}

// A restore does not bring back rows of a NoRewind component. So the loop does not panic.
func TestDrain_NoRewindRowsStayDrained(t *testing.T) {
	w := NewWorld(Options{})
	jobs := MustRegister(w, Component[plain]{NoRewind: true})
	jobs.SetAll(w.CreateN(nil, 5), plain{})
	cp := w.Checkpoint()
	n := 0
	for range jobs.Drain() {
		n++
		w.Restore(cp)
	}
	if n != 5 || jobs.Len() != 0 {
		t.Errorf("%d rows were removed, %d are left", n, jobs.Len())
	}
}

// If an OnRemove hook restores the world, the loop panics as well.
func TestDrain_RestoreInHookPanics(t *testing.T) {
	w := newQueueWorld(t, Sparse)
	calls := 0
	w.jobs.OnRemove(func(Entity, plain) {
		if calls++; calls < 1000 {
			w.Restore(w.cp)
		}
	})
	mustPanic(t, drainRestored, func() { w.drain(func(int) bool { return true }) })
	if calls > 2 {
		t.Errorf("the hook was called %d times", calls)
	}
}

// Loops over Drain may be nested, and may run alternately.
func TestDrain_NestedAndAlternateLoops(t *testing.T) {
	w := newQueueWorld(t, Sparse)
	other := MustRegister[extra](w.World)
	other.SetAll(w.Entities(), extra{})
	inner := w.Checkpoint()
	mustPanic(t, "Drain of extra", func() {
		w.drain(func(int) bool {
			between := w.Checkpoint()
			// The checkpoint was set after the outer loop removed its row, and before the inner
			// loop. So the restore brings back only the row of the inner loop, which panics.
			for range other.Drain() {
				w.Restore(between)
			}
			return true
		})
	})
	mustPanic(t, "Drain of plain", func() {
		w.Restore(inner)
		w.drain(func(int) bool {
			// The inner loop breaks after the restore. The outer loop continues and panics.
			for range other.Drain() {
				w.Restore(inner)
				break
			}
			return true
		})
	})
	w.Restore(inner)
	first, stopFirst := iter.Pull2(w.jobs.Drain())
	second, stopSecond := iter.Pull2(other.Drain())
	first()
	between := w.Checkpoint()
	second()
	w.Restore(between)
	stopSecond()
	for n := 1; ; n++ {
		if _, _, ok := first(); !ok {
			if n != 5 {
				t.Errorf("the first loop removed %d rows", n)
			}
			break
		}
	}
	stopFirst()
	if len(w.drains) != 2 {
		t.Errorf("%d entries for running loops", len(w.drains))
	}
}
