package chapters_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
)

func Example_comingFrom() {
	type Position struct{ X int }
	type Bullet struct{ Speed, Damage int }
	type Health struct{ HP int }
	type Died struct{ Who ecs.Entity }

	world := ecs.NewWorld(ecs.Options{History: 100})
	positions, bullets := ecs.MustRegister[Position](world), ecs.MustRegister[Bullet](world)
	healths, died := ecs.MustRegister[Health](world), ecs.Must(ecs.RegisterEvent[Died](world))
	news := ecs.Must(died.Reader("news"))
	flying := ecs.NewQuery2(ecs.Write(positions), ecs.Read(bullets))
	targets := ecs.NewQuery2(ecs.Read(positions), ecs.Read(healths))

	hit := func() {
		for bullet, row := range flying.All() {
			at, shot := row.Get()
			at.X += shot.Speed
			for target, row := range targets.All() {
				if row.A.X != at.X {
					continue
				}
				health := healths.Mut(target) // Mut marks only this row as written.
				health.HP -= shot.Damage
				if health.HP <= 0 {
					died.Send(Died{target})
					world.Destroy(target) // It is gone at once, so the next bullet cannot hit it.
				}
				world.Destroy(bullet)
				break
			}
		}
	}
	ecs.NewBundle2(positions, bullets).CreateN(nil, 2, Position{}, Bullet{Speed: 1, Damage: 5})
	ecs.NewBundle2(positions, healths).Create(Position{X: 3}, Health{HP: 8})
	for range 3 {
		hit()
		for event := range news.All() {
			fmt.Println(event.Who, "died, left:", world.Len())
		}
		world.Commit()
	}
	check(world.History().Rewind(1)) // One tick back: all of them are there again.
	fmt.Println("left:", world.Len(), healths.Values())
	// Output:
	// 2v1 died, left: 0
	// left: 3 [{8}]
}

type enemy struct{}

// A wave is a resource: the state of the coroutine.
type wave struct {
	Due     uint64 // The tick in which the enemies come.
	Running bool   // The enemies have come.
}

type waveGame struct {
	World *ecs.World
	Enemy *ecs.Storage[enemy]
	Wave  *ecs.Resource[wave]
}

// runWave is a system. A tick is 1/60 s, so 180 ticks are 3 s.
func (g *waveGame) runWave(t *schedule.Tick[int]) {
	switch w := g.Wave.Get(); {
	case w.Due == 0 || w.Running && g.Enemy.Len() == 0: // yield return new WaitForSeconds(3);
		g.Wave.Set(wave{Due: t.Number + 180})
	case !w.Running && t.Number == w.Due:
		for range 5 {
			g.Enemy.Set(g.World.Create(), enemy{})
		}
		g.Wave.Set(wave{Due: w.Due, Running: true}) // yield return new WaitUntil(() => dead == 5);
	}
}

func TestComingFromUnity_Coroutine(t *testing.T) {
	g := &waveGame{World: ecs.NewWorld(ecs.Options{})}
	g.Enemy = ecs.MustRegister[enemy](g.World)
	g.Wave = ecs.Must(ecs.RegisterResource(g.World, wave{}, ecs.Component[wave]{Name: "Wave"}))
	systems := schedule.New[int](g.World)
	systems.Add("wave", nil, g.runWave)
	alive := map[uint64]int{}
	for range 500 {
		systems.Step(0)
		g.World.Commit()
		alive[g.World.Tick()] = g.Enemy.Len()
		if g.World.Tick() == 200 {
			g.World.DestroyFound(ecs.NewQuery1(ecs.Read(g.Enemy)))
		}
	}
	assert.Equal(t, []int{0, 5, 5, 0, 0, 5, 5}, []int{alive[180], alive[181], alive[200], alive[201], alive[380], alive[381], alive[500]})
}

// The chapter has a table of these results.
func TestComingFromArk_Misuse(t *testing.T) {
	type Position struct{ X int }
	type Health struct{ HP, hidden int }
	type Brain struct{ Mood fmt.Stringer }
	world := ecs.NewWorld(ecs.Options{})
	positions, healths := ecs.MustRegister[Position](world), ecs.MustRegister[Health](world)
	e, dead := world.Create(), world.Create()
	require.True(t, world.Destroy(dead))

	health, ok := healths.Get(e)
	assert.Zero(t, health)
	assert.False(t, ok)
	assert.Nil(t, healths.Mut(e))
	assert.False(t, healths.Remove(e))
	assert.False(t, healths.Set(dead, Health{}))
	assert.False(t, world.Destroy(dead))

	require.True(t, positions.Set(e, Position{1}))
	require.True(t, positions.Set(e, Position{2}))
	at := positions.Mut(e)
	require.True(t, healths.Set(e, Health{3, 4}))
	at.X = 99 // The pointer is valid, because no row of positions moved.
	assert.Equal(t, []Position{{99}}, positions.Values())

	var save bytes.Buffer
	require.NoError(t, persist.SaveTo(t.Context(), &save, world))
	for e := range positions.All() {
		healths.Remove(e)
		world.Destroy(e)
	}
	require.NoError(t, persist.LoadFrom(t.Context(), &save, world))
	assert.Equal(t, []Health{{3, 4}}, healths.Values())
	assert.Equal(t, "1v2", world.Create().String())

	_, err := ecs.Register[Brain](world)
	assert.ErrorContains(t, err, "Brain.Mood: interface values cannot be stored")
}
