package ecs_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stretchr/testify/require"
)

// A thinWorld has a query that finds a twentieth of some thousand rows. In the driver, the found
// rows are at random positions.
type thinWorld struct {
	w     *ecs.World
	a     *ecs.Storage[position] // The driver of the query.
	b     *ecs.Storage[velocity]
	query *ecs.Query2[position, velocity]
	rng   *rand.Rand
}

func newThinWorld(n int, seed uint64) *thinWorld {
	t := &thinWorld{w: ecs.NewWorld(ecs.Options{}), rng: rand.New(rand.NewPCG(seed, uint64(n)))}
	t.a, t.b = ecs.MustRegister[position](t.w), ecs.MustRegister[velocity](t.w)
	all := t.w.CreateN(nil, 3*n)
	t.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, e := range all {
		if i < n {
			t.a.Set(e, position{X: float64(e.Index())})
		}
		if i >= n || t.rng.IntN(20) == 0 {
			t.b.Set(e, velocity{X: float64(e.Index())})
		}
	}
	t.newQuery()
	return t
}

// newQuery replaces the query by a new query, whose caches are empty.
func (t *thinWorld) newQuery() { t.query = ecs.NewQuery2(ecs.Write(t.a), ecs.Read(t.b)) }

// want returns the entities that the query must find.
func (t *thinWorld) want() (found []ecs.Entity) {
	for _, e := range t.a.Entities() {
		if t.b.Has(e) {
			found = append(found, e)
		}
	}
	return found
}

// found returns the entities that the query finds by a random method. The result own reports
// whether each row has the values of its own entity. In some of the loops, the body sets
// checkpoints and writes rows.
func (t *thinWorld) found() (found []ecs.Entity, own bool) {
	own = true
	visit := func(e ecs.Entity, p *position, v *velocity) {
		found = append(found, e)
		own = own && p.X == float64(e.Index()) && v.X == p.X
	}
	switch t.rng.IntN(4) {
	case 0:
		for e, row := range t.query.All() {
			visit(e, row.A, row.B)
		}
	case 1:
		for e, row := range t.query.All() {
			if visit(e, row.A, row.B); len(found)%7 == 0 {
				t.w.Checkpoint()
			}
			row.A.Y++
		}
	case 2:
		for run := range t.query.Runs() {
			for i, e := range run.Entities {
				visit(e, &run.A[i], &run.B[i])
			}
		}
	default:
		for run := range t.query.Runs() {
			for i, e := range run.Entities {
				visit(e, &run.A[i], &run.B[i])
			}
			if len(found)%5 == 0 {
				t.w.Checkpoint()
			}
			for i := range run.A {
				run.A[i].Y++
			}
		}
	}
	return found, own
}

// change makes a random change of the result of the query or of the order of rows.
func (t *thinWorld) change() {
	all := t.a.Entities()
	switch e := all[t.rng.IntN(len(all))]; t.rng.IntN(6) {
	case 0:
		t.a.Remove(all[len(all)-1]) // The last row is removed, so no other row moves.
	case 1:
		t.w.Destroy(e)
	case 2:
		t.b.Remove(e)
	case 3:
		t.b.Set(e, velocity{X: float64(e.Index())})
	case 4:
		if want := t.want(); len(want) > 0 {
			t.b.Remove(want[t.rng.IntN(len(want))])
		}
	default:
		e = t.w.Create()
		t.a.Set(e, position{X: float64(e.Index())})
		t.b.Set(e, velocity{X: float64(e.Index())})
	}
}

func TestQuery_FindsFewOfManyRows(t *testing.T) {
	t.Parallel()
	for n, seeds := range map[int]uint64{100: 8, 1_300: 8, 9_000: 8, 30_000: 1} {
		for seed := range seeds {
			world := newThinWorld(n, seed)
			for range 30 {
				want := world.want()
				require.Equal(t, len(want), world.query.Count(), "%d rows, seed %d", n, seed)
				found, own := world.found()
				require.Equal(t, want, found, "%d rows, seed %d", n, seed)
				require.True(t, own, "%d rows, seed %d", n, seed)
				if first, _, ok := world.query.First(); ok {
					require.Equal(t, want[0], first)
				}
				changes := world.rng.IntN(3)
				if world.rng.IntN(6) == 0 {
					// Make many changes. The storages may then lack a record of some of them, or
					// the query may find many rows.
					changes = n / 4
				}
				for range changes {
					world.change()
				}
				if world.rng.IntN(3) == 0 {
					world.newQuery()
				}
			}
			require.True(t, slices.Equal(world.want(), world.query.AppendEntities(nil)))
		}
	}
}

// In the body of ParallelRuns, each goroutine may create and use a query.
func TestParallelRuns_QueryPerGoroutine(t *testing.T) {
	t.Parallel()
	world := newThinWorld(9_000, 1)
	want := world.query.Count()
	parts := ecs.NewQuery1(ecs.Read(world.a))
	var own []*ecs.Query2[position, velocity]
	for range 100 {
		own = append(own, ecs.NewQuery2(ecs.Read(world.a), ecs.Read(world.b)))
	}
	var next, wrong atomic.Int64
	parts.ParallelRuns(4, func(ecs.Run1[position]) {
		if own[next.Add(1)-1].Count() != want {
			wrong.Add(1)
		}
	})
	require.Greater(t, next.Load(), int64(1))
	require.Zero(t, wrong.Load())
}
