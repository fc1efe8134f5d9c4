package ecs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
)

// BenchmarkKind measures the figures in docs/STORAGES.md. Each kind of storage is in a world of a
// million entities. All entities have the component, or one in 100, or one in 100 000. No frame is
// open. Run the benchmark once:
//
//	go test -run '^$' -bench '^BenchmarkKind' -benchtime 1x ./ecs
//
// Times are the thread's processor time on Linux (see now). Each is the lower quartile of several
// rounds, in nanoseconds per entity:
//
//	ns/add      Set of a new component, by index; all were removed before
//	ns/get      Get of at most 10 000 members, in random order
//	ns/iterate  a loop over Query1.All that reads
//	ns/remove   Remove, in random order
//	ns/clear    Clear of all, in nanoseconds per storage
//	B/entity    MemoryUsage of the storage, per member; memory that Indexed
//	            storages share counts in full
func BenchmarkKind(b *testing.B) {
	for _, share := range []int{1, 100, 100_000} {
		for _, k := range []struct {
			name      string
			component ecs.Component[position]
		}{
			{name: "sparse"},
			{"masked", ecs.Component[position]{Masked: true}},
			{"indexed", ecs.Component[position]{Kind: ecs.Indexed}},
			{"hashed", ecs.Component[position]{Kind: ecs.Hashed}},
			{"ordered", ecs.Component[position]{Kind: ecs.Ordered}},
		} {
			benchmarkKind(b, k.name, share, position{1, 2}, k.component)
		}
		benchmarkKind(b, "tag", share, struct{}{}, ecs.Component[struct{}]{Name: "tag"})
	}
}

const kindEntities = 1_000_000

func benchmarkKind[T any](b *testing.B, name string, share int, v T, c ecs.Component[T]) {
	b.Run(fmt.Sprintf("%s/1in%d", name, share), func(b *testing.B) {
		k := newKindBench(share, v, c)
		quiet(b, k.measure)
		n := float64(len(k.members))
		b.ReportMetric(k.add.per(n), "ns/add")
		b.ReportMetric(k.get.per(float64(len(k.sample))), "ns/get")
		b.ReportMetric(k.iterate.per(n), "ns/iterate")
		b.ReportMetric(k.remove.per(n), "ns/remove")
		b.ReportMetric(k.clear.per(1), "ns/clear")
		b.ReportMetric(float64(k.bytes)/n, "B/entity")
		b.ReportMetric(0, "ns/op") // Hide ns/op, which has no meaning in this benchmark.
	})
}

type kindBench[T any] struct {
	w        *ecs.World
	s        *ecs.Storage[T]
	query    *ecs.Query1[T]
	v        T
	members  []ecs.Entity
	shuffled []ecs.Entity // The members in random order.
	sample   []ecs.Entity // Some members, in random order.
	found    int
	bytes    int64

	add, get, iterate, remove, clear times
}

func newKindBench[T any](share int, v T, c ecs.Component[T]) *kindBench[T] {
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister(w, c)
	k := &kindBench[T]{w: w, s: s, v: v, query: ecs.NewQuery1(ecs.Read(s))}
	for i, e := range w.CreateN(nil, kindEntities) {
		if i%share == share-1 {
			k.members = append(k.members, e)
		}
	}
	for _, i := range permutation(len(k.members), 5) {
		k.shuffled = append(k.shuffled, k.members[i])
	}
	k.sample = k.shuffled[:min(10_000, len(k.shuffled))]
	k.fill()
	m := w.MemoryUsage()
	k.bytes = m.Storages[0].Total() + m.Shared
	return k
}

func (k *kindBench[T]) measure() {
	rounds := max(5, min(1000, 200_000/len(k.members)))
	for range rounds {
		k.remove.note(k.strip)
		k.add.note(k.fill)
		k.get.note(k.ask)
		k.loop() // Fill the query's cache of runs.
		k.iterate.note(k.loop)
		k.clear.note(k.s.Clear)
		k.fill()
	}
}

func (k *kindBench[T]) fill() {
	for _, e := range k.members {
		k.s.Set(e, k.v)
	}
}

func (k *kindBench[T]) loop() {
	for _, v := range k.query.All() {
		if v != nil {
			k.found++
		}
	}
}

func (k *kindBench[T]) ask() {
	for _, e := range k.sample {
		if _, ok := k.s.Get(e); ok {
			k.found++
		}
	}
}

func (k *kindBench[T]) strip() {
	for _, e := range k.shuffled {
		k.s.Remove(e)
	}
}

// times are the durations of one kind of work.
type times []time.Duration

func (t *times) note(work func()) {
	start := now()
	work()
	between := now()
	*t = append(*t, between-start-(now()-between)) // Subtract the time of reading the clock.
}

// per returns the lower quartile of the times, divided by n.
func (t times) per(n float64) float64 {
	sorted := slices.Clone(t)
	slices.Sort(sorted)
	return max(0, float64(sorted[len(sorted)/4])/n)
}
