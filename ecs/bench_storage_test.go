package ecs_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
)

// BenchmarkKind measures the times and sizes in docs/STORAGES.md, for each kind of storage. The
// world has a million entities. The component belongs to all entities, to 1 of 100, or to 1 of
// 100,000. These entities are the members. The world saves no old values. Run the benchmark once:
//
//	go test -run '^$' -bench '^BenchmarkKind' -benchtime 1x ./ecs
//
// A time is the lower quartile of several rounds. On Linux, it is the processor time of the thread.
//
//	ns/add      time of a call of Set that adds the component to a member
//	ns/get      time of a call of Get, for up to 10 000 members in random order
//	ns/iterate  time of a loop over Query1.All, per member
//	ns/remove   time of a call of Remove, for all members in random order
//	ns/clear    time of a call of Clear, which removes all members
//	B/entity    memory of the storage per member. It includes all memory that
//	            the Indexed storages of a world share.
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

// The benchmark measures a sort by value. The hand-written sort uses the key directly: it sorts
// pairs of key and row with slices.SortFunc, and breaks ties by row. It then gathers entities and
// values into separate arrays, and updates the sparse array.
func BenchmarkBudgetSort(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		w := ecs.NewWorld(ecs.Options{})
		s := ecs.MustRegister[position](w)
		entities := w.CreateN(nil, n)
		s.SetAll(entities, position{})
		keys := permutation(n, 1)
		hand := handSorted{
			dense: slices.Clone(s.Entities()), data: make([]position, n), sparse: make([]uint32, n), keys: make([]keyed, n),
			entities: make([]ecs.Entity, n), values: make([]position, n),
		}
		for row, e := range hand.dense {
			hand.sparse[e.Index()] = uint32(row)
		}
		round := 0
		fill := func(values []position) {
			round++
			for i := range values {
				values[i].X = float64(keys[(i+round*7919)%n])
			}
		}
		// Each repetition sorts new values. Otherwise the processor would learn to predict the
		// branches.
		ours := side{
			prepare: func() { fill(s.MutValues()) },
			work:    func() { s.SortFunc(func(x, y position) int { return cmp.Compare(x.X, y.X) }) },
		}
		limit := side{prepare: func() { fill(hand.data) }, work: hand.sort}
		b.Run(scatterName(n), func(b *testing.B) { compare(b, n, 1.2, ours, limit) })
	}
}

type keyed struct {
	key float64
	row uint32
}

type handSorted struct {
	dense, entities []ecs.Entity
	data, values    []position
	sparse          []uint32
	keys            []keyed
}

//go:noinline
func (h *handSorted) sort() {
	for row, v := range h.data {
		h.keys[row] = keyed{v.X, uint32(row)}
	}
	slices.SortFunc(h.keys, func(x, y keyed) int {
		if c := cmp.Compare(x.key, y.key); c != 0 {
			return c
		}
		return cmp.Compare(x.row, y.row)
	})
	for row, k := range h.keys {
		e := h.dense[k.row]
		h.entities[row], h.values[row] = e, h.data[k.row]
		h.sparse[e.Index()] = uint32(row)
	}
	h.dense, h.entities = h.entities, h.dense
	h.data, h.values = h.values, h.data
}

// The benchmarks of an index move entities between the cells of a grid and look them up by cell.
// Each cell has about sixteen entities.

type cell struct{ X, Y int32 }

func cellOf(p position) cell { return cell{int32(p.X) >> 4, int32(p.Y) >> 4} }

type grid struct {
	w        *ecs.World
	s, plain *ecs.Storage[position] // s has the index x, and plain has no index.
	x        *ecs.Index[position, cell]
	entities []ecs.Entity
	cells    []cell
	order    []int // A random order of the entities.
	found    int

	lists byHandIndex
}

// A byHandIndex is the hand-written alternative to an index. It maps each cell to a list of the
// entities in the cell.
type byHandIndex struct {
	lists map[cell][]ecs.Entity
	at    []cell // The cell of each entity, by entity index.
	// For each entity, by entity index, its position in the list of its cell.
	place []uint32
}

