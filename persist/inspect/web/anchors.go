package web

import (
	"cmp"
	"context"
	"slices"

	"github.com/stet-ecs/stet/persist/inspect"
)

// Anchors are states on the way to the newest one, from which those behind them are reached. A
// journal only leads forward, from a snapshot on: whoever goes back, or far away, would go that way
// each time. So copies of what is passed are left on it, for which a desk has some room:
//
//	snapshot ──▶ anchor ──▶ anchor ──▶ anchor ──copy──▶ seq ◀── cursor
//	                 spacing
//
// A seek goes in stops: it begins at the nearest of snapshot, anchor and cursor before seq, leaves
// an anchor at each stop between, and goes on to seq. States off the line, of rewound branches, have
// no anchors: they are reached from a snapshot.
type anchors struct {
	held []anchor // By seq.
	size int      // Of all of them.
}

// An anchor is a copy of the cursor at some state, and about how many bytes it takes.
type anchor struct {
	*inspect.Cursor
	size int
}

const (
	stride   = 64       // Ticks between anchors at least: so many are gone at once.
	nearRoom = 64 << 20 // Bytes of the anchors of the near desk,
	farRoom  = 16 << 20 // and of the far one.
)

// find returns the last anchor at record seq or before it; nil: there is none.
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

// index returns where an anchor at seq is among those held, or would be.
func (a *anchors) index(seq uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(a.held, seq, func(h anchor, seq uint64) int { return cmp.Compare(h.Seq(), seq) })
}

// keep leaves a copy of c, which takes so many bytes. If there is no room for all, those that are
// farthest from it go.
func (a *anchors) keep(c *inspect.Cursor, size, room int) {
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

// only lets go of all anchors but those that lie on a line: a program may have rewound the others.
func (a *anchors) only(l *line) {
	a.held = slices.DeleteFunc(a.held, func(h anchor) bool {
		_, ok := l.find(h.Seq())
		if !ok {
			a.size -= h.size
		}
		return !ok
	})
}

// seek takes the cursor to record seq, and leaves anchors on the way. What a state takes is measured
// at each, since states grow and shrink.
func (d *desk) seek(ctx context.Context, seq uint64) error {
	if to, ok := d.line.find(seq); ok {
		for _, place := range d.stops(ctx, to) {
			if err := d.jump(ctx, d.line.path[place].ID.Seq); err != nil {
				return err
			}
			d.size = sizeOf(d.cursor.Image())
			d.anchors.keep(d.cursor, d.size, d.room)
		}
	}
	return d.jump(ctx, seq)
}

// jump takes the cursor to record seq, by whatever way is shortest from where it is and from a snapshot.
// A cursor that failed stays, at no state: its next Seek begins anew.
func (d *desk) jump(ctx context.Context, seq uint64) (err error) {
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

// stops takes the cursor to an anchor if that lies before place to on the line and nothing nearer does,
// and returns where others are to be left between there and to: as far from each other as there is
// room for, if they lay on the whole line.
func (d *desk) stops(ctx context.Context, to int) (places []int) {
	base := -1 // The last place that is known already.
	seq := d.line.path[to].ID.Seq
	for _, s := range d.view.Snapshots() {
		if i, ok := d.line.find(s.ID.Seq); ok && s.Err == nil && i <= to {
			base = max(base, i)
		}
	}
	if d.cursor == nil && base >= 0 { // How large a state is, is known then.
		_ = d.jump(ctx, d.line.path[base].ID.Seq) // If that is damaged, there may be another way.
	} else if d.cursor == nil {
		_ = d.jump(ctx, d.line.path[0].Parent)
	}
	if d.cursor == nil || d.size > d.room { // Not one anchor has room.
		return nil
	}
	at, here := d.line.find(d.cursor.Seq()) // Whether the cursor is on the line at a state, and where.
	here = here && d.cursor.Image() != nil
	if a := d.anchors.find(seq); a != nil {
		if i, ok := d.line.find(a.Seq()); ok && i >= base {
			base = i
			if !here || at > to || at < i { // The cursor is no nearer: it becomes a copy of the anchor.
				d.cursor, at, here = a.Clone(), i, true
			}
		}
	}
	spacing := max(stride, int(int64(len(d.line.path))*int64(d.size)/int64(d.room)))
	// A cursor that is still behind to comes back a little way, over a stretch without anchors: most
	// likely somebody steps back, and the next step has one near if it is left shortly before to.
	back := here && at > to && at-to <= 4*stride && to-stride > base && to-base > 4*stride
	if at > to { // It does not pass the places before to.
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

// sizeOf returns about how many bytes a state takes.
func sizeOf(im *inspect.Image) (n int) {
	n = 12 * len(im.Registry) // An entity, and its row by index.
	for _, c := range im.Components {
		n += c.Len()*(8+max(c.Width, 0)) + 4*len(c.Pointers)
		for _, row := range c.Rows { // Of rows that vary, each is a slice of its own.
			n += 24 + len(row)
		}
	}
	return n
}

// isQuick reports whether the state after record seq is reached in less time than what it has of one
// entity is read: it is near, or states are small.
func (d *desk) isQuick(seq uint64) bool {
	const small, few = 4 << 20, 4 * stride
	to, ok := d.line.find(seq)
	if !ok { // On a branch, or before the journal: only if the cursor is there.
		return d.cursor != nil && d.cursor.Image() != nil && d.cursor.Seq() == seq
	}
	if d.cursor == nil { // No state was seen: snapshots tell how large they are.
		all := d.view.Snapshots()
		return !slices.ContainsFunc(all, func(s inspect.SnapshotInfo) bool { return s.Err != nil || s.Size > small })
	}
	at, ok := d.line.find(d.cursor.Seq())
	return d.size <= small || ok && d.cursor.Image() != nil && at <= to && to-at <= few
}
