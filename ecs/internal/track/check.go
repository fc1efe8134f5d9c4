package track

import (
	"fmt"
	"slices"
	"unsafe"
)

// Check returns an error if t, its columns or their logs are inconsistent. It also returns the size
// of the logs in bytes. Check is for tests. The parameters are:
//
//	frameOf   returns the frame with an id if that frame lists t, or nil
//	undone    number of undone frames that list t
//	read      set if as-of readers may need rows of t
//
// Frames, as-of readers and DirtySets protect rows. If read is unset and t has no DirtySet, Check
// also reports rows that are protected although no frame needs them.
func (t *Tracker) Check(frameOf func(id uint64) *Frame, undone int, read bool) (bytes int64, err error) {
	if err := t.checkRecords(frameOf); err != nil {
		return 0, err
	}
	if prot := t.topProt(); t.Prot < prot || t.Prot > prot && !read && len(t.readers) == 0 {
		return 0, fmt.Errorf("%d rows are protected, want %d", t.Prot, prot)
	}
	if undone != len(t.forward) {
		return 0, fmt.Errorf("%d undone records, listed by %d frames", len(t.forward), undone)
	}
	for _, c := range t.columns {
		n, err := c.check(len(t.recs), len(t.forward))
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

func (t *Tracker) checkRecords(frameOf func(id uint64) *Frame) error {
	prot, removed := 0, 0
	for i, r := range t.recs {
		if r.removed {
			if removed++; i > 0 && r.frame < t.recs[i-1].frame || i == len(t.recs)-1 {
				return fmt.Errorf("record %d of %d is removed, of frame %d", i, len(t.recs), r.frame)
			}
			for _, c := range t.columns {
				if n := c.savedIn(i); n > 0 {
					return fmt.Errorf("record %d is removed, and its log has %d rows and chunks", i, n)
				}
			}
			continue
		}
		if i > 0 && (r.frame < t.recs[i-1].frame || r.frame == t.recs[i-1].frame && !t.recs[i-1].removed) {
			return fmt.Errorf("record %d is of frame %d, after %d", i, r.frame, t.recs[i-1].frame)
		}
		if prot = max(prot, r.height()); r.prot != prot {
			return fmt.Errorf("record %d has prot %d, want %d", i, r.prot, prot)
		}
		f := frameOf(r.frame)
		if f == nil {
			return fmt.Errorf("frame %d does not list the tracker", r.frame)
		}
		for _, c := range t.columns {
			if !f.Bare && c.bareLog(i) {
				return fmt.Errorf("record %d has no values to restore", i)
			}
		}
	}
	if t.oldest > 0 && !t.recs[t.oldest-1].removed || t.oldest < len(t.recs) && t.recs[t.oldest].removed {
		return fmt.Errorf("record %d is not the first of %d that is not removed", t.oldest, len(t.recs))
	}
	if removed != t.removed || removed > 8+len(t.recs)/4+1 {
		return fmt.Errorf("%d of %d records are removed, %d were counted", removed, len(t.recs), t.removed)
	}
	return nil
}

// SavedRows returns the number of rows in the logs of each column.
func (t *Tracker) SavedRows() (rows []int) {
	for _, c := range t.columns {
		rows = append(rows, c.SavedRows())
	}
	return rows
}

// savedIn returns the sum of the rows and the chunks in logs[i]. It is 0 if the log is empty.
func (u *undoStack) savedIn(i int) int { return u.logs[i].rows() + len(u.logs[i].chunks) }

// bareLog reports whether logs[i] exists and has no values.
func (u *undoStack) bareLog(i int) bool { return i < len(u.logs) && u.logs[i].bare }

// SavedRows returns the number of rows in the logs.
func (u *undoStack) SavedRows() (n int) {
	for _, l := range u.logs {
		n += l.rows()
	}
	return n
}

func (u *undoStack) check(records, forward int) (bytes int64, err error) {
	if len(u.logs) != records || len(u.forward) != forward {
		return 0, fmt.Errorf("%d + %d logs, want %d + %d", len(u.logs), len(u.forward), records, forward)
	}
	for _, list := range [2][]*undoLog{u.logs, u.forward} {
		for i, l := range list {
			if err := l.check(u.split); err != nil {
				return 0, fmt.Errorf("log %d: %w", i, err)
			}
			for _, c := range l.chunks {
				bytes += u.bytes(c)
			}
		}
	}
	if bytes != u.used || bytes > u.most {
		return 0, fmt.Errorf("logs have %d bytes, but %d are counted, at most %d", bytes, u.used, u.most)
	}
	spare := int64(0)
	for _, spares := range append(slices.Clone(u.spares), u.bare) {
		for _, c := range spares {
			spare += u.bytes(c)
			if c.rows.n != 0 || len(c.runs) != 0 {
				return 0, fmt.Errorf("a spare chunk is in use")
			}
			memory := unsafe.Slice((*byte)(c.rows.p), c.rows.room*int(u.size))
			if u.wipes && slices.ContainsFunc(memory, func(b byte) bool { return b != 0 }) {
				return 0, fmt.Errorf("a spare chunk has rows")
			}
		}
	}
	if spare != u.spare {
		return 0, fmt.Errorf("spare chunks have %d bytes, but %d are counted", spare, u.spare)
	}
	return bytes, nil
}

func (l *undoLog) check(split uint32) error {
	size := 0
	seen := map[uint32]bool{}
	for i, c := range l.chunks {
		n := 0
		for _, r := range c.runs {
			n += int(r.N)
			for row := r.Row; row < r.Row+r.N; row++ {
				if seen[row] && !l.repeats {
					return fmt.Errorf("row %d is saved twice", row)
				}
				if row > r.Row && row&split == 0 {
					return fmt.Errorf("run %v crosses the border of a page", r)
				}
				seen[row] = true
			}
		}
		if c.rows.n != n || l.bare != (c.rows.room == 0) || !l.bare && n > c.rows.room {
			return fmt.Errorf("chunk %d has %d of %d rows, its runs %d (bare: %v)", i, c.rows.n, c.rows.room, n, l.bare)
		}
		size += n
	}
	if size != l.rows() {
		return fmt.Errorf("size is %d, its runs have %d rows", l.rows(), size)
	}
	return nil
}
