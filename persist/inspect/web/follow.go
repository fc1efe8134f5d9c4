package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stet-ecs/stet/internal/query"
)

// newsDoc says what a store has come to.
type newsDoc struct {
	stateDoc        // The newest state.
	Records  int    `json:"records"`
	Clean    bool   `json:"clean"` // The program that had it open has closed it.
	Error    string `json:"error,omitempty"`
	writerDoc
}

// A writerDoc says what happened to the program that writes the store, since the server began to follow it.
type writerDoc struct {
	Writer string `json:"writer,omitempty"` // What the lock says of the program.
	Now    string `json:"now,omitempty"`    // running, closed, or ended: it did not close the store. Missing if nothing happened.
	Since  string `json:"since,omitempty"`  // When the server saw that.
}

// change notes what a watch saw happen.
func (d *writerDoc) change(program string, running, closed bool) {
	*d = writerDoc{Writer: cut(program, 256), Now: "ended", Since: time.Now().UTC().Format(time.RFC3339)}
	if running {
		d.Now = "running"
	} else if closed {
		d.Now = "closed"
	}
}

// A store that a program writes is polled, as the program does not report changes. A killed program is
// noticed by its lock, which is free then. One goroutine polls for all browsers. What it sends them is small, and only the newest: a page that was
// slow asks for what it shows now, and never works off a queue.
//
//	store ──refresh──▶ near desk ──news──▶ follower ──▶ events, one for each page
//	                                                └─▶ count, which counts rows of new ticks

// A follower tells those who listen that there is something new: what, they ask then.
type follower struct {
	mu        sync.Mutex
	last      newsDoc
	listeners map[chan struct{}]bool

	look   func()    // Looks at the lock of the store, for the goroutine that follows.
	writer writerDoc // What look saw happen.
}

// begin notes what a desk has at first, so that the first look that finds nothing new tells nobody.
func (f *follower) begin(d *desk) {
	f.listeners = map[chan struct{}]bool{}
	f.last = d.news()
	f.look = d.view.WatchWriter(f.writer.change)
	f.look()
}

// news returns what the desk knows of the store.
func (d *desk) news() newsDoc {
	log := d.view.Log()
	return newsDoc{stateDoc: stateDoc{d.tickOf(d.line.newest), d.line.newest}, Records: len(log.Entries), Clean: log.Clean}
}

// subscribe returns what receives whenever there is something new. Whoever is slow receives once
// for several.
func (f *follower) subscribe() chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{}, 1)
	f.listeners[c] = true
	return c
}

func (f *follower) leave(c chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, c)
}

// tell makes news known, if it is some, which it reports. Whoever has not received the last yet needs
// no other: the channel holds one, and nobody waits here.
func (f *follower) tell(news newsDoc) bool {
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

// follow looks at a store again and again, until ctx ends. It waits for its turn at the near desk like
// everybody: while somebody is answered there, nothing new is found.
func (h *shown) follow(ctx context.Context, interval time.Duration) {
	if h.near.view.IsSave() {
		return
	}
	const awake = 5 * time.Second // What has just grown is looked at more often.
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
		err := h.near.with(ctx, func() error {
			err := h.near.refresh(ctx)
			news = h.near.news()
			h.following.look()
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil { // What was known stays, and with it why there is nothing newer.
			news = h.following.latest()
			news.Error = h.describe(err).Error.Message
		}
		news.writerDoc = h.following.writer
		if h.following.tell(news) {
			grew = time.Now()
		}
	}
}

// events sends what the store has come to, at first and whenever that changes, as server-sent
// events.
func (h *shown) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = out.SetWriteDeadline(time.Time{}) // It has no end. Not every writer has one to set.
	listen := h.following.subscribe()
	defer h.following.leave(listen)
	beat := time.NewTicker(15 * time.Second) // The same is sent again, so that who is gone is noticed.
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
