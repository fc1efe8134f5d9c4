package ecs_test

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
)

type Parent struct{ Of ecs.Entity }

// Move takes entities to another world, for example to another level. References among them stay
// references. The function Outside decides about references to entities that stay behind.
func ExampleWorld_Move() {
	cave := ecs.NewWorld(ecs.Options{})
	parents := ecs.MustRegister[Parent](cave)
	town := ecs.NewWorld(ecs.Options{})
	parentsThere := ecs.MustRegister[Parent](town)
	door, hero, sword := cave.Create(), cave.Create(), cave.Create()
	parents.Set(hero, Parent{door})
	parents.Set(sword, Parent{hero})

	_, err := town.Move(cave, []ecs.Entity{hero}, ecs.CopyOptions{
		Outside: func(r ecs.Reference) (ecs.Entity, error) { return r.Refuse() },
	})
	fmt.Println(err)
	moved, err := town.Move(cave, []ecs.Entity{hero, sword}, ecs.CopyOptions{})
	fmt.Println(moved, err, parentsThere.Values(), "in the cave:", cave.Len())

	// A copy within a world may keep its references.
	copied, err := town.Copy(town.Clone(), moved[1:], ecs.CopyOptions{
		Outside: func(r ecs.Reference) (ecs.Entity, error) { return r.Keep() },
	})
	fmt.Println(copied, err, parentsThere.Values())
	// Output:
	// ecs: cannot move: component Parent: Of of 1v1 refers to 0v1: it is not copied
	// [0v1 1v1] <nil> [{0v0} {0v1}] in the cave: 1
	// [2v1] <nil> [{0v0} {0v1} {0v1}]
}

// A relation finds the entities that refer to an entity. With Cascade, they are destroyed with it.
func ExampleNewRelation() {
	world := ecs.NewWorld(ecs.Options{})
	parents := ecs.MustRegister[Parent](world)
	children := ecs.NewRelation(parents, func(p Parent) ecs.Entity { return p.Of },
		ecs.RelationOptions{Policy: ecs.Cascade, Tree: true})
	car, left, right, tire := world.Create(), world.Create(), world.Create(), world.Create()
	parents.Set(left, Parent{car})
	parents.Set(right, Parent{car})
	parents.Set(tire, Parent{left})

	first, _ := children.First(car)
	parent, _ := children.Target(tire)
	fmt.Println("children of the car:", slices.Collect(children.Of(car)), children.Len(car), "first", first)
	fmt.Println("the tire is a child of", parent, "and belongs to", children.Root(tire))
	fmt.Println("above it:", slices.Collect(children.Ancestors(tire)))
	fmt.Println("below the car:", slices.Collect(children.Descendants(car)), "all:", children.Subtree(car))
	for depth, e := range children.Levels(car) {
		fmt.Print(" ", e, " at depth ", depth)
	}
	fmt.Println()
	fmt.Println(children.Set(car, Parent{tire})) // Set checks that the relation stays a tree.

	world.Destroy(car)
	fmt.Println("alive:", world.Len())
	children.Close() // The relation no longer follows the component.
	// Output:
	// children of the car: [1v1 2v1] 2 first 1v1
	// the tire is a child of 1v1 and belongs to 0v1
	// above it: [1v1 0v1]
	// below the car: [1v1 3v1 2v1] all: [0v1 1v1 3v1 2v1]
	//  1v1 at depth 1 2v1 at depth 1 3v1 at depth 2
	// ecs: Parent of 0v1: a cycle, as its target 3v1 is below it
	// alive: 0
}

// A query with the filter To visits the children of one entity.
func ExampleRelation_To() {
	world := ecs.NewWorld(ecs.Options{})
	parents := ecs.MustRegister[Parent](world)
	positions := ecs.MustRegister[Position](world)
	children := ecs.NewRelation(parents, func(p Parent) ecs.Entity { return p.Of }, ecs.RelationOptions{})
	train, ship := world.Create(), world.Create()
	for i, vehicle := range []ecs.Entity{train, ship, train} {
		passenger := world.Create()
		positions.Set(passenger, Position{X: float64(i)})
		parents.Set(passenger, Parent{vehicle})
	}
	for e, p := range ecs.NewQuery1(ecs.Write(positions)).With(children.To(train)).All() {
		p.X += 100
		fmt.Println(e, p.X)
	}
	// A clone has its own relation.
	clone := world.Clone()
	parents.In(clone).Clear()
	fmt.Println(children.In(clone).Len(train), children.Len(train))
	// Output:
	// 2v1 100
	// 4v1 102
	// 0 2
}
