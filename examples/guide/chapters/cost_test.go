package chapters_test

import (
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// unit is a component of 12 bytes.
type unit struct{ X, Y, Health int32 }

// newUnits returns a world with a history and 10,000 units.
func newUnits() (*ecs.World, *ecs.Storage[unit], []ecs.Entity) {
	world := ecs.NewWorld(ecs.Options{History: 10_000})
	units := ecs.MustRegister[unit](world)
	all := world.CreateN(nil, 10_000)
	units.SetAll(all, unit{Health: 9})
	world.Commit()
	return world, units, all
}

// The chapter has the figures that this test logs.
func TestCost_BytesPerTick(t *testing.T) {
	const ticks = 400
	for _, test := range []struct {
		rows             int
		journal, history int64 // The maximum numbers of bytes per tick.
	}{
		{0, 100, 400}, {1, 150, 800}, {10, 300, 1000}, {100, 2000, 5000}, {1000, 16_000, 60_000},
	} {
		world, units, all := newUnits()
		store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
		check(err)
		journal, history := store.Metrics().JournalBytes, historyBytes(world)
		times := make([]time.Duration, ticks)
		for i := range ticks {
			for row := range test.rows {
				units.Mut(all[row*7]).X++
			}
			begin := time.Now()
			check(store.Commit())
			times[i] = time.Since(begin)
		}
		check(store.Sync(ctx))
		journal = (store.Metrics().JournalBytes - journal) / ticks
		history = (historyBytes(world) - history) / ticks
		slices.Sort(times)
		t.Logf("%4d rows: journal %5d bytes, history %5d bytes, Commit %v", test.rows, journal, history, times[ticks/2])
		assert.Less(t, journal, test.journal)
		assert.Less(t, history, test.history)
		check(store.Close(ctx))
	}
}

// historyBytes returns the bytes of the history of a world.
func historyBytes(world *ecs.World) int64 {
	return world.History().Bytes() + world.MemoryUsage().Frames
}

func TestCost_BytesPerEntity(t *testing.T) {
	const n = 100_000
	world := ecs.NewWorld(ecs.Options{})
	memory := func() int64 {
		m := world.MemoryUsage()
		return m.Total()
	}
	entities := world.CreateN(nil, n)
	t.Logf("entity: %.1f bytes", float64(memory())/n)
	before := memory()
	ecs.MustRegister[Pos](world).SetAll(entities, Pos{})
	t.Logf("component of 16 bytes: %.1f bytes", float64(memory()-before)/n)
	before = memory()
	ecs.MustRegister[Frozen](world).SetAll(entities, Frozen{})
	t.Logf("tag: %.1f bytes", float64(memory()-before)/n)
	assert.Less(t, memory(), int64(80*n))
}

func TestCost_GoroutinesAndFilesOfStore(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0 // Not Linux.
		}
		return len(files)
	}
	world, units, all := newUnits()
	goroutines, files := runtime.NumGoroutine(), open()
	store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
	check(err)
	units.Mut(all[0]).X++
	check(store.Commit())
	check(store.Sync(ctx))
	goroutines, files = runtime.NumGoroutine()-goroutines, open()-files
	t.Logf("store: %d goroutines, %d open files", goroutines, files)
	assert.Less(t, goroutines, 4)
	assert.Less(t, files, 8)
	check(store.Close(ctx))
}

func TestCost_ShownFiguresAreNotZero(t *testing.T) {
	world, units, all := newUnits()
	store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
	check(err)
	for range 10 {
		units.Mut(all[0]).X++
		check(store.Commit())
	}
	var shown []any
	costShow(func(values ...any) { shown = append(shown, values...) }, world, store)
	assert.NotContains(t, shown, int64(0))
	assert.Len(t, shown, 12)
	check(store.Close(ctx))
}

func costShow(show showFunc, world *ecs.World, store *persist.Store) {
	memory := world.MemoryUsage()
	show("memory of the world", memory.Total(), "with the history", world.History().Bytes())
	show("newest tick in the history", world.History().TickBytes(world.Tick()-1))
	metrics := store.Metrics()
	show("journal", metrics.JournalBytes, "snapshots", metrics.SnapshotBytes)
	show("longest sync", metrics.SyncMax)
}
