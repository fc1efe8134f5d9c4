package inspect_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// BenchmarkBudgetSweep sums a field of a million entities in a save by a sweep. It compares the
// sweep with a hand-written loop over the pages of the column. The loop ignores which entities
// are alive and which entity a row belongs to.
func BenchmarkBudgetSweep(b *testing.B) {
	type place struct{ X, Y, Z float64 }
	const n, width, rounds = 1_000_000, 24, 15
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister[place](w)
	for i := range n {
		places.Set(w.Create(), place{X: float64(i)})
	}
	dir := b.TempDir()
	require.NoError(b, persist.Save(b.Context(), filepath.Join(dir, "w.save"), w))
	x := func(row []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(row)) }

	v := storetest.ViewOf(b, filepath.Join(dir, "w.save"))
	swept := func() (sum float64) {
		require.NoError(b, v.Read(b.Context(), 0, func(s *inspect.State) error {
			return s.Sweep(b.Context(), 0, s.Outline().Components, func() func(*inspect.Span) (any, error) {
				return func(span *inspect.Span) (any, error) {
					sum := 0.0
					for i := range span.Entities {
						row, has, err := span.Row(0, i)
						if err != nil {
							return nil, err
						}
						if has {
							sum += x(row)
						}
					}
					return sum, nil
				}
			}, func(found any) error {
				sum += found.(float64)
				return nil
			})
		}))
		return sum
	}

	files, err := disk.Open(dir)
	require.NoError(b, err)
	defer files.Close()
	file, err := pagefile.Open(files, "w.save")
	require.NoError(b, err)
	defer file.Close()
	data := format.Column(0, format.DataArray)
	byHand := func() (sum float64) {
		var mu sync.Mutex
		require.NoError(b, file.ReadSome(b.Context(), func(k pagefile.Key) bool { return k.Column == data }, func(_ pagefile.Key, value []byte) error {
			content, _, err := format.DecodePage(value)
			page := 0.0
			for i := 0; i < len(content); i += width {
				page += x(content[i:])
			}
			mu.Lock()
			defer mu.Unlock()
			sum += page
			return err
		}))
		return sum
	}

	require.Equal(b, byHand(), swept())
	ours, limit := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range rounds {
		start := time.Now()
		swept()
		middle := time.Now()
		byHand()
		ours, limit = min(ours, middle.Sub(start)), min(limit, time.Since(middle))
	}
	b.ReportMetric(float64(ours)/float64(limit), "x/limit")
	b.ReportMetric(12, "x/budget")
	b.ReportMetric(float64(ours.Nanoseconds()), "ns/op")
}
