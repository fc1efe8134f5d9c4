package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// FuzzRequests sends arbitrary requests. Each answer must be JSON of limited size, within a time
// limit. Errors must have a text.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		"info", "resolve?at=@latest~3&step=-2", "bar?from=2&to=9&width=4096", "schema?record=3", "entities?record=20&where=Health%3E3&sort=Health&desc=1&columns=Health,entity",
		"entities?record=7&with=Target&offset=2147483647&limit=500", "map?record=20&x=Position.X&y=Position.Y&color=Label.Text&where=true", "entity?record=20&entity=0v1",
		"history?record=20&entity=9v1&limit=2", "change?record=6&entity=1v1&to=next", "change?record=6&entity=1v1&to=previous", "referrers?record=20&entity=0v1",
		"resources?record=20", "tick?record=6", "diff?from=2&to=20&component=*&offset=3", "diff?from=20&to=3&component=(entities)", "series?record=20&expr=alive&expr=sum(Health)&samples=3",
		"series?record=10&entity=0v1&expr=Health&from=3&to=2", "first?record=20&expr=alive%3C10", "arrays?record=20&component=Position&row=3&index=99&limit=500", "health", "nothing", "tick?record=-1",
		"tick?record=18446744073709551615", "entities?record=20&where=len(1..1e6)%3E3", "entities?record=20&where=%00%ff", "bar?from=18446744073709551615&to=0&width=0", "resolve?at=record:1~1~1~1",
		"entities?record=2&beside=1&columns=Health&entity=9v1&entity=0v7", "arrays?record=3&beside=1&component=Label", "map?record=2&x=index&y=Health&beside=1",
	} {
		f.Add(seed)
	}
	c := serve(f, build(f))
	f.Fuzz(func(t *testing.T, question string) {
		name, query, _ := strings.Cut(question, "?")
		// The request "events" never ends, and the request "verify" has no parameters.
		if name == "events" || name == "verify" {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.URL = &url.URL{Path: apiPath + name, RawQuery: query}
		r.AddCookie(&http.Cookie{Name: c.h.gate.cookie, Value: "secret"})
		w := httptest.NewRecorder()
		begun := time.Now()
		c.h.ServeHTTP(w, r)
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("the request took %v", took)
		}
		var doc map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
			t.Fatalf("%d: %v: %.200s", w.Code, err, w.Body)
		}
		if w.Body.Len() > 4<<20 {
			t.Errorf("the answer has %d bytes", w.Body.Len())
		}
		if w.Code == http.StatusOK {
			return
		}
		e, _ := doc["error"].(map[string]any)
		if message, _ := e["message"].(string); message == "" || w.Code >= 500 && !strings.Contains(message, "too long") {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
}
