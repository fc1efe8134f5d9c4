package chapters_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

func Example_diskSlots() {
	world := ecs.NewWorld(ecs.Options{})
	level := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "Level"}))
	best := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "Best", NoRewind: true}))
	store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
	check(err)
	play := func(levels int) {
		for range levels {
			*level.Mut()++
			best.Set(max(best.Get(), level.Get()))
			check(store.Commit())
		}
	}
	play(3)
	_, err = store.SaveSlot(ctx, "quick", "at the bridge")
	check(err)
	play(2)
	check(store.LoadSlot(ctx, "quick"))
	fmt.Println("level", level.Get(), "best", best.Get())
	for _, slot := range store.Slots() {
		fmt.Printf("%s: tick %d, %s\n", slot.Name, slot.Tick, slot.Note)
	}
	check(store.Commit())
	check(store.Close(ctx))
	// Output:
	// level 3 best 5
	// quick: tick 3, at the bridge
}

func Example_diskFile() {
	world := ecs.NewWorld(ecs.Options{})
	level := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "Level"}))
	store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
	check(err)
	file := filepath.Join(tempDir(), "game1.save")
	level.Set(3)
	check(store.Commit())
	saved := persist.SaveBehind(ctx, file, world) // A goroutine writes the file.
	level.Set(4)                                  // The game goes on.
	check(store.Commit())
	check(<-saved)

	check(store.Load(ctx, file))
	fmt.Println("loaded: level", level.Get())
	check(store.Goto(ctx, "@latest~1"))
	fmt.Println("before the load: level", level.Get())
	check(store.Close(ctx))
	// Output:
	// loaded: level 3
	// before the load: level 4
}

func Example_diskFull() {
	files := disktest.New() // A disk in memory, for tests.
	world := ecs.NewWorld(ecs.Options{})
	store, err := persist.Open(ctx, ".", world, persist.Options{Files: files})
	check(err)
	files.FailFrom(files.Calls()+1, syscall.ENOSPC)
	_ = store.Commit() // Does not wait for the disk, so it may return nil.
	fmt.Println("full:", errors.Is(store.Sync(ctx), syscall.ENOSPC))
	printError(store.Commit()) // The game goes on in memory.

	files.FailFrom(0, nil) // The player has deleted some films.
	check(store.Resume(ctx))
	fmt.Println(store.Commit(), store.Sync(ctx), "tick", world.Tick())
	check(store.Close(ctx))
	// Output:
	// full: true
	// persist: journal failed, nothing later is saved until Store.Resume: journal: write
	// 00000001.seg: write journal/00000001.seg: no space left on device
	// <nil> <nil> tick 3
}

// The chapter says which tick SaveSlot and MarkLast name, and what fills the history after a load.
func TestDisk_SlotAndHistoryAfterLoad(t *testing.T) {
	dir := t.TempDir()
	world := ecs.NewWorld(ecs.Options{History: 100})
	store, err := persist.Open(ctx, dir, world, persist.Options{})
	require.NoError(t, err)
	commit := func(n int) {
		for range n {
			require.NoError(t, store.Commit())
		}
	}
	named := func(tick uint64) {
		t.Helper()
		slot, err := store.SaveSlot(ctx, "quick", "")
		require.NoError(t, err)
		require.Equal(t, tick, slot.Tick)
		require.NoError(t, store.MarkLast("last"))
		commit(1)
		require.NoError(t, store.Goto(ctx, "mark:last"))
		require.Equal(t, tick, world.Tick())
	}
	commit(20)
	require.NoError(t, persist.Save(ctx, dir+".save", world))
	require.NoError(t, world.History().Rewind(3))
	named(17)
	require.NoError(t, store.Load(ctx, dir+".save"))
	named(20)
	require.NoError(t, store.Goto(ctx, "10"))
	named(10)

	require.NoError(t, store.LoadSlot(ctx, "quick"))
	require.Equal(t, uint64(10), world.History().Oldest())
	require.NoError(t, store.Goto(ctx, "snap:quick~6"))
	require.Equal(t, []uint64{4, 4}, []uint64{world.Tick(), world.History().Oldest()})
	require.NoError(t, store.Close(ctx))
	store, err = persist.Open(ctx, dir, world, persist.Options{At: "snap:quick", History: 6})
	require.NoError(t, err)
	require.Equal(t, []uint64{10, 4}, []uint64{world.Tick(), world.History().Oldest()})
	require.NoError(t, store.Close(ctx))
}
