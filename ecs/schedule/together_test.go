package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/internal/deep"
)

// A column is one of several components of the same form.
type (
	c0 struct{ V, N int64 }
	c1 struct{ V, N int64 }
	c2 struct{ V, N int64 }
	c3 struct{ V, N int64 }
	// A wide component is large, so its undo log has pieces.
	wide struct{ V [100]int64 }
	note struct{ By, Sum int64 }
)

// A randomWorld has storages of several kinds and a schedule of random systems over them. Worlds of
// the same seed have the same systems.
type randomWorld struct {
	*schedule.Schedule[int64]
	w       *ecs.World
	s0      *ecs.Storage[c0]
	s1      *ecs.Storage[c1]
	s2      *ecs.Storage[c2]
	s3      *ecs.Storage[c3]
	wide    *ecs.Storage[wide]
	sums    [3]*ecs.Resource[int64]
	notes   *ecs.Events[note]
	readers [2]*ecs.EventReader[note]
	byN     *ecs.Index[c0, int64]
}

func key(v c0) int64 { return v.N % 7 }

func newRandomWorld(seed uint64, systems int) *randomWorld {
	w := ecs.NewWorld(ecs.Options{History: 8})
	x := &randomWorld{
		Schedule: schedule.New[int64](w).Seed(seed), w: w,
		s0: ecs.MustRegister[c0](w), s1: ecs.MustRegister[c1](w),
		s2: ecs.MustRegister(w, ecs.Component[c2]{Kind: ecs.Ordered}), s3: ecs.MustRegister(w, ecs.Component[c3]{Kind: ecs.Hashed}),
		wide: ecs.MustRegister[wide](w), notes: ecs.Must(ecs.RegisterEvent[note](w)),
	}
	for i := range x.sums {
		x.sums[i] = ecs.Must(ecs.RegisterResource(w, int64(i), ecs.Component[int64]{Name: fmt.Sprint("sum", i)}))
	}
	for i := range x.readers {
		x.readers[i] = ecs.Must(x.notes.Reader(fmt.Sprint("reader", i)))
	}
	x.byN = ecs.NewIndex(x.s0, key)
	x.Startup("begin", schedule.Uses(x.s0, x.s1, x.s2, x.s3, x.wide, schedule.Creates), func(t *schedule.Tick[int64]) {
		for i, e := range w.CreateN(nil, 300) {
			x.change(t.Rand(), e, int64(i))
		}
	})
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range systems {
		x.addSystem(r, fmt.Sprint("system", i))
	}
	return x
}

// change adds or removes some components of e.
func (x *randomWorld) change(r *ecs.Rand, e ecs.Entity, v int64) {
	bits := r.Uint64()
	if bits&1 != 0 {
		x.s0.Set(e, c0{v, int64(bits >> 8 & 15)})
	} else {
		x.s0.Remove(e)
	}
	if bits&2 != 0 {
		x.s1.Set(e, c1{v, v})
	}
	if bits&4 != 0 {
		x.s2.Set(e, c2{v, 2 * v})
	} else {
		x.s2.Remove(e)
	}
	if bits&24 != 0 {
		x.s3.Set(e, c3{v, 3})
	}
	if bits&64 != 0 {
		x.wide.Set(e, wide{[100]int64{v}})
	}
}

