package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// BenchmarkBudgetCondition evaluates a condition with a field and a test for a component. It
// compares three ways: direct evaluation on rows, hand-written code, and the virtual machine of
// package expr.
func BenchmarkBudgetCondition(b *testing.B) {
	im := testImage(b)
	x, err := Compile(im, "test", "Unit.HP < 5 && has(Unit)", WantCondition)
	require.NoError(b, err)
	e, c := im.Entities()[0], im.Find("Unit")
	rows := rowsIn(x, e)
	const asked, rounds = 20_000, 15
	holding := 0
	count := func(holds bool, err error) {
		if holds && err == nil {
			holding++
		}
	}
	least := func(f func()) time.Duration {
		shortest := time.Duration(math.MaxInt64)
		for range rounds {
			start := time.Now()
			for range asked {
				f()
			}
			shortest = min(shortest, time.Since(start))
		}
		return shortest
	}
	ours := least(func() { count(x.HoldsRows(e, rows)) })
	machine := x.Clone()
	runProgram(machine)
	program := least(func() { count(machine.Holds(e)) })
	limit := least(func() {
		row, has, err := rows(0)
		count(has && int32(binary.LittleEndian.Uint32(row)) < 5, err)
	})
	require.Equal(b, 3*asked*rounds, holding, "%v", c.Row(0))
	b.ReportMetric(float64(ours)/float64(limit), "x/limit")
	b.ReportMetric(20, "x/budget")
	b.ReportMetric(float64(ours.Nanoseconds())/asked, "ns/op")
	b.ReportMetric(float64(program)/float64(ours), "x/program")
}

// BenchmarkBudgetReference reads a field of another entity, and compares this with hand-written
// code.
func BenchmarkBudgetReference(b *testing.B) {
	im := testImage(b)
	x, err := Compile(im, "test", "Unit.Owner.Unit.HP < 5", WantCondition)
	require.NoError(b, err)
	lookup := func(c *inspect.Component) Lookup {
		return func(e ecs.Entity) ([]byte, bool, error) {
			row := c.Find(e)
			if row < 0 {
				return nil, false, nil
			}
			return c.Row(row), true, nil
		}
	}
	x.Looking(lookup)
	e, c := im.Entities()[1], im.Find("Unit")
	rows, find := rowsIn(x, e), lookup(c)
	at := bytes.Index(c.Row(c.Find(e)), binary.LittleEndian.AppendUint64(nil, uint64(im.Entities()[0])))
	const asked, rounds = 20_000, 15
	holding := 0
	ours, limit := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range rounds {
		start := time.Now()
		for range asked {
			if holds, err := x.HoldsRows(e, rows); holds && err == nil {
				holding++
			}
		}
		middle := time.Now()
		for range asked {
			row, _, _ := rows(0)
			of := ecs.Entity(binary.LittleEndian.Uint64(row[at:]))
			if row, has, err := find(of); im.IsAlive(of) && has && err == nil && int32(binary.LittleEndian.Uint32(row)) < 5 {
				holding++
			}
		}
		ours, limit = min(ours, middle.Sub(start)), min(limit, time.Since(middle))
	}
	require.Equal(b, 2*asked*rounds, holding)
	b.ReportMetric(float64(ours)/float64(limit), "x/limit")
	b.ReportMetric(20, "x/budget")
	b.ReportMetric(float64(ours.Nanoseconds())/asked, "ns/op")
}

// BenchmarkBudgetFollow updates a total over 20,000 entities for 500 ticks of 200 changes each. It
// compares this with a hand-written sum.
func BenchmarkBudgetFollow(b *testing.B) {
	const entities, ticks, written, rounds = 20_000, 500, 200, 5
	ctx := context.Background()
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister(w, ecs.Component[struct{ X, Y, Z float64 }]{Name: "Place"})
	points := ecs.MustRegister(w, ecs.Component[int32]{Name: "Points"})
	for i := range entities {
		e := w.Create()
		places.Set(e, struct{ X, Y, Z float64 }{X: float64(i)})
		points.Set(e, int32(i%100))
	}
	dir := filepath.Join(b.TempDir(), "store")
	s, err := persist.Open(ctx, dir, w, persist.Options{Sync: journal.SyncNever})
	require.NoError(b, err)
	for tick := range ticks {
		for i := range written {
			e := w.Entities()[(tick*31+i*97)%entities]
			*points.Mut(e)--
			places.Mut(e).X++
		}
		require.NoError(b, s.Commit())
	}
	require.NoError(b, s.Close(ctx))
	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(b, err)
	defer v.Close()

	last, err := v.At(ctx, v.Head())
	require.NoError(b, err)
	var values []int32
	var sum int64
	heldByHand := 0
	byHand := func(im *inspect.Image, c *inspect.Commit) error {
		of := im.Find("Points")
		take := func(first, n int) {
			for row := first; row < first+n; row++ {
				index, value := of.Entities()[row].Index(), int32(binary.LittleEndian.Uint32(of.Row(row)))
				sum += int64(value - values[index])
				values[index] = value
			}
		}
		if values == nil {
			values = make([]int32, im.Indices)
			take(0, of.Len())
		}
		if c != nil {
			for _, change := range c.Rows {
				if im.Components[change.Component] == of {
					for _, r := range change.Values {
						take(r.First, r.N)
					}
				}
			}
		}
		if sum < 0 {
			heldByHand++
		}
		return nil
	}
	pass := func(f func(*inspect.Image, *inspect.Commit) error) time.Duration {
		values, sum = nil, 0
		start := time.Now()
		require.NoError(b, v.Walk(ctx, 0, v.Head(), f))
		return time.Since(start)
	}
	for _, kind := range []struct {
		name, expr string
		budget     float64
	}{{"sum", "sum(Points) < 0", 3}, {"percentile", "p50(Place.X) < 0", 12}, {"distinct", "distinct(Place.X) < 0", 12}} {
		b.Run(kind.name, func(b *testing.B) {
			x, err := Compile(last, "test", kind.expr, WantWorld)
			require.NoError(b, err)
			held := 0
			followed := func(im *inspect.Image, c *inspect.Commit) error {
				if err := x.Follow(im, c); err != nil {
					return err
				}
				holds, err := x.Holds(ecs.Vacant)
				if holds {
					held++
				}
				return err
			}
			ours, limit := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for range rounds {
				ours, limit = min(ours, pass(followed)), min(limit, pass(byHand))
			}
			if kind.name == "sum" {
				require.Equal(b, heldByHand, held)
			}
			b.ReportMetric(float64(ours)/float64(limit), "x/limit")
			b.ReportMetric(kind.budget, "x/budget")
			b.ReportMetric(float64(ours.Nanoseconds())/ticks, "ns/op")
		})
	}
}
