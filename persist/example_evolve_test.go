package persist_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A field is renamed and a number becomes wider. The tag gives the former name.
func ExampleLoad_evolution() {
	dir, _ := os.MkdirTemp("", "stet")
	defer os.RemoveAll(dir)
	ctx, file := context.Background(), filepath.Join(dir, "save")

	{ // The earlier version of the program.
		type Unit struct{ HP, Level int16 }
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister[Unit](w).Set(w.Create(), Unit{30, 2})
		fmt.Println(persist.Save(ctx, file, w))
	}
	type Fighter struct {
		Life  int32 `stet:",was=HP"`
		Level int16
		Mana  int32
	}
	w := ecs.NewWorld(ecs.Options{})
	fighters := ecs.MustRegister(w, ecs.Component[Fighter]{FormerNames: []string{"Unit"}})
	fmt.Println(persist.Load(ctx, file, w), fighters.Values())
	fmt.Println(w.Raw().Converted()[0])
	// Output:
	// <nil>
	// <nil> [{30 2 0}]
	// Fighter: was Unit
	// Fighter: Fighter.Life: was HP
	// Fighter: Fighter.Life: int16 became int32
	// Fighter: Fighter.Mana: added, zero
}

// Conversions that names cannot express need a version and a function.
func ExampleOpen_migration() {
	dir, _ := os.MkdirTemp("", "stet")
	defer os.RemoveAll(dir)
	ctx := context.Background()

	type Feet struct{ Length float64 }
	before := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(before, ecs.Component[Feet]{Name: "Rope"}).Set(before.Create(), Feet{100})
	store, _ := persist.Open(ctx, dir, before, persist.Options{})
	_ = store.Close(ctx)

	type Rope struct{ Metres float64 }
	w := ecs.NewWorld(ecs.Options{})
	ropes := ecs.MustRegister(w, ecs.Component[Rope]{Version: 1, Migrations: []ecs.Migration{ecs.Migrate(0, func(old Feet) Rope { return Rope{float64(old.Length * 0.3048)} })}})
	store, err := persist.Open(ctx, dir, w, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ropes.Values(), store.Report().Converted[0])
	fmt.Println(store.Close(ctx))
	// Output:
	// [{30.48}] Rope: migrated from version 0 to 1
	// <nil>
}
