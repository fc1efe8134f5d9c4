package query

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Components of the test world. Two programs write the store. The second program converts the
// component from the type part to the type wider, and has one more component.
type (
	part struct {
		I, J  int32
		F     float64
		W     uint64
		Of    ecs.Entity
		Small float32
	}
	wider struct {
		I, J  int64
		F     float64
		W     uint64
		Of    ecs.Entity
		Small float32
	}
)

// A followedGame writes random ticks to a store.
type followedGame struct {
	*ecs.World
	rng   *rand.Rand
	names *ecs.Storage[string]
	tags  *ecs.Storage[dead]
	melt  *ecs.Storage[int16] // A no-rewind component.
	tiles *ecs.Storage[int8]  // An indexed component with gaps.
	late  *ecs.Storage[int32] // nil in the first program.
	score *ecs.Resource[int64]
	part  func(e ecs.Entity, v wider)
	drop  func(e ecs.Entity)
	empty func()
	sort  func()
}

func newFollowedGame(rng *rand.Rand, second bool) *followedGame {
	w := ecs.NewWorld(ecs.Options{History: 8})
	g := &followedGame{World: w, rng: rng}
	if second {
		parts := ecs.MustRegister(w, ecs.Component[wider]{Name: "Part"})
		g.part, g.drop, g.empty = func(e ecs.Entity, v wider) { parts.Set(e, v) }, func(e ecs.Entity) { parts.Remove(e) }, parts.Clear
		g.sort = func() { parts.SortFunc(func(a, b wider) int { return int(a.I - b.I) }) }
	} else {
		parts := ecs.MustRegister(w, ecs.Component[part]{Name: "Part"})
		g.part = func(e ecs.Entity, v wider) { parts.Set(e, part{int32(v.I), int32(v.J), v.F, v.W, v.Of, v.Small}) }
		g.drop, g.empty = func(e ecs.Entity) { parts.Remove(e) }, parts.Clear
		g.sort = func() { parts.SortFunc(func(a, b part) int { return int(a.I - b.I) }) }
	}
	g.names = ecs.MustRegister(w, ecs.Component[string]{Name: "Name"})
	g.tags = ecs.MustRegister(w, ecs.Component[dead]{Name: "Tag"})
	g.melt = ecs.MustRegister(w, ecs.Component[int16]{Name: "Melt", NoRewind: true})
	g.tiles = ecs.MustRegister(w, ecs.Component[int8]{Name: "Tile", Kind: ecs.Indexed})
	g.score = ecs.Must(ecs.RegisterResource(w, int64(0), ecs.Component[int64]{Name: "Score"}))
	if second {
		g.late = ecs.MustRegister(w, ecs.Component[int32]{Name: "Late"})
	}
	return g
}

// any returns an entity that is or was alive.
func (g *followedGame) any() ecs.Entity {
	all := g.Entities()
	if len(all) == 0 || g.rng.IntN(8) == 0 {
		return ecs.NewEntity(g.rng.Uint32N(8), 1+g.rng.Uint32N(3))
	}
	return all[g.rng.IntN(len(all))]
}

// value returns numbers of all types. A few of them cause errors.
func (g *followedGame) value() wider {
	floats := []float64{0, math.Copysign(0, -1), 0.1, 0.2, 0.3, 1e300, -1e300, 1e-310, math.Pi, 3}
	wides := []uint64{0, 1, 7, 1 << 52}
	if g.rng.IntN(12) == 0 {
		floats, wides = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}, []uint64{1 << 63, math.MaxUint64}
	}
	v := wider{I: g.rng.Int64N(9) - 3, J: 1 + g.rng.Int64N(4), Of: g.any()}
	if g.rng.IntN(12) == 0 {
		v.J = 0
	}
	v.F, v.W, v.Small = floats[g.rng.IntN(len(floats))], wides[g.rng.IntN(len(wides))], g.rng.Float32()
	return v
}

