package track

import "testing"

// Two readers check for changes between writes. One checks after each write, and the other rarely.
// A check by one reader does not hide the write from the other reader.
func TestThenReaders_BothSeeEveryWrite(t *testing.T) {
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
