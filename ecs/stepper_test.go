package ecs

import "testing"

func TestStepper_CommitInSystemPanics(t *testing.T) {
	w, a, _, entities := members(3, Options{History: 2})
	w.Commit()
	var stepper, inner Stepper[struct{}]
	bad := func() {}
	stepper.Add("move", func(w *World, _ struct{}) { a.In(w).Mut(entities[0]).X++; bad() })
	inner.Add("think", func(*World, struct{}) {})
	for op, f := range map[string]func(){
		"Commit in the system \"move\"": w.Commit,
		"Seek in the system \"move\"":   func() { _ = w.History().Rewind(1) },
		"Commit in the system":          func() { inner.Step(w, struct{}{}) },
	} {
		tick := w.Tick()
		bad = f
		mustPanic(t, "ecs: "+op, func() { stepper.Step(w, struct{}{}) })
		bad = func() {}
		stepper.Step(w, struct{}{}) // The world can still be used after the panic.
		if w.Tick() != tick+1 {
			t.Errorf("%s: tick %d after tick %d", op, w.Tick(), tick)
		}
	}
	// A system may run another stepper on the same world, and may commit another world.
	bad = func() {
		inner.Run(w, struct{}{})
		c := w.Clone()
		inner.Step(c, struct{}{})
		_ = c.History().Rewind(1)
	}
	stepper.Step(w, struct{}{})
}

// In a world that keeps no ticks, Commit counts as no change. So the loop must check for a Commit
// separately.
func TestParallelRuns_CommitInBody(t *testing.T) {
	w, a, _, _ := members(3, Options{})
	q := NewQuery1(Read(a))
	mustPanic(t, "ecs: Commit in the body of ParallelRuns", func() {
		q.ParallelRuns(1, func(Run1[plain]) { w.Commit() })
	})
	w.Commit()
}
