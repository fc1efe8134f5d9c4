package web

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The types below are the components of the test store.
type (
	Position struct{ X, Y float64 }
	Label    struct{ Text string }
	Target   struct{ Of ecs.Entity }
	Health   int32
	Frozen   struct{}
)

// A sample is a world with its store.
type sample struct {
	world     *ecs.World
	store     *persist.Store
	positions *ecs.Storage[Position]
	labels    *ecs.Storage[Label]
	targets   *ecs.Storage[Target]
	healths   *ecs.Storage[Health]
	frozen    *ecs.Storage[Frozen]
	score     *ecs.Resource[int64]
	entities  []ecs.Entity
}

// hostile is a name that has an effect if it is interpreted as HTML or JavaScript.
const hostile = "<script>alert(1)</script>\u2028'\"`</style>"

// begin opens a store with a world of ten entities. The second entity refers to the first one,
// which has a hostile name.
func begin(t testing.TB, dir string) *sample {
	t.Helper()
	return beginIn(t, func(w *ecs.World, o persist.Options) (*persist.Store, error) {
		return persist.Open(context.Background(), dir, w, o)
	})
}

func beginIn(t testing.TB, open func(*ecs.World, persist.Options) (*persist.Store, error)) *sample {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{History: 50})
	s := &sample{
		world: w, positions: ecs.MustRegister[Position](w), labels: ecs.MustRegister[Label](w), targets: ecs.MustRegister[Target](w),
		healths: ecs.MustRegister[Health](w), frozen: ecs.MustRegister[Frozen](w),
		score: ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int64]{Name: "score"})),
	}
	now := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	var err error
	s.store, err = open(w, persist.Options{Now: clock})
	require.NoError(t, err)
	for i := range 10 {
		e := w.Create()
		s.entities = append(s.entities, e)
		s.positions.Set(e, Position{float64(i), float64(10 - i)})
		s.healths.Set(e, Health(100-i))
	}
	s.labels.Set(s.entities[0], Label{hostile})
	s.targets.Set(s.entities[1], Target{s.entities[0]})
	return s
}

func (s *sample) commit(t testing.TB) {
	t.Helper()
	s.score.Set(s.score.Get() + 1)
	require.NoError(t, s.store.Commit())
}

// build makes a store of 20 ticks, of which 3 are rewound. Each row has ticks and what they do:
//
//	1 to 5     reduce the health of 0v1 by 10 each
//	6          sets the mark "boss", destroys 9v1, and has an input
//	7 to 10    change only the score; 8 to 10 are rewound and run again
//	11 to 17   change the position of 1v1
func build(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "D")
	s := begin(t, dir)
	for range 5 {
		*s.healths.Mut(s.entities[0]) -= 10
		s.commit(t)
	}
	require.NoError(t, s.store.Mark("boss"))
	require.NoError(t, s.store.Input("order", []byte("attack\n")))
	s.world.Destroy(s.entities[9])
	s.commit(t)
	for range 4 {
		s.commit(t)
	}
	require.NoError(t, s.world.History().Rewind(3))
	_, err := s.store.SaveSlot(context.Background(), "camp", "")
	require.NoError(t, err)
	for range 3 {
		s.commit(t)
	}
	for range 7 {
		s.positions.Mut(s.entities[1]).X++
		s.commit(t)
	}
	require.NoError(t, s.store.Close(context.Background()))
	return dir
}

// A client sends requests to a handler, like a browser that has opened the handler's URL.
type client struct {
	testing.TB
	h *Handler
	*httptest.Server
	http *http.Client
}

func serve(t testing.TB, path string) *client {
	t.Helper()
	h, err := New(context.Background(), func(ctx context.Context) (*inspect.View, error) {
		return inspect.OpenReadOnly(ctx, path)
	}, Options{Name: "my store", Token: "secret", Interval: 20 * time.Millisecond})
	require.NoError(t, err)
	c := served(t, h)
	t.Cleanup(func() {
		c.CloseClientConnections()
		assert.NoError(t, h.Close())
		c.Close()
	})
	return c
}

// served returns a client of h.
func served(t testing.TB, h *Handler) *client {
	server := httptest.NewServer(h)
	c := &client{t, h, server, server.Client()}
	// Some answers never end, so every request has a time limit.
	c.http.Timeout = 20 * time.Second
	return c
}

