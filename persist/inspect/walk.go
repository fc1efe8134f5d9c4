package inspect

import (
	"context"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

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
