package track

// News are which rows of a tracker were written since a reader looked last, whether or
// not a frame is open:
//
//	words     | 0 0 0 0 | 0 1 1 0 | 0 0 0 0 | 1 0 0 0 |     a bit for each row below seen
//	touched     1 3                                          the words that are not 0
//	seen      how many rows there were; those behind them are reported nowhere
//
// So rows [seen, N) are new to the reader and rows [N, seen) are gone, and what was
// written below both has a bit. [Tracker.Follow] makes them.
//
// What is reported is what is saved or put back, so no write is told of twice, and a reader
// pays for the first write of a row after each look.
type News struct {
	t       *Tracker
	words   []uint64
	touched []uint32
	all     bool
	seen    int
}

// Any reports whether a row may have been written, came or went.
func (n *News) Any() bool { return len(n.touched) > 0 || n.seen != n.t.N || n.all }

// All reports whether all rows were replaced. Then none has a bit, and none counts as seen.
func (n *News) All() bool { return n.all }

// Len returns how many words of 64 rows, of which one or more were written, there are.
func (n *News) Len() int { return len(n.touched) }

// Word returns the i-th of them: its first row, and a bit for each row that was written.
// Words come in the order in which they were first written, no two are of the same rows,
// and rows of them may be gone.
func (n *News) Word(i int) (row int, written uint64) {
	w := n.touched[i]
	return int(w) << 6, n.words[w]
}

// Order makes words come in the order of their rows, if that costs O(how many there are):
// rows are then read as memory lies.
func (n *News) Order() {
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

// Looked forgets what was reported: rows are reported again when they are written next. Pointers
// to rows that were given out before are no longer valid.
func (n *News) Looked() {
	n.forget()
	n.all, n.seen = false, n.t.N
	if need := (n.seen + 63) / 64; need > len(n.words) {
		n.words = append(n.words, make([]uint64, need-len(n.words))...)
	}
	n.t.Span |= stale
}

// stale makes a span that no clock has, so that the next change opens its tracker.
const stale = 1 << 63

func (n *News) forget() {
	for _, w := range n.touched {
		n.words[w] = 0
	}
	n.touched = n.touched[:0]
}

// anew says that all rows were replaced.
func (n *News) anew() {
	n.forget()
	n.all, n.seen = true, 0
}

// report tells all readers of rows [lo, hi). It is a call, so that who asks whether there are
// any is none.
//
//go:noinline
func (u *undoStack) report(lo, hi int) {
	for _, n := range u.readers {
		n.add(uint32(lo), uint32(min(hi, n.seen)))
	}
}

// add adds rows [lo, hi), if there are any.
func (n *News) add(lo, hi uint32) {
	for lo < hi {
		w, end := lo>>6, min(lo|63+1, hi)
		if n.words[w] == 0 {
			n.touched = append(n.touched, w)
		}
		n.words[w] |= blockMask(lo, end)
		lo = end
	}
}

// addRow is add for a row by itself.
func (n *News) addRow(row uint32) {
	if int(row) < n.seen {
		w := &n.words[row>>6]
		if *w == 0 {
			n.touched = append(n.touched, row>>6)
		}
		*w |= 1 << (row & 63)
	}
}

// Bytes returns how much memory n takes.
func (n *News) Bytes() int64 { return room(n.words) + room(n.touched) }
