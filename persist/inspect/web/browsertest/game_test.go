package browsertest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// The types below are the components of a small game in which orcs hunt villagers.
type (
	Position struct{ X, Y float64 }
	Kind     struct {
		Name string
		Clan string
	}
	Health struct{ Now, Most int32 }
	Target struct {
		Of   ecs.Entity
		Seen uint64
	}
	Gold  int64
	Fled  struct{}
	Armor struct{ Plates int32 } // Only a later version of the game registers it.
	Score struct {
		Fallen, Born uint64
	}
)

// A game is a world whose ticks fill a store.
type game struct {
	world     *ecs.World
	positions *ecs.Storage[Position]
	kinds     *ecs.Storage[Kind]
	healths   *ecs.Storage[Health]
	targets   *ecs.Storage[Target]
	gold      *ecs.Storage[Gold]
	fled      *ecs.Storage[Fled]
	score     *ecs.Resource[Score]
	rng       *rand.Rand
}

func newGame() *game {
	w := ecs.NewWorld(ecs.Options{History: 300})
	return &game{
		world: w, positions: ecs.MustRegister[Position](w), kinds: ecs.MustRegister[Kind](w), healths: ecs.MustRegister[Health](w),
		targets: ecs.MustRegister[Target](w), gold: ecs.MustRegister[Gold](w), fled: ecs.MustRegister[Fled](w),
		score: ecs.Must(ecs.RegisterResource(w, Score{})), rng: rand.New(rand.NewPCG(7, 7)),
	}
}

// hostile is a name that has an effect if it is interpreted as HTML.
const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`

func (g *game) spawn(clan string) {
	e := g.world.Create()
	angle := float64(g.rng.Float64() * 2 * math.Pi)
	middle, spread := 40.0, 30.0
	if clan == "orc" {
		middle, spread = -70, 25
	}
	r := float64(spread * math.Sqrt(g.rng.Float64()))
	g.positions.Set(e, Position{middle + float64(r*math.Cos(angle)), float64(0.6 * r * math.Sin(angle))})
	name := fmt.Sprintf("%s-%d", clan, e.Index())
	if e.Index() == 3 {
		name = hostile
	}
	g.kinds.Set(e, Kind{name, clan})
	g.healths.Set(e, Health{int32(60 + g.rng.IntN(60)), 120})
	g.gold.Set(e, Gold(g.rng.IntN(90)))
	g.score.Mut().Born++
}

// step runs one tick of the game.
func (g *game) step() {
	var all, villagers []ecs.Entity
	for e, k := range g.kinds.All() {
		all = append(all, e)
		if k.Clan == "villager" {
			villagers = append(villagers, e)
		}
	}
	for _, e := range all {
		if !g.world.Alive(e) {
			continue
		}
		if k, _ := g.kinds.Get(e); k.Clan == "orc" {
			g.hunt(e, villagers)
			continue
		}
		p := g.positions.Mut(e)
		p.X += g.rng.Float64() - 0.5
		p.Y += g.rng.Float64() - 0.5
	}
	if g.rng.IntN(2) == 0 && g.world.Len() < 420 {
		g.spawn([]string{"villager", "orc", "villager", "villager"}[g.rng.IntN(4)])
	}
}

func (g *game) hunt(e ecs.Entity, prey []ecs.Entity) {
	t, ok := g.targets.Get(e)
	if !ok || !g.world.Alive(t.Of) {
		if len(prey) == 0 || g.rng.IntN(6) > 0 {
			return
		}
		g.targets.Set(e, Target{prey[g.rng.IntN(len(prey))], g.world.Tick()})
		return
	}
	to, _ := g.positions.Get(t.Of)
	p := g.positions.Mut(e)
	dx, dy := to.X-p.X, to.Y-p.Y
	d := math.Hypot(dx, dy)
	if d > 1.5 {
		p.X, p.Y = p.X+dx/d, p.Y+dy/d
		return
	}
	h := g.healths.Mut(t.Of)
	if h.Now -= int32(1 + g.rng.IntN(3)); h.Now < 40 && !g.fled.Has(t.Of) {
		g.fled.Set(t.Of, Fled{})
	}
	if h.Now <= 0 {
		g.world.Destroy(t.Of)
		g.score.Mut().Fallen++
	}
}

// play makes a store of the given number of ticks, with marks, inputs, rewound branches and
// snapshots. It leaves the store open.
func play(t testing.TB, dir string, ticks int) (*game, *persist.Store) {
	t.Helper()
	g := newGame()
	store, err := persist.Open(context.Background(), dir, g.world, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 240 {
		g.spawn("villager")
	}
	for range 90 {
		g.spawn("orc")
	}
	for n := range ticks {
		switch {
		case n == ticks/3:
			mark(t, store, "first-blood")
		case n == ticks/2:
			mark(t, store, "the raid")
		case n%(ticks/4) == ticks/8:
			if err := g.world.History().Rewind(min(ticks/16, 250)); err != nil {
				t.Fatal(err)
			}
		case n%(ticks/5) == ticks/7:
			if _, err := store.Snapshot(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if n%37 == 0 {
			if err := store.Input("order", []byte(`{"march":"east"}`)); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, g, store)
	}
	if err := store.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	return g, store
}

func mark(t testing.TB, store *persist.Store, name string) {
	t.Helper()
	if err := store.Mark(name); err != nil {
		t.Fatal(err)
	}
}

func commit(t testing.TB, g *game, store *persist.Store) {
	t.Helper()
	g.step()
	if err := store.Commit(); err != nil {
		t.Fatal(err)
	}
}
