package web

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

var (
	budgetTicks    = flag.Int("budget.ticks", 50_000, "ticks of the store of BenchmarkBudgetPage")
	budgetEntities = flag.Int("budget.entities", 2_000_000, "entities of the save of BenchmarkBudgetPageOfASave; 20,000,000 make 1 GB")
)

// An asked is a request to measure, with a time limit. In repetition i, the text SEQ of the
// question is replaced by next(i).
type asked struct {
	name, question string
	limit          time.Duration
	next           func(i int) int
}

// BenchmarkBudgetPage measures the requests of the page on a store of 50,000 ticks. In each tick
// 200 of 20,000 entities change.
func BenchmarkBudgetPage(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "D")
	long(b, dir, *budgetTicks)
	begun := time.Now()
	h := budgetHandler(b, dir)
	opened := time.Since(begun)
	last := *budgetTicks
	far := func(i int) int { return 1 + (i*i*7919+last/2)%last }
	nearby := func(i int) int { return last/2 + i%50 }
	questions := []asked{
		{"bar", "bar?width=1280", 500 * time.Millisecond, nil},
		{"resolve", "resolve?at=SEQ", 30 * time.Millisecond, far},
		{"scrub-near", "entities?record=SEQ&limit=50", 30 * time.Millisecond, nearby},
		{"scrub-back", "entities?record=SEQ&limit=50", 30 * time.Millisecond, func(i int) int { return last/2 - i }},
		{"scrub-anywhere", "entities?record=SEQ&limit=50", 400 * time.Millisecond, far},
		{"entity-near", "entity?record=SEQ&entity=77v1", 50 * time.Millisecond, nearby},
		{"entity-anywhere", "entity?record=SEQ&entity=77v1", 50 * time.Millisecond, far},
		{"filtered", "entities?record=SEQ&limit=50&where=Health%3C50+%26%26+Position.X%3E10", 200 * time.Millisecond, nearby},
		{"map", "map?record=SEQ&x=Position.X&y=Position.Y&color=Health", 400 * time.Millisecond, nearby},
		{"tick", "tick?record=SEQ", 50 * time.Millisecond, far},
		{"series-5000", "series?record=SEQ&from=20000&to=24999&expr=alive&expr=score", time.Second, func(int) int { return last }},
		{"series-sum", "series?record=SEQ&from=20000&to=24999&expr=sum(Health)&expr=max(Position.Y)", time.Second, func(int) int { return last }},
	}
	b.Run("open", func(b *testing.B) { report(b, opened, 300*time.Millisecond) })
	measure(b, h, questions)
}

// BenchmarkBudgetPageOfASave measures the requests of the page on a save, whose size is a flag.
func BenchmarkBudgetPageOfASave(b *testing.B) {
	w := ecs.NewWorld(ecs.Options{})
	positions, healths := ecs.MustRegister[Position](w), ecs.MustRegister[Health](w)
	for i := range *budgetEntities {
		e := w.Create()
		positions.Set(e, Position{float64(i), 1})
		healths.Set(e, Health(i%100))
	}
	file := filepath.Join(b.TempDir(), "save")
	if err := persist.Save(context.Background(), file, w); err != nil {
		b.Fatal(err)
	}
	runtime.GC() // The world is no longer needed, so its memory must not count.
	h := budgetHandler(b, file)
	measure(b, h, []asked{
		{"bar", "bar?width=1280", 500 * time.Millisecond, nil},
		{"first-rows", "entities?record=0&limit=50", 300 * time.Millisecond, nil},
		{"entity", "entity?record=0&entity=77777v1", 50 * time.Millisecond, nil},
		{"filtered", "entities?record=0&limit=50&where=Health%3C3", 200 * time.Millisecond, nil},
		{"filtered-rare", "entities?record=0&limit=50&where=Health%3C3+%26%26+Position.X%3E1e5", 200 * time.Millisecond, nil},
	})
}

// measure sends each request several times. It reports the first time separately.
func measure(b *testing.B, h *Handler, questions []asked) {
	for _, q := range questions {
		b.Run(q.name, func(b *testing.B) {
			var took, cpu []time.Duration
			for i := range 12 {
				question := q.question
				if q.next != nil {
					question = strings.ReplaceAll(question, "SEQ", strconv.Itoa(q.next(i)))
				}
				begun, before := time.Now(), spent()
				asking[any](b, h, question)
				took, cpu = append(took, time.Since(begun)), append(cpu, spent()-before)
			}
			first := took[0]
			slices.Sort(took)
			slices.Sort(cpu)
			report(b, took[len(took)/2], q.limit)
			b.ReportMetric(float64(first)/1e6, "first-ms")
			b.ReportMetric(float64(took[0])/1e6, "best-ms")
			b.ReportMetric(float64(took[len(took)-1])/1e6, "worst-ms")
			b.ReportMetric(float64(cpu[len(cpu)/2])/1e6, "cpu-ms")
		})
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.Logf("%d MB of memory are in use", m.HeapAlloc>>20)
}

// spent returns the processor time of this process, or 0 if it is unknown.
var spent = func() time.Duration { return 0 }

func report(b *testing.B, took, limit time.Duration) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took)/1e6, "ms/more")
	b.ReportMetric(float64(limit)/1e6, "ms/budget")
}

// asking returns the answer of h to a request.
func asking[D any](b *testing.B, h *Handler, question string) (doc D) {
	b.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+apiPath+question, nil)
	r.AddCookie(&http.Cookie{Name: h.gate.cookie, Value: "secret"})
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		b.Fatal(question, answer.Body)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &doc); err != nil {
		b.Fatal(question, err)
	}
	return doc
}

func opener(path string) Opener {
	return func(ctx context.Context) (*inspect.View, error) { return inspect.OpenReadOnly(ctx, path) }
}

func budgetHandler(b *testing.B, path string) *Handler {
	b.Helper()
	h, err := New(context.Background(), opener(path), Options{Token: "secret"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	return h
}

// long makes a store of many ticks.
func long(b *testing.B, dir string, ticks int) {
	b.Helper()
	const entities, written = 20_000, 200
	s := begin(b, dir)
	for i := range entities {
		e := s.world.Create()
		s.entities = append(s.entities, e)
		s.positions.Set(e, Position{float64(i), 0})
		s.healths.Set(e, Health(i%100))
	}
	for tick := range ticks {
		for i := range written {
			s.positions.Mut(s.entities[(tick*31+i*97)%len(s.entities)]).Y++
		}
		s.commit(b)
	}
	if err := s.store.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
