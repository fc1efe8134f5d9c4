package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stet-ecs/stet/internal/query"
)

// newsDoc describes the current end of a store.
type newsDoc struct {
	stateDoc     // The newest state.
	Records  int `json:"records"`
	// The last program closed the store.
	Clean bool   `json:"clean"`
	Error string `json:"error,omitempty"`
	writerDoc
}

// A writerDoc describes what the writing program did since the server started to follow the store.
type writerDoc struct {
	// The description of the program in the lock.
	Writer string `json:"writer,omitempty"`
	// running, closed, or ended: the program did not close the store. Missing if nothing happened.
	Now string `json:"now,omitempty"`
	// When the server noticed it.
	Since string `json:"since,omitempty"`
}

// record records an event of the watched program.
func (d *writerDoc) record(program string, running, closed bool) {
	*d = writerDoc{Writer: cut(program, 256), Now: "ended", Since: time.Now().UTC().Format(time.RFC3339)}
	if running {
		d.Now = "running"
	} else if closed {
		d.Now = "closed"
	}
}

// The server polls a store, because a writing program does not report changes. It notices a killed
// program by the free lock. One goroutine polls for all browsers. It sends only the newest state,
// which is small. So a slow page never works off a queue: it asks for the newest data when it is
// ready.
//
//	store ──refresh──▶ fast session ──news──▶ follower ──▶ events, one for each page
//	                                                └─▶ count, which counts rows of new ticks

// A follower notifies its listeners of news. The listeners then ask for the data.
type follower struct {
	mu        sync.Mutex
	last      newsDoc
	listeners map[chan struct{}]bool

	// Checks the lock of the store. Only the follow goroutine calls it.
	look func()
	// The last event that look has seen.
	writer writerDoc
}

// init stores the initial state of a session, so that the first poll without news notifies no
// listener.
func (f *follower) init(d *session) {
	f.listeners = map[chan struct{}]bool{}
	f.last = d.news()
	f.look = d.view.WatchWriter(f.writer.record)
	f.look()
}

// news returns the current end of the store as the session knows it.
func (d *session) news() newsDoc {
	log := d.view.Log()
	return newsDoc{stateDoc: stateDoc{d.tickOf(d.line.newest), d.line.newest}, Records: len(log.Entries), Clean: log.Clean}
}

// subscribe returns a channel that receives a value when there is news. For a slow listener,
// several events become one value.
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

// publish stores news and notifies the listeners. It reports whether the news differ from the last
// ones. A listener with a pending notification needs no other, so publish never blocks.
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

// follow polls a store until ctx ends. It waits for its turn at the fast session. So it finds
// nothing new while the fast session answers a request.
func (h *server) follow(ctx context.Context, interval time.Duration) {
	if h.fast.view.IsSave() {
		return
	}
	// A store that has just grown is polled more often.
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
		// Keep the known state and add the reason why it is not newer.
		if err != nil {
			news = h.following.latest()
			news.Error = h.describe(err).Error.Message
		}
		news.writerDoc = h.following.writer
		if h.following.publish(news) {
			grew = time.Now()
		}
	}
}

// events sends the newest state as server-sent events, at first and after each change.
func (h *server) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	// The response has no end. Not every writer supports deadlines.
	_ = out.SetWriteDeadline(time.Time{})
	listen := h.following.subscribe()
	defer h.following.unsubscribe(listen)
	// Repeats the last event, so that a closed connection is noticed.
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
