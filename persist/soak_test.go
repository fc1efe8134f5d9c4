package persist_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

var (
	soakMinutes  = flag.Float64("soak.minutes", 0, "minutes of TestSoak_DefaultBound at 60 ticks a second under default options; 0: a small world for a moment")
	soakSeed     = flag.Uint64("soak.seed", 1, "its seed")
	soakEntities = flag.Int("soak.entities", 100_000, "its entities")
)

// A soak is a game whose entities all move in every tick, while some are destroyed and created.
type soak struct {
	world *ecs.World
	at    *ecs.Storage[[3]float64]
	life  *ecs.Storage[int32]
	rng   *rand.Rand
}

func newSoak(seed uint64) *soak {
	w := ecs.NewWorld(ecs.Options{History: 60})
	return &soak{
		world: w, rng: rand.New(rand.NewPCG(seed, 9)),
		at:   ecs.MustRegister(w, ecs.Component[[3]float64]{Name: "At"}),
		life: ecs.MustRegister(w, ecs.Component[int32]{Name: "Life"}),
	}
}

func (s *soak) spawn(n int) {
	for range n {
		e := s.world.Create()
		s.at.Set(e, [3]float64{s.rng.Float64(), s.rng.Float64()})
		s.life.Set(e, s.rng.Int32N(100))
	}
}

func (s *soak) tick() {
	for range 50 {
		s.world.Destroy(s.world.Entities()[s.rng.IntN(s.world.Len())])
	}
	s.spawn(50)
	rows := s.at.MutValues()
	for i := range rows {
		rows[i][2]++
	}
}

// sizeOnDisk returns the bytes of the journal and the snapshots in dir.
func sizeOnDisk(t testing.TB, dir string) (n int64) {
	t.Helper()
	for _, sub := range []string{"journal", "snapshots"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		require.NoError(t, err)
		for _, e := range entries {
			if info, err := e.Info(); err == nil { // Skip a file that was just removed.
				n += info.Size()
			}
		}
	}
	return n
}

// The bound holds for the journal and the snapshots, including incomplete files. A slow snapshot
// would let the journal grow beyond the bound. So with the small world, the test waits for each
// snapshot.
func TestSoak_DefaultBound(t *testing.T) {
	entities, ticks, pause, bound := 2000, 1500, time.Duration(0), int64(8<<20)
	options := persist.Bounded(persist.Options{}, bound)
	if *soakMinutes > 0 {
		entities, ticks, pause, bound = *soakEntities, int(*soakMinutes*60*60), time.Second/60, 1<<30
		options = persist.Options{}
	}
	dir, ctx := t.TempDir(), context.Background()
	s := newSoak(*soakSeed)
	s.spawn(entities)
	store, err := persist.Open(ctx, dir, s.world, options)
	require.NoError(t, err)
	var times []time.Duration
	var most, journaled int64
	start, behind := time.Now(), 0
	for i := range ticks {
		began := time.Now()
		s.tick()
		require.NoError(t, store.Commit())
		times = append(times, time.Since(began))
		if pause == 0 {
			_, err := store.Written(ctx)
			require.NoError(t, err)
		}
		if i%5 == 0 {
			on := sizeOnDisk(t, dir)
			most = max(most, on)
			require.LessOrEqual(t, on, bound, "tick %d: %v", i, store.Metrics().Kept)
		}
		if rest := time.Until(start.Add(time.Duration(i+1) * pause)); rest > 0 {
			time.Sleep(rest)
		} else if pause > 0 {
			behind++
		}
	}
	took := time.Since(start)
	m := store.Metrics()
	require.NoError(t, store.Close(ctx))
	require.Zero(t, m.SnapshotsFailed)
	require.NoError(t, m.LastSnapshot.RemoveErr)
	require.Greater(t, m.Kept.Tick, uint64(0), "all data fitted within the bound, so the soak tests nothing")
	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	defer v.Close()
	e := v.Log().Entries
	for i := range e {
		journaled += int64(e[i].Length)
	}
	slices.Sort(times)
	t.Logf("%d entities, %d ticks in %.0f s, %d behind their time, %s a tick", entities, ticks, took.Seconds(), behind, fmt.Sprint(journaled/int64(len(e)), " bytes"))
	t.Logf("at most %d MiB of %d on disk, %d snapshots; %v", most>>20, bound>>20, m.Snapshots, m.Kept)
	t.Logf("tick: median %v, 99.9 %% %v, worst %v; longest fsync %v", times[len(times)/2], times[len(times)*999/1000], times[len(times)-1], m.SyncMax)
}