func (x *byHandIndex) add(e ecs.Entity, c cell) {
	l := x.lists[c]
	x.at[e.Index()], x.place[e.Index()] = c, uint32(len(l))
	x.lists[c] = append(l, e)
}

func (x *byHandIndex) move(e ecs.Entity, to cell) {
	from := x.at[e.Index()]
	if from == to {
		return
	}
	l, k := x.lists[from], x.place[e.Index()]
	last := l[len(l)-1]
	l[k], x.place[last.Index()] = last, k
	x.lists[from] = l[:len(l)-1]
	x.add(e, to)
}

func newGrid(n int) *grid {
	g := &grid{w: ecs.NewWorld(ecs.Options{}), order: permutation(n, 1)}
	g.s = ecs.MustRegister(g.w, ecs.Component[position]{Name: "indexed"})
	g.plain = ecs.MustRegister(g.w, ecs.Component[position]{Name: "plain"})
	g.lists = byHandIndex{make(map[cell][]ecs.Entity), make([]cell, n), make([]uint32, n)}
	g.entities = g.w.CreateN(nil, n)
	rng := rand.New(rand.NewPCG(1, 1))
	side := 1
	for side*side < n*256 {
		side *= 2
	}
	seen := make(map[cell]bool)
	for _, e := range g.entities {
		p := position{X: float64(rng.IntN(side / 4)), Y: float64(rng.IntN(side / 4))}
		g.s.Set(e, p)
		g.plain.Set(e, p)
		c := cellOf(p)
		g.lists.add(e, c)
		if !seen[c] {
			g.cells, seen[c] = append(g.cells, c), true
		}
	}
	g.x = ecs.NewIndex(g.s, cellOf)
	g.x.Len(cell{})
	return g
}

//go:noinline
func (g *grid) lookUp() {
	for _, c := range g.cells {
		g.found += g.x.Len(c)
	}
}

//go:noinline
func (g *grid) lookUpByHand() {
	for _, c := range g.cells {
		g.found += len(g.lists.lists[c])
	}
}

//go:noinline
func (g *grid) walk() {
	for _, c := range g.cells {
		for e := range g.x.Of(c) {
			g.found += int(e.Index())
		}
	}
}

// move flips a bit of X in every position. With a low bit, each position moves within its cell.
// With a higher bit, it moves to another cell.
//
//go:noinline
func (g *grid) move(s *ecs.Storage[position], bit int32) {
	for _, k := range g.order {
		e := g.entities[k]
		p, _ := s.Get(e)
		p.X = float64(int32(p.X) ^ bit)
		s.Set(e, p)
	}
}

// moveAndLook moves every entity of the indexed storage, and then looks up a cell.
func (g *grid) moveAndLook(bit int32) {
	g.move(g.s, bit)
	g.found += g.x.Len(cell{})
}

//go:noinline
func (g *grid) leapByHand() { g.moveByHand(16) }

//go:noinline
func (g *grid) moveByHand(bit int32) {
	for _, k := range g.order {
		e := g.entities[k]
		p, _ := g.plain.Get(e)
		p.X = float64(int32(p.X) ^ bit)
		g.plain.Set(e, p)
		g.lists.move(e, cellOf(p))
	}
}

func BenchmarkBudgetIndex(b *testing.B) {
	for _, n := range []int{16_000, 256_000} {
		g := newGrid(n)
		b.Run("look-up/"+sizeName(n), func(b *testing.B) {
			compare(b, len(g.cells), 2, side{work: g.lookUp}, side{work: g.lookUpByHand})
		})
		b.Run("walk/"+sizeName(n), func(b *testing.B) {
			compareMore(b, n, 3, side{work: g.walk}, side{work: g.lookUp})
		})
		b.Run("stay/"+sizeName(n), func(b *testing.B) {
			compareMore(b, n, 15, side{work: func() { g.moveAndLook(1) }}, side{work: func() { g.move(g.plain, 1) }})
		})
		b.Run("stay-by-hand/"+sizeName(n), func(b *testing.B) {
			compare(b, n, 2, side{work: func() { g.moveAndLook(1) }}, side{work: func() { g.moveByHand(1) }})
		})
		b.Run("leave/"+sizeName(n), func(b *testing.B) {
			compare(b, n, 2, side{work: func() { g.moveAndLook(16) }}, side{work: g.leapByHand})
		})
	}
}