// act makes one random change.
func (g *followedGame) act() {
	e := g.any()
	switch g.rng.IntN(20) {
	case 0, 1, 2, 3:
		e = g.Create()
		g.part(e, g.value())
	case 4:
		g.Create()
	case 5, 6:
		g.Destroy(e)
	case 7, 8, 9, 10:
		g.part(e, g.value())
	case 11:
		g.drop(e)
	case 12:
		g.names.Set(e, []string{"", "ann", "bob", "a longer name"}[g.rng.IntN(4)])
	case 13:
		g.tags.Set(e, dead{})
	case 14:
		g.tags.Remove(e)
		g.names.Remove(e)
	case 15:
		g.melt.Set(e, int16(g.rng.IntN(9)))
		g.tiles.Set(e, int8(g.rng.IntN(9)))
	case 16:
		g.tiles.Remove(e)
		g.score.Set(g.rng.Int64N(6))
	case 17:
		g.sort()
	case 18:
		if g.late != nil {
			g.late.Set(e, g.rng.Int32N(5))
		}
	default:
		switch g.rng.IntN(12) {
		case 0:
			g.Clear()
		case 1:
			g.empty()
		case 2:
			g.tags.Clear()
			g.melt.Clear()
		}
	}
}

// followedStore returns a view of a store of random ticks, with branches, a conversion and
// snapshots.
func followedStore(t *testing.T, rng *rand.Rand) *inspect.View {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "store")
	for _, second := range []bool{false, true} {
		g := newFollowedGame(rng, second)
		s, err := persist.Open(ctx, dir, g.World, persist.Options{SnapshotBytes: 3000})
		require.NoError(t, err)
		for range 22 {
			for range rng.IntN(7) {
				g.act()
			}
			require.NoError(t, s.Commit())
			switch rng.IntN(9) {
			case 0:
				_ = g.History().Rewind(1 + rng.IntN(3))
			case 1:
				// Ignore the error: Goto fails if the store has too few ticks.
				_ = s.Goto(ctx, "@latest~2")
			}
		}
		// Close returns ErrUncommitted if the world has NoRewind values that the store lacks, for
		// example after a rewind.
		if err := s.Close(ctx); !errors.Is(err, persist.ErrUncommitted) {
			require.NoError(t, err)
		}
	}
	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

// randomExpression returns an expression on the world.
func randomExpression(rng *rand.Rand) string {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	aggregate := func() string {
		switch kind := one("any", "all", "none", "count", "sum", "avg", "min", "max", "p50", "distinct"); kind {
		case "sum", "avg", "p50":
			return kind + "(" + one("Part.I", "Part.F", "Part.W", "Part.Small", "Part.F * 2", "Part.I ?? 1.5", "Part.I % Part.J", "Part.W - 1",
				"len(Name)", "Melt", "Score + Part.I", "generation", "tick + Part.I", "Tile", "has(Tag) ? Part.I : Part.F") + ")"
		case "min", "max", "distinct":
			return kind + "(" + one("Part.I", "Part.F", "Part.W", "Part.Small", "Name", "entity", "Part", "has(Tag)", "Melt", "Part.Of", "Part.I > 2 ? Part.I : Part.F",
				"Part.I ?? Name", "Part.I % Part.J", "-Part.F") + ")"
		default:
			return kind + "(" + one("Part.I > 3", "Part.F < Part.I", "has(Tag)", "Tag", "not has(Part)", "exists(Part.Of)", "has(Part) and not exists(Part.Of)", "Melt > 2",
				"index % 2 == 0", "Part.I > Score", "Part.I > tick % 5", "alive > 5 and Part.I > 0", `Name startsWith "a"`, `Part.Of == "1v1"`, "Part.I % Part.J == 1",
				"Part.W > 9223372036854775807", "Tile > 3 or Tag", "not (Part.F > 0)", "let n = Part.I; n > 2", "Part.Small < 0.5 && generation == 1") + ")"
		}
	}
	switch rng.IntN(9) {
	case 0:
		return aggregate() + " == " + aggregate()
	case 1:
		return "alive > 6 and " + one("any", "none") + "(Part.I > 4)"
	case 2:
		return "(" + aggregate() + ` ?? 0) != Score`
	case 3:
		return `exists("3v1") or ` + one("any", "all") + "(Part.J == 0)"
	case 4:
		return "[tick, alive, Score, " + aggregate() + "]"
	case 5:
		return "Score > 2 ? count(Part.I > 0) : " + aggregate()
	}
	return aggregate()
}

// sameAnswers requires that two evaluations have the same answer or the same error.
func sameAnswers(t *testing.T, want Answer, failed error, got Answer, err error, of string) {
	t.Helper()
	if failed != nil {
		require.EqualError(t, err, failed.Error(), of)
		return
	}
	require.NoError(t, err, of)
	require.IsType(t, want.v, got.v, of)
	require.Equal(t, want.Key(), got.Key(), of)
}