// request returns a request that the handler accepts.
func (c *client) request(path string) *http.Request {
	c.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.URL+path, nil)
	require.NoError(c, err)
	r.AddCookie(&http.Cookie{Name: c.h.gate.cookie, Value: "secret"})
	return r
}

func (c *client) send(r *http.Request) (status int, body string, head http.Header) {
	c.Helper()
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a, err := c.http.Do(r)
	require.NoError(c, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(c, err)
	return a.StatusCode, string(text), a.Header
}

// ask sends a valid request, such as "entity?record=3&entity=0v1", and returns the answer.
func (c *client) ask(question string) map[string]any {
	c.Helper()
	status, body, _ := c.send(c.request(apiPath + question))
	require.Equal(c, http.StatusOK, status, "%s: %s", question, body)
	var doc map[string]any
	require.NoError(c, json.Unmarshal([]byte(body), &doc), body)
	return doc
}

// refused sends an invalid request and returns the error.
func (c *client) refused(question string) (status int, e errorBody) {
	c.Helper()
	status, body, _ := c.send(c.request(apiPath + question))
	require.NotEqual(c, http.StatusOK, status, "%s: %s", question, body)
	var doc errorDoc
	require.NoError(c, json.Unmarshal([]byte(body), &doc), body)
	return status, doc.Error
}

// at returns an element of a document: at(doc, "rows", 0, "entity").
func at(doc any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			doc = doc.(map[string]any)[p]
		case int:
			doc = doc.([]any)[p]
		}
	}
	return doc
}

func q(text string) string { return url.QueryEscape(text) }

func TestResolve_PointsAndSteps(t *testing.T) {
	c := serve(t, build(t))
	newest := c.ask("resolve?at=@latest")
	assert.EqualValues(t, 17, newest["tick"])
	assert.EqualValues(t, 20, newest["record"])
	assert.Equal(t, true, newest["head"])
	assert.Nil(t, newest["next"])
	assert.EqualValues(t, 19, at(newest, "parent", "record"))
	assert.EqualValues(t, 14, c.ask("resolve?at=@latest&step=-3")["tick"])
	assert.EqualValues(t, 6, c.ask("resolve?at=mark:boss")["tick"])
	assert.EqualValues(t, 6, c.ask("resolve?at=boss")["tick"], "the name of a mark is enough")
	assert.EqualValues(t, 8, c.ask("resolve?at=mark:boss&step=2")["tick"])
	assert.EqualValues(t, 11, c.ask("resolve?at=mark:boss&step=2")["record"], "a step skips rewound ticks")
	rewound := c.ask("resolve?at=record:8")
	assert.Equal(t, true, rewound["rewound"])
	assert.EqualValues(t, 9, at(rewound, "next", "record"), "a step from a branch stays on it")
	assert.EqualValues(t, 17, c.ask("resolve?at=@first&step=1000000")["tick"])
	assert.EqualValues(t, 0, c.ask("resolve?at=@latest&step=-1000000")["tick"])

	status, e := c.refused("resolve?at=900")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "not_found", e.Kind)
	assert.Equal(t, "ecsdump log 'my store'", e.Try)
	status, e = c.refused("resolve?at=" + q("@nonsense"))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Equal(t, codeUsage, e.Code)
}

// A rewound tick may be a child of the newest state. A step forward must still end at the newest
// state.
func TestResolve_StepsEndAtNewestState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	s := begin(t, dir)
	for range 5 {
		s.commit(t)
	}
	require.NoError(t, s.world.History().Rewind(2))
	require.NoError(t, s.store.Sync(context.Background()))
	require.NoError(t, s.store.Close(context.Background()))
	c := serve(t, dir)
	newest := c.ask("resolve?at=@latest")
	require.EqualValues(t, 3, newest["tick"])
	assert.Nil(t, newest["next"])
	assert.EqualValues(t, 3, c.ask("resolve?at=@latest&step=1")["tick"])
	assert.EqualValues(t, 3, c.ask("resolve?at=@first&step=100")["tick"])
	assert.EqualValues(t, 5, at(c.ask("resolve?at=record:4"), "next", "tick"), "a branch has a next tick")
}

