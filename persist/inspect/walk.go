package inspect

import (
	"context"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A walk takes a state along records:
//
//	state ──converted?──▶ before ──tick──▶ after ──converted?──▶ before ──tick──▶ …
//
// Where a program converted the store, the next tick continues the converted state.
//
// The image that a walk is given is changed in place: a step costs what its tick wrote, not
// what the world holds. Who wants to keep a state on the way clones it.
type walk struct {
	*catalog.Catalog

	// Called with the state that a tick is about to be applied to, and that it was
	// converted from or is itself; and with the state after the tick. Either may be nil.
	before func(ctx context.Context, was, im *Image, r *catalog.Record) error
	after  func(ctx context.Context, im *Image, r *catalog.Record) error
}

// step returns the state after r, which continues im. After an error im is of no use.
func (w *walk) step(ctx context.Context, im *Image, r *catalog.Record) (*Image, error) {
	next, err := w.Across(ctx, im, r.Entry) // im itself, or what it was converted to before r.
	if err != nil {
		return nil, err
	}
	if err := w.Describe(r, next.ID, next.Stored); err != nil {
		return nil, err
	}
	if w.before != nil {
		if err := w.before(ctx, im, next, r); err != nil {
			return nil, err
		}
	}
	if err := w.Advance(next, r); err != nil {
		return nil, err
	}
	if w.after != nil {
		if err := w.after(ctx, next, r); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// along returns the state after the last record of path, the first of which continues im,
// and how many of them fitted.
func (w *walk) along(ctx context.Context, im *Image, path []journal.Entry) (_ *Image, n int, err error) {
	err = w.Records(ctx, path, func(ctx context.Context, r *catalog.Record) error {
		if im, err = w.step(ctx, im, r); err == nil {
			n++
		}
		return err
	})
	if err != nil {
		return nil, n, err
	}
	return im, n, nil
}

// between is along from the state after record from to that after record to.
func (w *walk) between(ctx context.Context, from, to uint64) error {
	path, err := w.Path(from, to)
	if err != nil || len(path) == 0 {
		return err
	}
	im, err := base(ctx, w.Catalog, from)
	if err != nil {
		return err
	}
	_, _, err = w.along(ctx, im, path)
	return err
}

// base is At for a state that ticks may follow: it keeps rows of dead entities that do not
// rewind, which later ticks count on. At itself drops them.
func base(ctx context.Context, v *catalog.Catalog, seq uint64) (im *Image, err error) {
	err = v.Persevere(ctx, func() error {
		im, _, err = v.Reach(ctx, seq, false)
		return err
	})
	return im, err
}

// A Cursor holds one state of a store and goes to others. It goes forward only: ticks hold
// what rows became, not what they were. To go back is to load a snapshot and replay.
type Cursor struct {
	view  *catalog.Catalog
	image *Image // Which ticks may follow: with rows of dead entities that do not rewind; nil: going failed.
	shown *Image // The same for others, without them.
	seq   uint64
}

// newCursor returns a cursor at the state after record seq. With an error it is nowhere.
func newCursor(ctx context.Context, v *catalog.Catalog, seq uint64) (*Cursor, error) {
	c := &Cursor{view: v}
	return c, c.Seek(ctx, seq)
}

// Image returns the state that c is at. It is valid until c goes elsewhere.
func (c *Cursor) Image() *Image { return c.shown }

// State returns the same as a [State], which lies in memory.
func (c *Cursor) State() *State {
	st := stateOf(c.shown)
	st.Seq = c.seq
	return st
}

// Seq returns the record of the state that c is at.
func (c *Cursor) Seq() uint64 { return c.seq }

// Clone returns another cursor at the same state, which goes its own way. It costs a copy of the
// state.
func (c *Cursor) Clone() *Cursor {
	d := &Cursor{view: c.view, seq: c.seq}
	if c.image != nil {
		d.image = c.image.Clone()
		d.shown = d.image.Settled()
	}
	return d
}

// Seek goes to the state after record seq: along the journal if there is less to
// read than from the nearest snapshot. After an error c is nowhere, and the next
// Seek begins anew.
func (c *Cursor) Seek(ctx context.Context, seq uint64) (err error) {
	im, from := c.image, c.seq
	if im != nil && from == seq {
		return nil
	}
	c.image, c.shown, c.seq = nil, nil, seq // Replay changes im in place: if it fails half way, that is no state.
	if path := shortcut(c.view, im, from, seq); path != nil {
		c.image, _, err = (&walk{Catalog: c.view}).along(ctx, im, path)
	} else {
		c.image, err = base(ctx, c.view, seq)
	}
	if err == nil {
		c.shown = c.image.Settled()
	}
	return err
}

// shortcut returns the records that lead from im, the state after record from, to
// that after record to, or nil if there are none or a snapshot is nearer. Nearer is what
// has fewer bytes to read; only the first readable snapshot, the nearest, is asked. Which that is takes
// a walk over all that leads to it, so it is only asked where there is one that could be nearer.
func shortcut(v *catalog.Catalog, im *Image, from, to uint64) []journal.Entry {
	if im == nil {
		return nil
	}
	path, err := v.Log.Path(from, to)
	if err != nil {
		return nil
	}
	bytes := bytesOf(path)
	if !slices.ContainsFunc(v.Snapshots, func(s SnapshotInfo) bool { return s.ID.Seq > from && s.ID.Seq <= to && s.Size < bytes }) {
		return path
	}
	for _, s := range v.Bases(to) {
		if s.Err != nil {
			continue
		}
		fromSnapshot, err := v.Log.Path(s.ID.Seq, to)
		if err == nil && s.Size+bytesOf(fromSnapshot) < bytes {
			return nil
		}
		break
	}
	return path
}

// bytesOf returns how much there is to read of records.
func bytesOf(entries []journal.Entry) (n int64) {
	for _, e := range entries {
		n += int64(e.Length)
	}
	return n
}
