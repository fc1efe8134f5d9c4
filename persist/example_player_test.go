package persist_test

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// newPatient returns a world of one patient, and a function that heals the patient. The health
// never exceeds the parameter most.
func newPatient(most int) (w *ecs.World, heal func([]inspect.Input) error) {
	w = ecs.NewWorld(ecs.Options{})
	health := ecs.Must(ecs.RegisterResource(w, 50, ecs.Component[int]{Name: "Health"}))
	return w, func(inputs []inspect.Input) error {
		for _, in := range inputs {
			health.Set(min(most, health.Get()+int(in.Data[0])))
		}
		return nil
	}
}

// recordHealing creates a store in dir. It has one tick for each dose, and each tick heals by that
// dose.
func recordHealing(ctx context.Context, dir string, doses ...byte) error {
	w, heal := newPatient(1000)
	store, err := persist.Open(ctx, dir, w, persist.Options{})
	if err != nil {
		return err
	}
	for _, points := range doses {
		dose := []byte{points}
		if err := heal([]inspect.Input{{Name: "dose", Data: dose}}); err != nil {
			return err
		}
		if err := store.Input("dose", dose); err != nil {
			return err
		}
		if err := store.Commit(); err != nil {
			return err
		}
	}
	return store.Close(ctx)
}

// A newer version of a program replays its journaled inputs. The first tick with another result
// shows where the versions differ: here healing now stops at 100.
func ExamplePlayer() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	if err := recordHealing(ctx, dir, 30, 20, 5, 10); err != nil {
		fmt.Println(err)
		return
	}
	w, heal := newPatient(100)
	player, err := inspect.OpenPlayer(ctx, dir, w, inspect.PlayerOptions{
		Step: func(_ *ecs.World, _ uint64, inputs []inspect.Input) error { return heal(inputs) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer player.Close()
	for err == nil { // Step returns io.EOF at the end.
		err = player.Step(ctx)
	}
	tick, name, _ := player.Diverged()
	fmt.Printf("played ticks %d to %d: %s is another from tick %d on\n", player.First(), player.Tick(), name, tick)
	// Output:
	// played ticks 0 to 4: Health is another from tick 3 on
}
