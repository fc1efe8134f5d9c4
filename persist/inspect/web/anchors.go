package web

import (
	"cmp"
	"context"
	"slices"

	"github.com/stet-ecs/stet/persist/inspect"
)

// Anchors are copies of states on the path to the newest state. A journal can only be replayed
// forward, from a snapshot. Without anchors, each step back would replay from the snapshot. So a
// session stores copies of states that it visits, up to a memory limit.
//
// A seek starts at the snapshot, anchor or cursor that is nearest before the target. On its way to
// the target, it stops at intervals and stores an anchor at each stop. States on rewound branches
// have no anchors. To reach such a state, the cursor starts at a snapshot.
type anchors struct {
	held []anchor // The anchors, ordered by seq.
	size int      // Total size of the anchors in bytes.
}

// An anchor is a copy of the cursor in some state, with its approximate size in bytes.
type anchor struct {
	*inspect.Cursor
	size int
}

const (
	// Minimum number of ticks between anchors. Replaying 64 ticks takes no noticeable time.
	stride = 64
	// Memory limit for the anchors of the fast session, in bytes.
	fastRoom = 64 << 20
	// Memory limit for the anchors of the slow session, in bytes.
	slowRoom = 16 << 20
)

// find returns the last anchor at or before record seq, or nil.
func (a *anchors) find(seq uint64) *inspect.Cursor {
	i, ok := a.index(seq)
	switch {
	case ok:
		return a.held[i].Cursor
	case i > 0:
		return a.held[i-1].Cursor
	}
	return nil
}

// index returns the position of the anchor at seq, or the position at which to insert an anchor.
func (a *anchors) index(seq uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(a.held, seq, func(h anchor, seq uint64) int { return cmp.Compare(h.Seq(), seq) })
}

// addCopy adds a copy of c with the given size. If the anchors exceed room bytes, it removes the
// anchors that are farthest from c.
func (a *anchors) addCopy(c *inspect.Cursor, size, room int) {
	i, ok := a.index(c.Seq())
	if ok {
		return
	}
	a.held, a.size = slices.Insert(a.held, i, anchor{c.Clone(), size}), a.size+size
	for a.size > room {
		out := 0
		if last := len(a.held) - 1; a.held[last].Seq()-c.Seq() > c.Seq()-a.held[0].Seq() {
			out = last
		}
		a.size -= a.held[out].size
		a.held = slices.Delete(a.held, out, out+1)
	}
}

// keepOnLine keeps the anchors on the path of l, which leads to the newest state. It removes all
// others, because their records may be rewound.
func (a *anchors) keepOnLine(l *line) {
	a.held = slices.DeleteFunc(a.held, func(h anchor) bool {
		_, ok := l.find(h.Seq())
		if !ok {
			a.size -= h.size
		}
		return !ok
	})
}

// seek moves the cursor to record seq and stores anchors in between. It measures the size of the
// state at each anchor, because states grow and shrink.
func (d *session) seek(ctx context.Context, seq uint64) error {
	if to, ok := d.line.find(seq); ok {
		for _, place := range d.stops(ctx, to) {
			if err := d.jump(ctx, d.line.path[place].ID.Seq); err != nil {
				return err
			}
			d.size = sizeOf(d.cursor.Image())
			d.anchors.addCopy(d.cursor, d.size, d.room)
		}
	}
	return d.jump(ctx, seq)
}

// jump moves the cursor to record seq, from its current record or from a snapshot. After an error
// the cursor has no state, and its next Seek starts from a snapshot.
func (d *session) jump(ctx context.Context, seq uint64) (err error) {
	if d.cursor != nil {
		return d.cursor.Seek(ctx, seq)
	}
	if d.cursor, err = d.view.Cursor(ctx, seq); err != nil {
		d.cursor = nil
	} else if d.size == 0 {
		d.size = sizeOf(d.cursor.Image())
	}
	return err
}

// stops returns the positions on the path at which seek() stores anchors on its way to the given
// position. The positions are so far apart that anchors on the whole path fit into d.room. If an
// anchor is a better start than the cursor and all snapshots, the cursor becomes a copy of this
// anchor.
func (d *session) stops(ctx context.Context, to int) (places []int) {
	// base is the position of the newest snapshot or anchor at or before the target. Replay can
	// start there. Without such a snapshot or anchor, base is -1.
	base := -1
	seq := d.line.path[to].ID.Seq
	for _, s := range d.view.Snapshots() {
		if i, ok := d.line.find(s.ID.Seq); ok && s.Err == nil && i <= to {
			base = max(base, i)
		}
	}
	// Load a state, because its size is needed below.
	if d.cursor == nil && base >= 0 {
		// Ignore the error: another snapshot or anchor may lead to the state.
		_ = d.jump(ctx, d.line.path[base].ID.Seq)
	} else if d.cursor == nil {
		_ = d.jump(ctx, d.line.path[0].Parent)
	}
	// If d.room is too small for an anchor, store no anchors.
	if d.cursor == nil || d.size > d.room {
		return nil
	}
	// here says whether the cursor has a state on the path, and at is the position of that state.
	at, here := d.line.find(d.cursor.Seq())
	here = here && d.cursor.Image() != nil
	if a := d.anchors.find(seq); a != nil {
		if i, ok := d.line.find(a.Seq()); ok && i >= base {
			base = i
			// The anchor is nearer than the cursor, so the cursor becomes a copy of the anchor.
			if !here || at > to || at < i {
				d.cursor, at, here = a.Clone(), i, true
			}
		}
	}
	spacing := max(stride, int(int64(len(d.line.path))*int64(d.size)/int64(d.room)))
	// back is true for a short move back, if no snapshot or anchor is near. More single steps back
	// will probably follow. An extra anchor shortly before the target makes them fast.
	back := here && at > to && at-to <= 4*stride && to-stride > base && to-base > 4*stride
	// A cursor after the target is of no use: replay starts at base.
	if at > to {
		here = false
	}
	for i := base + spacing; i <= to; i += spacing {
		if !here || i > at {
			places = append(places, i)
		}
	}
	if n := len(places); back && (n == 0 || to-places[n-1] > 4*stride) {
		places = append(places, to-stride)
	}
	return places
}

// sizeOf returns the approximate size of a state in bytes.
func sizeOf(im *inspect.Image) (n int) {
	// Per index: 8 bytes for the entity and 4 for its row.
	n = 12 * im.Indices
	for _, c := range im.Internal().Components {
		n += c.Len()*(8+max(c.Width, 0)) + 4*len(c.Pointers)
		// Each row of variable size is a separate slice.
		for _, row := range c.Rows {
			n += 24 + len(row)
		}
	}
	return n
}

// isQuick reports whether a request for one entity should load the whole state after record seq. It
// should if states are small, or if the cursor is only a few ticks before seq. Otherwise it is
// faster to read only the pages of the entity.
func (d *session) isQuick(seq uint64) bool {
	const small, few = 4 << 20, 4 * stride
	to, ok := d.line.find(seq)
	// The record is not on the path to the newest state. Loading its state is quick only if the
	// cursor is already there.
	if !ok {
		return d.holds(seq)
	}
	// If no state is loaded yet, estimate the size of states from the snapshot files.
	if d.cursor == nil {
		all := d.view.Snapshots()
		return !slices.ContainsFunc(all, func(s inspect.SnapshotInfo) bool { return s.Err != nil || s.Size > small })
	}
	at, ok := d.line.find(d.cursor.Seq())
	return d.size <= small || ok && d.cursor.Image() != nil && at <= to && to-at <= few
}
