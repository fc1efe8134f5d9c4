package part_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/part"
)

// BenchmarkBudgetPart copies a thousand entities, which refer to each other, from a world of a
// million into a part. Then it merges the part into another world. The time is compared with the
// same work in worlds of only these entities. Run the benchmark once:
//
//	go test -run '^$' -bench '^BenchmarkBudget' -benchtime 1x ./persist/part
func BenchmarkBudgetPart(b *testing.B) {
	const size, crowd = 1000, 1_000_000
	build := func(others int) (g *game, list []ecs.Entity) {
		g = newGame()
		g.World.CreateN(nil, others/2)
		list = g.World.CreateN(nil, size)
		g.World.CreateN(nil, others-others/2)
		all := g.World.Entities()
		for i, e := range all {
			g.Mounts.Set(e, Mount{all[(i+1)%len(all)]})
		}
		return g, list
	}
	large, some := build(crowd)
	small, all := build(0)
	take := func(g *game, list []ecs.Entity) *part.Part {
		p, err := part.Of(g.World, list, part.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	merge := func(p *part.Part, g *game) func() time.Duration {
		return func() time.Duration {
			var m *part.Merged
			t := timed(func() {
				var err error
				if m, err = p.Merge(g.World, part.MergeOptions{Outside: part.Outside.Keep}); err != nil {
					b.Fatal(err)
				}
			})
			g.World.DestroyAll(m.Entities)
			return t
		}
	}
	for _, c := range []struct {
		name        string
		ours, limit func() time.Duration
	}{
		{"of", func() time.Duration { return timed(func() { take(large, some) }) }, func() time.Duration { return timed(func() { take(small, all) }) }},
		{"merge", merge(take(large, some), large), merge(take(small, all), small)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, limit []time.Duration
			for range 30 {
				ours, limit = append(ours, c.ours()), append(limit, c.limit())
			}
			b.ReportMetric(float64(slices.Min(ours))/float64(slices.Min(limit)), "x/limit")
			b.ReportMetric(2, "x/budget")
			b.ReportMetric(float64(slices.Min(ours).Nanoseconds()), "ns/op")
		})
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
