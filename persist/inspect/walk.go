package inspect

import (
	"context"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// At returns the state after the record seq; 0 is the oldest state of the store.
// It is reached from the nearest snapshot among its ancestors.
//
// If the program that has the store open removed files since, At looks for other
// ways to the state; if there is none any more, the error wraps [persist.ErrNotFound].
func (v *View) At(ctx context.Context, seq uint64) (*Image, error) { return v.cat.At(ctx, seq) }

// Path returns the records that lead from the state after record from, which must
// be an ancestor of to, to that after record to, in this order.
func (v *View) Path(from, to uint64) ([]journal.Entry, error) { return v.cat.Path(from, to) }

// Walk goes from the state after record from, which must be an ancestor of to, to
// that after record to, and calls f with the state after each record on the way
// and the tick that led to it. im is the same world a tick later each time; f may
// read it until it returns. Its error ends the walk, as does that of ctx, and
// damage.
//
// Where a program converted the store, the next tick continues the converted state.
// The cost is that of loading the nearest snapshot, and of reading the ticks. The
// phase is [progress.PhaseReplay].
func (v *View) Walk(ctx context.Context, from, to uint64, f func(im *Image, c *Commit) error) error {
	im, path, err := start(ctx, v.cat, from, to)
	if err != nil || len(path) == 0 {
		return err
	}
	_, err = walk(ctx, v.cat, im, path, f)
	return err
}

// start returns the state after record from, and the records that lead from there to
// record to; no state if there are none.
func start(ctx context.Context, v *catalog.Catalog, from, to uint64) (*Image, []journal.Entry, error) {
	path, err := v.Path(from, to)
	if err != nil || len(path) == 0 {
		return nil, nil, err
	}
	im, err := base(ctx, v, from)
	return im, path, err
}

// base is At for a state that ticks may follow.
func base(ctx context.Context, v *catalog.Catalog, seq uint64) (im *Image, err error) {
	err = v.Persevere(ctx, func() error {
		im, _, err = v.Reach(ctx, seq, false)
		return err
	})
	return im, err
}

// walk is Walk from im along path. It returns the last state.
func walk(ctx context.Context, v *catalog.Catalog, im *Image, path []journal.Entry, f func(*Image, *Commit) error) (*Image, error) {
	p := progress.Start(ctx, progress.PhaseReplay, int64(len(path)))
	for _, e := range path {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if im, err = v.Across(progress.Quiet(ctx), im, e); err != nil {
			return nil, err
		}
		t, s, err := v.Tick(e)
		if err == nil {
			err = v.Advance(im, e, t, s)
		}
		if err != nil {
			return nil, catalog.Pruned(err)
		}
		if err := f(im.Settled(), describeTick(v, e, t, s)); err != nil {
			return nil, err
		}
		p.Add(1)
	}
	return im, nil
}

// A Cursor holds one state of a store and goes to others.
type Cursor struct {
	view  *catalog.Catalog
	image *Image // Which ticks may follow; nil: going failed.
	shown *Image // The same for others.
	seq   uint64
}

// Cursor returns a cursor at the state after record seq, see [View.At].
func (v *View) Cursor(ctx context.Context, seq uint64) (*Cursor, error) {
	return newCursor(ctx, v.cat, seq)
}

func newCursor(ctx context.Context, v *catalog.Catalog, seq uint64) (*Cursor, error) {
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
	if path := shortcut(c.view, im, from, seq); path != nil {
		c.image, err = walk(ctx, c.view, im, path, func(*Image, *Commit) error { return nil })
	} else {
		c.image, err = base(ctx, c.view, seq)
	}
	if err == nil {
		c.shown = c.image.Settled()
	}
	return err
}

// shortcut returns the records that lead from im, the state after record from, to
// that after record to, or nil if there are none or a snapshot is nearer.
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
