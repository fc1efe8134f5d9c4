package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// References among copied entities name the copies.
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