func TestBar_CountsAndMarks(t *testing.T) {
	c := serve(t, build(t))
	var bar map[string]any
	require.Eventually(t, func() bool {
		bar = c.ask("bar?width=100")
		return bar["counted"] == 1.
	}, time.Minute, 5*time.Millisecond)
	assert.EqualValues(t, "rows", bar["measure"])
	assert.EqualValues(t, 0, bar["first"])
	assert.EqualValues(t, 17, bar["last"])
	peaks := at(bar, "peaks").([]any)
	require.Len(t, peaks, 18, "the bar must have a bucket per tick")
	assert.EqualValues(t, 2, peaks[2], "a health and the score")
	assert.EqualValues(t, 1, peaks[8], "the score")
	require.Len(t, bar["branches"], 1)
	assert.EqualValues(t, map[string]any{"lane": 0., "from": 8., "to": 10., "tip": 10., "fork": 7.}, at(bar, "branches", 0))
	assert.EqualValues(t, "boss", at(bar, "marks", 0, "name"))
	assert.EqualValues(t, 6, at(bar, "marks", 0, "tick"))
	assert.EqualValues(t, "camp", at(bar, "snapshots", 1, "label"))
	inputs := make([]any, 18)
	for i := range inputs {
		inputs[i] = 0.
	}
	inputs[6] = 1.
	assert.Equal(t, inputs, bar["inputs"])

	part := c.ask("bar?width=2&from=2&to=5")
	assert.Equal(t, []any{4., 4.}, part["sums"])
	assert.Equal(t, []any{2., 2.}, part["peaks"])
	assert.EqualValues(t, 2, part["per"])
	assert.Equal(t, []any{}, part["inputs"], "no inputs")
}

// A request for a compared state must use the slow session, and must not change the fast session.
func TestComparedState_UsesSlowSession(t *testing.T) {
	c := serve(t, build(t))
	assert.Len(t, c.ask("entities?record=20&with=Health")["rows"], 9)
	then := c.ask("entities?record=2&beside=1&columns=Health,entity&entity=9v1&entity=0v1&entity=0v7&entity=77v1")
	assert.Equal(t, []any{
		map[string]any{"entity": "9v1", "cells": []any{"91", "9v1"}}, map[string]any{"entity": "0v1", "cells": []any{"80", "0v1"}},
	}, then["rows"], "entities must come in the requested order, without dead ones")
	assert.EqualValues(t, 2, then["tick"])
	assert.Equal(t, 1., at(c.ask("map?record=2&beside=1&x=Position.X&y=Position.Y"), "x", 1))
	assert.Equal(t, "{X:1 Y:9}", at(c.ask("arrays?record=2&beside=1&component=Position&row=1"), "dense", 0, "value"))
	assert.EqualValues(t, 20, c.h.fast.cursor.Seq())
	assert.EqualValues(t, 2, c.h.slow.cursor.Seq())

	_, e := c.refused("entities?record=2&entity=0v1&entity=x")
	assert.Contains(t, e.Message, "12v3")
	_, e = c.refused("entities?record=2" + strings.Repeat("&entity=0v1", 501))
	assert.Equal(t, "at most 500 entities are allowed", e.Message)
}

func TestEntities_FilterSortCount(t *testing.T) {
	c := serve(t, build(t))
	all := c.ask("entities?record=20")
	assert.EqualValues(t, 9, all["found"])
	assert.Equal(t, true, all["done"])
	assert.Equal(t, "0v1", at(all, "rows", 0, "entity"))
	assert.Contains(t, at(all, "rows", 0, "cells"), "Health=50")

	found := c.ask("entities?record=20&where=" + q("Health > 95") + "&columns=" + q("Health as hp, entity") + "&sort=Health&limit=2")
	assert.EqualValues(t, []any{"hp", "entity"}, found["columns"])
	assert.EqualValues(t, 4, found["found"])
	assert.Equal(t, []any{map[string]any{"entity": "4v1", "cells": []any{"96", "4v1"}}, map[string]any{"entity": "3v1", "cells": []any{"97", "3v1"}}}, found["rows"])
	last := c.ask("entities?record=20&where=" + q("Health > 95") + "&sort=Health&desc=1&offset=3&limit=2")
	assert.Equal(t, "4v1", at(last, "rows", 0, "entity"))
	assert.Len(t, last["rows"], 1)
	assert.EqualValues(t, 1, c.ask("entities?record=20&with=Target")["found"])
	assert.EqualValues(t, 10, c.ask("entities?record=3")["found"], "at another point")

	status, e := c.refused("entities?record=20&where=" + q("Health > 3 && Healt < 9"))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Equal(t, "where", e.Which)
	assert.Equal(t, 14, *e.At)
	assert.Contains(t, e.Message, "did you mean Health?")
	_, e = c.refused("entities")
	assert.Contains(t, e.Message, "record is missing")
	_, e = c.refused("entities?record=20&limit=501")
	assert.Equal(t, "limit takes a whole number from 0 to 500", e.Message)
	_, e = c.refused("entities?record=21")
	assert.Equal(t, "not_found", e.Kind)
}

