package game

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A random player goes to ticks, to branches and to slots, and continues from there, in several
// runs of the program. Each move leads to the recorded state.
func TestTimeline_RandomMoves(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	seed := rand.Uint64()
	g, b := open(t, dir), newBot(t, seed)
	digests := map[string]ecs.Digest{} // By point.
	// lines maps the last record of a line to the points of all its ticks. Element 0 is the point
	// of tick 1.
	lines := map[uint64][]string{}
	var path []string // The points of the current line.
	play := func(n int) {
		path = path[:g.World.Tick():g.World.Tick()]
		for range n {
			b.play(t, g, 1)
			digests[g.Point()] = g.World.Digest()
			path = append(path, g.Point())
		}
		lines[g.line.record] = path
	}
	goTo := func(tick uint64) {
		require.NoError(t, g.GoTo(t.Context(), tick))
		require.Equal(t, tick, g.World.Tick())
		require.Equal(t, digests[path[tick-1]], g.World.Digest(), "tick %d", tick)
	}
	play(2 * history)
	visited := 0
	for range 150 {
		_, newest := g.Line()
		switch kind := b.random.IntN(10); {
		case kind < 3:
			play(1 + b.random.IntN(40))
		case kind < 7:
			goTo(1 + b.random.Uint64N(newest))
		case kind < 9:
			if all := g.OtherLines(); len(all) > 0 {
				other := all[b.random.IntN(len(all))]
				for i, b := range all {
					for _, c := range all[:i] {
						require.NotEqual(t, b.Record, c.Record, "each branch is there once")
					}
				}
				require.Less(t, other.From, other.To)
				for _, b := range all {
					require.NotContains(t, path, fmt.Sprint("record:", b.Record), "a branch is no part of the line")
				}
				require.NoError(t, g.Visit(t.Context(), fmt.Sprint("record:", other.Record)))
				require.Equal(t, other.To, g.World.Tick())
				path = lines[other.Record]
				require.Equal(t, digests[path[other.To-1]], g.World.Digest())
				visited++
				goTo(other.From + 1)
			}
		default:
			require.NoError(t, g.Close(t.Context()))
			tick, point := g.World.Tick(), path[g.World.Tick()-1]
			g = open(t, dir)
			require.Equal(t, tick, g.World.Tick(), "the state at Close")
			require.Equal(t, digests[point], g.World.Digest())
			path = path[:tick:tick]
			lines[g.line.record] = path
		}
	}
	require.Greater(t, visited, 5)
	require.NoError(t, g.Close(t.Context()))
}

// A player goes back and kills the program before the next tick. The next run continues at the
// newest tick.
func TestGoTo_KilledAfterwards(t *testing.T) {
	t.Parallel()
	files := disktest.New()
	g, err := Open(t.Context(), ".", files)
	require.NoError(t, err)
	newBot(t, rand.Uint64()).play(t, g, 100)
	digest := g.World.Digest()
	require.NoError(t, g.Store.Sync(t.Context()))
	require.NoError(t, g.GoTo(t.Context(), 40))
	again, err := Open(t.Context(), ".", files.CrashSeed(1))
	require.NoError(t, err)
	require.Equal(t, digest, again.World.Digest())
	require.NoError(t, again.Close(t.Context()))
	require.NoError(t, g.Close(t.Context()))
}