// addSystem adds one of several systems, whose access is exactly what it uses.
func (x *randomWorld) addSystem(r *rand.Rand, name string) {
	k := int64(r.IntN(100))
	some := func(v int64) bool { return v%3 != k%3 }
	var y *schedule.System[int64]
	add := func(access schedule.Access, run func(t *schedule.Tick[int64])) { y = x.Add(name, access, run) }
	switch r.IntN(14) {
	case 0: // Writes one component, reads another.
		q := ecs.NewQuery2(ecs.Write(x.s0), ecs.Read(x.s1))
		add(q, func(t *schedule.Tick[int64]) {
			for _, p := range q.All() {
				p.A.V += p.B.V*k + t.Input
				p.A.N++
			}
		})
	case 1:
		q := ecs.NewQuery1(ecs.Write(x.s1)).Without(x.s2)
		add(q, func(*schedule.Tick[int64]) {
			for r := range q.Runs() {
				for i := range r.A {
					r.A[i].V = r.A[i].V*31 + k
				}
			}
		})
	case 2:
		q := ecs.NewQuery2(ecs.Read(x.s1), ecs.Write(x.s2))
		add(schedule.Uses(q, x.sums[0]), func(*schedule.Tick[int64]) {
			for _, p := range q.All() {
				p.B.N ^= p.A.V
				*x.sums[0].Mut() += p.B.N
			}
		})
	case 3: // Uses a storage without a query.
		add(schedule.Uses(ecs.Write(x.s3), ecs.Read(x.s0)), func(*schedule.Tick[int64]) {
			for _, e := range x.s3.Entities() {
				if v, ok := x.s0.Get(e); ok && some(v.V) {
					x.s3.Mut(e).V += v.N
				}
			}
		})
	case 4:
		q := ecs.NewQuery2(ecs.Write(x.wide), ecs.Optional(ecs.Read(x.s3)))
		add(q, func(*schedule.Tick[int64]) {
			for _, p := range q.AllOptional() {
				if p.B != nil {
					p.A.V[k] += p.B.V
				}
			}
		})
	case 5: // Sends events.
		add(schedule.Uses(x.notes, schedule.Reads(x.s2, x.sums[1])), func(*schedule.Tick[int64]) {
			for _, v := range x.s2.All() {
				if v.V%17 == 0 {
					x.notes.Send(note{k, v.N + x.sums[1].Get()})
				}
			}
		})
	case 6: // Reads events.
		i := r.IntN(2)
		add(schedule.Uses(x.readers[i], x.sums[1]), func(*schedule.Tick[int64]) {
			for v := range x.readers[i].All() {
				*x.sums[1].Mut() += v.By*v.Sum + k
			}
		})
	case 7: // Looks an index up.
		add(schedule.Uses(x.byN, x.sums[2]), func(*schedule.Tick[int64]) {
			for e := range x.byN.Of(k % 7) {
				*x.sums[2].Mut() = *x.sums[2].Read()*3 + int64(e.Index())
			}
		})
	case 8: // Writes a storage and looks up its index.
		add(schedule.Uses(x.byN, ecs.Write(x.s0)), func(*schedule.Tick[int64]) {
			for e := range x.byN.Of(k % 7) {
				x.s0.Mut(e).N += k
			}
		})
	case 9: // Adds and removes components, at random.
		add(x.s1, func(t *schedule.Tick[int64]) {
			for i, e := range x.s1.Entities() {
				if i%8 == int(t.Number%8) {
					x.s1.Remove(e)
					return
				}
			}
		})
	case 10: // Reads changes since the last commit.
		changed := x.s0.Changed()
		q := ecs.NewQuery1(ecs.Read(x.s0)).With(changed)
		add(schedule.Uses(q, ecs.Write(x.s2)), func(t *schedule.Tick[int64]) {
			if changed.Since(t.Number-min(t.Number, 3)) != nil {
				return
			}
			for e, v := range q.All() {
				if m := x.s2.Mut(e); m != nil {
					m.V += v.N
				}
			}
		})
	case 12:
		changed := x.s1.Changed()
		q := ecs.NewQuery1(ecs.Read(x.s1)).With(changed)
		add(schedule.Uses(q, ecs.Write(x.s3)), func(t *schedule.Tick[int64]) {
			if changed.Since(t.Number-min(t.Number, 3)) != nil {
				return
			}
			for e, v := range q.All() {
				if m := x.s3.Mut(e); m != nil {
					m.V += v.N
				}
			}
		})
	case 13: // Creates a query in each tick. The access names only the storages.
		write := r.IntN(2)
		access := schedule.Uses(ecs.Read(x.s0), ecs.Read(x.wide), x.sums[write])
		add(access, func(*schedule.Tick[int64]) {
			for _, v := range ecs.NewQuery2(ecs.Read(x.s0), ecs.Read(x.wide)).All() {
				*x.sums[write].Mut() += v.A.V + v.B.V[0]
			}
		})
	case 11: // Creates and destroys entities.
		add(schedule.Uses(x.s0, x.s1, x.s2, x.s3, x.wide, schedule.Creates), func(t *schedule.Tick[int64]) {
			for range t.Rand().IntN(10) {
				x.change(t.Rand(), anyEntity(x.w, t.Rand()), k)
			}
		})
	}
	if r.IntN(4) == 0 {
		y.Every(1 + r.Uint64N(3))
	}
}

