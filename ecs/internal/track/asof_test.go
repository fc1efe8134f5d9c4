package track

import (
	"math/rand/v2"
	"testing"
)

// If one reader checks for writes, another reader must still see these writes at its own next
// check. The first reader checks after each write, and the second reader rarely.
func TestAsOf_TwoReadersSeeEveryWrite(t *testing.T) {
	const n = 1000
	c := &Column[uint64]{Live: make([]uint64, n)}
	clock := &Clock{Span: 1, Frame: &Frame{ID: 1}}
	var rows Tracker
	c.Init(clock, false)
	rows.Init(clock, false, &c.Log)
	rows.N = n
	rows.Open()
	often, seldom := NewAsOf(&rows, &c.Log, nil), NewAsOf(&rows, &c.Log, nil)
	look := func(h *AsOf, written int) {
		if h.Current() {
			t.Fatalf("the reader missed the write of row %d", written)
		}
		h.CatchUp(1, false)
		for row := range n {
			if got := *RowAsOf(c, &h.Columns[0], row); got != 0 {
				t.Fatalf("row %d was %d, want 0", row, got)
			}
		}
		if !h.Current() {
			t.Fatal("a reader that has just caught up is not current")
		}
	}
	for row := 0; row < n; row += 4 {
		switch hi := row + row/4%3; row / 4 % 3 {
		case 0:
			c.Touch(row)
			c.Live[row]++
		case 1:
			c.TouchRange(row, hi)
			c.Live[row]++
		case 2:
			c.TouchEach(&[64]uint32{uint32(row), uint32(row + 1)}, 2)
			c.Live[row], c.Live[row+1] = 1, 1
		}
		look(&often, row)
		if row%28 == 0 {
			look(&seldom, row)
		}
	}
}

// The test writes random ranges of rows. Then RunAsOf must return the old values, for any first row
// and a random end.
func TestRunAsOf_RandomWrites(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(900)
		c := &Column[uint64]{Live: make([]uint64, n)}
		for row := range n {
			c.Live[row] = uint64(row)
		}
		var rows Tracker
		clock := &Clock{Span: 1, Frame: &Frame{ID: 1}}
		c.Init(clock, false)
		rows.Init(clock, false, &c.Log)
		rows.N = n
		rows.Open()
		pin, asOf := Pin(c, n), NewAsOf(&rows, &c.Log, nil)
		for range random.IntN(40) {
			lo := random.IntN(n)
			hi := min(n, lo+1+random.IntN(1+random.IntN(300)))
			c.TouchRange(lo, hi)
			for row := lo; row < hi; row++ {
				c.Live[row] += 1000
			}
			// Read what is saved so far. A later Absorb skips these rows.
			if random.IntN(4) == 0 {
				pin.Absorb(0)
			}
		}
		pin.Absorb(0)
		asOf.CatchUp(1, false)
		for _, old := range []*Old{pin, &asOf.Columns[0]} {
			for row := 0; row < n; {
				hi := row + 1 + random.IntN(n-row)
				run := RunAsOf(c, old, row, hi)
				if len(run) == 0 || len(run) > hi-row {
					t.Fatalf("seed %d: a run of %d rows from row %d up to row %d", seed, len(run), row, hi)
				}
				for i, got := range run {
					if got != uint64(row+i) {
						t.Fatalf("seed %d: row %d was %d in a run from row %d up to row %d", seed, row+i, got, row, hi)
					}
				}
				row += 1 + random.IntN(len(run))
			}
		}
	}
}
