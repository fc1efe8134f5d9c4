package track

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/internal/deep"
)

// A boundaryRun runs random operations on a timeline that retains 8 to 64 boundaries. It releases
// neighbouring boundaries in the middle, while rows are added, removed and written.
type boundaryRun struct {
	*timeline
	t       *testing.T
	r       *rand.Rand
	seed    uint64
	want    int // The approximate number of boundaries to retain.
	next    int
	lastOps []string // The most recent operations.
}

// keysHeld is the number of possible keys. More than 64 rows need several words of marks.
const keysHeld = 200

func (h *boundaryRun) do(name string, do func() bool) bool {
	if !do() {
		return false
	}
	if h.lastOps = append(h.lastOps, name); len(h.lastOps) > 12 {
		h.lastOps = h.lastOps[1:]
	}
	return true
}

// fail stops the test with err, the seed and the most recent operations.
func (h *boundaryRun) fail(err error) {
	h.t.Helper()
	h.t.Fatalf("seed %d, %d boundaries retained, the last operations %s: %v", h.seed, len(h.frames), strings.Join(h.lastOps, ", "), err)
}

// grow adds up to n new keys to table 0.
func (h *boundaryRun) grow(n int) bool {
	return h.change(0, func(a *table) bool {
		before := a.rows.N
		for range n {
			if key := uint32(h.r.IntN(keysHeld) * 43); a.find(key) < 0 {
				h.next++
				a.add(key, h.next)
			}
		}
		return a.rows.N > before
	})
}

// shrink removes up to n rows of table 0, and writes other rows.
func (h *boundaryRun) shrink(n int) bool {
	return h.change(0, func(a *table) bool {
		before := a.rows.N
		for range n {
			if a.rows.N > 0 {
				a.remove(h.r.IntN(a.rows.N))
			}
			if a.rows.N > 0 {
				a.write(h.r.IntN(a.rows.N))
			}
		}
		return a.rows.N < before
	})
}

func (h *boundaryRun) clear() bool {
	return h.change(0, func(a *table) bool {
		some := a.rows.N > 0
		if some {
			a.clear()
		}
		return some
	})
}

// writeRanges writes up to three ranges of rows of table 0. The ranges may overlap.
func (h *boundaryRun) writeRanges() bool {
	return h.change(0, func(a *table) bool {
		for range min(3, a.rows.N) {
			lo := h.r.IntN(a.rows.N + 1)
			hi := lo + h.r.IntN(a.rows.N-lo+1)
			if h.r.IntN(2) == 0 { // Start at a block of 64 rows.
				lo &^= 63
			}
			a.rows.Open()
			a.values.TouchRange(lo, hi)
			a.tiles.TouchRange(lo, hi)
			for row, v := range a.values.Live[lo:hi] {
				v[0]++
				a.tiles.Live[lo+row] = tileOf(v)
			}
		}
		return a.rows.N > 0
	})
}

func (h *boundaryRun) addToOther() bool {
	return h.change(1, func(a *table) bool { a.add(uint32(a.rows.N), 0); return true })
}

// releaseInTheMiddle releases up to four neighbouring boundaries.
func (h *boundaryRun) releaseInTheMiddle() bool {
	k := h.r.IntN(len(h.frames))
	some := false
	for range 1 + h.r.IntN(4) {
		some = len(h.frames) > 1 && h.release(min(k, len(h.frames)-1)) || some
		h.checkNow()
	}
	return some
}

func (h *boundaryRun) shrinkMemory() bool {
	h.absorb()
	for i := range h.tables {
		h.tables[i].rows.Shrink()
	}
	h.renew()
	return true
}

func (h *boundaryRun) releaseOldest() bool {
	for len(h.frames) > 1 {
		h.release(0)
		h.checkNow()
	}
	return true
}

// checkNow checks the invariants of the tables' trackers.
func (h *boundaryRun) checkNow() {
	h.t.Helper()
	err := h.checkTrackers()
	for i := range h.tables {
		if err == nil {
			err = h.checkGone(&h.tables[i].rows)
		}
	}
	if err != nil {
		h.fail(err)
	}
}

