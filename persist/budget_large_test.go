package persist_test

import (
	"hash/crc32"
	"testing"
	"time"
	"unsafe"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// BenchmarkBudgetLargeRows measures ticks that write to large rows, from the first write until the
// rows are encoded into the journal's buffer and summed. The limit copies and sums the whole rows,
// which is the minimum work of a tick that writes whole rows.
func BenchmarkBudgetLargeRows(b *testing.B) {
	type tiles struct{ Cells [256][256]uint8 }
	type chunk struct{ Cells [64][64]uint8 }
	type canvas struct{ Pixels []uint8 }
	w := ecs.NewWorld(ecs.Options{})
	land := ecs.Must(ecs.RegisterResource(w, tiles{}))
	drawn := ecs.Must(ecs.RegisterResource(w, canvas{make([]uint8, 1<<16)}))
	chunks := ecs.MustRegister[chunk](w)
	for range 100 {
		chunks.Set(w.Create(), chunk{})
	}
	tick := uint8(0)
	var all [2]tiles
	for i := range 256 * 256 {
		all[0].Cells[i>>8][i&255], all[1].Cells[i>>8][i&255] = uint8(i*i>>3), uint8(i*i>>3)+1
	}
	for _, c := range []struct {
		name   string
		size   int // Bytes of all rows written.
		budget float64
		write  func()
	}{
		{"byte-of-64K", 1 << 16, 1, func() { land.Mut().Cells[100][tick]++ }},
		{"byte-of-each-100-of-4K", 100 << 12, 1.5, func() {
			for _, e := range w.Entities() {
				chunks.Mut(e).Cells[3][tick&63]++
			}
		}},
		{"byte-of-64K-that-varies", 1 << 16, 2, func() { drawn.Mut().Pixels[int(tick)*100]++ }},
		{"all-of-64K", 1 << 16, 6, func() {
			*land.Mut() = all[tick&1]
		}},
		{"all-of-100-of-4K", 100 << 12, 6, func() {
			for _, e := range w.Entities() {
				*chunks.Mut(e) = *(*chunk)(unsafe.Pointer(&all[tick&1]))
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := &encodingRecorder{encoder: persist.NewTickRecorder(format.SchemaOf(w))}
			if err := w.Raw().Attach(r, w.Tick()); err != nil {
				b.Fatal(err)
			}
			// Otherwise the next run would record twice.
			defer func() { _ = w.Raw().Detach(r) }()
			src, dst := filled(c.size), filled(c.size)
			var sum uint32
			ours, limit := shortest(20*budgetRounds, func() time.Duration {
				tick++
				return timed(func() {
					c.write()
					w.Commit()
				})
			}, func() time.Duration {
				return timed(func() {
					copy(dst, src)
					sum += crc32.Checksum(dst, crc32.MakeTable(crc32.Castagnoli))
				})
			})
			reportBudget(b, ours, limit, c.budget)
			b.ReportMetric(float64(len(r.buf)), "bytes/tick")
			if sum == 1 {
				b.Log(sum)
			}
		})
	}
}
