package ecs

import (
	"fmt"
	"testing"
)

// A tick writes n scattered rows in each of four storages of 100 000 rows. The history is full, and
// either evicts its oldest tick or is thinned. The ratio compares the tick with the same tick
// without a history.
func BenchmarkHistory(b *testing.B) {
	for _, written := range []int{10, 1000} {
		for _, history := range []int{0, 64, 1024, 8192} {
			for _, dense := range []int{0, 32} {
				if history == 0 && dense > 0 {
					continue
				}
				b.Run(fmt.Sprintf("rows=%d/history=%d/dense=%d", written, history, dense), func(b *testing.B) {
					tick := scatteredTick(written, Options{History: history, HistoryDense: dense})
					for range history + 1000 {
						tick()
					}
					b.ReportAllocs()
					for b.Loop() {
						tick()
					}
				})
			}
		}
	}
}

// scatteredTick returns a function that writes rows of four storages and commits a tick.
func scatteredTick(written int, o Options) (tick func()) {
	const n = 100_000
	w := NewWorld(o)
	entities := w.CreateN(nil, n)
	var storages []*Storage[extra]
	for i := range 4 {
		s := MustRegister(w, Component[extra]{Name: fmt.Sprint("extra", i)})
		s.SetAll(entities, extra{})
		storages = append(storages, s)
	}
	w.Commit()
	row := uint32(1)
	return func() {
		for range written {
			row = row*1664525 + 1013904223
			for _, s := range storages {
				s.Mut(entities[row>>8%n]).V++
			}
		}
		w.Commit()
	}
}
