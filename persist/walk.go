package persist

import (
	"context"

	"github.com/stet-ecs/stet/journal"
)

// Walk goes from the state after record from, which must be an ancestor of to, to
// that after record to, and calls f with the state after each record on the way
// and the tick that led to it. im is the same world a tick later each time; f may
// read it until it returns. Its error ends the walk, as does that of ctx, and
// damage.
//
// Where a program converted the store, the next tick continues the converted state.
// The cost is that of loading the nearest snapshot, and of reading the ticks. The
// phase is [PhaseReplay].
func (v *View) Walk(ctx context.Context, from, to uint64, f func(im *Image, c *Commit) error) error {
	im, path, err := v.start(ctx, from, to)
	if err != nil || len(path) == 0 {
		return err
	}
	_, err = v.walk(ctx, im, path, f)
	return err
}

// start returns the state after record from, and the records that lead from there to
// record to; no state if there are none.
func (v *catalog) start(ctx context.Context, from, to uint64) (*Image, []journal.Entry, error) {
	path, err := v.Path(from, to)
	if err != nil || len(path) == 0 {
		return nil, nil, err
	}
	im, err := v.base(ctx, from)
	return im, path, err
}

// base is At for a state that ticks may follow.
func (v *catalog) base(ctx context.Context, seq uint64) (im *Image, err error) {
	err = v.persevere(ctx, func() error {
		im, _, err = v.reach(ctx, seq, false)
		return err
	})
	return im, err
}

// walk is Walk from im along path. It returns the last state.
func (v *catalog) walk(ctx context.Context, im *Image, path []journal.Entry, f func(*Image, *Commit) error) (*Image, error) {
	p := startProgress(ctx, PhaseReplay, int64(len(path)))
	for _, e := range path {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if im, err = v.across(quiet(ctx), im, e); err != nil {
			return nil, err
		}
		t, s, err := v.tick(e)
		if err == nil {
			err = v.advance(im, e, t, s)
		}
		if err != nil {
			return nil, pruned(err)
		}
		if err := f(im.settled(), v.describe(e, t, s)); err != nil {
			return nil, err
		}
		p.add(1)
	}
	return im, nil
}

// A Cursor holds one state of a store and goes to others.
type Cursor struct {
	view  *catalog
	image *Image // Which ticks may follow; nil: going failed.
	shown *Image // The same for others.
	seq   uint64
}

// Cursor returns a cursor at the state after record seq, see [View.At].
func (v *View) Cursor(ctx context.Context, seq uint64) (*Cursor, error) {
	return newCursor(ctx, v.catalog, seq)
}

func newCursor(ctx context.Context, v *catalog, seq uint64) (*Cursor, error) {
	c := &Cursor{view: v}
	return c, c.Seek(ctx, seq)
}

// Image returns the state that c is at. It is valid until c goes elsewhere.
func (c *Cursor) Image() *Image { return c.shown }

// Seq returns the record of the state that c is at.
func (c *Cursor) Seq() uint64 { return c.seq }

// Seek goes to the state after record seq: along the journal if there is less to
// read than from the nearest snapshot. After an error c is nowhere, and the next
// Seek begins anew.
func (c *Cursor) Seek(ctx context.Context, seq uint64) (err error) {
	im, from := c.image, c.seq
	if im != nil && from == seq {
		return nil
	}
	c.image, c.shown, c.seq = nil, nil, seq
	if path := c.view.shortcut(im, from, seq); path != nil {
		c.image, err = c.view.walk(ctx, im, path, func(*Image, *Commit) error { return nil })
	} else {
		c.image, err = c.view.base(ctx, seq)
	}
	if err == nil {
		c.shown = c.image.settled()
	}
	return err
}

// shortcut returns the records that lead from im, the state after record from, to
// that after record to, or nil if there are none or a snapshot is nearer.
func (v *catalog) shortcut(im *Image, from, to uint64) []journal.Entry {
	if im == nil {
		return nil
	}
	path, err := v.log.Path(from, to)
	if err != nil {
		return nil
	}
	for _, s := range v.bases(to) {
		if s.Err != nil {
			continue
		}
		fromSnapshot, err := v.log.Path(s.ID.Seq, to)
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