func TestEntity_FieldsLifeReferrers(t *testing.T) {
	c := serve(t, build(t))
	e := c.ask("entity?record=20&entity=1v1")
	assert.Equal(t, true, e["alive"])
	assert.Equal(t, "Position", at(e, "components", 0, "name"))
	assert.EqualValues(t, map[string]any{"name": "X", "path": "X", "kind": "float64", "text": "8"}, at(e, "components", 0, "value", "parts", 0))
	assert.Equal(t, "0v1", at(e, "components", 1, "value", "parts", 0, "entity"), "a reference to an entity")

	assert.Equal(t, "1v1", c.ask("entity?record=20&entity=1")["entity"], "an index alone is the entity that has it")
	assert.Equal(t, "8", at(c.ask("entity?record=20&entity=1"), "components", 0, "value", "parts", 0, "text"))
	gone := c.ask("entity?record=20&entity=9")
	assert.Equal(t, "9v1", gone["entity"])
	assert.Equal(t, false, gone["alive"])
	status, never := c.refused("entity?record=20&entity=77")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, never.Message, "index 77 was never in use")

	life := c.ask("history?record=20&entity=0v1&limit=3")
	assert.Equal(t, "set", at(life, "events", 0, "event"))
	assert.EqualValues(t, 5, at(life, "events", 0, "tick"))
	assert.Equal(t, map[string]any{"path": "", "old": "60", "new": "50"}, at(life, "events", 0, "fields", 0))
	assert.Equal(t, true, life["more"])
	assert.EqualValues(t, 3, at(life, "since", "tick"), "earlier events are omitted")
	whole := c.ask("history?record=20&entity=0v1")
	assert.Equal(t, true, whole["all"])
	assert.Equal(t, "Health", at(whole, "courses", 0, "field"))
	assert.Equal(t, []any{90., 80., 70., 60., 50.}, at(whole, "courses", 0, "values"))

	dead := c.ask("entity?record=20&entity=9v1")
	assert.Equal(t, false, dead["alive"])
	end := c.ask("history?record=20&entity=9v1")
	assert.Equal(t, "destroyed", at(end, "events", 0, "event"))
	last := at(end, "events", 0, "before", "record").(float64)
	assert.EqualValues(t, 5, last, "its last state is the one before")

	assert.EqualValues(t, 4, at(c.ask("change?record=5&entity=0v1&to=previous"), "found", "tick"))
	assert.EqualValues(t, 2, at(c.ask("change?record=1&entity=0v1&to=next"), "found", "tick"))
	assert.EqualValues(t, 14, at(c.ask("change?record=6&entity=1v1&to=next"), "found", "record"), "the first change is at tick 11, after the branch")
	assert.Nil(t, c.ask("change?record=20&entity=1v1&to=next")["found"])

	who := c.ask("referrers?record=20&entity=0v1")
	assert.EqualValues(t, 1, who["total"])
	assert.Equal(t, map[string]any{"entity": "1v1", "component": "Target", "fields": []any{"Of"}}, at(who, "referrers", 0))
	assert.Equal(t, "score", at(c.ask("resources?record=20"), "resources", 0, "name"))
	_, wrong := c.refused("entity?record=20&entity=nobody")
	assert.Equal(t, "usage", wrong.Kind)
}

