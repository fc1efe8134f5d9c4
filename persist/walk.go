package persist

import (
	"context"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// Path returns the records that lead from the state after record from, which must
// be an ancestor of to, to that after record to, in this order.
func (v *View) Path(from, to uint64) ([]journal.Entry, error) {
	path, err := v.log.Path(from, to)
	if err != nil {
		return nil, v.journalError(err)
	}
	return path, nil
}

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
func (v *View) start(ctx context.Context, from, to uint64) (*Image, []journal.Entry, error) {
	path, err := v.Path(from, to)
	if err != nil || len(path) == 0 {
		return nil, nil, err
	}
	im, err := v.base(ctx, from)
	return im, path, err
}

// base is At for a state that ticks may follow.
func (v *View) base(ctx context.Context, seq uint64) (im *Image, err error) {
	err = v.persevere(ctx, func() error {
		im, _, err = v.reach(ctx, seq, false)
		return err
	})
	return im, err
}

// walk is Walk from im along path. It returns the last state.
func (v *View) walk(ctx context.Context, im *Image, path []journal.Entry, f func(*Image, *Commit) error) (*Image, error) {
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
	view  *View
	image *Image // Which ticks may follow; nil: going failed.
	shown *Image // The same for others.
	seq   uint64
}

// Cursor returns a cursor at the state after record seq, see [View.At].
func (v *View) Cursor(ctx context.Context, seq uint64) (*Cursor, error) {
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
func (v *View) shortcut(im *Image, from, to uint64) []journal.Entry {
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

// settled returns im as a program would see it: without what does not rewind of
// entities that are dead. Ticks may follow im itself, which keeps that.
func (im *Image) settled() *Image {
	rewinds := func(c *Component) bool { return c.Rewinds || c.Resource }
	if !slices.ContainsFunc(im.Components, func(c *Component) bool { return !rewinds(c) }) {
		return im
	}
	s := *im
	s.Components = slices.Clone(im.Components)
	for i, c := range s.Components {
		if !rewinds(c) {
			s.Components[i] = c.clone()
		}
	}
	s.dropDead()
	return &s
}

// clone returns a copy of c that may be changed.
func (c *Component) clone() *Component {
	d := *c
	d.Entities, d.sparse = slices.Clone(c.Entities), slices.Clone(c.sparse)
	d.packed, d.rows = slices.Clone(c.packed), slices.Clone(c.rows) // A row of bytes never changes.
	return &d
}

// World returns a new world in the state of im, none of whose components is known
// to the program: they are rows of bytes that can be saved, journaled and
// digested. It shares nothing with im.
func (im *Image) World(options ecs.Options) (*ecs.World, error) {
	w := ecs.NewWorld(options)
	state := im.state()
	state.Owned = false
	if err := w.Load(state); err != nil {
		return nil, err
	}
	return w, nil
}
