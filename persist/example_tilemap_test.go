package persist_test

import (
	"context"
	"fmt"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A tile map is one resource. A tick journals only the changed bytes of the map.
func Example_tileMap() {
	type Tiles struct{ Cells [256][256]uint8 }
	ctx := context.Background()
	files := disk.Memory()
	world := ecs.NewWorld(ecs.Options{})
	tiles := ecs.Must(ecs.RegisterResource(world, Tiles{}))
	store, err := persist.Open(ctx, ".", world, persist.Options{Files: files})
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range 10 {
		tiles.Mut().Cells[100][x] = 7 // The program opens a door and digs through a wall.
		if err := store.Commit(); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := store.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}

	view, err := inspect.OpenFS(ctx, files, ".")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer view.Close()
	commits, _ := view.Commits(10, 10)
	fmt.Println("the map has", 256*256, "bytes; a tick that wrote one takes less than 100:", commits[0].Bytes < 100)
	// Output:
	// the map has 65536 bytes; a tick that wrote one takes less than 100: true
}
