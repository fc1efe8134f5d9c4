package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// The index finds the entities near a position by its cell, even after a restore.
func ExampleIndex() {
	w := ecs.NewWorld(ecs.Options{})
	type place struct{ X, Y int }
	type cell struct{ X, Y int }
	places := ecs.MustRegister[place](w)
	byCell := ecs.NewIndex(places, func(p place) cell { return cell{p.X / 10, p.Y / 10} })

	for x := range 4 {
		places.Set(w.Create(), place{X: x * 4, Y: 3})
	}
	fmt.Println(byCell.Len(cell{0, 0}), "in the first cell,", byCell.Len(cell{1, 0}), "in the second")

	cp := w.Checkpoint()
	for e := range byCell.Of(cell{0, 0}) {
		places.Mut(e).X += 10
	}
	fmt.Println(byCell.Len(cell{0, 0}), "and", byCell.Len(cell{1, 0}))

	w.Restore(cp)
	fmt.Println(byCell.Len(cell{0, 0}), "and", byCell.Len(cell{1, 0}))
	// Output:
	// 3 in the first cell, 1 in the second
	// 0 and 4
	// 3 and 1
}
