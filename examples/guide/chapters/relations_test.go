package chapters_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

func Example_relationsTemplates() {
	type Position struct{ X int }
	type Health struct{ HP int }
	type Part struct{ Of ecs.Entity }
	type Handles struct {
		Position *ecs.Storage[Position]
		Health   *ecs.Storage[Health]
		Part     *ecs.Storage[Part]
	}
	var game, templates Handles
	world, prefabs := ecs.NewWorld(ecs.Options{History: 600}), ecs.NewWorld(ecs.Options{})
	check(ecs.Bind(world, &game))
	check(ecs.Bind(prefabs, &templates))

	orc, cart := prefabs.Create(), prefabs.Create()
	templates.Health.Set(orc, Health{20})
	templates.Health.Set(cart, Health{50})
	for range 4 {
		templates.Part.Set(prefabs.Create(), Part{cart}) // A wheel.
	}

	orcs, err := world.Copy(prefabs, []ecs.Entity{orc}, ecs.CopyOptions{})
	check(err)
	game.Position.Set(orcs[0], Position{X: 7})

	parts := ecs.NewRelation(templates.Part, func(p Part) ecs.Entity { return p.Of }, ecs.RelationOptions{})
	carts, err := world.Copy(prefabs, parts.Subtree(cart), ecs.CopyOptions{Times: 100})
	check(err)
	for i := 0; i < len(carts); i += len(carts) / 100 { // A cart and its wheels follow each other.
		game.Position.Set(carts[i], Position{X: i})
	}
	wheel, _ := game.Part.Get(carts[6]) // The first wheel of the second cart.
	fmt.Println(world.Len(), "entities; the wheel is a part of the second cart:", wheel.Of == carts[5])
	// Output:
	// 501 entities; the wheel is a part of the second cart: true
}
