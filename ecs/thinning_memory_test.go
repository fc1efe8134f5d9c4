package ecs

import "testing"

// The memory of a thinned history stays below a constant factor times its limit, however many ticks
// run.
func TestHistoryDense_MemoryBounded(t *testing.T) {
	const bound = 1 << 18
	w := NewWorld(Options{History: 1 << 20, HistoryBytes: bound, HistoryDense: 32})
	a := MustRegister[plain](w)
	entities := w.CreateN(nil, 2000)
	for _, e := range entities {
		a.Set(e, plain{})
	}
	at := uint32(1)
	for tick := range 1 << 14 {
		for range 20 {
			at = at*1664525 + 1013904223
			a.Set(entities[at>>8%2000], plain{X: int32(tick)})
		}
		if w.Commit(); tick < 1000 || tick&1023 > 0 {
			continue
		}
		m := w.MemoryUsage()
		s := m.Storages[0]
		if taken := s.Undo + s.Spare; taken > 5*bound/2+64<<10 {
			t.Fatalf("tick %d: %d KiB of saved rows and %d KiB of spare chunks, with a limit of %d KiB", tick, s.Undo>>10, s.Spare>>10, bound>>10)
		}
	}
}
