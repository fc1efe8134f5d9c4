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
	size   int             // About so many bytes a state takes; 0: none was seen.
	line   line
	chosen *selection // Of the state last asked for entities: who scrolls asks for the same ones again.

	anchors anchors
	room    int // Bytes that they may take.

	roster *roster // Of a state that was not loaded: all rows of the registry are read for it.

	refreshed atomic.Uint64 // How often the store was seen to be another one than it was.
}

func newDesk(v *inspect.View, room int) *desk {
	d := &desk{turn: make(chan struct{}, 1), view: v, room: room}
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
	if err := d.seek(ctx, seq); err != nil {
		return nil, err
	}
	return d.cursor.Image(), nil
}

// refresh looks for what was written. A state that is held stays right while the store only grows.
// Under another epoch it may not: a crash loses records that were not durable, which were shown
// here, and the next program gives their seqs to others.
func (d *desk) refresh(ctx context.Context) error {
	epoch := d.view.Log().Epoch
	if changed, err := d.view.Refresh(ctx); err != nil || !changed {
		return err
	}
	if d.view.Log().Epoch != epoch {
		d.refreshed.Add(1)
		d.cursor, d.anchors, d.chosen, d.roster = nil, anchors{}, nil, nil
	}
	d.line.learn(d.view.Log())
	d.anchors.only(&d.line)
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
	d.view, d.cursor, d.anchors, d.chosen = nil, nil, anchors{}, nil
	return v.Close()
}
