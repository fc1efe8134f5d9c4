package persist_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

type (
	outline struct{ Points []outlinePoint }

	outlinePoint struct {
		X, Y float32
		N    int
	}
)

// newOutline returns n points, which depend on step: another step gives other points.
func newOutline(n, step int) outline {
	o := outline{make([]outlinePoint, n)}
	for i := range o.Points {
		o.Points[i] = outlinePoint{float32(i + step), float32(step), i + step}
	}
	return o
}

// heap returns the bytes allocated since the start, and the bytes of live objects.
func heap(collect bool) (allocated, live int64) {
	var m runtime.MemStats
	if collect {
		runtime.GC()
		runtime.GC() // Two collections empty a sync.Pool.
	}
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc), int64(m.HeapAlloc)
}

func TestCommit_MemoryOfLargeSlices(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes calls allocate more")
	}
	for name, c := range map[string]struct{ rows, points int }{
		"many rows": {20_000, 50},
		"few rows":  {20, 50_000},
		"one row":   {1, 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			w := ecs.NewWorld(ecs.Options{})
			outlines := ecs.MustRegister[outline](w)
			s, err := persist.Open(storetest.Background, filepath.Join(t.TempDir(), "store"), w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
			require.NoError(t, err)
			entities := w.CreateN(nil, c.rows)
			write := func(points, step int) (allocated, size int64) {
				for _, e := range entities {
					outlines.Set(e, newOutline(points, step))
				}
				for _, st := range w.Raw().Storages() {
					size += int64(len(st.AppendRows(nil, 0, st.Rows())))
				}
				before, _ := heap(false)
				require.NoError(t, s.Commit())
				after, _ := heap(false)
				require.NoError(t, s.Sync(storetest.Background))
				return after - before, size
			}
			write(1, 0)
			_, before := heap(true)
			// The second tick may allocate more. It compares its rows with those of the first tick,
			// and keeps copies.
			for step, times := range []int64{3, 6} {
				allocated, size := write(c.points, 1+step)
				require.Greater(t, size, int64(15<<20))
				require.LessOrEqual(t, allocated, times*size, "tick %d of %d bytes allocates %d", step+1, size, allocated)
			}
			for step := range 3 {
				write(1, 10+step)
			}
			_, after := heap(true)
			require.LessOrEqual(t, after-before, int64(4<<20), "bytes that are kept after small ticks")
			require.NoError(t, s.Close(storetest.Background))
		})
	}
}
