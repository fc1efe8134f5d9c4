package game

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

func anywhere(random *rand.Rand) Position {
	return Position{float64(random.Float64() * Width), float64(random.Float64() * Height)}
}

// The grid finds the same entities as a search of all positions.
func TestGrid_FindsWhatIsNear(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var g grid
	for n := range 300 {
		var all []located
		g.begin()
		for i := range uint32(n) {
			l := located{entity: ecs.NewEntity(i, 1), at: anywhere(random)}
			all = append(all, l)
			g.add(l.entity, l.at)
		}
		g.sort()
		at, radius := anywhere(random), float64(random.Float64()*cellSize)
		var want []ecs.Entity
		for _, l := range all {
			if Distance(at, l.at) < radius {
				want = append(want, l.entity)
			}
		}
		got := slices.Sorted(g.near(at, radius))
		require.Equal(t, want, got, "%v within %f", at, radius)
	}
}

// calm returns an empty game with a rock that keeps the wave from ending.
func calm() *Game {
	g := emptyGame()
	g.NewRock.Create(Position{9, 9}, Velocity{}, Rock{1})
	return g
}

// A hit mite burns, bursts, and ignites the mites near it. Mites that are too far away survive.
func TestHit_MitesBurstInChain(t *testing.T) {
	g := calm()
	for i := range 20 {
		g.NewMite.Create(Position{100 + float64(float64(i)*1.5), 100}, Velocity{}, Mite{})
	}
	far := g.NewMite.Create(Position{100, 130}, Velocity{}, Mite{})
	g.NewBullet.Create(Position{99, 100}, Velocity{}, Bullet{}, Life{9})
	ticks := 0
	for ; g.Mite.Len() > 1 && ticks < 400; ticks++ {
		g.Systems.Step(0)
		g.World.Commit()
	}
	require.True(t, g.World.Alive(far))
	require.Equal(t, 1, g.Mite.Len())
	require.Equal(t, int32(20*mitePoints), g.State.Get().Score)
	require.Greater(t, ticks, 10, "the fire goes from mite to mite")
	require.Greater(t, g.Spark.Len(), 100)
	for range 100 {
		g.Systems.Step(0)
		g.World.Commit()
	}
	require.Zero(t, g.Spark.Len())
}

// A ship with a shield burns the mites that it touches. Without a shield it is lost.
func TestCrash_MiteBurnsOrDestroysShip(t *testing.T) {
	for _, shield := range []uint8{0, 9} {
		g := calm()
		g.NewShip.Create(Position{100, 100}, Velocity{}, Ship{Shield: shield})
		mite := g.NewMite.Create(Position{102, 100}, Velocity{}, Mite{})
		lives := g.State.Get().Lives
		g.Systems.Step(0)
		require.True(t, g.Life.Has(mite))
		require.Equal(t, shield > 0, g.Ship.Len() == 1)
		require.Equal(t, shield > 0, g.State.Get().Lives == lives)
	}
}

// The mites come near to the ship, and circle it.
func TestChase_MitesReachShip(t *testing.T) {
	g := calm()
	ship := Position{160, 88}
	for i := range 100 {
		g.NewMite.Create(Position{float64(3 * i), 170}, Velocity{}, Mite{})
	}
	e := g.NewShip.Create(ship, Velocity{}, Ship{Shield: 255})
	reached := false
	for range 600 {
		g.Systems.Step(0)
		g.Ship.Mut(e).Shield = 255
		g.World.Commit()
		reached = reached || g.Life.Len() > 0
		for _, row := range g.Mites.All() {
			require.LessOrEqual(t, row.B.length(), miteSpeed*1.01)
		}
	}
	require.True(t, reached)
	require.Greater(t, g.Mite.Len(), 10)
	for _, row := range g.Mites.All() {
		require.Less(t, Distance(*row.A, ship), 110.0)
	}
}

// Sparks move although no tick writes them.
func TestSpark_MovesWithoutWrites(t *testing.T) {
	g := calm()
	e := g.NewSpark.Create(Position{Width - 1, Height - 1}, Spark{Velocity{2, 3}, uint32(g.World.Tick() + 1), 1000})
	for i := range 100 {
		g.Systems.Step(0)
		g.World.Commit()
		thing, ok := g.Things.Get(e)
		require.True(t, ok)
		require.Equal(t, Position{Width - 1, Height - 1}.plus(Velocity{2, 3}, float64(i)), g.Place(thing))
	}
}

// BenchmarkStep measures a tick in which 5,000 mites fly, with a history of 1,200 ticks.
func BenchmarkStep(b *testing.B) {
	g := calm()
	g.State.Mut().Wait = 1 << 30 // No ship comes.
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		g.NewMite.Create(anywhere(random), Velocity{}, Mite{})
	}
	for b.Loop() {
		g.Systems.Step(0)
		g.World.Commit()
	}
	require.Equal(b, 5000, g.Mite.Len())
}

// BenchmarkRewind measures a rewind of 60 ticks in which 5,000 mites flew.
func BenchmarkRewind(b *testing.B) {
	g := calm()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		g.NewMite.Create(anywhere(random), Velocity{}, Mite{})
	}
	for range 100 {
		g.Systems.Step(0)
		g.World.Commit()
	}
	now := g.World.Tick()
	for b.Loop() {
		require.NoError(b, g.Rewind(60))
		b.StopTimer()
		require.NoError(b, g.World.History().Seek(now))
		b.StartTimer()
	}
}

// Ten minutes of play need no more memory than the first minutes, because the history is bounded.
func TestGame_MemoryStaysFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 36,000 ticks")
	}
	g, b := New(), newBot(t, 1)
	used := func() (bytes uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first, most uint64
	for tick := range 36_000 {
		g.Systems.Step(b.buttons(g))
		g.World.Commit()
		if (tick+1)%3000 == 0 {
			if n := used(); tick < 9000 {
				first = max(first, n)
			} else {
				most = max(most, n)
			}
		}
	}
	t.Logf("wave %d; %d MB in the first minutes, at most %d MB later", g.State.Get().Wave, first>>20, most>>20)
	require.Less(t, most, 2*first+16<<20)
}
