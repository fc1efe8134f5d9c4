package web

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An Opener opens the store or save. It is called several times, and the caller closes each view.
type Opener func(ctx context.Context) (*inspect.View, error)

// Requests arrive concurrently, but a view and a cursor can serve only one request at a time. So
// requests queue at sessions. The queues are short: a user asks for one thing after another. A
// request whose client has disconnected leaves the queue.
//
// A request waits for its turn, and reach() refreshes the session if it does not know the record.
// The method state() then loads the whole state with the cursor. The method read() uses only pages
// of a snapshot, if a snapshot has the state.

// A server answers requests about one store or save. The fast session answers quick requests, which
// move through time. The slow session answers slow requests. Other goroutines also use the fields
// bar and following, which have their own locks. Only the request that holds a session's turn uses
// the session's fields.
type server struct {
	errorWriter
	open       Opener
	verifying  sync.Mutex
	fast, slow *session
	bar        counter
	following  follower
	// started identifies this start of the server. It prevents a browser from using cached answers
	// of an earlier start.
	started string
	// ended is closed when the handler is closed.
	ended <-chan struct{}
}

// A session answers one request at a time, with its view and its cursor. A waiting request leaves
// the queue when its client disconnects.
type session struct {
	// turn is a lock for which a request can wait with a context. The channel has a value while
	// the lock is held.
	turn chan struct{}
	view *inspect.View
	// cursor is nil until a state is loaded.
	cursor *inspect.Cursor
	// size is the approximate size of a state in bytes, or 0 if no state was loaded yet.
	size int
	line line
	// selection is the most recent list of entities, for requests that scroll through it.
	selection *selection

	anchors anchors
	// room is the maximum total size of the anchors in bytes.
	room int

	// newest is the latest epoch that either session has seen. Both sessions share it.
	newest *atomic.Uint64
}

// newSession returns a session for a view. Its anchors take at most room bytes.
func newSession(v *inspect.View, room int) *session {
	d := &session{turn: make(chan struct{}, 1), view: v, room: room, newest: new(atomic.Uint64)}
	d.line.update(v)
	d.newest.Store(v.Log().Epoch)
	return d
}

// with waits for the session's turn and calls f. If ctx ends first, it returns the error of ctx. f
// has exclusive use of the session, and must not call with() again.
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
	// If both channels were ready, select may have taken the turn although ctx has ended.
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

var errClosed = errors.New("the server is closing")

// answer calls f at session d and returns its document. If a parameter is invalid, it returns
// a.err without calling f.
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

// answerAt is like answer, but for a request about record seq. The record may be newer than the
// session's view.
func answerAt[D any](a *params, d *session, seq uint64, f func() (D, error)) (D, error) {
	return answer(a, d, func() (doc D, err error) {
		if err := d.reach(a.ctx, seq); err != nil {
			return doc, err
		}
		return f()
	})
}

// answerState is like answerAt, but calls f with the state after record seq. f is called again if
// a page is damaged.
func answerState[D any](a *params, d *session, seq uint64, f func(st *inspect.State) (D, error)) (D, error) {
	return answerAt(a, d, seq, func() (doc D, err error) {
		err = d.read(a.ctx, seq, func(st *inspect.State) (err error) {
			doc, err = f(st)
			return err
		})
		return doc, err
	})
}

// state returns the state after record seq. The state is valid while the caller has the session.
// The next seek changes it in place.
func (d *session) state(ctx context.Context, seq uint64) (im *inspect.Image, err error) {
	if err := d.reach(ctx, seq); err != nil {
		return nil, err
	}
	if err := d.seek(ctx, seq); err != nil {
		return nil, err
	}
	return d.cursor.Image(), nil
}

// holds reports whether the cursor has the state after record seq.
func (d *session) holds(seq uint64) bool {
	return d.cursor != nil && d.cursor.Seq() == seq && d.cursor.Image() != nil
}

// errLoad means that View.Read needs the whole state. session.read then loads this state with the
// cursor, which keeps it for later requests.
var errLoad = errors.New("web: the whole state is needed")

// read calls f with the state after record seq. It uses the state of the cursor, or pages of a
// snapshot without loading the state. If a page is damaged, f is called again: see
// [inspect.View.Read].
func (d *session) read(ctx context.Context, seq uint64, f func(*inspect.State) error) error {
	// If a snapshot has the state, read only its pages. If that is not enough, load the state
	// below.
	if !d.holds(seq) && describe.SnapshotOf(d.view, seq) != nil {
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

// refresh looks for new records. A loaded state stays valid while the store only grows. After a
// crash, shown records may be lost if they were not durable, and the next program reuses their
// seqs. The store then has a new epoch, and refresh discards the loaded states.
func (d *session) refresh(ctx context.Context) error {
	epoch := d.view.Log().Epoch
	changed, err := d.view.Refresh(ctx)
	// Check the epoch even if Refresh failed.
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

// reach refreshes the session if the session does not know record seq. It also refreshes the
// session if the other one has seen a new epoch: after a crash, seq may belong to another record.
// Otherwise reach costs one lookup.
func (d *session) reach(ctx context.Context, seq uint64) error {
	log := d.view.Log()
	if _, ok := log.Known(seq); ok && log.Epoch == d.newest.Load() || d.view.IsSave() {
		return nil
	}
	return d.refresh(ctx)
}

// close closes the view after the current request. Later calls of with() return errClosed.
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

// session returns the session for a request about a state. The slow session answers requests about
// a second state that the page shows for comparison. So the fast session keeps its own state.
func (a *params) session(h *server) *session {
	if a.flag("beside") {
		return h.slow
	}
	return h.fast
}