func TestTickAndDiff_CountChangesByComponent(t *testing.T) {
	c := serve(t, build(t))
	tick := c.ask("tick?record=6")
	assert.EqualValues(t, 1, tick["destroyed"])
	assert.Equal(t, []any{"boss"}, tick["marks"])
	assert.Equal(t, map[string]any{"name": "order", "text": `"attack\n"`, "size": 7.}, at(tick, "inputs", 0))
	assert.Equal(t, []any{"-9v1"}, tick["entities"])
	assert.Equal(t, "2026-03-04T05:06:06Z", tick["time"])

	one := c.ask("diff?from=2&to=3&component=Health")
	assert.EqualValues(t, 1, one["total"])
	assert.Equal(t, map[string]any{
		"entity": "0v1", "component": "Health", "change": "changed", "old": "80", "new": "70",
		"fields": []any{map[string]any{"path": "", "old": "80", "new": "70"}},
	}, at(one, "rows", 0))
	far := c.ask("diff?from=2&to=20")
	assert.EqualValues(t, 1, far["destroyed"])
	assert.Empty(t, far["rows"], "no rows without a component")
	all := c.ask("diff?from=2&to=20&component=*&limit=2")
	assert.EqualValues(t, 6, all["total"], "the score, a health, a position; 9v1 and its two components")
	assert.Len(t, all["rows"], 2)
	assert.Equal(t, true, c.ask("diff?from=7&to=7")["same"])
	status, _ := c.refused("tick?record=0")
	assert.Equal(t, http.StatusNotFound, status)
}

func TestSeries_WorldAndEntity(t *testing.T) {
	c := serve(t, build(t))
	world := c.ask("series?record=20&expr=alive&expr=" + q("sum(Health)") + "&expr=nonsense&samples=2000")
	assert.Len(t, world["ticks"], 18)
	assert.Equal(t, 0., at(world, "series", 0, "values", 0), "the oldest state is included")
	assert.Equal(t, 10., at(world, "series", 0, "values", 1))
	assert.Equal(t, 9., at(world, "series", 0, "values", 17))
	assert.Equal(t, 955.-10, at(world, "series", 1, "values", 1))
	assert.Equal(t, "usage", at(world, "series", 2, "error", "kind"), "the other expressions have values")
	part := c.ask("series?record=20&from=4&to=8&expr=score&samples=3")
	assert.Equal(t, []any{4., 6., 8.}, part["ticks"])
	assert.Equal(t, []any{4., 6., 8.}, at(part, "series", 0, "values"))
	branch := c.ask("series?record=10&from=7&expr=score")
	assert.Equal(t, []any{7., 8., 9., 10.}, branch["records"], "the path to a branch must include the branch")
	one := c.ask("series?record=20&entity=9v1&expr=Health")
	assert.Equal(t, 91., at(one, "series", 0, "values", 1))
	assert.Nil(t, at(one, "series", 0, "values", 17), "the entity is dead by then")
	oldest := c.ask("series?record=20&to=0&expr=alive")
	assert.Equal(t, []any{0.}, oldest["records"])
	assert.Equal(t, []any{0.}, c.ask("series?record=0&expr=alive")["ticks"])
	onward := c.ask("series?record=10&from=0&to=2&expr=score")
	assert.Equal(t, []any{0., 1., 2.}, onward["ticks"], "the path to a branch must start at the oldest state")

	first := c.ask("first?record=20&expr=" + q("any(Position.X > 12)"))
	assert.Nil(t, first["found"])
	assert.EqualValues(t, 18, first["asked"])
	first = c.ask("first?record=20&from=1&expr=" + q("alive < 10"))
	assert.EqualValues(t, 6, at(first, "found", "tick"))
	first = c.ask("first?record=20&expr=" + q("alive == 0"))
	assert.EqualValues(t, 0, at(first, "found", "record"), "the condition holds in the oldest state")
	_, e := c.refused("series?record=20" + strings.Repeat("&expr=alive", 9))
	assert.Equal(t, "at most 8 values of expr are allowed", e.Message)
}

