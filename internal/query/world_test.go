package query

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An expression on the world has the same result for a state in pages and in memory.
func TestWorld_PagedStateEqualsMemory(t *testing.T) {
	type (
		Spot   struct{ X, Y float64 }
		Hunt   struct{ Of ecs.Entity }
		Name   string
		Leader struct {
			Of    ecs.Entity
			Score int
		}
	)
	w := ecs.NewWorld(ecs.Options{})
	spots, hunts, names := ecs.MustRegister[Spot](w), ecs.MustRegister[Hunt](w), ecs.MustRegister[Name](w)
	leader := ecs.Must(ecs.RegisterResource(w, Leader{}))
	for i := range 9000 {
		e := w.Create()
		if i%3 > 0 {
			spots.Set(e, Spot{float64(i % 101), float64(i)})
		}
		if i%4 == 0 {
			hunts.Set(e, Hunt{w.Entities()[i/2]})
		}
		if i%5 == 0 {
			names.Set(e, Name(string(rune('a'+i%7))))
		}
		if i == 400 {
			leader.Set(Leader{e, 7})
		}
	}
	w.Destroy(w.Entities()[17])
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	v, err := inspect.OpenReadOnly(t.Context(), file)
	require.NoError(t, err)
	defer v.Close()
	im, err := v.At(t.Context(), 0)
	require.NoError(t, err)
	for _, text := range []string{
		"alive", "tick + 1", "Leader.Score", "Leader.Of.Spot.Y", "exists(Leader.Of)", `exists("17v1")`,
		"sum(Spot.X)", "count(Spot.X < 10)", "avg(Spot.Y) - min(Spot.X)", "max(Name)", "p95(Spot.Y)", "distinct(Name)",
		"count(exists(Hunt.Of))", "sum(Hunt.Of.Spot.X)", "any(Spot.X > 99)", "any(Spot.X > 999)", "all(Spot.Y >= 0)", "none(has(Hunt))",
		"alive > 5 ? sum(Spot.X) : sum(1 / (index - index))", "count(Spot.X > 50) * Leader.Score", "any(Spot.X > 50) and all(generation == 1)",
		`sum(names)`, `sum(index % 0)`,
	} {
		of, err := Compile(im, "expr", text, WantTotal)
		var want Answer
		if err == nil {
			runProgram(of)
			want, err = of.Of(ecs.Vacant)
		}
		whole := false
		readErr := v.Read(t.Context(), 0, func(st *inspect.State) error {
			whole = whole || st.Whole()
			got, other := World(t.Context(), st, "expr", text, WantTotal)
			require.Equal(t, err == nil, other == nil, "%s: %v, %v", text, err, other)
			require.Equal(t, want.Key(), got.Key(), text)
			return nil
		})
		require.NoError(t, readErr)
		require.False(t, whole, "%s: the whole state was loaded", text)
	}
	require.NoError(t, v.Read(t.Context(), 0, func(st *inspect.State) error {
		holds, err := WorldHolds(t.Context(), st, "expr", "any(Spot.X > 99)")
		return errors.Join(err, map[bool]error{false: errors.New("it does not hold")}[holds])
	}))
}
