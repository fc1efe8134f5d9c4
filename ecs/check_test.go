package ecs

import (
	"fmt"
	"reflect"
	"testing"
)

// check returns what is inconsistent inside w, or nil: the things that its
// columns, records, logs and frames promise each other.
func (w *World) check() error {
	if w.held != (len(w.forward) > 0) {
		return fmt.Errorf("held is %v with %d forward frames", w.held, len(w.forward))
	}
	for i, word := range w.seen.words {
		if word != 0 {
			return fmt.Errorf("scratch word %d is %#x, want 0", i, word)
		}
	}
	if err := w.checkFrames(); err != nil {
		return err
	}
	bytes, err := w.entities.tracker.check("registry")
	if err == nil {
		err = w.entities.check()
	}
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for i, s := range list {
			if err != nil {
				return err
			}
			var held int64
			held, err = s.tracked().check(s.Name())
			bytes += held
			if set := s.sparseSet(); err == nil && set != nil {
				if err = set.check(); err == nil && set != w.sets[i] {
					err = fmt.Errorf("the world's set %d is not that of %s", i, s.Name())
				}
			}
			if rows, ok := s.(interface{ checkRows() error }); err == nil && ok {
				err = rows.checkRows()
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", s.Name(), err)
			}
		}
	}
	if err == nil {
		var held int64
		held, err = w.checkMasks()
		bytes += held
	}
	for _, g := range w.groups {
		if err == nil {
			err = g.check()
		}
	}
	if err == nil && bytes != w.undoBytes {
		err = fmt.Errorf("undoBytes = %d, the logs hold %d", w.undoBytes, bytes)
	}
	return err
}

func (w *World) checkFrames() error {
	for i := range w.frames {
		f := &w.frames[i]
		if i > 0 && f.id <= w.frames[i-1].id || f.id > w.frameID {
			return fmt.Errorf("frame %d has id %d", i, f.id)
		}
		for j, t := range f.touched {
			if k := t.find(f.id); k == len(t.recs) || t.recs[k].frame != f.id {
				return fmt.Errorf("frame %d names a tracker without a record of it", i)
			}
			for _, other := range f.touched[:j] {
				if other == t {
					return fmt.Errorf("frame %d names a tracker twice", i)
				}
			}
		}
	}
	if k := len(w.frames); w.recorder != nil && (k == 0 || w.ops != &w.frames[k-1].ops) {
		return fmt.Errorf("operations do not go to the open frame")
	}
	return nil
}

// check checks the records of t and returns the bytes that its logs hold.
func (t *tracker) check(name string) (bytes int64, err error) {
	prot, gone := 0, 0
	for i, r := range t.recs {
		if r.gone {
			if gone++; i > 0 && r.frame < t.recs[i-1].frame || i == len(t.recs)-1 {
				return 0, fmt.Errorf("%s: record %d of %d is gone, of frame %d", name, i, len(t.recs), r.frame)
			}
			for _, c := range t.columns {
				if n := c.(checkedColumn).savedIn(i); n > 0 {
					return 0, fmt.Errorf("%s: record %d is gone, and its log has %d rows", name, i, n)
				}
			}
			continue
		}
		if i > 0 && (r.frame < t.recs[i-1].frame || r.frame == t.recs[i-1].frame && !t.recs[i-1].gone) {
			return 0, fmt.Errorf("%s: record %d is of frame %d, after %d", name, i, r.frame, t.recs[i-1].frame)
		}
		if prot = max(prot, r.height()); r.prot != prot {
			return 0, fmt.Errorf("%s: record %d has prot %d, want %d", name, i, r.prot, prot)
		}
		f := t.frameOf(r)
		if f == nil {
			return 0, fmt.Errorf("%s: frame %d does not name it", name, r.frame)
		}
		for _, c := range t.columns {
			if !f.bare && c.(checkedColumn).bareLog(i) {
				return 0, fmt.Errorf("%s: record %d has no values to restore", name, i)
			}
		}
	}
	if gone != t.gone || gone > 8+len(t.recs)/4+1 {
		return 0, fmt.Errorf("%s: %d of %d records are gone, %d were counted", name, gone, len(t.recs), t.gone)
	}
	if t.prot < prot || t.prot > prot && t.w.pins == nil { // Pins raise it.
		return 0, fmt.Errorf("%s: prot is %d, want %d", name, t.prot, prot)
	}
	forward := 0
	for i := range t.w.forward {
		for _, touched := range t.w.forward[i].touched {
			if touched == t {
				forward++
			}
		}
	}
	if forward != len(t.forward) {
		return 0, fmt.Errorf("%s: %d forward records, named by %d frames", name, len(t.forward), forward)
	}
	for _, c := range t.columns {
		held, err := c.(checkedColumn).checkLogs(t)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		bytes += held
	}
	return bytes, nil
}

// frameOf returns the frame of r, or nil if it does not name t.
func (t *tracker) frameOf(r record) *frame {
	for i := range t.w.frames {
		if f := &t.w.frames[i]; f.id == r.frame {
			for _, touched := range f.touched {
				if touched == t {
					return f
				}
			}
		}
	}
	return nil
}