func TestMap_ColorsOfNumbersAndClasses(t *testing.T) {
	c := serve(t, build(t))
	m := c.ask("map?record=20&x=Position.X&y=Position.Y&color=Health")
	assert.Equal(t, "0v1", at(m, "entities", 0))
	assert.Equal(t, 8., at(m, "x", 1))
	assert.Equal(t, 50., at(m, "colors", 0))
	m = c.ask("map?record=20&x=Position.X&y=Position.Y&color=Label.Text&where=" + q("Position.X < 1") + "&limit=1")
	assert.Equal(t, []any{hostile}, m["classes"])
	assert.Equal(t, false, m["more"])
	assert.Equal(t, true, c.ask("map?record=20&x=index&y=generation&limit=3")["more"])
	// These expressions also have a value for entities without the component.
	for _, x := range []string{"Target.Of == nil ? 0 : 1", "Target.Of.Health ?? -1", "0 * (Health ?? 0)"} {
		assert.Len(t, c.ask("map?record=20&x=" + q(x) + "&y=index")["x"], 9, x)
	}
	assert.Len(t, c.ask("map?record=20&x=Target.Of.Health&y=index")["x"], 1)
	_, e := c.refused("map?record=20&x=Position.X&y=Label.Text")
	assert.Equal(t, "y", e.Which)
}

func TestArrays_RowsAndSparse(t *testing.T) {
	c := serve(t, build(t))
	a := c.ask("arrays?record=20&component=Position&row=1&index=8&limit=2")
	assert.EqualValues(t, 9, a["rows"])
	assert.Equal(t, map[string]any{"entity": "1v1", "value": "{X:8 Y:9}"}, at(a, "dense", 0))
	assert.Equal(t, []any{8.}, a["sparse"])
	assert.Equal(t, "resource", c.ask("arrays?record=20&component=score")["kind"])
	status, e := c.refused("arrays?record=20&component=Nothing")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, e.Message, "Nothing")
}

func TestHealth_ReportsDamage(t *testing.T) {
	dir := build(t)
	c := serve(t, dir)
	assert.Equal(t, true, c.ask("health")["opens"])
	assert.Equal(t, true, c.ask("verify")["ok"])

	v, err := inspect.OpenReadOnly(context.Background(), dir)
	require.NoError(t, err)
	last := v.Log().Entries[18]
	segment := filepath.Join(dir, "journal", v.Log().Segments[last.Segment].Name)
	require.NoError(t, v.Close())
	content, err := os.ReadFile(segment)
	require.NoError(t, err)
	content[last.Offset+int64(last.Length)] ^= 4
	require.NoError(t, os.WriteFile(segment, content, 0o600))
	d := serve(t, dir)
	health := d.ask("health")
	assert.Equal(t, false, health["opens"])
	assert.Contains(t, health["helps"], "ecsdump recover 'my store' -o 'my store.recovered'")
	assert.NotEmpty(t, health["damage"])
	assert.NotEmpty(t, d.ask("info")["damaged"])
	assert.NotEmpty(t, d.ask("bar")["damage"])
	assert.Equal(t, false, d.ask("verify")["ok"])
}

func TestSaveFile_HasNoHistory(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	healths := ecs.MustRegister[Health](w)
	healths.Set(w.Create(), 7)
	file := filepath.Join(t.TempDir(), "slot.save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	c := serve(t, file)
	info := c.ask("info")
	assert.Equal(t, "save", info["kind"])
	seq := "record=" + strconv.Itoa(int(at(info, "newest", "record").(float64)))
	assert.EqualValues(t, 1, c.ask("entities?" + seq)["found"])
	assert.Equal(t, "7", at(c.ask("entity?entity=0v1&"+seq), "components", 0, "value", "text"))
	assert.Len(t, c.ask("bar")["sums"], 1)
	assert.EqualValues(t, 1, c.ask("bar")["counted"], "a save has no ticks to count")
	assert.Equal(t, true, c.ask("health")["opens"])
	assert.Equal(t, []any{1.}, at(c.ask("series?expr=alive&"+seq), "series", 0, "values"))
	assert.EqualValues(t, 0, at(c.ask("first?"+seq+"&expr="+q("alive > 0")), "found", "tick"))
	assert.Equal(t, true, c.ask("history?entity=0v1&" + seq)["all"])
}

func TestFollow_GrowingStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	s := begin(t, dir)
	s.commit(t)
	require.NoError(t, s.store.Sync(context.Background()))
	c := serve(t, dir)
	r := c.request(apiPath + "events")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := c.http.Do(r.WithContext(ctx))
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	next := newsOf(t, answer.Body)
	assert.EqualValues(t, 1, next().Seq)
	for tick := uint64(2); tick < 5; tick++ {
		s.commit(t)
		require.NoError(t, s.store.Sync(context.Background()))
		news := next()
		for news.Tick < tick {
			news = next()
		}
		assert.EqualValues(t, tick, c.ask("resolve?at=@latest")["tick"])
		assert.EqualValues(t, tick, at(c.ask("series?expr=score&record="+strconv.Itoa(int(tick))), "series", 0, "values", int(tick)), "the far desk knows the tick too")
	}
	require.NoError(t, s.store.Close(context.Background()))
	for !next().Clean {
	}
}

