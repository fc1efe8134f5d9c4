package web

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stet-ecs/stet/internal/query"
)

// Options configure a Handler. The zero Options are valid.
type Options struct {
	// Name is the name of the store on the page and in suggested commands. The default is "STORE".
	Name string

	// Token is the secret that the first request must contain. The default is a random secret.
	Token string

	// Hosts are additional host names, without ports, that a browser may use for this server. The
	// names of this machine are always allowed. All other names are rejected, because an attacker
	// can point a name to this machine.
	Hosts []string

	// Interval is how often the store is polled for new records. While the store grows, it is
	// polled four times as often. The default is 100 ms.
	Interval time.Duration

	// Cache is a directory for results that take long to compute: the number of rows that each tick
	// wrote. It can be removed at any time. Its size is at most 256 MiB. By default there is no
	// cache, and nothing is written.
	Cache string
}

// A Handler shows a store or a save. It is safe for concurrent use. Until Close, two goroutines
// run: follow polls the store, and count counts rows for the time bar.
type Handler struct {
	*server
	token      string
	gate       *guard
	background sync.WaitGroup
	stop       context.CancelFunc
}

// New returns a handler for the store that open() opens. The handler follows the store until Close
// or until ctx ends.
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
		// Ignore the error: the view was only read.
		_ = near.Close()
		return nil, err
	}
	h := &Handler{token: options.Token, gate: newGuard(options)}
	ctx, h.stop = context.WithCancel(ctx)
	h.server = &server{
		errorWriter: errorWriter{options.Name}, open: open, fast: newSession(near, fastRoom), slow: newSession(far, slowRoom), started: randomText(), ended: ctx.Done(),
	}
	// Both sessions share the newest epoch of the store that either of them has seen. reach()
	// refreshes a session whose epoch is older.
	h.slow.newest = h.fast.newest
	h.following.init(h.fast)
	h.bar.kept = keptCounts(options.Cache)
	h.bar.recall(h.fast)
	h.background.Go(func() { h.follow(ctx, options.Interval) })
	h.background.Go(func() { h.count(ctx) })
	return h, nil
}

// Path returns the path of the page, including the token.
func (h *Handler) Path() string { return "/?" + tokenName + "=" + h.token }

// Close stops following the store and closes its files. Requests in progress end with an error.
// Close waits for both goroutines and for the running request of each session.
func (h *Handler) Close() error {
	h.stop()
	h.background.Wait()
	return errors.Join(h.fast.close(), h.slow.close())
}

//go:embed page
var embedded embed.FS

// ServeHTTP serves the page and its API.
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

// servePage serves a file of the page. All files must come from the same version. So a browser
// revalidates each file before each use. This is cheap, because the files are few and small.
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
	w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
	w.Header().Set("Cache-Control", "no-cache")
	// If the client has disconnected, the error does not matter.
	_, _ = w.Write(text)
}

// mediaTypes has the media types of the files of the page, by extension. The table of the machine
// may have other types.
var mediaTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// An endpoint is one kind of API request. A request about a record has the record's seq as a
// parameter.
type endpoint struct {
	answer func(h *server, a *params) (any, error)
	// cached says that the answer depends only on records. The answer never changes, so it is
	// cached.
	cached bool
	// limit is the time limit of the answer. 0 means 30 s.
	limit time.Duration
}

// endpoints maps the names of API requests, after /api/v1/, to endpoints. An endpoint is cached if
// its answer depends only on the records that it names. The answer of "entities" is not cached,
// because it searches for a limited time. The answers of "tick" and "resolve" are not cached,
// because they report which ticks are rewound now.
var endpoints = map[string]endpoint{
	"info":      {answer: (*server).info},
	"resolve":   {answer: (*server).resolve},
	"bar":       {answer: (*server).timeBar},
	"schema":    {answer: (*server).schema, cached: true},
	"entities":  {answer: (*server).entities},
	"map":       {answer: (*server).points, cached: true},
	"entity":    {answer: (*server).entity, cached: true},
	"history":   {answer: (*server).history, cached: true},
	"change":    {answer: (*server).change},
	"referrers": {answer: (*server).referrers, cached: true},
	"resources": {answer: (*server).resources, cached: true},
	"tick":      {answer: (*server).tick},
	"diff":      {answer: (*server).diff, cached: true},
	"series":    {answer: (*server).series, cached: true, limit: time.Minute},
	"first":     {answer: (*server).first, cached: true, limit: time.Minute},
	"arrays":    {answer: (*server).arrays, cached: true},
	"health":    {answer: (*server).health},
	"verify":    {answer: (*server).verify, limit: time.Hour},
}

// answer answers an API request. A cached answer has an ETag that names the start of the server
// and the epoch of the store. If the browser sends the current tag, the server confirms that the
// cached answer is valid. It does not process the request.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, name string) {
	if name == "events" {
		h.events(w, r)
		return
	}
	q, ok := endpoints[name]
	if !ok {
		h.fail(w, fail(codeNotFound, "the API has no %q", name))
		return
	}
	// Set the tag before computing the answer. Meanwhile the session may be refreshed, and a new
	// answer gets an old tag. This is harmless, since the browser then asks again. An old answer
	// with a new tag would stay in the browser's cache.
	cache := "no-store"
	if q.cached {
		tag := `"` + h.started + strconv.FormatUint(h.fast.newest.Load(), 36) + `"`
		w.Header().Set("ETag", tag)
		cache = "private, no-cache"
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(q.limit, 30*time.Second))
	defer cancel()
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		h.fail(w, fail(codeUsage, "the query cannot be read: %v", err))
		return
	}
	doc, err := q.answer(h.server, &params{ctx: ctx, values: values})
	if err == nil {
		var text []byte
		if text, err = query.Marshal(doc); err == nil {
			w.Header().Set("Cache-Control", cache)
			writeJSON(w, http.StatusOK, text)
			return
		}
	}
	// A failure must not be cached under the tag.
	w.Header().Del("ETag")
	h.fail(w, err)
}

func (h *Handler) fail(w http.ResponseWriter, err error) {
	body := h.describe(err)
	writeFailure(w, kinds[body.Code].status, body)
}