var followSeed = flag.Uint64("follow.seed", 1, "the first seed of what is followed")

// Expressions that follow random histories have the same answers as expressions that evaluate all
// entities at each state.
func TestFollow_RandomHistories(t *testing.T) {
	for round := range deep.Or(12, 300) {
		seed := *followSeed + uint64(round)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 16))
			v := followedStore(t, rng)
			last, err := v.At(context.Background(), v.Head())
			require.NoError(t, err)
			var followed, anew []*Expr
			for len(followed) < 40 {
				text := randomExpression(rng)
				x, err := Compile(last, "test", text, WantTotal)
				// Skip an expression that compares a number with a boolean: it does not compile.
				if err != nil {
					continue
				}
				y, err := Compile(last, "test", text, WantTotal)
				require.NoError(t, err, text)
				followed, anew = append(followed, x), append(anew, y)
			}
			entries := v.Log().Entries
			for range 6 {
				to := entries[rng.IntN(len(entries))].ID.Seq
				require.NoError(t, v.Walk(context.Background(), 0, to, func(im *inspect.Image, c *inspect.Commit) error {
					for i, x := range followed {
						of := fmt.Sprintf("%s at tick %d, record %d", x.text, im.Tick, im.Seq)
						bound := anew[i].Bind(im)
						require.Equal(t, fmt.Sprint(bound), fmt.Sprint(x.Follow(im, c)), of)
						// Do not evaluate at every state, so that x must also follow ticks in
						// between.
						if bound != nil || rng.IntN(4) == 0 {
							continue
						}
						runProgram(anew[i])
						want, failed := anew[i].Of(ecs.Vacant)
						got, err := x.Of(ecs.Vacant)
						sameAnswers(t, want, failed, got, err, of)
					}
					return nil
				}))
			}
		})
	}
}

// Follow evaluates only the changed entities, according to the number of evaluations.
func TestFollow_EvaluatesOnlyChangedEntities(t *testing.T) {
	ctx := context.Background()
	g := newFollowedGame(rand.New(rand.NewPCG(1, 1)), false)
	const n, ticks = 500, 20
	for range n {
		g.part(g.Create(), wider{I: 1, Of: ecs.NewEntity(0, 1)})
	}
	dir := filepath.Join(t.TempDir(), "store")
	s, err := persist.Open(ctx, dir, g.World, persist.Options{})
	require.NoError(t, err)
	for i := range ticks {
		e := g.Entities()[n/2+i]
		g.part(e, wider{I: int64(i), F: float64(i), Of: e})
		g.tags.Set(g.Entities()[3], dead{})
		g.Destroy(g.Entities()[n/2])
		g.Create()
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Close(ctx))
	v, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	defer v.Close()
	for text, most := range map[string]int{
		"count(Part.I > 3)": 4, "sum(Part.F)": 4, "min(Part.F)": 4, "any(has(Tag))": 4, "all(index > 3)": 4, "count(exists(Part.Of))": 4,
		"count(Part.I > Score)": 4, "count(exists(entity) and index > alive)": n, "count(exists(entity) and index > tick)": n,
	} {
		im, err := v.At(ctx, v.Head())
		require.NoError(t, err)
		x, err := Compile(im, "test", text, WantTotal)
		require.NoError(t, err)
		asked := 0
		require.NoError(t, v.Walk(ctx, 0, v.Head(), func(im *inspect.Image, c *inspect.Commit) error {
			require.NoError(t, x.Follow(im, c))
			_, err := x.Of(ecs.Vacant)
			if c == nil {
				countAsked(x.aggregates[0].of, &asked)
			} else {
				require.Positive(t, asked, text)
				require.LessOrEqual(t, asked, most, text)
				require.True(t, most < n || asked == n, text)
			}
			asked = 0
			return err
		}))
	}
}

// countAsked counts the evaluations of x in n.
func countAsked(x *Expr, n *int) {
	if direct := x.direct; direct != nil {
		x.direct = func(r *reading) any { *n++; return direct(r) }
	} else {
		asking := x.asking
		x.asking = func(e ecs.Entity) { *n++; asking(e) }
	}
}
