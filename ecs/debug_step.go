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
)

// In a debug build a system of a [Stepper] that writes another world than the one it
// was given panics. It closes over storages or queries of that world, most likely: of
// the one that the program began with, when a clone is stepped.
//
// Worlds that were made or loaded in the step may be written: a system may think ahead
// in a clone.

// A step is a system at work.
type step struct {
	w      *World
	system string
	outer  *step // That which the world was in before.
	waits  bool  // Another step began inside of it.
}

// underWay are the steps under way, by goroutine, the innermost last.
var underWay struct {
	n  atomic.Int64
	mu sync.Mutex
	by map[uint64][]*step
}

// stepping notes that system is at work on w, until end is called.
func (w *World) stepping(system string) (end func()) {
	g := goroutine()
	s := &step{w: w, system: system, outer: w.guards.stepped}
	underWay.mu.Lock()
	defer underWay.mu.Unlock()
	if underWay.by == nil {
		underWay.by = map[uint64][]*step{}
	}
	if k := len(underWay.by[g]); k > 0 {
		underWay.by[g][k-1].waits = true
	}
	underWay.by[g] = append(underWay.by[g], s)
	underWay.n.Add(1)
	w.guards.stepped = s
	return func() {
		w.guards.stepped = s.outer
		underWay.mu.Lock()
		defer underWay.mu.Unlock()
		underWay.n.Add(-1)
		k := len(underWay.by[g]) - 1
		if k == 0 {
			delete(underWay.by, g)
			return
		}
		underWay.by[g] = underWay.by[g][:k]
		underWay.by[g][k-1].waits = false
	}
}

// under returns the steps that this goroutine is in, the innermost last.
func under() []*step {
	if underWay.n.Load() == 0 {
		return nil
	}
	underWay.mu.Lock()
	defer underWay.mu.Unlock()
	return slices.Clone(underWay.by[goroutine()])
}

// begun notes that w was made or loaded.
func (w *World) begun() {
	if s := under(); len(s) > 0 {
		w.guards.begun = s[len(s)-1]
	}
}

// refusesStep returns why a system of another world's step may not write w, or nil.
func (w *World) refusesStep() *refusal {
	if s := w.guards.stepped; underWay.n.Load() == 0 || s != nil && !s.waits {
		return nil
	}
	all := under()
	if len(all) == 0 || w.guards.begun != nil && slices.Contains(all, w.guards.begun) {
		return nil
	}
	if s := all[len(all)-1]; s.w != w {
		return &refusal{fmt.Sprintf("the system %q was given one world and writes another", s.system),
			"let it use what belongs to the world that it is given: Storage.In, Resource.In and Group.In find that, and queries are made for each world"}
	}
	return nil
}

// goroutine returns the number of the goroutine that calls.
func goroutine() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	n, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		panic(err) // Unreachable: "goroutine 12 [running]".
	}
	return n
}
