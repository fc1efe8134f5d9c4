package persist_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Open and Save also work with a file system in memory.
func ExampleOptions_files() {
	type Position struct{ X, Y int }
	ctx, files := context.Background(), disk.Memory()

	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](w)
	store, err := persist.Open(ctx, ".", w, persist.Options{Files: files})
	if err != nil {
		log.Fatal(err)
	}
	positions.Set(w.Create(), Position{1, 2})
	if err := store.Commit(); err != nil {
		log.Fatal(err)
	}
	if _, err := store.Snapshot(ctx); err != nil {
		log.Fatal(err)
	}
	if err := store.Close(ctx); err != nil {
		log.Fatal(err)
	}
	if err := persist.Save(ctx, "game.save", w, persist.FileOptions{Files: files}); err != nil {
		log.Fatal(err)
	}

	v, err := inspect.OpenFS(ctx, files, "game.save")
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	fmt.Println(v.IsSave(), v.Snapshots()[0].Digest == w.Digest())

	again := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[Position](again)
	if err := persist.Load(ctx, "game.save", again, persist.FileOptions{Files: files}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Digest() == w.Digest())
	if err := files.Remove("game.save"); err != nil { // A store may contain only its own files.
		log.Fatal(err)
	}

	again = ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[Position](again)
	store, err = persist.Open(ctx, ".", again, persist.Options{Files: files})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close(ctx)
	fmt.Println(again.Digest() == w.Digest(), store.Report().Clean)
	// Output:
	// true true
	// true
	// true true
}
