package ecs_test

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
)

// An index is reused with a higher generation, so an old handle never refers to a new entity.
func ExampleWorld_Destroy() {
	world := ecs.NewWorld(ecs.Options{})
	a, b := world.Create(), world.Create()
	fmt.Println(world.Destroy(a), world.Destroy(a))
	c := world.Create()
	fmt.Println(c, world.Alive(a), world.Alive(b), world.Alive(c))
	fmt.Println(world.Entities())
	// Output:
	// true false
	// 0v2 false true true
	// [1v1 0v2]
}

func ExampleWorld_CreateAt() {
	w := ecs.NewWorld(ecs.Options{})
	chest := w.Create()
	w.Destroy(chest)
	// An editor can use CreateAt to undo a Destroy. The chest gets its old id, so all references to
	// it are valid again.
	fmt.Println(w.CreateAt(chest), w.Alive(chest))
	fmt.Println(w.CreateAt(chest))
	// Output:
	// <nil> true
	// ecs: CreateAt(0v1): the index is taken: 0v1 is alive
}

// Get returns a copy. Mut returns a pointer into the storage. Set adds or replaces a component.
func ExampleStorage() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()

	fmt.Println(positions.Set(e, Position{X: 1}), positions.Has(e))
	positions.Mut(e).Y = 2
	fmt.Println(positions.Get(e))
	fmt.Println(positions.Remove(e), positions.Remove(e))
	fmt.Println(positions.Get(e))
	// Output:
	// true true
	// {1 2} true
	// true false
	// {0 0} false
}

// Remove moves the last row into the row of the removed component.
func ExampleStorage_All() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	for i := range 4 {
		positions.Set(world.Create(), Position{X: float64(i)})
	}
	positions.Remove(world.Entities()[1])
	for e, p := range positions.All() {
		fmt.Println(e, p.X)
	}
	positions.Clear()
	fmt.Println(positions.Len(), world.Len())
	// Output:
	// 0v1 0
	// 3v1 3
	// 2v1 2
	// 0 4
}

// A resource is a value that exists once per world.
func ExampleRegisterResource() {
	type Clock struct{ Hour int }
	world := ecs.NewWorld(ecs.Options{})
	clock, err := ecs.RegisterResource(world, Clock{Hour: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = world.Try(func() error {
		clock.Mut().Hour = 25
		return fmt.Errorf("no hour is %d", clock.Get().Hour)
	})
	fmt.Println(clock.Get(), err)
	// Output:
	// {6} no hour is 25
}

// A save identifies a component by its name, so the Go type may be renamed.
func ExampleComponent_name() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister(world, ecs.Component[Position]{Name: "pos"})
	_, err := ecs.Register(world, ecs.Component[Velocity]{Name: "pos"})
	reason, _, _ := strings.Cut(err.Error(), "; ")
	fmt.Println(positions.Name())
	fmt.Println(reason)
	// Output:
	// pos
	// ecs: name cannot be used: register ecs_test.Velocity: the name "pos" is taken
}

// A restore does not change a NoRewind component.
func ExampleComponent_noRewind() {
	world := ecs.NewWorld(ecs.Options{})
	turn := ecs.Must(ecs.RegisterResource(world, 1, ecs.Component[int]{Name: "Turn"}))
	tries := ecs.Must(ecs.RegisterResource(world, 0, ecs.Component[int]{Name: "Tries", NoRewind: true}))
	start := world.Checkpoint()
	for range 3 {
		*turn.Mut()++
		*tries.Mut()++
		world.Restore(start)
	}
	fmt.Println(turn.Get(), tries.Get())
	// Output: 1 3
}

// A NoPersist component is rewound, but is not stored in journals, snapshots and saves.
func ExampleComponent_noPersist() {
	world := ecs.NewWorld(ecs.Options{})
	cached := ecs.MustRegister(world, ecs.Component[Velocity]{NoPersist: true}).Raw()
	fmt.Println(cached.Rewinds(), cached.Persistent())
	// Output: true false
}

// Commit ends a tick. With a history, the world can go back to earlier ticks.
func ExampleWorld_Commit() {
	world := ecs.NewWorld(ecs.Options{History: 2})
	for range 3 {
		world.Create()
		world.Commit()
	}
	history := world.History()
	fmt.Println("tick", world.Tick(), "of", history.Oldest(), "to", history.Newest())
	fmt.Println(history.Rewind(2), world.Len(), history.Seek(0))
	// Output:
	// tick 3 of 1 to 3
	// <nil> 1 ecs: tick not held: seek tick 0; the oldest retained tick is 1, the newest 3
}

// Checkpoints nest. Release removes a checkpoint and keeps the changes made since.
func ExampleWorld_Checkpoint() {
	world := ecs.NewWorld(ecs.Options{})
	outer := world.Checkpoint()
	world.Create()
	inner := world.Checkpoint()
	world.Create()
	world.Release(inner)
	fmt.Println(world.Len(), inner.Valid(), outer.Valid())
	world.Restore(outer)
	fmt.Println(world.Len())
	// Output:
	// 2 false true
	// 0
}

// OnRestore updates data outside of the world that is derived from the world.
func ExampleWorld_OnRestore() {
	world := ecs.NewWorld(ecs.Options{})
	drawn := 0
	world.OnRestore(func() { drawn = world.Len() })
	cp := world.Checkpoint()
	drawn = len(world.CreateN(nil, 3))
	world.Restore(cp)
	fmt.Println(drawn)
	// Output: 0
}

// A clone is an independent world. In returns the clone's storage that corresponds to a storage of
// the original.
func ExampleWorld_Clone() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	positions.Set(e, Position{X: 1})

	other := world.Clone()
	positions.In(other).Mut(e).X = 7
	fmt.Println(positions.Values(), positions.In(other).Values())
	// Output: [{1 0}] [{7 0}]
}

