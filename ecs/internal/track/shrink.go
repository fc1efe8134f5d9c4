package track

import "sync"

// Shrink frees memory that t does not need: rows that no restore needs, spare capacity and recycled
// chunks. It must be the last operation in a span. The caller must then advance the clock to a new
// span.
func (t *Tracker) Shrink() {
	if t.removed > 0 {
		t.squeeze()
	}
	t.recs, t.forward = Fitting(t.recs), Fitting(t.forward)
	rows := max(t.height(), t.Prot)
	for i := range t.forward {
		rows = max(rows, t.forward[i].height())
	}
	for _, c := range t.columns {
		rows = max(rows, c.reach())
	}
	for _, c := range t.columns {
		c.shrink(rows)
	}
}

// shrink reduces the column to the given number of rows, without spare capacity.
func (l *Log) shrink(rows int) {
	l.rows.fit(rows)
	// Reopen allocates new marks.
	l.marks = nil
	l.undoStack.shrink()
}

func (c *Column[T]) fit(rows int) {
	if live := c.Live[:min(rows, len(c.Live))]; len(live) < cap(live) {
		c.Take(Fitting(live))
	}
}

// reach returns 0, because a sparse array keeps all its pages when it shrinks.
func (s *Sparse) reach() int { return 0 }

func (s *Sparse) shrink(int) {
	s.fit(0)
	s.undoStack.shrink()
}

func (s *Sparse) fit(int) { s.Pages = Fitting(s.Pages) }

// reach returns the highest row number in the logs plus 1, or 0 if the logs are empty. A restore
// writes saved values into these rows, so the column must keep them when it shrinks.
func (u *undoStack) reach() (rows int) {
	for _, list := range [2][]*undoLog{u.logs, u.forward} {
		for _, l := range list {
			u.tell(func(r Run) { rows = max(rows, int(r.Row+r.N)) }, l)
		}
	}
	return rows
}

func (u *undoStack) shrink() {
	u.spares, u.bare, u.blank = nil, nil, nil
	u.spare, u.most = 0, u.used
	u.pins = sync.Pool{}
	u.logs, u.forward, u.top = Fitting(u.logs), Fitting(u.forward), nil
}

// Shrink frees the memory of s, which must be empty.
func (s *RowSet) Shrink() { s.words = nil }

// Fitting returns s without spare capacity. It copies s only if s has spare capacity.
func Fitting[T any](s []T) []T {
	if len(s) == cap(s) {
		return s
	}
	if len(s) == 0 {
		return nil
	}
	return append(make([]T, 0, len(s)), s...)
}