// A run in a file, and a save in a file, can be loaded into another game.
func TestLoadFile_AcceptsRunAndSave(t *testing.T) {
	t.Parallel()
	g, b := open(t, filepath.Join(t.TempDir(), "store")), newBot(t, rand.Uint64())
	b.play(t, g, 300)
	run, err := g.Run(t.Context())
	require.NoError(t, err)
	var save bytes.Buffer
	require.NoError(t, persist.SaveTo(t.Context(), &save, g.World))
	digest, state := g.World.Digest(), g.State.Get()
	require.NoError(t, g.Close(t.Context()))
	for _, file := range [][]byte{run, save.Bytes()} {
		other := open(t, filepath.Join(t.TempDir(), "other"))
		b.play(t, other, 50)
		mine := other.World.Digest()
		require.NoError(t, other.LoadFile(t.Context(), file))
		require.Equal(t, state, other.State.Get())
		require.Equal(t, digest, other.World.Digest())
		oldest, loaded := other.World.Tick(), other.World.Digest()
		b.play(t, other, 1500) // More ticks than the history has.
		require.NoError(t, other.GoTo(t.Context(), 1))
		require.Equal(t, oldest, other.World.Tick(), "the line begins with the file")
		require.Equal(t, loaded, other.World.Digest())
		first, newest := other.Line()
		require.Equal(t, oldest, first)
		require.NoError(t, other.GoTo(t.Context(), newest))
		require.NoError(t, other.Close(t.Context()))
		other = open(t, other.Dir)
		again, _ := other.Line()
		require.Equal(t, first, again)
		require.Len(t, other.OtherLines(), 1)
		require.NoError(t, other.Visit(t.Context(), fmt.Sprint("record:", other.OtherLines()[0].Record)))
		require.Equal(t, mine, other.World.Digest())
		require.Error(t, other.LoadFile(t.Context(), file[:len(file)/2]))
		require.Error(t, other.LoadFile(t.Context(), []byte("other")))
		require.Equal(t, mine, other.World.Digest())
		require.NoError(t, other.Close(t.Context()))
	}
}

// A file with values that the rules never write is refused.
func TestLoadFile_RefusesImpossibleValues(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(g *Game){
		"size":     func(g *Game) { g.NewRock.Create(Position{1, 1}, Velocity{}, Rock{0}) },
		"heading":  func(g *Game) { g.NewShip.Create(Position{1, 1}, Velocity{}, Ship{Heading: Headings}) },
		"place":    func(g *Game) { g.NewMite.Create(Position{math.NaN(), 1}, Velocity{}, Mite{}) },
		"outside":  func(g *Game) { g.NewMite.Create(Position{1, Height}, Velocity{}, Mite{}) },
		"infinite": func(g *Game) { g.NewMite.Create(Position{1, 1}, Velocity{math.Inf(1), 0}, Mite{}) },
		"past": func(g *Game) {
			for range 2 * sparkLife {
				g.World.Commit()
			}
			g.NewSpark.Create(Position{1, 1}, Spark{Born: 1})
		},
		"future": func(g *Game) { g.NewSpark.Create(Position{1, 1}, Spark{Born: 1 << 30}) },
	} {
		bad := emptyGame()
		change(bad)
		bad.World.Commit()
		var save bytes.Buffer
		require.NoError(t, persist.SaveTo(t.Context(), &save, bad.World))
		g := open(t, filepath.Join(t.TempDir(), "store"))
		newBot(t, 1).play(t, g, 10)
		digest := g.World.Digest()
		require.ErrorContains(t, g.LoadFile(t.Context(), save.Bytes()), "entity", name)
		require.Equal(t, digest, g.World.Digest())
		require.NoError(t, g.Close(t.Context()))
	}
}

// BeginSave saves the next tick and not the current one.
func TestBeginSave_SavesNextTick(t *testing.T) {
	t.Parallel()
	g, b := open(t, filepath.Join(t.TempDir(), "store")), newBot(t, rand.Uint64())
	b.play(t, g, 100)
	require.NoError(t, g.BeginSave(2))
	b.play(t, g, 1)
	digest := g.World.Digest()
	b.play(t, g, 100)
	r := <-g.Snapshots
	require.NoError(t, r.Err)
	require.Equal(t, "slot 2", r.Slot)
	require.NoError(t, g.Load(t.Context(), 2))
	require.Equal(t, digest, g.World.Digest())
	require.NoError(t, g.Close(t.Context()))
}
