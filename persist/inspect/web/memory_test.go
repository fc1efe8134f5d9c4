package web

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// Memory limits for the screens of a save. For a save of 1 GB, a request may use 200 MB. After the
// request, only small data such as the set of live entities may stay in memory. CI measures the
// same with a save of 80 MB.
const (
	largePeak, largeKept = 200, 20 // In MB.
	smallPeak, smallKept = 40, 6

	// smallSorted replaces smallPeak for a sorted list, because the list stores a window of
	// entities with their keys.
	smallSorted = 70
)

// smallPeakOf returns the memory limit of a screen, in MB. The save has 80 MB.
func smallPeakOf(screen string) float64 {
	if strings.HasPrefix(screen, "entities-sorted") {
		return smallSorted
	}
	return smallPeak
}

// largePeakOf returns the peak limit of a screen for the save of 1 GB.
func largePeakOf(string) float64 { return largePeak }

// screenQuestions has the requests that the page sends for a save, by screen.
var screenQuestions = []struct{ screen, question string }{
	{"bar", "bar?width=1280"},
	{"schema", "schema?record=0"},
	{"entities", "entities?record=0&limit=50"},
	{"entities-where", "entities?record=0&limit=50&where=Health.Points%3C0"},
	{"entities-all", "entities?record=0&limit=50&where=Health.Points%3E%3D0"},
	{"entities-all-end", "entities?record=0&limit=50&offset=270000&where=Health.Points%3E%3D0"},
	{"entities-sorted", "entities?record=0&limit=50&sort=Position.X"},
	{"entities-sorted-wide", "entities?record=0&limit=50&sort=Stats.Values%5B0%5D&desc=1"},
	{"entities-sorted-on", "entities?record=0&limit=50&offset=150000&sort=Health.Points"},
	{"map", "map?record=0&x=Position.X&y=Position.Y&color=Health.Points"},
	{"entity", "entity?record=0&entity=77777v1"},
	{"entity-life", "history?record=0&entity=77777v1"},
	{"entity-referrers", "referrers?record=0&entity=77777v1"},
	{"entity-resources", "resources?record=0"},
	{"plots", "series?record=0&expr=alive"},
	{"plots-sum", "series?record=0&expr=sum(Health.Points)&expr=max(Position.X)"},
	{"plots-entity", "series?record=0&expr=Position.X&entity=77777v1"},
	{"plots-first", "first?record=0&expr=any(Health.Points%3C-1000)"},
	{"arrays", "arrays?record=0&component=Position&limit=100"},
	{"arrays-end", "arrays?record=0&component=Health&row=100000&index=100000&limit=100"},
	{"health", "health"},
	{"verify", "verify"},
}

// measureMemory sends each request to a new server until the answer is complete. It reports the
// peak of the memory in use, and the memory still in use afterwards. Garbage counts too, because
// the collector may let it grow.
func measureMemory(b *testing.B, path string, peak func(screen string) float64, kept float64) {
	for _, q := range screenQuestions {
		b.Run(q.screen, func(b *testing.B) {
			h := budgetHandler(b, path)
			before := settled()
			most := watchHeap(func() { askAll(b, h, q.question) })
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(most-before)/1e6, "MB/more")
			b.ReportMetric(peak(q.screen), "MB/budget")
			left := (float64(settled()) - float64(before)) / 1e6
			b.ReportMetric(max(left, 0), "kept-MB/more")
			b.ReportMetric(kept, "kept-MB/budget")
			runtime.KeepAlive(h)
		})
	}
}

// settled returns the bytes in use after a garbage collection.
func settled() uint64 {
	debug.FreeOSMemory()
	return heapInUse()
}

// heapInUse returns the bytes of objects, including garbage that is not swept yet.
func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap returns the peak of the bytes in use while f runs.
func watchHeap(f func()) uint64 {
	var most atomic.Uint64
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			most.Store(max(most.Load(), heapInUse()))
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-over
	return most.Load()
}

// askAll sends a request repeatedly until its answer is complete.
func askAll(tb testing.TB, h *Handler, question string) {
	tb.Helper()
	for {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+apiPath+question, nil)
		r.AddCookie(&http.Cookie{Name: h.gate.cookie, Value: "secret"})
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code != http.StatusOK {
			tb.Fatal(question, answer.Body)
		}
		if !strings.Contains(answer.Body.String(), `"done":false`) {
			return
		}
	}
}

// The rows are large, so the save is much larger than the data about its entities.
type (
	largePosition struct{ X, Y, Z float64 }
	largeHealth   struct{ Points, Most int32 }
	largeStats    struct{ Values [60]int32 }
)

// largeSave makes a save of about 80 MB with 280,000 entities.
func largeSave(tb testing.TB) string {
	tb.Helper()
	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister(w, ecs.Component[largePosition]{Name: "Position"})
	healths := ecs.MustRegister(w, ecs.Component[largeHealth]{Name: "Health"})
	stats := ecs.MustRegister(w, ecs.Component[largeStats]{Name: "Stats"})
	ecs.Must(ecs.RegisterResource(w, largePosition{1, 2, 3}))
	for i := range 280_000 {
		e := w.Create()
		positions.Set(e, largePosition{float64(i), 1, 2})
		if healths.Set(e, largeHealth{int32(i % 100), 100}); i%8 > 0 {
			stats.Set(e, largeStats{[60]int32{int32(i)}})
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	// Destroy some entities. The newest rows move into their places, so rows are not in index
	// order.
	for range 1500 {
		if i := uint32(random.IntN(280_000)); i != 77777 {
			w.Destroy(ecs.NewEntity(i, 1))
		}
	}
	file := filepath.Join(tb.TempDir(), "save")
	if err := persist.Save(context.Background(), file, w); err != nil {
		tb.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() < 70e6 {
		tb.Fatalf("the save has %d bytes: %v", info.Size(), err)
	}
	return file
}

// impatient reduces patience. A list of the 80 MB save then takes as many requests as a list of a
// 1 GB save.
func impatient(tb testing.TB) {
	was := patience
	patience = 10 * time.Millisecond
	tb.Cleanup(func() { patience = was })
}

// BenchmarkBudgetPageMemory measures the memory of each screen on a save of 80 MB.
func BenchmarkBudgetPageMemory(b *testing.B) {
	path := largeSave(b)
	impatient(b)
	measureMemory(b, path, smallPeakOf, smallKept)
}

// No screen may load the whole save into memory, or keep much memory in use afterwards.
func TestScreens_DoNotLoadWholeSave(t *testing.T) {
	if testing.Short() {
		t.Skip("the test makes a save of 80 MB")
	}
	path := largeSave(t)
	impatient(t)
	for _, q := range screenQuestions {
		h, err := New(t.Context(), opener(path), Options{Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		before := settled()
		most := watchHeap(func() { askAll(t, h, q.question) })
		if grew, limit := float64(most-before)/1e6, smallPeakOf(q.screen); grew > limit {
			t.Errorf("%s needs %.0f MB, want at most %.0f", q.screen, grew, limit)
		}
		if left := int64(settled()-before) / 1e6; left > smallKept {
			t.Errorf("%s leaves %d MB in use, want at most %d", q.screen, left, smallKept)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