// checkGone calls Since for every frame, whether its boundary is released or retained. For a
// released boundary, Since must return the same as for the next retained boundary.
func (h *boundaryRun) checkGone(t *Tracker) error {
	next := h.id + 1
	for id, k := h.id+1, len(h.frames)-1; id > 0; id-- {
		if k >= 0 && h.frames[k].ID == id {
			next, k = id, k-1
		}
		from, before, changed := t.Since(id)
		if want, lengths, some := t.Since(next); from != want || before != lengths || changed != some {
			return fmt.Errorf("since frame %d: record %d, %v, %v; since %d, which is the next one retained: %d, %v, %v",
				id, from, before, changed, next, want, lengths, some)
		}
	}
	return nil
}

// step runs one random operation. While fewer than h.want boundaries are retained, step adds
// boundaries faster than it releases them.
func (h *boundaryRun) step() {
	some := 1 + h.r.IntN(20)
	switch n := h.r.IntN(32); {
	case n < 11 && len(h.frames) < h.want:
		h.do("frame", h.push)
	case n < 14:
		h.do("grow", func() bool { return h.grow(3 * some) })
	case n < 18:
		h.do("shrink", func() bool { return h.shrink(some) })
	case n < 20:
		h.do("clear", h.clear)
	case n < 22:
		h.do("write ranges", h.writeRanges)
	case n < 23:
		h.do("elsewhere", h.addToOther)
	// Release the oldest boundary, as a history of ticks does.
	case n < 24 && len(h.frames) > h.want/2:
		h.do("release 0", func() bool { return h.release(0) })
	case n < 27 && len(h.frames) > h.want/2:
		h.do("release", h.releaseInTheMiddle)
	case n < 28:
		h.do("undo", h.undo)
	case n < 29:
		h.do("redo", h.redo)
		h.do("shrink", h.shrinkMemory)
	case n < 30:
		h.do("frame, pin", func() bool { return h.past == nil && h.push() && h.pin() })
	case h.r.IntN(8) == 0:
		h.do("release all but one", h.releaseOldest)
	// Restore one of the newest boundaries. Restoring an old boundary would release too many
	// boundaries.
	default:
		h.do("restore", func() bool { return h.restore(max(0, len(h.frames)-1-h.r.IntN(6))) })
	}
}

// restoreAll restores all boundaries in turn, the newest first. It sometimes removes rows in
// between.
func (h *boundaryRun) restoreAll() {
	for k := len(h.frames) - 1; k >= 0; k-- {
		h.do("restore", func() bool { return h.restore(k) })
		h.checkAll()
		if h.r.IntN(3) == 0 {
			h.do("shrink", func() bool { return h.shrink(3) })
		}
	}
}

func (h *boundaryRun) checkAll() {
	if err := h.check(); err != nil {
		h.fail(err)
	}
}

func TestBoundary_ReleaseInMiddle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(40, 400)) {
		r := rand.New(rand.NewPCG(seed, 8))
		h := &boundaryRun{timeline: newTimeline(seed%8 == 7), t: t, r: r, seed: seed, want: 8 + r.IntN(57)}
		h.grow(20)
		h.push()
		for i := range 300 {
			h.step()
			h.checkNow()
			if i%50 == 49 {
				h.checkAll()
			}
		}
		h.restoreAll()
	}
}

// The test sets ten boundaries and clears all rows after the first boundary. The rows of the first
// boundary stay protected, whichever later boundaries are released.
func TestBoundary_ReleaseKeepsRowsProtected(t *testing.T) {
	for first := 1; first < 9; first++ {
		for n := 1; first+n <= 9; n++ {
			h := &boundaryRun{timeline: newTimeline(false), t: t, r: rand.New(rand.NewPCG(1, 1))}
			h.grow(40)
			for i := range 10 {
				h.push()
				if i == 0 {
					h.clear()
				}
				h.change(0, func(a *table) bool { a.add(uint32(i), i); return true })
			}
			for range n {
				h.release(first)
			}
			h.push()
			h.grow(60)
			h.restoreAll()
		}
	}
}