// A named is a component that an index looks up by name. Each name has one entity.
type named struct{ Name string }

type people struct {
	x      *ecs.Index[named, string]
	byName map[string][]ecs.Entity
	names  []string // The names in random order.
	found  int
}

func newPeople(n int) *people {
	p := &people{byName: make(map[string][]ecs.Entity)}
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[named](w)
	for _, k := range permutation(n, 1) {
		p.names = append(p.names, fmt.Sprintf("person %d", k))
	}
	for _, k := range permutation(n, 2) {
		e := w.Create()
		s.Set(e, named{p.names[k]})
		p.byName[p.names[k]] = []ecs.Entity{e}
	}
	p.x = ecs.NewIndex(s, func(c named) string { return c.Name })
	p.x.Len("")
	return p
}

//go:noinline
func (p *people) lookUp() {
	for _, name := range p.names {
		p.found += p.x.Len(name)
	}
}

//go:noinline
func (p *people) lookUpByHand() {
	for _, name := range p.names {
		p.found += len(p.byName[name])
	}
}

func BenchmarkBudgetIndexOfNames(b *testing.B) {
	for _, n := range []int{1_000, 16_000, 256_000} {
		p := newPeople(n)
		b.Run(sizeName(n), func(b *testing.B) {
			compare(b, n, 2, side{work: p.lookUp}, side{work: p.lookUpByHand})
		})
	}
}

type below struct{ Parent ecs.Entity }

// A nest is a world with a parent and its n children. Each child has a component that refers to the
// parent. In one of the compared worlds, a relation uses this component.
type nest struct {
	w      *ecs.World
	s      *ecs.Storage[below]
	all    []ecs.Entity
	parent ecs.Entity
	cp     ecs.Checkpoint
}

func newNest(n int, related bool) *nest {
	k := &nest{w: ecs.NewWorld(ecs.Options{})}
	k.s = ecs.MustRegister[below](k.w)
	if related {
		r := ecs.NewRelation(k.s, func(b below) ecs.Entity { return b.Parent }, ecs.RelationOptions{Tree: true})
		r.Len(0)
	}
	k.parent = k.w.Create()
	k.all = k.w.CreateN(nil, n)
	k.s.SetAll(k.all, below{k.parent})
	k.cp = k.w.Checkpoint()
	return k
}

// A target is destroyed together with its sources. The benchmark compares this with a loop that
// destroys the same number of entities in a world without the relation.
func BenchmarkBudgetCascade(b *testing.B) {
	for _, n := range []int{16_000, 256_000} {
		related, plain := newNest(n, true), newNest(n, false)
		b.Run(sizeName(n), func(b *testing.B) {
			compare(b, n, 3,
				side{func() { related.w.Restore(related.cp) }, func() { related.w.Destroy(related.parent) }},
				side{func() { plain.w.Restore(plain.cp) }, func() {
					for i := len(plain.all) - 1; i >= 0; i-- {
						plain.w.Destroy(plain.all[i])
					}
				}})
		})
	}
}

// The benchmarks below compare a group with the same work without a group. They have no budgets.

const grouped = 1_000_000

// Two components were added in two different random orders and are then grouped. The benchmark
// compares the group with a world whose components were added in the same order.
func BenchmarkGroupIterate(b *testing.B) {
	for _, form := range []string{"runs", "all"} {
		b.Run(form, func(b *testing.B) {
			group, limit := shuffled(grouped), moving(grouped)
			ecs.Must(group.w.NewGroup(group.positions, group.velocities))
			step := func(p *benchWorld) side {
				q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
				if form == "runs" {
					return side{work: func() { stepRuns(q) }}
				}
				return side{work: func() { stepAll(q) }}
			}
			compare(b, grouped, 1.05, step(group), step(limit))
		})
	}
}

