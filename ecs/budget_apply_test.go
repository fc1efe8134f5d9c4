package ecs_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A world with a history applies recorded ticks. Each tick wrote a thousand random rows. The limit
// is hand-written code that decodes the rows into slices and keeps an undo log.
func BenchmarkBudgetApply(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(sizeName(n), func(b *testing.B) {
			ours, limit := applied(b, n, 1000)
			compare(b, 1000*appliedTicks, 3, ours, limit)
		})
	}
}

// appliedTicks is the number of ticks that are timed together.
const appliedTicks = 16

func applied(b *testing.B, n, rows int) (ours, limit side) {
	w := ecs.NewWorld(ecs.Options{History: 4})
	s := ecs.MustRegister[position](w)
	for range n {
		s.Set(w.Create(), position{1, 2})
	}
	w.Commit()
	order := permutation(n, 5)
	var patches []*raw.Patch
	for i := range appliedTicks {
		written := slices.Clone(order[i*rows : (i+1)*rows])
		slices.Sort(written)
		c := raw.StorageChange{Storage: s.Raw(), Before: n}
		p := raw.StoragePatch{After: n}
		for _, row := range written {
			if k := len(c.Values) - 1; k >= 0 && c.Values[k].First+c.Values[k].N == row {
				c.Values[k].N++
			} else {
				c.Values = append(c.Values, raw.Range{First: row, N: 1})
			}
			p.Rows = s.Raw().AppendRows(p.Rows, row, row+1)
		}
		p.StorageChange = c
		patches = append(patches, &raw.Patch{Storages: []raw.StoragePatch{p}})
	}
	ours = side{work: func() {
		for _, p := range patches {
			p.Tick = w.Tick() + 1
			if err := w.Raw().Apply(raw.Ticks(p)); err != nil {
				b.Fatal(err)
			}
		}
	}}

	live := make([]position, n)
	var logs [4][]loggedRow
	turn := 0
	limit = side{work: func() {
		for _, p := range patches {
			turn++
			log := logs[turn%len(logs)][:0]
			src := p.Storages[0].Rows
			for _, r := range p.Storages[0].Values {
				for row := r.First; row < r.First+r.N; row++ {
					log = append(log, loggedRow{uint32(row), live[row]})
					live[row].X = math.Float64frombits(binary.LittleEndian.Uint64(src))
					live[row].Y = math.Float64frombits(binary.LittleEndian.Uint64(src[8:]))
					src = src[16:]
				}
			}
			logs[turn%len(logs)] = log
		}
	}}
	return ours, limit
}