// Digests show which storage differs.
func ExampleWorld_Digests() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	e := world.Create()
	positions.Set(e, Position{})
	velocities.Set(e, Velocity{})
	other := world.Clone()
	fmt.Println(world.Digest() == other.Digest())

	velocities.In(other).Mut(e).Y = 1
	ours, theirs := world.Digests(nil), other.Digests(nil)
	for i, s := range ours.Storages {
		fmt.Println(s.Name, s.Digest == theirs.Storages[i].Digest)
	}
	// Output:
	// true
	// Position true
	// Velocity false
}

// In the copies, references between the copied entities refer to the copies.
func ExampleWorld_Copy() {
	type Rider struct{ Horse ecs.Entity }
	prefabs, level := ecs.NewWorld(ecs.Options{}), ecs.NewWorld(ecs.Options{})
	riders := ecs.MustRegister[Rider](prefabs)
	inLevel := ecs.MustRegister[Rider](level)
	knight, horse := prefabs.Create(), prefabs.Create()
	riders.Set(knight, Rider{horse})
	level.CreateN(nil, 5)

	copies, err := level.Copy(prefabs, []ecs.Entity{knight, horse}, ecs.CopyOptions{})
	fmt.Println(copies, err)
	fmt.Println(inLevel.Get(copies[0]))

	for e, storage := range level.References(copies[1]) {
		fmt.Println(e, "refers to", copies[1], "by its", storage.Name())
	}
	// Output:
	// [5v1 6v1] <nil>
	// {6v1} true
	// 5v1 refers to 6v1 by its Rider
}

func ExampleWorld_CloneEntity() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	positions.Set(e, Position{X: 1})
	twin, _ := world.CloneEntity(e)
	positions.Mut(twin).X = 2
	fmt.Println(twin, positions.Values())
	// Output: 1v1 [{1 0} {2 0}]
}

// Destroying an entity does not update references to it. Before the entity is destroyed, References
// finds the components that refer to it.
func ExampleWorld_References() {
	type Rider struct{ Horse ecs.Entity }
	type Herd struct{ Members [3]ecs.Entity }
	world := ecs.NewWorld(ecs.Options{})
	riders := ecs.MustRegister[Rider](world)
	herds := ecs.MustRegister[Herd](world)
	horse, knight, herd := world.Create(), world.Create(), world.Create()
	riders.Set(knight, Rider{horse})
	herds.Set(herd, Herd{[3]ecs.Entity{1: horse}})

	for e, storage := range world.References(horse) {
		fmt.Println(e, storage.Name())
	}
	// Output:
	// 1v1 Rider
	// 2v1 Herd
}

// MemoryUsage lists the bytes of undo logs separately from the bytes of rows.
func ExampleWorld_MemoryUsage() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	entities := world.CreateN(nil, 256)
	positions.SetAll(entities, Position{})
	before := world.MemoryUsage().Storages[0]

	world.Checkpoint()
	positions.SetAll(entities, Position{X: 1})
	after := world.MemoryUsage().Storages[0]
	fmt.Println(before.Name, before.Data, before.Dense, before.Undo)
	fmt.Println(after.Data, after.Undo >= 256*16)
	// Output:
	// Position 4096 2048 0
	// 4096 true
}

// A checkpoint that is never released needs more and more memory. Its name says where it was taken.
func ExampleWorld_CheckpointAs() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	positions.Set(e, Position{})
	world.Commit()
	world.CheckpointAs("before the AI thinks")
	positions.Mut(e).X = 1
	for cp := range world.Checkpoints() {
		fmt.Println(cp.Name(), "- in tick", cp.Tick()+1, "- needs memory:", cp.Bytes() > 0)
	}
	// Output:
	// before the AI thinks - in tick 2 - needs memory: true
}

// Dirty tells an autosave whether anything changed. Restores tells a cache that the world went
// back.
func ExampleWorld_Dirty() {
	world := ecs.NewWorld(ecs.Options{History: 5})
	positions := ecs.MustRegister[Position](world)
	e := world.Create()
	fmt.Println("after Create:", world.Dirty())
	world.Commit()
	fmt.Println("after Commit:", world.Dirty(), world.Restores())
	positions.Set(e, Position{})
	world.Commit()
	if err := world.History().Rewind(1); err != nil {
		fmt.Println(err)
	}
	fmt.Println("after Rewind:", world.Dirty(), world.Restores(), positions.Has(e))
	blank := world.Blank(nil) // The same storages, without entities.
	fmt.Println("blank:", blank.Len(), "entities,", len(blank.Storages()), "storage")
	// Output:
	// after Create: true
	// after Commit: false 0
	// after Rewind: false 1 false
	// blank: 0 entities, 1 storage
}

// Entities are printed as index and generation, and can be read back.
func ExampleParseEntity() {
	e, err := ecs.ParseEntity("12v3")
	fmt.Println(e.Index(), e.Generation(), err, e == ecs.NewEntity(12, 3))
	_, err = ecs.ParseEntity("twelve")
	fmt.Println(err)
	// Output:
	// 12 3 <nil> true
	// ecs: "twelve" is not an entity; write INDEXvGENERATION, as in 12v3
}
