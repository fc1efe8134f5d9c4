package track

// Reserve makes Live at least so many rows long. Those that were not there are zero.
func (c *Column[T]) Reserve(rows int) {
	if rows > len(c.Live) {
		live := make([]T, rows)
		copy(live, c.Live)
		c.Live = live
	}
}

// Reserve makes marks for so many rows of every column, as Open would when it is the first
// to save some: in the step in which the rows are made, which costs more.
func (t *Tracker) Reserve(rows int) {
	if !t.Exempt {
		for _, c := range t.columns {
			c.reserve(rows)
		}
	}
}

func (l *Log) reserve(rows int) {
	if need := (rows + 63) / 64; need > len(l.marks) {
		marks := make([]mark, need)
		copy(marks, l.marks)
		l.marks = marks
	}
}

// reserve does nothing: marks of entries lie in their pages.
func (s *Sparse) reserve(int) {}
