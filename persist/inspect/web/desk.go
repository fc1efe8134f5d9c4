package web

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/persist/inspect"
)

// An Opener opens the store or save that is shown. It is called several times, and each view is
// closed.
type Opener func(ctx context.Context) (*inspect.View, error)

// Requests come at the same time, but a view and a cursor are for one at a time. So requests
// queue at desks. That costs nothing where it matters: people ask one thing after the other,
// and the page gives up what it no longer wants, which leaves the queue.

// A shown is a store or save that is asked: near is the desk for what somebody waits for while
// they move through time, far the one for what takes long. The fields that other goroutines use
// have locks of their own (bar, following); a desk's are used by whoever has its turn.
type shown struct {
	speaker
	open      Opener
	verifying sync.Mutex
	near, far *desk
	bar       counter
	following follower
	started   string          // Tells what it answers from what another answered, in a browser's cache.
	ended     <-chan struct{} // When it is closed.
}

// A desk answers one after the other, from a view and the one state that it holds. Whoever
// waits for their turn and goes away leaves the queue.
type desk struct {
	turn   chan struct{} // Holds one value while somebody has the turn: a lock that can be waited for with a context.
	view   *inspect.View
	cursor *inspect.Cursor // nil: at no state yet.
	anchor *inspect.Cursor // A little before it, for whoever steps back; nil: nobody did.
	line   line
	chosen *selection // Of the state last asked for entities: who scrolls asks for the same ones again.

	roster *roster // Of a state that was not loaded: all rows of the registry are read for it.

	refreshed atomic.Uint64 // How often the store was seen to be another one than it was.
}

func newDesk(v *inspect.View) *desk {
	d := &desk{turn: make(chan struct{}, 1), view: v}
	d.line.learn(v.Log())
	return d
}

// with calls f when it is its turn.
func (d *desk) with(ctx context.Context, f func() error) error {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.turn }()
	if d.view == nil {
		return errClosed
	}
	if err := ctx.Err(); err != nil { // Where both can be done, select takes either.
		return err
	}
	return f()
}

var errClosed = errors.New("the server is closing")

// answer is with for what gives a document, if all that was asked is right.
func answer[D any](a *ask, d *desk, f func() (D, error)) (doc D, err error) {
	if a.err != nil {
		return doc, a.err
	}
	err = d.with(a.ctx, func() error {
		doc, err = f()
		return err
	})
	return doc, err
}

// state returns the state after record seq. It is valid while it is the caller's turn.
func (d *desk) state(ctx context.Context, seq uint64) (im *inspect.Image, err error) {
	if err := d.reach(ctx, seq); err != nil {
		return nil, err
	}
	if d.cursor == nil {
		if d.cursor, err = d.view.Cursor(ctx, seq); err != nil {
			d.cursor = nil
			return nil, err
		}
		return d.cursor.Image(), nil
	}
	if err := d.stepBack(ctx, seq); err != nil {
		return nil, err
	}
	if err = d.cursor.Seek(ctx, seq); err != nil {
		return nil, err
	}
	return d.cursor.Image(), nil
}

const (
	stride  = 64       // Ticks between an anchor and who steps back from where it was left.
	maxHeld = 64 << 20 // Bytes of a state that is held twice.
)

// stepBack takes the cursor behind record seq, if that is a few ticks before where it is. A
// journal only leads forward, from the nearest snapshot on: whoever steps back would go that way
// for each tick. So the way is gone once up to some ticks before, and what is there is
// kept:
//
//	snapshot ─────────────▶ anchor ──copy──▶ seq ◀── cursor
func (d *desk) stepBack(ctx context.Context, seq uint64) error {
	to, ok := d.line.find(seq)
	from, known := d.line.find(d.cursor.Seq())
	if !ok || !known || to >= from || from-to > 4*stride || d.cursor.Image() == nil || sizeOf(d.cursor.Image()) > maxHeld {
		return nil
	}
	if d.anchor != nil {
		if at, ok := d.line.find(d.anchor.Seq()); ok && d.anchor.Image() != nil && at <= to && to-at <= 4*stride {
			d.cursor = d.anchor.Clone()
			return nil
		}
		d.anchor = nil
	}
	if err := d.cursor.Seek(ctx, d.line.path[max(0, to-stride)].ID.Seq); err != nil {
		return err
	}
	d.anchor = d.cursor.Clone()
	return nil
}

// sizeOf returns about how many bytes a state takes.
func sizeOf(im *inspect.Image) (n int) {
	n = 12 * len(im.Registry)
	for _, c := range im.Components {
		n += c.Len()*(8+max(c.Width, 0)) + 4*len(c.Pointers)
		for _, row := range c.Rows {
			n += 24 + len(row)
		}
	}
	return n
}

// refresh looks for what was written. A state that is held
// stays right while the store only grows. Under another epoch it may not: a crash loses records
// that were not durable, which were shown here, and the next program gives their seqs to others.
func (d *desk) refresh(ctx context.Context) error {
	epoch := d.view.Log().Epoch
	if changed, err := d.view.Refresh(ctx); err != nil || !changed {
		return err
	}
	if d.view.Log().Epoch != epoch { // Another program: what was lost gives its seqs to others.
		d.refreshed.Add(1)
		d.cursor, d.anchor, d.chosen, d.roster = nil, nil, nil, nil
	}
	d.line.learn(d.view.Log())
	return nil
}

// epoch tells what is kept in caches from what a seq means now.
func (d *desk) epoch() uint64 { return d.refreshed.Load() }

// close lets go of the files when nobody reads them any more. Whoever has the turn then finds no
// view: see with.
func (d *desk) close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	v := d.view
	if v == nil {
		return nil
	}
	d.view, d.cursor, d.anchor, d.chosen = nil, nil, nil, nil
	return v.Close()
}
