package ecs_test

import (
	"bytes"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// BenchmarkBudgetLarge measures a tick with history. The tick changes one byte of a row of 64 KiB,
// one byte in each of 100 rows of 4 KiB, or all bytes. The limit is hand-written code that copies
// the rows before they are written and compares them afterwards.
func BenchmarkBudgetLarge(b *testing.B) {
	type tiles struct{ Cells [1 << 16]byte }
	type chunk struct{ Cells [1 << 12]byte }
	w := ecs.NewWorld(ecs.Options{History: 60})
	land, chunks := ecs.Must(ecs.RegisterResource(w, tiles{})), ecs.MustRegister[chunk](w)
	for range 100 {
		chunks.Set(w.Create(), chunk{})
	}
	w.Commit()
	tick := byte(0)
	for _, c := range []struct {
		name   string
		size   int // Total bytes of the rows that the tick writes.
		budget float64
		write  func()
	}{
		{"byte-of-64K", 1 << 16, 1.5, func() { land.Mut().Cells[int(tick)*99]++ }},
		{"byte-of-each-100-of-4K", 100 << 12, 2, func() {
			for _, e := range w.Entities() {
				chunks.Mut(e).Cells[3]++
			}
		}},
		{"all-of-64K", 1 << 16, 2, func() { fillBytes(land.Mut().Cells[:], tick) }},
		{"all-of-100-of-4K", 100 << 12, 2, func() {
			for _, e := range w.Entities() {
				fillBytes(chunks.Mut(e).Cells[:], tick)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			live, old := make([]byte, c.size), make([]byte, c.size)
			all := c.name[:3] == "all"
			kept := 0
			compare(b, 1, c.budget, side{work: func() {
				tick++
				c.write()
				w.Commit()
			}}, side{work: func() {
				tick++
				copy(old, live)
				if all {
					fillBytes(live, tick)
				} else {
					for i := 0; i < len(live); i += 1 << 12 {
						live[i] = tick
					}
				}
				for at := 0; at < len(live); at += 64 {
					if !bytes.Equal(old[at:at+64], live[at:at+64]) {
						kept++
					}
				}
			}})
			b.ReportMetric(float64(w.History().TickBytes(w.Tick()-1)), "bytes/tick")
			if kept == 0 {
				b.Error("nothing differed")
			}
		})
	}
}

func fillBytes(s []byte, with byte) {
	for i := range s {
		s[i] = with
	}
}
