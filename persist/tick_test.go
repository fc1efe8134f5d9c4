package persist_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// recordOverhead is what the journal adds to a payload: a header, and bytes that
// fill up eight.
const recordOverhead = 48 + 7

// A worldOfPoints has n entities with 16 bytes each, and encodes its ticks.
func worldOfPoints(t *testing.T, n int) (*ecs.World, *ecs.Storage[point], *encodingRecorder) {
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[point](w)
	for i := range n {
		s.Set(w.Create(), point{float64(i), 1})
	}
	r := &encodingRecorder{encoder: persist.NewTickRecorder(format.SchemaOf(w))}
	require.NoError(t, w.Raw().Attach(r, 0))
	return w, s, r
}

func TestTickThatWritesAllRowsTakesLittleMoreThanTheirValues(t *testing.T) {
	const rows = 1000
	w, s, r := worldOfPoints(t, rows)
	for i := range s.MutValues() {
		s.MutValues()[i].X++
	}
	w.Commit()
	require.LessOrEqual(t, float64(len(r.buf)+recordOverhead), 1.05*16*rows)
}

func TestTickThatWritesScatteredRowsTakesThreeBytesMoreForEach(t *testing.T) {
	const rows = 20_000
	for _, every := range []int{2, 10, 100, 1000} {
		w, s, r := worldOfPoints(t, rows)
		written := rows / every
		rng := rand.New(rand.NewPCG(1, uint64(every)))
		for _, row := range rng.Perm(rows)[:written] {
			s.Mut(s.Entities()[row]).X++
		}
		w.Commit()
		require.LessOrEqual(t, len(r.buf), (16+3)*written+64, "one row in %d", every)
	}
}