// Two components were added in two different random orders and are then grouped. The benchmark
// compares the group with a world whose rows stay in random orders.
func BenchmarkGroupIterateInsteadOfShuffled(b *testing.B) {
	group, limit := shuffled(grouped), shuffled(grouped)
	ecs.Must(group.w.NewGroup(group.positions, group.velocities))
	a := ecs.NewQuery2(ecs.Write(group.positions), ecs.Read(group.velocities))
	c := ecs.NewQuery2(ecs.Write(limit.positions), ecs.Read(limit.velocities))
	compare(b, grouped, 1, side{work: func() { stepAll(a) }}, side{work: func() { stepAll(c) }})
}

// One entity in ten is a member of the group. The query does not visit the rows after the group.
func BenchmarkGroupFew(b *testing.B) {
	few := func(group bool) side {
		p := newBenchWorld(grouped)
		if group {
			ecs.Must(p.w.NewGroup(p.positions, p.velocities))
		}
		for i, k := range permutation(grouped, 1) {
			p.setPosition(k)
			if i%10 > 0 {
				p.setVelocity(p.other(k))
			}
			if i%10 == 0 {
				p.setVelocity(k)
			}
		}
		q := ecs.NewQuery2(ecs.Write(p.positions), ecs.Read(p.velocities))
		return side{work: func() { stepAll(q) }}
	}
	compare(b, grouped, 1, few(true), few(false))
}

// other creates an entity without components. It returns the entity's position in p.entities.
func (p *benchWorld) other(int) int {
	p.entities = append(p.entities, p.w.Create())
	p.handles = append(p.handles, p.limit.create())
	return len(p.entities) - 1
}

// A component is added to every entity and removed again, one entity at a time. Each call moves a
// row in both storages of the group.
func BenchmarkGroupAddRemove(b *testing.B) {
	const n = 100_000
	group, limit := moving(n), moving(n)
	ecs.Must(group.w.NewGroup(group.positions, group.velocities))
	group.removeVelocities()
	limit.removeVelocities()
	compare(b, n, 5, side{work: group.addRemove}, side{work: limit.addRemove})
}

func BenchmarkGroupSort(b *testing.B) {
	p := moving(grouped)
	by := func(x, y position) int { return cmp.Compare(x.X, y.X) }
	shuffle := func() {
		for i, k := range permutation(grouped, 5) {
			p.positions.Mut(p.entities[i]).X = float64(k)
		}
	}
	b.Run("shuffled", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			shuffle()
			b.StartTimer()
			p.positions.SortFunc(by)
		}
	})
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			p.positions.SortFunc(by)
		}
	})
	b.Run("like", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			shuffle()
			p.positions.SortFunc(by)
			b.StartTimer()
			p.positions.SortLike(p.velocities)
		}
	})
	b.Run("like/sorted", func(b *testing.B) {
		for b.Loop() {
			p.positions.SortLike(p.velocities)
		}
	})
}

// The benchmark measures Align per entity in three cases: all rows are scattered, a tick has
// replaced 1 % of the rows, and nothing has changed.
func BenchmarkGroupAlign(b *testing.B) {
	const n = 100_000
	align := func(b *testing.B, prepare func(s *scatter)) {
		s := newScatter(n, 1)
		for b.Loop() {
			b.StopTimer()
			prepare(s)
			b.StartTimer()
			s.w.Align(s.a, s.b, s.c)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entity")
	}
	b.Run("scattered", func(b *testing.B) {
		align(b, func(s *scatter) {
			s.b.SortEntities(func(x, y ecs.Entity) int { return cmp.Compare(x*0x9e3779b97f4a7c15, y*0x9e3779b97f4a7c15) })
			s.c.SortEntities(func(x, y ecs.Entity) int { return cmp.Compare(x*0xd1342543de82ef95, y*0xd1342543de82ef95) })
		})
	})
	b.Run("tick", func(b *testing.B) { align(b, func(s *scatter) { s.churn(1, 0.01) }) })
	b.Run("aligned", func(b *testing.B) { align(b, func(*scatter) {}) })
}
