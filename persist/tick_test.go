package persist_test

import (
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// recordOverhead is what the journal adds to a payload: a header, and padding to eight bytes.
const recordOverhead = 48 + 7

// worldOfPoints returns a world of n entities with 16 bytes each, and a recorder that encodes its
// ticks.
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

func TestTick_SizeOfAllRows(t *testing.T) {
	const rows = 1000
	w, s, r := worldOfPoints(t, rows)
	for i := range s.MutValues() {
		s.MutValues()[i].X++
	}
	w.Commit()
	require.LessOrEqual(t, float64(len(r.buf)+recordOverhead), 1.05*16*rows)
}

func TestTick_SizeOfScatteredRows(t *testing.T) {
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

// A Commit allocates nothing. The ticks write, add and remove components and resources of every
// kind, and create and destroy entities.
func TestCommit_NoAllocations(t *testing.T) {
	w := storetest.New(3)
	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), w, persist.Options{Sync: journal.SyncNever})
	entities := w.CreateN(nil, 300)
	tick := func() {
		last := len(entities) - 1
		w.Destroy(entities[last])
		entities[last] = w.Create()
		for i, e := range entities {
			w.Position.Set(e, storetest.Position{X: w.Position.Values()[0].X + 1})
			w.Heat.Set(e, storetest.Heat{Degrees: int32(i)})
			if i%3 > 0 {
				continue
			}
			if !w.Armor.Remove(e) {
				w.Armor.Set(e, storetest.Armor{})
			}
			if !w.Crown.Remove(e) {
				w.Crown.Set(e, storetest.Crown{})
			}
			if !w.Frozen.Remove(e) {
				w.Frozen.Set(e, storetest.Frozen{})
			}
			if !w.Rank.Remove(e) {
				w.Rank.Set(e, storetest.Rank{})
			}
		}
		*w.Seed.Mut()++
		*w.Clock.Mut()++
		if err := s.Commit(); err != nil {
			t.Error(err)
		}
		for s.Journal().Backlog() > 0 { // At 0, the buffer can be reused.
			runtime.Gosched()
		}
	}
	w.Position.Set(entities[0], storetest.Position{})
	for range 20 {
		tick()
	}
	require.Zero(t, testing.AllocsPerRun(100, tick))
	storetest.CloseStore(t, s)
}
