//go:build stetdebug

package track

// Protected returns the number of rows of t that must be saved before a write in the coming span.
func (t *Tracker) Protected() int {
	k, f := len(t.recs), t.clock.Frame
	switch {
	case f == nil || t.Exempt:
		return 0
	case k > 0 && t.recs[k-1].frame == f.ID:
		return t.topProt()
	}
	return max(t.topProt(), t.height())
}

// Followed returns the number of rows of t that a DirtySet follows. A write of such a row must be
// reported first.
func (t *Tracker) Followed() (rows int) {
	for _, n := range t.readers {
		rows = max(rows, n.seen)
	}
	return rows
}

// watched holds a hook of debug builds that runs before rows are saved.
type watched struct{ watch func(lo, hi int) }

// watching disables the fast path of saves, so that the hook sees every save.
const watching = true

// Watch makes l call f before rows [lo, hi) are saved.
func (l *Log) Watch(f func(lo, hi int)) { l.watch = f }

func (w *watched) saving(lo, hi int) {
	if w.watch != nil {
		w.watch(lo, hi)
	}
}

// Written reports whether a row was saved since the last call of Tracker.Reopen.
func (l *Log) Written(row int) bool {
	if row>>6 >= len(l.marks) {
		return false
	}
	m := l.marks[row>>6]
	return m.span == l.span && m.rows>>(uint(row)&63)&1 == 1
}
