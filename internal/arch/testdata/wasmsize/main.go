// Program wasmsize is a small program with a store in a browser. A test limits its size.
package main

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/disk/browser"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/persist"
)

type (
	position struct{ X, Y float64 }
	velocity struct{ X, Y float32 }
	score    struct{ Points int }
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
}

func run(ctx context.Context) error {
	files, err := browser.Open(ctx, "size")
	if err != nil {
		return err
	}
	world := ecs.NewWorld(ecs.Options{History: 100})
	positions := ecs.MustRegister[position](world)
	velocities := ecs.MustRegister[velocity](world)
	points := ecs.Must(ecs.RegisterResource(world, score{}))
	moving := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
	store, err := persist.Open(ctx, ".", world, persist.Options{Files: files})
	if err != nil {
		return err
	}
	systems := schedule.New[int](world)
	systems.Add("move", moving, func(*schedule.Tick[int]) {
		for _, row := range moving.All() {
			row.A.X += float64(row.B.X)
		}
	})
	systems.Add("score", points, func(*schedule.Tick[int]) { points.Mut().Points++ })
	e := world.Create()
	positions.Set(e, position{})
	velocities.Set(e, velocity{X: 1})
	for i := range 10 {
		systems.Step(i)
		if err := store.Commit(); err != nil {
			return err
		}
	}
	if _, err := store.SaveSlot(ctx, "a", ""); err != nil {
		return err
	}
	if err := world.History().Rewind(3); err != nil {
		return err
	}
	if err := store.Close(ctx); err != nil {
		return err
	}
	return files.Close()
}
