// Command benchdata writes the data sets for the benchmarks of ecsdump. The data sets are a save of
// 1 GB, a store of 50,000 ticks, and a store of 200,000 entities. The last store has 5,000 ticks,
// branches and marks.
//
//	go run ./internal/benchdata DIR [large.save|long|wide]...
//
// The seeds are fixed, so the data sets of two machines differ only in times.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// The components have all kinds of rows: small, large and variable-sized ones, tags, and references
// to other entities.
type (
	Position  struct{ X, Y, Z float64 }
	Velocity  struct{ X, Y, Z float32 }
	Transform struct{ Rows [4][4]float32 }
	Stats     struct{ Values [16]int32 }
	Health    struct{ Points, Most int32 }
	Team      struct{ Number uint8 }
	Target    struct{ Of ecs.Entity }
	Parent    struct{ Of ecs.Entity }
	Label     struct{ Text string }
	Bag       struct{ Items []Item }
	Item      struct {
		Kind  uint16
		Count uint32
	}
	Frozen  struct{}
	Visible struct{}
	Cooling struct{ Until uint64 }

	// Score is a resource.
	Score struct{ Points, Waves int64 }
)

// A game is a world with all of these components.
type game struct {
	*ecs.World
	position  *ecs.Storage[Position]
	velocity  *ecs.Storage[Velocity]
	transform *ecs.Storage[Transform]
	stats     *ecs.Storage[Stats]
	health    *ecs.Storage[Health]
	team      *ecs.Storage[Team]
	target    *ecs.Storage[Target]
	parent    *ecs.Storage[Parent]
	label     *ecs.Storage[Label]
	bag       *ecs.Storage[Bag]
	frozen    *ecs.Storage[Frozen]
	visible   *ecs.Storage[Visible]
	cooling   *ecs.Storage[Cooling]
	score     *ecs.Resource[Score]
	random    *rand.Rand
}

func newGame(seed uint64) *game {
	w := ecs.NewWorld(ecs.Options{})
	return &game{
		World: w, random: rand.New(rand.NewPCG(seed, 1)),
		position: ecs.MustRegister[Position](w), velocity: ecs.MustRegister[Velocity](w),
		transform: ecs.MustRegister[Transform](w), stats: ecs.MustRegister[Stats](w),
		health: ecs.MustRegister[Health](w), team: ecs.MustRegister[Team](w),
		target: ecs.MustRegister[Target](w), parent: ecs.MustRegister[Parent](w),
		label: ecs.MustRegister[Label](w), bag: ecs.MustRegister[Bag](w),
		frozen: ecs.MustRegister[Frozen](w), visible: ecs.MustRegister[Visible](w),
		cooling: ecs.MustRegister[Cooling](w), score: ecs.Must(ecs.RegisterResource(w, Score{})),
	}
}

// create creates an entity with some components, chosen by its number n.
func (g *game) create(n int) ecs.Entity {
	e := g.Create()
	r := g.random
	g.position.Set(e, Position{float64(r.Float64() * 1000), float64(r.Float64() * 1000), 0})
	g.team.Set(e, Team{uint8(r.IntN(8))})
	if n%2 == 0 {
		g.health.Set(e, Health{int32(r.IntN(100)), 100})
		g.stats.Set(e, Stats{[16]int32{r.Int32N(20), r.Int32N(20), int32(n)}})
	}
	if n%3 == 0 {
		g.velocity.Set(e, Velocity{r.Float32(), r.Float32(), 0})
		g.visible.Set(e, Visible{})
	}
	if n%4 == 0 {
		g.target.Set(e, Target{g.any()})
	}
	if n%5 < 2 {
		g.transform.Set(e, Transform{[4][4]float32{{1}, {0, 1}, {0, 0, 1}, {r.Float32(), r.Float32(), 0, 1}}})
	}
	if n%6 == 0 {
		g.parent.Set(e, Parent{g.any()})
	}
	if n%10 == 0 {
		g.label.Set(e, Label{fmt.Sprintf("unit %d of wave %d", n, n/1000)})
	}
	if n%16 == 0 {
		g.bag.Set(e, Bag{slices.Repeat([]Item{{uint16(r.IntN(50)), uint32(r.IntN(9) + 1)}}, r.IntN(4))})
		g.cooling.Set(e, Cooling{uint64(n)})
	}
	if n%64 == 0 {
		g.frozen.Set(e, Frozen{})
	}
	return e
}

// any returns a random living entity.
func (g *game) any() ecs.Entity {
	all := g.Entities()
	return all[g.random.IntN(len(all))]
}

// large writes a save of about 1 GB.
func large(ctx context.Context, path string) error {
	g := newGame(1)
	for n := range 7_600_000 {
		g.create(n)
	}
	// New entities reuse free indices, so that rows are not in index order.
	for range 20_000 {
		g.Destroy(g.any())
	}
	*g.score.Mut() = Score{7, 7}
	return persist.Save(ctx, path, g.World)
}

// step changes some rows of g. It also destroys an entity and creates one.
func (g *game) step(rows int) {
	all := g.Entities()
	for range rows {
		e := all[g.random.IntN(len(all))]
		g.position.Mut(e).X++
		if h := g.health.Mut(e); h != nil && g.random.IntN(4) == 0 {
			h.Points--
		}
	}
	n := g.random.IntN(1 << 20)
	g.Destroy(all[g.random.IntN(len(all))])
	g.target.Set(g.create(n), Target{g.any()})
	g.score.Mut().Points++
}

// journaled writes a store of a world. Each tick changes the given number of rows. Every 500th tick
// gets a mark. If branchEvery is not 0, the world goes back by 20 ticks after every branchEvery
// ticks. This creates branches.
func journaled(ctx context.Context, path string, seed uint64, entities, ticks, rows, branchEvery int) error {
	g := newGame(seed)
	for n := range entities {
		g.create(n)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := start
	s, err := persist.Open(ctx, path, g.World, persist.Options{Now: func() time.Time { clock = clock.Add(16 * time.Millisecond); return clock }})
	if err != nil {
		return err
	}
	for n := 1; n <= ticks && err == nil; n++ {
		g.step(rows)
		if n%500 == 0 {
			err = s.Mark(fmt.Sprintf("wave-%d", n/500))
		}
		if err == nil {
			err = s.Commit()
		}
		if err == nil && branchEvery > 0 && n%branchEvery == 0 {
			err = s.Goto(ctx, "@latest~20")
		}
	}
	if err != nil {
		return err
	}
	return s.Close(ctx)
}

// made maps the name of each data set in DIR to the function that writes it.
var made = map[string]func(ctx context.Context, path string) error{
	"large.save": large,
	"long":       func(ctx context.Context, path string) error { return journaled(ctx, path, 2, 500, 50_000, 8, 0) },
	"wide":       func(ctx context.Context, path string) error { return journaled(ctx, path, 3, 200_000, 5_000, 200, 800) },
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: benchdata DIR [large.save|long|wide]...")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the data sets with the given names into dir, or all data sets if names is empty. It
// skips existing files.
func run(ctx context.Context, dir string, names []string) error {
	if len(names) == 0 {
		names = []string{"large.save", "long", "wide"}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if made[name] == nil {
			return fmt.Errorf("there is no data set %q", name)
		}
		if err := made[name](ctx, path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
