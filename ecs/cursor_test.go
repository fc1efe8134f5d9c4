package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stretchr/testify/assert"
)

// interrupted returns a world with 200 positions. Entity 10 has no velocity. So the query finds two
// runs in the first block of 64 rows, and the second run continues into later blocks.
func interrupted() (*ecs.World, *ecs.Storage[position], *ecs.Query2[position, velocity]) {
	w := ecs.NewWorld(ecs.Options{})
	positions, velocities := ecs.MustRegister[position](w), ecs.MustRegister[velocity](w)
	for i := range 200 {
		e := w.Create()
		positions.Set(e, position{X: float64(i)})
		if i != 10 {
			velocities.Set(e, velocity{X: 1})
		}
	}
	return w, positions, ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
}

func TestLoop_ContinuesAfterUnrelatedChange(t *testing.T) {
	for _, changed := range []float64{0, 9, 11, 63, 64, 199} {
		w, _, q := interrupted()
		tags := ecs.MustRegister(w, ecs.Component[struct{}]{Name: "tag"})
		var visited []float64
		for e, row := range q.All() {
			visited = append(visited, row.A.X)
			if row.A.X == changed {
				tags.Set(e, struct{}{})
			}
		}
		var want []float64
		for i := range 200 {
			if i != 10 {
				want = append(want, float64(i))
			}
		}
		assert.Equal(t, want, visited, "changed at %v", changed)
	}
}

func TestLoop_CheckpointBetweenRuns(t *testing.T) {
	w, positions, q := interrupted()
	w.Checkpoint()
	var cp ecs.Checkpoint
	first := true
	for run := range q.Runs() {
		if first {
			first = false
			cp = w.Checkpoint()
			continue
		}
		for i := range run.A {
			run.A[i].X = -1
		}
	}
	w.Restore(cp)
	for i, v := range positions.Values() {
		assert.Equal(t, float64(i), v.X)
	}
}

// If a loop over a query found a single run, the query remembers the run. The next loop then need
// not search. But it must search if the result may have changed.
func TestQuery_SecondLoopAfterChange(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{History: 1})
	a, b := ecs.MustRegister[position](w), ecs.MustRegister[velocity](w)
	all := w.CreateN(nil, 200)
	for _, e := range all {
		a.Set(e, position{1, 1})
		b.Set(e, velocity{1, 1})
	}
	w.Commit()

	t.Run("a filter keeps others", func(t *testing.T) {
		q := ecs.NewQuery1(ecs.Read(a)).With(a.Changed())
		for _, e := range all {
			a.Set(e, position{2, 2})
		}
		assert.Equal(t, all, q.AppendEntities(nil))
		for _, e := range all[:100] {
			a.Set(e, position{1, 1})
		}
		assert.Equal(t, all[100:], q.AppendEntities(nil))
	})

	t.Run("a walk was broken off", func(t *testing.T) {
		q := ecs.NewQuery2(ecs.Read(a), ecs.Read(b))
		found := func() (n int) {
			for run := range q.Runs() {
				n += len(run.A)
			}
			return n
		}
		assert.Equal(t, len(all), found())
		b.Remove(all[100])
		n := 0
		for range q.Runs() {
			if n++; n == 2 {
				break
			}
		}
		assert.Equal(t, 2, n)
		assert.Equal(t, len(all)-1, found())
	})
}

// The first loop finds one run of 64 rows, and the query remembers it. Then the query iterates over
// another storage of 64 rows, and finds nothing. Later loops must not return the remembered run.
func TestQuery_SecondLoopFindsNothing(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	a, b := ecs.MustRegister[position](w), ecs.MustRegister[velocity](w)
	q := ecs.NewQuery2(ecs.Read(a), ecs.Read(b))
	both := w.CreateN(nil, 64)
	a.SetAll(both, position{X: 1})
	b.SetAll(both, velocity{})
	assert.Equal(t, 64, q.Count())
	b.RemoveAll(both)
	b.SetAll(w.CreateN(nil, 64), velocity{})
	a.Set(w.Create(), position{X: 2}) // Makes b the driver.
	for range 3 {
		n := 0
		for range q.Runs() {
			n++
		}
		for range q.All() {
			n++
		}
		assert.Zero(t, n+q.Count())
	}
}
