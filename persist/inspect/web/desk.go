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
//
//	request ──answer──▶ turn ──▶ reach: is the record known? else refresh
//	                             ├ state: the whole state, by the cursor
//	                             └ read: pages of a snapshot, if it lies in one

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

	newest *atomic.Uint64 // The epoch of the store that either desk saw last: one for both.
}

// newDesk returns a desk with a view of its own, and room for so many bytes of anchors.
func newDesk(v *inspect.View, room int) *desk {
	d := &desk{turn: make(chan struct{}, 1), view: v, room: room, newest: new(atomic.Uint64)}
	d.line.learn(v)
	d.newest.Store(v.Log().Epoch)
	return d
}

// with calls f when it is its turn, or returns the error of ctx if that ends first. f is called with all
// of the desk to itself, and must not ask for the turn again.
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

// state returns the state after record seq. It is valid while it is the caller's turn: the next to seek
// changes it in place.
func (d *desk) state(ctx context.Context, seq uint64) (im *inspect.Image, err error) {
	if err := d.reach(ctx, seq); err != nil {
		return nil, err
	}
	if err := d.seek(ctx, seq); err != nil {
		return nil, err
	}
	return d.cursor.Image(), nil
}

// errLoad is given where a state has to be loaded.
var errLoad = errors.New("web: the whole state is needed")

// read calls f with the state after record seq: the one that the desk has or, where it lies in a
// snapshot, without loading it. f is called again where a page is damaged, see [inspect.View.Read].
func (d *desk) read(ctx context.Context, seq uint64, f func(*inspect.State) error) error {
	loaded := d.cursor != nil && d.cursor.Seq() == seq && d.cursor.Image() != nil
	// Where pages do not do, Read would load the state for itself. It is refused, and loaded by the
	// cursor, which the next question finds there.
	if !loaded && d.snapshot(seq) != nil {
		err := d.view.Read(ctx, seq, func(st *inspect.State) error {
			if st.Whole() {
				return errLoad
			}
			return f(st)
		})
		if !errors.Is(err, errLoad) {
			return err
		}
	}
	if _, err := d.state(ctx, seq); err != nil {
		return err
	}
	return f(d.cursor.State())
}

// refresh looks for what was written. A state that is held stays right while the store only grows.
// Under another epoch it may not: a crash loses records that were not durable, which were shown
// here, and the next program gives their seqs to others.
func (d *desk) refresh(ctx context.Context) error {
	epoch := d.view.Log().Epoch
	changed, err := d.view.Refresh(ctx)
	if now := d.view.Log().Epoch; now != epoch { // Whatever else went wrong.
		d.newest.Store(now)
		d.cursor, d.anchors, d.chosen = nil, anchors{}, nil
	}
	if err != nil || !changed {
		return err
	}
	d.line.learn(d.view)
	d.anchors.only(&d.line)
	return nil
}

// reach makes the store known up to record seq: the other desk may have seen it grow, or that seq is
// another record now. What both know already costs a look.
func (d *desk) reach(ctx context.Context, seq uint64) error {
	log := d.view.Log()
	if _, ok := log.Known(seq); ok && log.Epoch == d.newest.Load() || d.view.IsSave() {
		return nil
	}
	return d.refresh(ctx)
}

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
