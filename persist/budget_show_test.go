package persist_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// BenchmarkBudgetShow measures ecsdump show for one entity of a save of a million entities,
// including the opening. The limit is 100 ms. A larger save needs no more reads, so a million
// entities are enough. The reported memory is the sum of all allocations.
func BenchmarkBudgetShow(b *testing.B) {
	const entities, limit = 1_000_000, 100 * time.Millisecond
	save := filepath.Join(b.TempDir(), "save")
	w, _ := points(b, entities, 0)
	if err := persist.Save(storetest.Background, save, w); err != nil {
		b.Fatal(err)
	}
	show := func() {
		v, err := inspect.OpenReadOnly(storetest.Background, save)
		if err != nil {
			b.Fatal(err)
		}
		defer v.Close()
		s, err := v.Peek(storetest.Background, ecs.NewEntity(entities/2, 1), 0)
		if err != nil || s.Components[0].Value.Index(0).Float() != entities/2 {
			b.Fatal(s, err)
		}
	}
	ours := timed(show)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range budgetRounds {
		ours = min(ours, timed(show))
	}
	runtime.ReadMemStats(&after)
	reportBudget(b, ours, limit, 1)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/budgetRounds/1024, "KiB")
}
