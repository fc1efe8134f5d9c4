package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// After a rewind, the dice roll the same numbers again.
func ExampleRegisterRand() {
	world := ecs.NewWorld(ecs.Options{History: 1})
	dice := ecs.Must(ecs.RegisterRand(world, 1, 2))
	world.Commit()
	roll := func() (rolls []int) {
		for range 6 {
			rolls = append(rolls, 1+dice.IntN(6))
		}
		return rolls
	}
	fmt.Println(roll())
	fmt.Println(roll())
	_ = world.History().Rewind(0) // Rewind to the last commit.
	fmt.Println(roll())

	world.Commit()
	names := []string{"ann", "bob", "cid", "dan"}
	dice.Shuffle(4, func(i, j int) { names[i], names[j] = names[j], names[i] })
	fmt.Println(names)
	// Output:
	// [5 4 5 5 2 1]
	// [3 3 1 2 4 3]
	// [5 4 5 5 2 1]
	// [cid ann dan bob]
}
