package chapters_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

type (
	battleHealth struct{ HP int }
	battlePoison struct{ Damage int }
)

// A battle is a game of a snake and three orcs.
type battle struct {
	world    *ecs.World
	healths  *ecs.Storage[battleHealth]
	poisons  *ecs.Storage[battlePoison]
	poisoned *ecs.Query2[battleHealth, battlePoison]
	repaired bool
}

func newBattle(repaired bool) *battle {
	world := ecs.NewWorld(ecs.Options{})
	healths := ecs.MustRegister(world, ecs.Component[battleHealth]{Name: "Health"})
	poisons := ecs.MustRegister(world, ecs.Component[battlePoison]{Name: "Poison"})
	return &battle{world, healths, poisons, ecs.NewQuery2(ecs.Write(healths), ecs.Read(poisons)), repaired}
}

// step runs a tick. Each input is a bite of the snake: its first byte is the index of the bitten
// orc.
func (b *battle) step(inputs []inspect.Input) {
	if b.world.Tick() == 0 {
		for _, hp := range []int{30, 12, 20} {
			b.healths.Set(b.world.Create(), battleHealth{hp})
		}
	}
	for _, bite := range inputs {
		b.poisons.Set(b.healths.Entities()[bite.Data[0]], battlePoison{3})
	}
	b.hurt()
}

// hurt is a system with a bug, unless it is repaired.
func (b *battle) hurt() {
	for orc, row := range b.poisoned.All() {
		health, poison := row.Get()
		health.HP -= poison.Damage
		if health.HP == 0 || b.repaired && health.HP < 0 {
			b.world.Destroy(orc)
		}
	}
}

// recordBattle plays ten ticks, and writes a report next to dir. In ticks 2 and 3, the snake bites
// orcs 1 and 2.
func recordBattle(dir string) error {
	clock := time.Date(2026, 11, 24, 20, 0, 0, 0, time.UTC)
	// The page shows the times of the ticks, so these must be the same in each run.
	options := persist.Options{Now: func() time.Time { return clock }}
	game := newBattle(false)
	store, err := persist.Open(ctx, dir, game.world, options)
	check(err)
	bites := map[uint64]byte{1: 1, 2: 2}
	for tick := range uint64(10) {
		clock = clock.Add(time.Second)
		var inputs []inspect.Input
		if orc, ok := bites[tick]; ok {
			inputs = []inspect.Input{{Name: "bite", Data: []byte{orc}}}
			check(store.Input("bite", []byte{orc}))
		}
		game.step(inputs)
		check(store.Commit())
	}
	check(saveReport(store, dir+".zip"))
	return store.Close(ctx)
}

// saveReport writes an open store to a zip file.
func saveReport(store *persist.Store, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(store.BackupTo(ctx, file), file.Close())
}

func Example_bugsReplay() {
	dir := filepath.Join(tempDir(), "battle")
	check(recordBattle(dir))
	for _, repaired := range []bool{false, true} {
		game := newBattle(repaired)
		step := func(_ *ecs.World, _ uint64, inputs []inspect.Input) error {
			game.step(inputs) // Run only the systems. The player ends the tick.
			return nil
		}
		player, err := inspect.OpenPlayer(ctx, dir+".zip", game.world, inspect.PlayerOptions{Step: step})
		check(err)
		for err == nil {
			err = player.Step(ctx) // Plays one tick.
		}
		tick, _, differs := player.Diverged()
		fmt.Println("repaired:", repaired, "differs:", differs, tick, "orcs:", game.world.Len(), err)
		check(player.Close())
	}
	// Output:
	// repaired: false differs: false 0 orcs: 2 EOF
	// repaired: true differs: true 9 orcs: 1 EOF
}

func Example_bugsStep() {
	world := ecs.NewWorld(ecs.Options{History: 600})
	health := ecs.Must(ecs.RegisterResource(world, 100, ecs.Component[int]{Name: "Health"}))
	systems := schedule.New[int](world)
	systems.Add("poison", health, func(*schedule.Tick[int]) { *health.Mut() -= 3 })
	systems.Add("potion", health, func(t *schedule.Tick[int]) { *health.Mut() += t.Input })
	for tick := range 5 {
		systems.Step(tick)
		world.Commit()
	}
	fmt.Println("tick", world.Tick(), "health", health.Get())

	check(world.History().Seek(2)) // The value of tick 3 is wrong. Its input was 2.
	for name := systems.StepSystem(2); name != ""; name = systems.StepSystem(2) {
		fmt.Println("after", name, health.Get())
	}
	fmt.Println("undone:", systems.BackSystem(), health.Get())
	// Output:
	// tick 5 health 95
	// after poison 92
	// after potion 94
	// undone: potion 92
}
