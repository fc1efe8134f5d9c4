package chapters_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
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