type checkedColumn interface {
	checkLogs(t *tracker) (bytes int64, err error)
	bareLog(i int) bool
	saved() int
	savedIn(i int) int
}

// savedIn returns how many rows logs[i] holds; that of a record that is gone has no
// chunk either.
func (u *undoStack[T]) savedIn(i int) int { return u.logs[i].size + len(u.logs[i].chunks) }

// bareLog reports whether logs[i], if there is one, has no values.
func (u *undoStack[T]) bareLog(i int) bool { return i < len(u.logs) && u.logs[i].bare }

// saved returns how many rows the logs hold.
func (u *undoStack[T]) saved() (n int) {
	for _, l := range u.logs {
		n += l.size
	}
	return n
}

func (u *undoStack[T]) checkLogs(t *tracker) (bytes int64, err error) {
	if len(u.logs) != len(t.recs) || len(u.forward) != len(t.forward) {
		return 0, fmt.Errorf("%d + %d logs, want %d + %d", len(u.logs), len(u.forward), len(t.recs), len(t.forward))
	}
	for _, list := range [2][]*undoLog[T]{u.logs, u.forward} {
		for i, l := range list {
			if err := l.check(u.split); err != nil {
				return 0, fmt.Errorf("log %d: %w", i, err)
			}
			for _, c := range l.chunks {
				bytes += c.bytes()
			}
		}
	}
	for _, spares := range [2][]*chunk[T]{u.spares, u.bare} {
		for _, c := range spares {
			if len(c.rows) != 0 || len(c.runs) != 0 {
				return 0, fmt.Errorf("a spare chunk is in use")
			}
			for _, v := range c.rows[:cap(c.rows)] {
				if u.clear && !reflect.ValueOf(&v).Elem().IsZero() {
					return 0, fmt.Errorf("a spare chunk keeps %v", v)
				}
			}
		}
	}
	return bytes, nil
}

func (l *undoLog[T]) check(split uint32) error {
	size := 0
	seen := map[uint32]bool{}
	for i, c := range l.chunks {
		n := 0
		for _, r := range c.runs {
			n += int(r.n)
			for row := r.row; row < r.row+r.n; row++ {
				if seen[row] && !l.repeats {
					return fmt.Errorf("row %d is saved twice", row)
				}
				if row > r.row && row&split == 0 {
					return fmt.Errorf("run %v extends over a page", r)
				}
				seen[row] = true
			}
		}
		if want := n; l.bare && len(c.rows) != 0 || !l.bare && len(c.rows) != want {
			return fmt.Errorf("chunk %d has %d rows, its runs %d (bare: %v)", i, len(c.rows), want, l.bare)
		}
		size += n
	}
	if size != l.size {
		return fmt.Errorf("size is %d, its runs have %d rows", l.size, size)
	}
	return nil
}

func (r *registry) check() error {
	if r.n > r.m || r.m > r.total || r.total > len(r.dense.live) || len(r.sparse) != len(r.dense.live) {
		return fmt.Errorf("registry: n %d, m %d, total %d of %d rows, %d in sparse", r.n, r.m, r.total, len(r.dense.live), len(r.sparse))
	}
	for row, e := range r.dense.live[:r.total] {
		if int(e.Index()) >= r.total || int(r.sparse[e.Index()]) != row {
			return fmt.Errorf("registry: row %d holds %v, sparse does not point to it", row, e)
		}
		if e.Generation() == 0 || e.Generation() > r.maxGeneration {
			return fmt.Errorf("registry: row %d holds %v", row, e)
		}
	}
	return nil
}

func (s *set) check() error {
	gaps := 0
	for row, e := range s.dense.live[:s.n] {
		if e == Vacant && s.kind == Indexed {
			gaps++
			continue
		}
		if s.row(e) != row {
			return fmt.Errorf("row of %v is %d, want %d", e, s.row(e), row)
		}
		if !s.w.entities.alive(e) {
			return fmt.Errorf("row %d belongs to %v, which is not alive", row, e)
		}
	}
	if gaps != s.m {
		return fmt.Errorf("%d gaps, m is %d", gaps, s.m)
	}
	if len(s.order)*64 != s.watched {
		return fmt.Errorf("the order of %d blocks is kept, %d rows are watched", len(s.order), s.watched)
	}
	return nil
}

func (s *Storage[T]) checkRows() error {
	if len(s.data.live) != len(s.dense.live) {
		return fmt.Errorf("%d values, %d entities", len(s.data.live), len(s.dense.live))
	}
	if !s.pointers || s.w.held {
		return nil
	}
	for row := max(s.n, s.prot); row < len(s.data.live); row++ {
		if !reflect.ValueOf(&s.data.live[row]).Elem().IsZero() {
			return fmt.Errorf("row %d of %d, which nothing protects (%d), keeps %v", row, s.n, s.prot, s.data.live[row])
		}
	}
	return nil
}

// allocations is testing.AllocsPerRun for builds that do not allocate on purpose.
func allocations(t *testing.T, runs int, f func()) float64 {
	t.Helper()
	if debug {
		t.Skip("a debug build allocates")
	}
	return testing.AllocsPerRun(runs, f)
}