// anyEntity destroys or creates an entity, and returns an entity that may be dead.
func anyEntity(w *ecs.World, r *ecs.Rand) ecs.Entity {
	if n := w.Len(); n > 0 && r.IntN(2) == 0 {
		e := w.Entities()[r.IntN(n)]
		if r.IntN(3) == 0 {
			w.Destroy(e)
		}
		return e
	}
	return w.Create()
}

// A step has the same result for every number of workers, also after rewinds. With one worker, the
// systems run in the order of the list.
func TestWorkers_SameResult(t *testing.T) {
	seeds, ticks := deep.Or(60, 12), deep.Or(30, 10_000)
	if testing.Short() {
		seeds = deep.Or(15, 2)
	}
	for seed := range uint64(seeds) {
		systems := 4 + int(seed%20)
		one := newRandomWorld(seed, systems)
		r := rand.New(rand.NewPCG(seed, 2))
		var others []*randomWorld
		for _, workers := range []int{2, 8} {
			x := newRandomWorld(seed, systems)
			x.Workers(workers)
			others = append(others, x)
		}
		for range ticks {
			in := r.Int64N(100)
			one.Step(in)
			one.w.Commit()
			for _, x := range others {
				x.Step(in)
				x.w.Commit()
				require.Equal(t, one.w.Digests(nil), x.w.Digests(nil), "seed %d, tick %d\n%s", seed, one.w.Tick(), one.Explain())
			}
			if back := r.Uint64N(4); back > 1 && one.w.Tick() >= one.w.History().Oldest()+back {
				for _, x := range append(others, one) {
					require.NoError(t, x.w.History().Rewind(int(back)))
				}
			}
		}
		for _, x := range append([]*randomWorld{one}, others...) {
			require.NoError(t, x.w.History().Seek(x.w.History().Oldest()))
			require.Equal(t, one.w.Digest(), x.w.Digest(), "seed %d after a rewind", seed)
		}
	}
}

// Random systems whose accesses are right pass the test in every order.
func TestShuffle_SameResult(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = deep.Or(10, 3)
	}
	for seed := range uint64(seeds) {
		x := newRandomWorld(seed, 4+int(seed%20))
		test, err := x.SyncTest(3)
		require.NoError(t, err)
		test.Shuffle(seed)
		for i := range int64(deep.Or(20, 1000)) { // Each step has an order of its own.
			require.NoError(t, test.Step(i), "seed %d\n%s", seed, x.Explain())
		}
	}
}

func TestWorkers_FirstPanicOfList(t *testing.T) {
	l := newArena(ecs.Options{History: 2})
	if debugBuild(l.w) {
		t.Skip("a debug build runs one system at a time")
	}
	s := schedule.New[int](l.w).Workers(4)
	ran := make([]bool, 8)
	for i := range 8 {
		s.Add(fmt.Sprint(i), schedule.Uses(), func(*schedule.Tick[int]) {
			if ran[i] = true; i == 3 || i == 6 {
				panic(fmt.Sprint("fault of ", i))
			}
		})
	}
	mustPanic(t, "fault of 3", func() { s.Step(0) })
	for i := range ran {
		require.True(t, ran[i])
	}
}
