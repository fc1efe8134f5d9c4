package web

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stet-ecs/stet/internal/query"
)

// Options say how a store is shown. The zero Options are useful.
type Options struct {
	// Name is what people call the store: the page shows it, and commands that may help
	// are given it. Default: "STORE".
	Name string

	// Token is the secret that the first request must bring. Default: a random one.
	Token string

	// Hosts are names, without ports, under which the page may be asked for besides those of
	// this machine. Default: none, so that a name that somebody else made lead here is refused.
	Hosts []string

	// Interval is how often to look at a store for what was written; four times as often while it
	// grows. Default: 100 ms.
	Interval time.Duration

	// Cache is a directory for what takes long to find out, so that it is known at the next
	// start: how many rows each tick wrote. It can be removed at any time, and never holds
	// more than 256 MiB. Default: none, and nothing is written.
	Cache string
}

// A Handler shows a store or a save. It may be asked by many at the same time. Two goroutines run
// until it is closed: one looks for what is written (follow), one counts rows for the bar (count).
type Handler struct {
	*shown
	token      string
	gate       *guard
	background sync.WaitGroup
	stop       context.CancelFunc
}

// New returns a handler that shows what open opens. It follows a store that grows until it
// is closed, or ctx ends.
func New(ctx context.Context, open Opener, options Options) (*Handler, error) {
	options.Name = cmp.Or(options.Name, "STORE")
	options.Token = cmp.Or(options.Token, randomText())
	options.Interval = cmp.Or(options.Interval, 100*time.Millisecond)
	near, err := open(ctx)
	if err != nil {
		return nil, err
	}
	far, err := open(ctx)
	if err != nil {
		_ = near.Close() // It was only read.
		return nil, err
	}
	h := &Handler{token: options.Token, gate: newGuard(options)}
	ctx, h.stop = context.WithCancel(ctx)
	h.shown = &shown{
		speaker: speaker{options.Name}, open: open, near: newDesk(near, nearRoom), far: newDesk(far, farRoom), started: randomText(), ended: ctx.Done(),
	}
	h.far.newest = h.near.newest // What one desk sees of the store the other must not miss, see reach.
	h.following.begin(h.near)
	h.bar.kept = keptCounts(options.Cache)
	h.bar.recall(h.near)
	h.background.Go(func() { h.follow(ctx, options.Interval) })
	h.background.Go(func() { h.count(ctx) })
	return h, nil
}

// Path returns the path that opens the page, with the token in it.
func (h *Handler) Path() string { return "/?" + tokenName + "=" + h.token }

// Close stops following the store and lets go of its files. What is being answered ends
// with an error. It waits for the two goroutines, and at each desk for its turn.
func (h *Handler) Close() error {
	h.stop()
	h.background.Wait()
	return errors.Join(h.near.close(), h.far.close())
}

//go:embed page
var embedded embed.FS

// ServeHTTP answers a request of the page, or for it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.gate.admit(w, r) {
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, apiPath); ok {
		h.answer(w, r, name)
		return
	}
	servePage(w, r)
}

// servePage serves a file of the page. They are few and small, and belong to one another:
// a browser asks again each time, so that none comes from an older program.
func servePage(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" {
		name = "index.html"
	}
	text, err := fs.ReadFile(embedded, "page/"+name)
	if err != nil {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaType(name))
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // If it is not read, nobody waits for it.
}

// mediaType returns that of a file by its name, whatever the machine's table says.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream")
}

// A question is one kind of request. Those about a record are asked with its seq.
type question struct {
	answer func(h *shown, a *ask) (any, error)
	kept   bool          // It is about records alone: the answer never changes.
	limit  time.Duration // After which it is given up; 0: 30 s.
}

// questions are those of the API, by their names behind /api/v1/. One is kept if the records that it
// names say all: not entities, which asks for some time only; nor tick and resolve, which say what is
// rewound by now.
var questions = map[string]question{
	"info":      {answer: (*shown).info},
	"resolve":   {answer: (*shown).resolve},
	"bar":       {answer: (*shown).timeBar},
	"schema":    {answer: (*shown).schema, kept: true},
	"entities":  {answer: (*shown).entities},
	"map":       {answer: (*shown).points, kept: true},
	"entity":    {answer: (*shown).entity, kept: true},
	"history":   {answer: (*shown).history, kept: true},
	"change":    {answer: (*shown).change},
	"referrers": {answer: (*shown).referrers, kept: true},
	"resources": {answer: (*shown).resources, kept: true},
	"tick":      {answer: (*shown).tick},
	"diff":      {answer: (*shown).diff, kept: true},
	"series":    {answer: (*shown).series, kept: true, limit: time.Minute},
	"first":     {answer: (*shown).first, kept: true, limit: time.Minute},
	"arrays":    {answer: (*shown).arrays, kept: true},
	"health":    {answer: (*shown).health},
	"verify":    {answer: (*shown).verify, limit: time.Hour},
}

// answer answers the question of that name. Answers that never change have a tag, which names
// this start of the server and the epoch of the store: a browser sends it back, and is told in a
// few bytes that what it has still holds. The question need not be read for that.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, name string) {
	if name == "events" {
		h.events(w, r)
		return
	}
	q, ok := questions[name]
	if !ok {
		h.fail(w, fail(codeNotFound, "the API has no %q", name))
		return
	}
	// The epoch is that of the last look, so the tag is at most as new as the answer: a browser that has
	// one of an old epoch asks again.
	cache := "no-store"
	if q.kept {
		tag := `"` + h.started + strconv.FormatUint(h.near.newest.Load(), 36) + `"`
		w.Header().Set("ETag", tag)
		cache = "private, no-cache"
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	limit := q.limit
	if limit == 0 {
		limit = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		h.fail(w, fail(codeUsage, "the question cannot be read: %v", err))
		return
	}
	doc, err := q.answer(h.shown, &ask{ctx: ctx, values: values})
	if err == nil {
		var text []byte
		if text, err = query.Marshal(doc); err == nil {
			w.Header().Set("Cache-Control", cache)
			writeJSON(w, http.StatusOK, text)
			return
		}
	}
	w.Header().Del("ETag") // The failure is not what the tag stands for.
	h.fail(w, err)
}

func (h *Handler) fail(w http.ResponseWriter, err error) {
	doc := h.describe(err)
	writeFailure(w, kinds[doc.Error.Code].status, doc)
}
