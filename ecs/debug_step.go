//go:build stetdebug

package ecs

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs/internal/system"
)

// In a debug build, a system of package schedule panics:
//
//   - if it writes a world other than its own; worlds that it created or loaded are its own too
//   - if it uses something that its access does not name
//
// The usual cause of the first panic: the program created its storages and queries for one world,
// and runs the systems on a clone.

// A step is a call of a system.
type step struct {
	w      *World
	system *system.System
	outer  *step // The enclosing step on the same world, if any.
	waits  bool  // A nested step is running.
}

// stepsByGoroutine has the running steps of each goroutine, the innermost step last.
var stepsByGoroutine struct {
	n  atomic.Int64
	mu sync.Mutex
	by map[uint64][]*step
}

// stepping records that a system runs on w. The caller calls end when the system returns.
func (w *World) stepping(on *system.System) (end func()) {
	g := goroutine()
	s := &step{w: w, system: on, outer: w.guards.stepped}
	stepsByGoroutine.mu.Lock()
	defer stepsByGoroutine.mu.Unlock()
	if stepsByGoroutine.by == nil {
		stepsByGoroutine.by = map[uint64][]*step{}
	}
	if k := len(stepsByGoroutine.by[g]); k > 0 {
		stepsByGoroutine.by[g][k-1].waits = true
	}
	stepsByGoroutine.by[g] = append(stepsByGoroutine.by[g], s)
	stepsByGoroutine.n.Add(1)
	w.guards.stepped = s
	return func() {
		w.guards.stepped = s.outer
		stepsByGoroutine.mu.Lock()
		defer stepsByGoroutine.mu.Unlock()
		stepsByGoroutine.n.Add(-1)
		k := len(stepsByGoroutine.by[g]) - 1
		if k == 0 {
			delete(stepsByGoroutine.by, g)
			return
		}
		stepsByGoroutine.by[g] = stepsByGoroutine.by[g][:k]
		stepsByGoroutine.by[g][k-1].waits = false
	}
}

// runningSteps returns the running steps of this goroutine, the innermost step last.
func runningSteps() []*step {
	if stepsByGoroutine.n.Load() == 0 {
		return nil
	}
	stepsByGoroutine.mu.Lock()
	defer stepsByGoroutine.mu.Unlock()
	return slices.Clone(stepsByGoroutine.by[goroutine()])
}

// noteCreated runs when w is created or loaded. It records the innermost running step, if any.
func (w *World) noteCreated() {
	if s := runningSteps(); len(s) > 0 {
		w.guards.begun = s[len(s)-1]
	}
}

// refusesStep returns a refusal if a system writes w but runs on another world. Otherwise it
// returns nil. A system may also write a world that it created or loaded.
func (w *World) refusesStep() *refusal {
	if s := w.guards.stepped; stepsByGoroutine.n.Load() == 0 || s != nil && !s.waits {
		return nil
	}
	all := runningSteps()
	if len(all) == 0 || w.guards.begun != nil && slices.Contains(all, w.guards.begun) {
		return nil
	}
	if s := all[len(all)-1]; s.w != w {
		return &refusal{fmt.Sprintf("the system %q runs on one world and writes another", s.system.Name),
			"use the storages of the world that the system receives: Storage.In, Resource.In and Group.In return them; create queries for each world"}
	}
	return nil
}

// goroutine returns the id of the calling goroutine.
func goroutine() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	n, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		panic(err) // Unreachable, because the text begins with "goroutine 12 [running]".
	}
	return n
}
