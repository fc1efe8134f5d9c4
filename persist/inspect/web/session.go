package web

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/persist/inspect"
)

// An Opener opens the store or save. It is called several times, and each view is closed.
type Opener func(ctx context.Context) (*inspect.View, error)

// Requests arrive concurrently, but a view and a cursor allow only one user at a time. So requests
// queue at sessions. The queues are short: a user asks one thing after the other. The page also
// cancels requests that it no longer needs, and a cancelled request leaves the queue.
//
//	request ──answer──▶ turn ──▶ reach: refresh if the record is unknown
//	                             ├ state: load the whole state with the cursor
//	                             └ read: pages of a snapshot, if one has the state

// A server is the store or save that requests are about. The fast session answers quick requests
// that move through time. The slow session answers slow requests. Fields shared with other
// goroutines have locks of their own: bar and following. The fields of a session are used by the
// request whose turn it is.
type server struct {
	errorWriter
	open       Opener
	verifying  sync.Mutex
	fast, slow *session
	bar        counter
	following  follower
	// Distinguishes the answers of this server start in a browser's cache.
	started string
	// Closed when the handler is closed.
	ended <-chan struct{}
}

// A session answers one request at a time, with its view and the one state that it holds. A waiting
// request whose client disconnects leaves the queue.
type session struct {
	// A lock that can be awaited with a context. It holds one value while it is locked.
	turn chan struct{}
	view *inspect.View
	// nil until a state is loaded.
	cursor *inspect.Cursor
	// Approximate size of a state in bytes. 0 if no state was loaded yet.
	size int
	line line
	// The last selection of entities, for requests that scroll through it.
	selection *selection

	anchors anchors
	// Maximum size of the anchors in bytes.
	room int

	// The latest epoch that either session has seen. Both sessions share it.
	newest *atomic.Uint64
}

// newSession returns a session for a view, with room bytes for anchors.
func newSession(v *inspect.View, room int) *session {
	d := &session{turn: make(chan struct{}, 1), view: v, room: room, newest: new(atomic.Uint64)}
	d.line.update(v)
	d.newest.Store(v.Log().Epoch)
	return d
}

// with calls f when it is this request's turn. It returns the error of ctx if that ends first. f
// has exclusive use of the session and must not call with again.
func (d *session) with(ctx context.Context, f func() error) error {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.turn }()
	if d.view == nil {
		return errClosed
	}
	// If both cases are ready, select chooses at random.
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

var errClosed = errors.New("the server is closing")

// answer runs f at the session and returns its document. It returns a.err if a parameter is
// invalid.
func answer[D any](a *params, d *session, f func() (D, error)) (doc D, err error) {
	if a.err != nil {
		return doc, a.err
	}
	err = d.with(a.ctx, func() error {
		doc, err = f()
		return err
	})
	return doc, err
}

// state returns the state after record seq. It is valid during the caller's turn. The next seek
// changes it in place.
func (d *session) state(ctx context.Context, seq uint64) (im *inspect.Image, err error) {
	if err := d.reach(ctx, seq); err != nil {
		return nil, err
	}
	if err := d.seek(ctx, seq); err != nil {
		return nil, err
	}
	return d.cursor.Image(), nil
}

// errLoad is returned by a callback of Read that would have to load the whole state.
var errLoad = errors.New("web: the whole state is needed")

// read calls f with the state after record seq. It uses the state that the session holds, or reads
// pages of a snapshot without loading it. f is called again if a page is damaged: see
// [inspect.View.Read].
func (d *session) read(ctx context.Context, seq uint64, f func(*inspect.State) error) error {
	loaded := d.cursor != nil && d.cursor.Seq() == seq && d.cursor.Image() != nil
	// If pages are not enough, Read would load the state for itself. read rejects that and loads
	// the state with the cursor, so the next request finds it there.
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

// refresh looks for new records. A held state stays valid while the store only grows. With a new
// epoch it may be invalid: a crash loses records that were not durable but already shown. The next
// program reuses their seqs.
func (d *session) refresh(ctx context.Context) error {
	epoch := d.view.Log().Epoch
	changed, err := d.view.Refresh(ctx)
	// Even if Refresh failed.
	if now := d.view.Log().Epoch; now != epoch {
		d.newest.Store(now)
		d.cursor, d.anchors, d.selection = nil, anchors{}, nil
	}
	if err != nil || !changed {
		return err
	}
	d.line.update(d.view)
	d.anchors.keepOnLine(&d.line)
	return nil
}

// reach refreshes the session if it does not know record seq. It also refreshes if the other
// session has seen a new epoch, because seq may be another record then. Otherwise reach costs a
// lookup.
func (d *session) reach(ctx context.Context, seq uint64) error {
	log := d.view.Log()
	if _, ok := log.Known(seq); ok && log.Epoch == d.newest.Load() || d.view.IsSave() {
		return nil
	}
	return d.refresh(ctx)
}

// close closes the files after the current request. Later requests find no view: see with.
func (d *session) close() error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	v := d.view
	if v == nil {
		return nil
	}
	d.view, d.cursor, d.anchors, d.selection = nil, nil, anchors{}, nil
	return v.Close()
}
