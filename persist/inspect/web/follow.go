package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
)

// newsDoc describes the current end of a store.
type newsDoc struct {
	stateDoc     // The newest state.
	Records  int `json:"records"`
	// Clean says that the last program closed the store.
	Clean bool   `json:"clean"`
	Error string `json:"error,omitempty"`
	writerDoc
}

// A writerDoc says what happened to the writing program since the server started.
type writerDoc struct {
	// Writer is the description of the program in the lock file.
	Writer string `json:"writer,omitempty"`
	// Now is running, closed or ended. A program that ended did not close the store. Now is missing
	// if nothing has happened.
	Now string `json:"now,omitempty"`
	// Since is the time when the server noticed the event.
	Since string `json:"since,omitempty"`
}

// record stores an event of the writing program.
func (d *writerDoc) record(program string, running, closed bool) {
	*d = writerDoc{Writer: cut(program, 256), Now: "ended", Since: time.Now().UTC().Format(time.RFC3339)}
	if running {
		d.Now = "running"
	} else if closed {
		d.Now = "closed"
	}
}

// The server polls a store, because a writing program does not report changes. The server also
// checks the lock, since a killed program leaves the lock free. One goroutine refreshes the fast
// session and publishes the news to a follower. The follower notifies its listeners: one for each
// page, and the goroutine that counts the rows of new ticks.
//
// A page gets only the newest state, which is small. So no queue builds up for a slow page: the
// page asks for the newest data when it is ready.

// A follower notifies its listeners when the store has changed. The listeners then request the
// data.
type follower struct {
	mu        sync.Mutex
	last      newsDoc
	listeners map[chan struct{}]bool

	// look checks the lock of the store. Only the follow goroutine calls it.
	look func()
	// writer is the last event that look() has detected.
	writer writerDoc
}

// init stores the initial state of session d. So the first poll notifies listeners only if the
// store has changed.
func (f *follower) init(d *session) {
	f.listeners = map[chan struct{}]bool{}
	f.last = d.news()
	f.look = d.view.WatchWriter(f.writer.record)
	f.look()
}

// news returns the newest state and the number of records that the session knows.
func (d *session) news() newsDoc {
	log := d.view.Log()
	return newsDoc{stateDoc: describe.StateOf(d.view, d.line.newest), Records: len(log.Entries), Clean: log.Clean}
}

// subscribe returns a channel that receives a value when the store has changed. If a listener is
// slow, several changes become one value.
func (f *follower) subscribe() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{}, 1)
	f.listeners[c] = true
	return c
}

func (f *follower) unsubscribe(c chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, c)
}

// publish stores news and notifies the listeners. It returns false if news equals the previous
// news. It never blocks: it skips a listener that has a pending notification.
func (f *follower) publish(news newsDoc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if news == f.last {
		return false
	}
	f.last = news
	for c := range f.listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	return true
}

func (f *follower) latest() newsDoc {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// follow polls a store until ctx ends. Each poll waits for its turn at the fast session, so a
// request there delays it.
func (h *server) follow(ctx context.Context, interval time.Duration) {
	if h.fast.view.IsSave() {
		return
	}
	// For this time after the store has grown, the server polls the store more often.
	const awake = 5 * time.Second
	timer, grew := time.NewTimer(interval), time.Now()
	defer timer.Stop()
	for {
		wait := interval
		if time.Since(grew) < awake {
			wait /= 4
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		var news newsDoc
		err := h.fast.with(ctx, func() error {
			err := h.fast.refresh(ctx)
			news = h.fast.news()
			h.following.look()
			return err
		})
		if ctx.Err() != nil {
			return
		}
		// After an error, newer states may be hidden. Publish the previous state with the error.
		if err != nil {
			news = h.following.latest()
			news.Error = h.describe(err).Message
		}
		news.writerDoc = h.following.writer
		if h.following.publish(news) {
			grew = time.Now()
		}
	}
}

// events sends the newest state as server-sent events: one at the start, and one after each
// change.
func (h *server) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	// The response never ends. Ignore the error, since some writers do not support deadlines.
	_ = out.SetWriteDeadline(time.Time{})
	listen := h.following.subscribe()
	defer h.following.unsubscribe(listen)
	// beat repeats the last event. If the client has closed the connection, this write fails.
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		text, err := query.Marshal(h.following.latest())
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", text)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-h.ended:
			return
		case <-listen:
		case <-beat.C:
		}
	}
}
