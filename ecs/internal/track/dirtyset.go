package track

// A DirtySet tells a reader which rows of a tracker were written since the reader's last call of
// Clear. It works with and without an open frame. [Tracker.Follow] returns a DirtySet.
//
//	seen      number of rows at the last Clear
//	words     one bit for each row below seen, which is 1 if the row was written
//	touched   indices of the words that are not 0
//	all       set if all rows were replaced
//
// The reader compares seen with N, the present number of rows. For example, seen is 10. If N is 12,
// rows 10 and 11 were added. If N is 8, rows 8 and 9 were removed.
//
// Rows are reported when they are saved or restored. A reader adds a cost only to the first write
// of a row after each Clear.
type DirtySet struct {
	t       *Tracker
	words   []uint64
	touched []uint32
	all     bool
	seen    int
}

// Any reports whether a row may have been written, added or removed.
func (n *DirtySet) Any() bool { return len(n.touched) > 0 || n.seen != n.t.N || n.all }

// All reports whether all rows count as new: they were replaced, or n is new and was never cleared.
// In this case, Len is 0.
func (n *DirtySet) All() bool { return n.all }

// Len returns the number of words that have written rows. A word covers 64 rows.
func (n *DirtySet) Len() int { return len(n.touched) }

// Word returns the first row of the i-th word that has written rows, and a bit for each written
// row. Words are in the order of their first write, each at most once. Some of the rows may have
// been removed since.
func (n *DirtySet) Word(i int) (row int, written uint64) {
	w := n.touched[i]
	return int(w) << 6, n.words[w]
}

// Order sorts the words by row, so that the reader visits the rows in memory order. It does nothing
// if few of the words have written rows, because the sort would then cost too much.
func (n *DirtySet) Order() {
	if len(n.touched) < len(n.words)/16 {
		return
	}
	n.touched = n.touched[:0]
	for i, w := range n.words {
		if w != 0 {
			n.touched = append(n.touched, uint32(i))
		}
	}
}

// Clear clears the reported rows, so the next write of a row is reported again. Callers must not
// write through row pointers that they got before this call.
func (n *DirtySet) Clear() {
	n.forget()
	n.all, n.seen = false, n.t.N
	if need := (n.seen + 63) / 64; need > len(n.words) {
		n.words = append(n.words, make([]uint64, need-len(n.words))...)
	}
	n.t.Span |= stale
}

// stale is a bit of Tracker.Span that no span number of a clock has. DirtySet.Clear sets it. Open
// then finds a span other than the clock's, and calls Reopen.
const stale = 1 << 63

func (n *DirtySet) forget() {
	for _, w := range n.touched {
		n.words[w] = 0
	}
	n.touched = n.touched[:0]
}

// replaced is called after all rows were replaced.
func (n *DirtySet) replaced() {
	n.forget()
	n.all, n.seen = true, 0
}

// report passes rows [lo, hi) to all readers. It is not inlined, so its callers stay small enough
// to be inlined.
//
//go:noinline
func (u *undoStack) report(lo, hi int) {
	for _, n := range u.readers {
		n.add(uint32(lo), uint32(min(hi, n.seen)))
	}
}

// add records rows [lo, hi) as written. The range may be empty.
func (n *DirtySet) add(lo, hi uint32) {
	for lo < hi {
		w, end := lo>>6, min(lo|63+1, hi)
		if n.words[w] == 0 {
			n.touched = append(n.touched, w)
		}
		n.words[w] |= blockMask(lo, end)
		lo = end
	}
}

// addRow records a single row as written.
func (n *DirtySet) addRow(row uint32) {
	if int(row) < n.seen {
		w := &n.words[row>>6]
		if *w == 0 {
			n.touched = append(n.touched, row>>6)
		}
		*w |= 1 << (row & 63)
	}
}

// Bytes returns the memory size of n.
func (n *DirtySet) Bytes() int64 { return room(n.words) + room(n.touched) }
