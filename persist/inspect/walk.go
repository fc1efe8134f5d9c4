package inspect

import (
	"context"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// A record is one of the journal that was read.
type record struct {
	journal.Entry
	payload []byte
	tick    *format.Tick
	schema  *format.Schema // In force at it.
}

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
	before func(ctx context.Context, was, im *Image, r *record) error
	after  func(ctx context.Context, im *Image, r *record) error
}

// step returns the state after record e, which continues im. After an error im is of no use.
func (w *walk) step(ctx context.Context, im *Image, e journal.Entry) (*Image, error) {
	next, err := w.Across(ctx, im, e)
	if err != nil {
		return nil, err
	}
	r, err := w.read(e, next)
	if err != nil {
		return nil, err
	}
	if w.before != nil {
		if err := w.before(ctx, im, next, r); err != nil {
			return nil, err
		}
	}
	if err := w.Advance(next, e, r.tick, r.schema); err != nil {
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
	err = progress.Each(ctx, progress.PhaseReplay, path, func(ctx context.Context, e journal.Entry) error {
		if im, err = w.step(ctx, im, e); err == nil {
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

// read reads record e, which leads on from im.
func (w *walk) read(e journal.Entry, im *Image) (*record, error) {
	s, err := w.SchemaAfter(e, im.ID, im.Stored)
	if err != nil {
		return nil, err
	}
	t, payload, err := w.Catalog.Read(e)
	if err == nil {
		err = w.Described(e, t, s)
	}
	return &record{e, payload, t, s}, err
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
	image *Image // Which ticks may follow; nil: going failed.
	shown *Image // The same for others.
	seq   uint64
}

func newCursor(ctx context.Context, v *catalog.Catalog, seq uint64) (*Cursor, error) {
	c := &Cursor{view: v}
	return c, c.Seek(ctx, seq)
}

// Image returns the state that c is at. It is valid until c goes elsewhere.
func (c *Cursor) Image() *Image { return c.shown }

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
// has fewer bytes to read; only the first readable snapshot, the nearest, is asked.
func shortcut(v *catalog.Catalog, im *Image, from, to uint64) []journal.Entry {
	if im == nil {
		return nil
	}
	path, err := v.Log.Path(from, to)
	if err != nil {
		return nil
	}
	for _, s := range v.Bases(to) {
		if s.Err != nil {
			continue
		}
		fromSnapshot, err := v.Log.Path(s.ID.Seq, to)
		if err == nil && s.Size+bytesOf(fromSnapshot) < bytesOf(path) {
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
