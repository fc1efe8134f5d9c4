package ecs

import "testing"

// The undo marks are allocated together with the rows, so the first writes after a checkpoint
// allocate no marks.
func TestReserve_MarksGrowWithRows(t *testing.T) {
	w, a, b, entities := members(20_000, Options{})
	checkAtEnd(t, w)
	stamps := func() (n int64) {
		m := w.MemoryUsage()
		for _, s := range m.Storages {
			n += s.Stamps
		}
		return n + m.Registry.Stamps
	}
	before := stamps()
	w.Checkpoint()
	a.Mut(entities[19_999]).X++
	b.Remove(entities[3])
	w.Destroy(entities[7])
	if got := stamps(); got != before || before == 0 {
		t.Errorf("%d bytes of marks and stamps after the first write under a checkpoint, want %d as before", got, before)
	}
}

// The capacity doubles, so a growing storage copies each row once or twice.
func TestReserve_CapacityDoubles(t *testing.T) {
	w := NewWorld(Options{})
	checkAtEnd(t, w)
	s := MustRegister[plain](w)
	moved, at := 0, &plain{}
	for range 100_000 {
		s.Set(w.Create(), plain{})
		if p := &s.Values()[0]; p != at {
			moved, at = moved+1, p
		}
	}
	if moved > 15 {
		t.Errorf("the rows moved %d times while 100,000 were added, want at most 15", moved)
	}
}

func TestReserve_Allocations(t *testing.T) {
	if debug {
		t.Skip("a debug build allocates")
	}
	const n = 10_000
	for _, kind := range []Kind{Sparse, Indexed, Ordered} {
		w := NewWorld(Options{History: 1})
		s := MustRegister(w, Component[plain]{Kind: kind})
		w.Commit()
		w.Reserve(n)
		s.Reserve(n)
		s.Reserve(5)
		before := w.MemoryUsage()
		var rows []plain
		for range n {
			s.Set(w.Create(), plain{1, 2})
			if rows == nil {
				rows = s.Values()
			}
		}
		if &rows[:1][0] != &s.Values()[0] {
			t.Errorf("%v: the rows moved", kind)
		}
		after := w.MemoryUsage()
		got, want := after.Storages[0], before.Storages[0]
		if got.Dense != want.Dense || got.Data != want.Data || got.Sparse != want.Sparse || after.Registry != before.Registry {
			t.Errorf("%v: %+v and %+v after the reserved rows were added, want %+v and %+v", kind, got, after.Registry, want, before.Registry)
		}
		if err := w.check(); err != nil {
			t.Error(err)
		}
		w.Shrink()
	}
}

// After Reserve in the body, a loop continues in the moved rows.
func TestReserve_CalledInLoop(t *testing.T) {
	w, a, _, entities := members(100, Options{})
	checkAtEnd(t, w)
	n := int32(0)
	for _, p := range NewQuery1(Write(a)).All() {
		n++
		p.X = n
		if n == 10 {
			a.Reserve(1000)
		}
	}
	for i, e := range entities {
		if v, _ := a.Get(e); v.X != int32(i)+1 {
			t.Fatalf("entity %d has %v", i, v)
		}
	}
}
