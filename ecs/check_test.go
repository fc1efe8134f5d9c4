package ecs

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// check returns the first inconsistency inside w, or nil. It checks the invariants between columns,
// records, logs and frames.
func (w *World) check() error {
	if w.clock.Undone != (len(w.forward) > 0) {
		return fmt.Errorf("Undone is %v with %d undone frames", w.clock.Undone, len(w.forward))
	}
	var rest []int
	w.clock.Seen.Drain(func(lo, hi int) { rest = append(rest, lo, hi) })
	if rest != nil {
		return fmt.Errorf("rows %v are in the scratch set, want none", rest)
	}
	if err := w.checkFrames(); err != nil {
		return err
	}
	bytes, err := w.checkTracker(&w.entities.rows, "registry")
	if err == nil {
		err = w.entities.check()
	}
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for i, s := range list {
			if err != nil {
				return err
			}
			var held int64
			held, err = w.checkTracker(s.tracked(), s.Name())
			bytes += held
			if set := s.sparseSet(); err == nil && set != nil {
				if err = set.check(); err == nil && set != w.sets[i] {
					err = fmt.Errorf("set %d of the world does not belong to %s", i, s.Name())
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
	if err == nil && bytes != w.clock.Bytes() {
		err = fmt.Errorf("undoBytes = %d, the logs hold %d", w.clock.Bytes(), bytes)
	}
	return err
}

func (w *World) checkFrames() error {
	removed, ticks, loose, last := 0, 0, 0, -1
	for i := range w.frames {
		f := &w.frames[i]
		if f.removed {
			if removed++; f.tick || len(f.Touched)+len(f.ops) > 0 || i == len(w.frames)-1 {
				return fmt.Errorf("frame %d of %d is removed: %+v", i, len(w.frames), f)
			}
			continue
		}
		if f.tick {
			ticks++
		}
		if last < 0 && i != w.oldest {
			return fmt.Errorf("the oldest frame is %d, want %d", w.oldest, i)
		}
		if last >= 0 && f.tick && w.frames[last].tick && (w.frames[last].deferred || !f.deferred) {
			if loose++; w.frames[last].at < w.thinning.oldest {
				return fmt.Errorf("tick %d can be evicted, but the search for the oldest tick starts at %d", w.frames[last].at, w.thinning.oldest)
			}
		}
		last = i
	}
	if removed != w.removed || ticks != w.ticks || loose != w.evictableTicks || removed > 8+cap(w.frames)/4 {
		return fmt.Errorf("of %d frames, %d are removed, %d are ticks, %d of them evictable; the world counts %d, %d, %d",
			len(w.frames), removed, ticks, loose, w.removed, w.ticks, w.evictableTicks)
	}
	for i := range w.frames {
		f := &w.frames[i]
		if i > 0 && f.ID <= w.frames[i-1].ID || f.ID > w.frameID {
			return fmt.Errorf("frame %d has id %d", i, f.ID)
		}
		for j, t := range f.Touched {
			if !recorded(t, f.ID) {
				return fmt.Errorf("frame %d lists a tracker without a record of the frame", i)
			}
			for _, other := range f.Touched[:j] {
				if other == t {
					return fmt.Errorf("frame %d lists a tracker twice", i)
				}
			}
		}
	}
	if k := len(w.frames); len(w.recorders) > 0 && (k == 0 || w.ops != &w.frames[k-1].ops) {
		return fmt.Errorf("operations are not recorded in the open frame")
	}
	return nil
}

// recorded reports whether t has a record of frame id. If it has none, Since returns the same
// position for this frame and the next one.
func recorded(t *track.Tracker, id uint64) bool {
	k, _, changed := t.Since(id)
	behind, _, _ := t.Since(id + 1)
	return changed && k != behind
}

// checkTracker checks the records and logs of t, and returns the memory size of the logs.
func (w *World) checkTracker(t *track.Tracker, name string) (bytes int64, err error) {
	undone := 0
	for i := range w.forward {
		for _, touched := range w.forward[i].Touched {
			if touched == t {
				undone++
			}
		}
	}
	bytes, err = t.Check(func(id uint64) *track.Frame {
		for i := range w.frames {
			if f := &w.frames[i]; f.ID == id && slices.Contains(f.Touched, t) {
				return &f.Frame
			}
		}
		return nil
	}, undone, w.pins != nil) // Pins also need protected rows.
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return bytes, err
}

func (r *registry) check() error {
	if r.rows.N > r.rows.Extra || r.rows.Extra > r.rows.Total || r.rows.Total > len(r.dense.Live) || len(r.sparse) != len(r.dense.Live) {
		return fmt.Errorf("registry: n %d, m %d, total %d of %d rows, %d in sparse", r.rows.N, r.rows.Extra, r.rows.Total, len(r.dense.Live), len(r.sparse))
	}
	for row, e := range r.dense.Live[:r.rows.Total] {
		if int(e.Index()) >= r.rows.Total || int(r.sparse[e.Index()]) != row {
			return fmt.Errorf("registry: row %d holds %v, but sparse has another row", row, e)
		}
		if e.Generation() == 0 || e.Generation() > r.maxGeneration {
			return fmt.Errorf("registry: row %d holds %v", row, e)
		}
	}
	return nil
}

func (s *set) check() error {
	gaps := 0
	for row, e := range s.dense.Live[:s.rows.N] {
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
	if gaps != s.rows.Extra {
		return fmt.Errorf("%d gaps, m is %d", gaps, s.rows.Extra)
	}
	if n := len(s.ring); n&(n-1) != 0 {
		return fmt.Errorf("the ring has %d notes, which is not a power of two", n)
	}
	return nil
}

func (s *Storage[T]) checkRows() error {
	if len(s.data.Live) != len(s.dense.Live) {
		return fmt.Errorf("%d values, %d entities", len(s.data.Live), len(s.dense.Live))
	}
	if !s.pointers || s.w.clock.Undone {
		return nil
	}
	for row := max(s.rows.N, s.rows.Prot); row < len(s.data.Live); row++ {
		if !reflect.ValueOf(&s.data.Live[row]).Elem().IsZero() {
			return fmt.Errorf("row %d of %d is unprotected (%d) and still holds %v", row, s.rows.N, s.rows.Prot, s.data.Live[row])
		}
	}
	return nil
}

// allocations calls testing.AllocsPerRun. It skips the test in debug builds, whose checks allocate.
func allocations(t *testing.T, runs int, f func()) float64 {
	t.Helper()
	if debug {
		t.Skip("a debug build allocates")
	}
	return testing.AllocsPerRun(runs, f)
}
