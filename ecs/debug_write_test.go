//go:build stetdebug

package ecs

import (
	"sync/atomic"
	"testing"
)

// The body of ParallelRuns may write only through the slices of its run. In a debug build, any
// other write panics. The panic says which write it was.
func TestDebugWrite_InParallelRunsPanics(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	score := Must(RegisterResource(w, plain{}, Component[plain]{Name: "score"}))
	hits := Must(RegisterEvent(w, Component[word]{Name: "hits"}))
	random := Must(RegisterRand(w, 1, 2))
	reader, err := hits.Reader("sounds")
	if err != nil {
		t.Fatal(err)
	}
	hits.Send(word{})
	mask := w.NewMask()
	writes := NewQuery1(Write(b))
	q := NewQuery1(Write(a))
	e := entities[3]
	for op, write := range map[string]func(){
		"Set of plain of 3v1":           func() { a.Set(e, plain{}) },
		"Set of padded of 3v1":          func() { b.Set(e, padded{}) },
		"Mut of padded of 3v1":          func() { b.Mut(e).B++ },
		"SetAll of padded":              func() { b.SetAll(entities, padded{}) },
		"MutValues of padded":           func() { b.MutValues() },
		"Remove of padded of 3v1":       func() { b.Remove(e) },
		"Clear of padded":               func() { b.Clear() },
		"a sort of padded":              func() { b.SortFunc(func(a, b padded) int { return 0 }) },
		"World.Create":                  func() { w.Create() },
		"World.Destroy":                 func() { w.Destroy(e) },
		"a query with Write":            func() { writes.Get(e) },
		"a write of the resource score": func() { score.Set(plain{}) },
		"a write of the resource hits)": func() { hits.Send(word{}) },
		"a write of the resource Rand":  func() { random.IntN(6) },
		"a write of the resource hits.": func() {
			for range reader.All() {
				break
			}
		},
		"MutEach of padded": func() {
			for range b.MutEach(entities) {
				break
			}
		},
		"Mask.Add": func() { mask.Add(3) },
	} {
		digest := w.Digest()
		mustPanic(t, "ecs: the world is written in the body of ParallelRuns (by "+op, func() {
			q.ParallelRuns(2, func(Run1[plain]) { write() })
		})
		if w.Digest() != digest {
			t.Errorf("%s: the world was written", op)
		}
	}
}

// The body of ParallelRuns may read components. After the loop, all writes are allowed again.
func TestDebugWrite_AllowedAfterParallelRuns(t *testing.T) {
	w, a, b, entities := members(300, Options{History: 2})
	byX := NewIndex(b, func(p padded) int64 { return p.B })
	w.Commit()
	q := NewQuery2(Write(a), Read(b))
	var found atomic.Int64
	q.ParallelRuns(4, func(run Run2[plain, padded]) {
		for i := range run.A {
			run.A[i].X++
			if v, ok := b.Get(run.Entities[i]); ok && b.Has(run.Entities[i]) && w.Alive(run.Entities[i]) {
				found.Add(int64(byX.Len(v.B)))
			}
		}
	})
	if found.Load() == 0 {
		t.Error("no look-up found an entity")
	}
	a.Mut(entities[0]).X++
	w.Commit()
}

func TestDebugWrite_InKeyFunctionPanics(t *testing.T) {
	w, a, b, entities := members(10, Options{})
	score := Must(RegisterResource(w, plain{}, Component[plain]{Name: "score"}))
	const repair = "it must only compute a key from its argument"
	for op, write := range map[string]func(){
		"Set of padded of 0v1":          func() { b.Set(entities[0], padded{}) },
		"Mut of plain of 0v1":           func() { a.Mut(entities[0]).X++ },
		"World.Create":                  func() { w.Create() },
		"a write of the resource score": func() { score.Mut().X++ },
	} {
		x := NewIndex(a, func(p plain) int32 { write(); return p.X })
		mustPanic(t, "ecs: the key function of an index of plain writes the world (by "+op+"); "+repair, func() { x.Len(1) })
		b.Set(entities[1], padded{}) // After the panic, the world can still be written.
		a.indexes = nil
	}
	var x *Index[plain, int32]
	x = NewIndex(a, func(p plain) int32 { return int32(x.Len(p.X)) })
	mustPanic(t, "ecs: the key function of an index of plain looks up an index of plain; "+repair, func() { x.Len(1) })
	other := NewIndex(b, func(p padded) int64 { return p.B })
	// Bring the index of b up to date. The next look-up must panic even if it has nothing to
	// update.
	other.Len(1)
	y := NewIndex(a, func(p plain) int32 { return int32(other.Len(int64(p.X))) })
	mustPanic(t, "ecs: the key function of an index of plain looks up an index of padded; "+repair, func() { y.Len(1) })
}
