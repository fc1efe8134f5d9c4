package web

import (
	"context"
	"flag"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var dataDir = flag.String("data", "", "what make inspect-data made, for BenchmarkInspectorPage")

func init() {
	spent = func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
}

// BenchmarkInspectorPage measures the requests of the page. Its inputs are a store of 50,000 ticks,
// a store of 200,000 entities and 5,000 ticks, and a save of 1 GB.
func BenchmarkInspectorPage(b *testing.B) {
	if *dataDir == "" {
		b.Skip("-data is not set; run make inspect-budgets DIR=…")
	}
	const (
		near, anywhere, entity = 30 * time.Millisecond, 400 * time.Millisecond, 50 * time.Millisecond
		filtered, series, bar  = 200 * time.Millisecond, time.Second, 500 * time.Millisecond
	)
	spread := func(ticks int) func(int) int { return func(i int) int { return 1 + (i*i*7919+ticks/2)%ticks } }
	from := func(seq int) func(int) int { return func(i int) int { return seq + i } }
	b.Run("long", func(b *testing.B) {
		b.Run("bar", func(b *testing.B) { bars(b, filepath.Join(*dataDir, "long"), bar) })
		measure(b, budgetHandler(b, filepath.Join(*dataDir, "long")), []asked{
			{"scrub-near", "entities?record=SEQ&limit=50", near, from(25_000)},
			{"scrub-anywhere", "entities?record=SEQ&limit=50", anywhere, spread(50_000)},
			{"filtered", "entities?record=SEQ&limit=50&where=Health.Points%3C50", filtered, from(25_000)},
			{"series-5000", "series?record=SEQ&from=20000&to=24999&expr=sum(Health.Points)", series, func(int) int { return 50_000 }},
		})
		measure(b, budgetHandler(b, filepath.Join(*dataDir, "long")), []asked{
			{"entity-anywhere", "entity?record=SEQ&entity=77v1", entity, spread(50_000)},
		})
	})
	b.Run("wide", func(b *testing.B) {
		measure(b, budgetHandler(b, filepath.Join(*dataDir, "wide")), []asked{
			{"scrub-near", "entities?record=SEQ&limit=50", near, from(2500)},
			{"scrub-anywhere", "entities?record=SEQ&limit=50", anywhere, spread(5000)},
			{"filtered", "entities?record=SEQ&limit=50&where=Health.Points%3C50", filtered, from(2500)},
			{"series-5000", "series?record=SEQ&from=1&to=4880&expr=sum(Health.Points)", series, func(int) int { return 5000 }},
		})
		measure(b, budgetHandler(b, filepath.Join(*dataDir, "wide")), []asked{
			{"entity-anywhere", "entity?record=SEQ&entity=77v1", entity, spread(5000)},
		})
	})
	b.Run("save", func(b *testing.B) {
		measure(b, budgetHandler(b, filepath.Join(*dataDir, "large.save")), []asked{
			{"entities", "entities?record=0&limit=50", anywhere, nil},
			{"entity", "entity?record=0&entity=77777v1", entity, nil},
			{"filtered", "entities?record=0&limit=50&where=Health.Points%3C3", filtered, nil},
			{"filtered-none", "entities?record=0&limit=50&where=Health.Points%3C-3", filtered, nil},
		})
	})
}

// BenchmarkInspectorPageMemory measures the memory of each screen on the save of 1 GB.
func BenchmarkInspectorPageMemory(b *testing.B) {
	if *dataDir == "" {
		b.Skip("-data is not set; run make inspect-budgets DIR=…")
	}
	measureMemory(b, filepath.Join(*dataDir, "large.save"), largePeakOf, largeKept)
}

// bars requests the first time bar of a server twice: without and with stored counts of rows.
func bars(b *testing.B, path string, limit time.Duration) {
	cache := b.TempDir()
	for _, name := range []string{"first", "kept"} {
		b.Run(name, func(b *testing.B) {
			begun, cpu := time.Now(), spent()
			h, err := New(context.Background(), opener(path), Options{Token: "secret", Cache: cache})
			if err != nil {
				b.Fatal(err)
			}
			for doc := (&barDoc{}); doc.Measure != "rows"; time.Sleep(time.Millisecond) {
				doc = asking[*barDoc](b, h, "bar?width=1280")
			}
			report(b, time.Since(begun), limit)
			b.ReportMetric(float64(spent()-cpu)/1e6, "cpu-ms")
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
