package chapters_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// unitsV1 has two units of version 1 of a program.
const unitsV1 = "testdata/units-v1.save"

// TestUnitsV1_SaveHasTwoUnits checks the save. With -update, it writes the save if it is missing.
func TestUnitsV1_SaveHasTwoUnits(t *testing.T) {
	type Unit struct {
		HP     int32
		Shield int32
		Speed  float64
	}
	if _, err := os.Stat(unitsV1); *golden.Update && errors.Is(err, fs.ErrNotExist) {
		world := ecs.NewWorld(ecs.Options{})
		units := ecs.MustRegister[Unit](world)
		units.Set(world.Create(), Unit{HP: 100, Shield: 5, Speed: 10})
		units.Set(world.Create(), Unit{HP: 80, Shield: 7, Speed: 20})
		check(persist.Save(ctx, unitsV1, world, persist.FileOptions{Compress: true}))
	}
	world := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister[Unit](world)
	check(persist.Load(ctx, unitsV1, world))
	if got := fmt.Sprint(units.Values()); got != "[{100 5 10} {80 7 20}]" {
		t.Error(got)
	}
}

func Example_evolutionError() {
	type Unit struct {
		Life  int64 // Was HP, an int32. The field Shield does not exist any more.
		Armor int32 // New.
		Speed float64
	}
	world := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[Unit](world)
	printError(persist.Load(ctx, "testdata/units-v1.save", world))
	// Output:
	// persist: schema does not fit: ecs: stored values would be lost:
	// component Unit:
	// Unit.HP: dropped, was int32; if it was renamed: Armor int32 `stet:",was=HP"`, or Life
	// int64 `stet:",was=HP"`
	// Unit.Shield: dropped, was int32; if it was renamed: Armor int32 `stet:",was=Shield"`, or
	// Life int64 `stet:",was=Shield"`
	// to drop: ecs.Component[Unit]{Dropped: []string{"HP", "Shield"}}; to convert:
	// ecs.Component[Unit]{Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(v oldUnit)
	// Unit { … })}}
}

func Example_evolutionRepair() {
	type Unit struct {
		Life  int64 `stet:",was=HP"`
		Armor int32
		Speed float64
	}
	world := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister(world, ecs.Component[Unit]{Dropped: []string{"Shield"}})
	check(persist.Load(ctx, "testdata/units-v1.save", world))
	fmt.Println(units.Values())
	fmt.Println(world.Raw().Converted()[0])
	// Output:
	// [{100 0 10} {80 0 20}]
	// Unit: Unit.Life: was HP
	// Unit: Unit.Life: int32 became int64
	// Unit: Unit.Armor: added, zero
	// Unit: Unit.Shield: dropped, was int32
}

func Example_evolutionMigration() {
	type Unit struct {
		Life, Armor int64
		Speed       float64 // In metres; version 0 of the component had feet.
	}
	type oldUnit struct {
		HP, Shield int64
		Speed      float64
	}
	world := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister(world, ecs.Component[Unit]{Version: 1, Migrations: []ecs.Migration{
		ecs.Migrate(0, func(old oldUnit) Unit {
			return Unit{Life: old.HP, Armor: 10 * old.Shield, Speed: float64(0.3048 * old.Speed)}
		}),
	}})
	check(persist.Load(ctx, "testdata/units-v1.save", world))
	fmt.Println(units.Values())
	// Output:
	// [{100 50 3.048} {80 70 6.096}]
}

// A migrated is a program of the store in TestPlayer_AcrossMigration.
type migrated struct {
	world *ecs.World
	step  func()
}

func oldProgram() migrated {
	type Unit struct{ HP int32 }
	world := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister[Unit](world)
	return migrated{world, func() {
		if world.Tick() == 0 {
			units.Set(world.Create(), Unit{100})
		}
		units.MutValues()[0].HP--
	}}
}

func newProgram() migrated {
	type Unit struct{ HP, Armor int64 }
	world := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister[Unit](world)
	return migrated{world, func() { units.MutValues()[0].Armor++ }}
}

// The chapter says which programs can replay a store whose types have changed.
func TestPlayer_AcrossMigration(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []func() migrated{oldProgram, newProgram} {
		p := program()
		store, err := persist.Open(ctx, dir, p.world, persist.Options{})
		require.NoError(t, err)
		for range 5 {
			p.step()
			require.NoError(t, store.Commit())
		}
		require.NoError(t, store.Close(ctx))
	}
	play := func(p migrated, options inspect.PlayerOptions, steps bool) (tick uint64, err error) {
		if steps {
			options.Step = func(*ecs.World, uint64, []inspect.Input) error { p.step(); return nil }
		}
		player, err := inspect.OpenPlayer(ctx, dir, p.world, options)
		for err == nil {
			err = player.Step(ctx)
		}
		if player != nil {
			_, _, differs := player.Diverged()
			require.False(t, differs)
			require.NoError(t, player.Close())
		}
		return p.world.Tick(), err
	}
	check := func(wantTick uint64, wantErr error, p migrated, o inspect.PlayerOptions, steps bool) {
		t.Helper()
		tick, err := play(p, o, steps)
		require.ErrorIs(t, err, wantErr)
		require.Equal(t, wantTick, tick)
	}
	check(0, persist.ErrSchema, newProgram(), inspect.PlayerOptions{}, true)
	check(10, io.EOF, newProgram(), inspect.PlayerOptions{From: "snap:2"}, true)
	check(10, io.EOF, newProgram(), inspect.PlayerOptions{}, false)
	check(5, io.EOF, oldProgram(), inspect.PlayerOptions{To: "5"}, true)
	check(5, persist.ErrNewer, oldProgram(), inspect.PlayerOptions{}, true)
	check(5, persist.ErrNewer, oldProgram(), inspect.PlayerOptions{}, false)

	_, err := persist.Open(ctx, dir, oldProgram().world, persist.Options{})
	require.ErrorIs(t, err, persist.ErrNewer)
	_, err = persist.Follow(ctx, dir, oldProgram().world)
	require.ErrorIs(t, err, persist.ErrNewer)
}