func TestSession_ClientDisconnects(t *testing.T) {
	c := serve(t, build(t))
	// Another request occupies the slow session.
	c.h.slow.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	//nolint:bodyclose // There is no body.
	_, err := c.http.Do(c.request(apiPath + "series?record=20&expr=alive").WithContext(ctx))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	// The fast session is free, so its requests are not delayed.
	c.ask("entity?record=20&entity=0v1")
	<-c.h.slow.turn
	assert.Len(t, c.ask("series?record=20&expr=alive")["ticks"], 18)
}

func TestBranches_OverlappingGetOwnLanes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	s := begin(t, dir)
	ticks := func(n, rewind int) {
		for range n {
			s.commit(t)
		}
		require.NoError(t, s.world.History().Rewind(rewind))
	}
	ticks(6, 3) // Records 1…6: ticks 1…6.
	ticks(2, 1) // Records 7, 8: ticks 4 and 5 on another branch than records 4 and 5.
	ticks(1, 2) // Record 9: another tick 5; its parent is record 7.
	ticks(4, 0) // Records 10…13: ticks 4…7, up to the newest state.
	require.NoError(t, s.store.Close(context.Background()))
	c := serve(t, dir)
	lanes := map[float64]map[string]any{}
	for _, b := range c.ask("bar")["branches"].([]any) {
		lanes[at(b, "tip").(float64)] = b.(map[string]any)
	}
	assert.Equal(t, map[float64]map[string]any{
		6: {"lane": 0., "from": 4., "to": 6., "tip": 6., "fork": 3.},
		8: {"lane": 1., "from": 4., "to": 5., "tip": 8., "fork": 3.},
		9: {"lane": 2., "from": 5., "to": 5., "tip": 9., "fork": 7.},
	}, lanes)
	assert.EqualValues(t, 10, at(c.ask("resolve?at=record:3"), "next", "record"))
	assert.EqualValues(t, 8, at(c.ask("resolve?at=record:7"), "next", "record"))
}

func TestDiff_MovedRows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	s := begin(t, dir)
	s.commit(t)
	// The last row moves into the place of the destroyed entity.
	s.world.Destroy(s.entities[2])
	s.commit(t)
	require.NoError(t, s.store.Close(context.Background()))
	d := serve(t, dir).ask("diff?from=1&to=2&component=Position")
	assert.EqualValues(t, 1, d["total"])
	assert.Equal(t, "removed", at(d, "rows", 0, "change"))
	assert.EqualValues(t, 1, at(d, "components", 0, "moved"))
}

// A state must be the same, whatever sequence of steps leads to it.
func TestSeek_AnyStepsSameState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	s := begin(t, dir)
	var want []ecs.Digest
	for range 300 {
		s.positions.Mut(s.entities[len(want)%10]).X += 3
		s.commit(t)
		want = append(want, s.world.Digest())
	}
	require.NoError(t, s.store.Close(context.Background()))
	c := serve(t, dir)
	rng := rand.New(rand.NewPCG(1, 2))
	at, loads := 299, 0
	for range 500 {
		switch rng.IntN(8) {
		case 0:
			at = rng.IntN(300)
		case 1:
			at = min(299, at+rng.IntN(9))
		default:
			at = max(0, at-1-rng.IntN(3))
		}
		before := len(c.h.fast.anchors.held)
		require.NoError(t, c.h.fast.with(context.Background(), func() error {
			im, err := c.h.fast.state(context.Background(), uint64(at+1))
			require.NoError(t, err)
			require.Equal(t, want[at], im.Digest(), "tick %d", at+1)
			return nil
		}))
		if len(c.h.fast.anchors.held) != before {
			loads++
		}
	}
	assert.Positive(t, loads)
	assert.Less(t, loads, 150, "most steps start near the last one")
}
