package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

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
