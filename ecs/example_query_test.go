package ecs_test

import (
	"fmt"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
)

// The query also finds entities without the optional component. It returns nil for the missing
// component.
func ExampleOptional() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	for i := range 3 {
		e := world.Create()
		positions.Set(e, Position{X: float64(i)})
		if i != 1 {
			velocities.Set(e, Velocity{X: 10})
		}
	}
	query := ecs.NewQuery2(ecs.Write(positions), ecs.Optional(ecs.Read(velocities)))
	for e, row := range query.AllOptional() {
		if row.B != nil {
			row.A.X += row.B.X
		}
		fmt.Println(e, *row.A)
	}
	// Output:
	// 0v1 {10 0}
	// 1v1 {1 0}
	// 2v1 {12 0}
}

// Get returns the pointers of a row, so that the loop can name them.
func ExampleRow2_Get() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	moving := ecs.NewBundle2(positions, velocities)
	moving.Create(Position{X: 1}, Velocity{X: 10})
	moving.Create(Position{X: 2}, Velocity{X: 20})

	query := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
	for e, row := range query.All() {
		p, v := row.Get()
		p.X += v.X
		fmt.Println(e, p.X)
	}
	// Output:
	// 0v1 11
	// 1v1 22
}

// The body of a loop may destroy any entity. A destroyed rock is not visited later.
func ExampleQuery1() {
	type Bullet struct{}
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	bullets := ecs.MustRegister[Bullet](world)
	add := func(x float64) ecs.Entity {
		e := world.Create()
		positions.Set(e, Position{X: x})
		return e
	}
	for _, x := range []float64{1, 2, 5} {
		bullets.Set(add(x), Bullet{})
		add(x + 1) // A rock.
	}
	rocks := ecs.NewQuery1(ecs.Read(positions)).Without(bullets)
	flying := ecs.NewQuery1(ecs.Write(positions)).With(bullets)

	for bullet, at := range flying.All() {
		at.X++
		for rock, p := range rocks.All() {
			if p.X == at.X {
				fmt.Println(bullet, "hits", rock)
				world.Destroy(rock)
				world.Destroy(bullet)
				break
			}
		}
	}
	fmt.Println(world.Len(), "entities are left")
	// Output:
	// 0v1 hits 1v1
	// 4v1 hits 5v1
	// 2v1 hits 3v1
	// 0 entities are left
}

// Or selects entities that have at least one of several components. Get looks up one entity, and
// First returns the first entity.
func ExampleQuery1_Or() {
	type Burning struct{}
	type Poisoned struct{}
	world := ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister(world, ecs.Component[int]{Name: "Health"})
	burning := ecs.MustRegister[Burning](world)
	poisoned := ecs.MustRegister[Poisoned](world)
	suffering := ecs.NewQuery1(ecs.Write(health)).Or(burning, poisoned)

	a, b, c := world.Create(), world.Create(), world.Create()
	for _, e := range []ecs.Entity{a, b, c} {
		health.Set(e, 10)
	}
	burning.Set(c, Burning{})
	poisoned.Set(b, Poisoned{})
	for _, h := range suffering.All() {
		*h--
	}
	fmt.Println(health.Values(), suffering.Count(), suffering.Has(a))
	if h, ok := suffering.Get(c); ok {
		*h = 0
	}
	first, h, _ := suffering.First()
	fmt.Println(health.Values(), first, *h)
	// Output:
	// [10 9 9] 2 false
	// [10 9 0] 1v1 9
}

// Slices of the runs are processed in parallel. A restore reverts all of these writes.
func ExampleQuery2_ParallelRuns() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	for i := range 10_000 {
		e := world.Create()
		positions.Set(e, Position{X: float64(i)})
		velocities.Set(e, Velocity{X: 1})
	}
	query := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))

	cp := world.Checkpoint()
	var moved atomic.Int64
	query.ParallelRuns(4, func(run ecs.Run2[Position, Velocity]) {
		for i := range run.A {
			run.A[i].X += run.B[i].X
		}
		moved.Add(int64(len(run.A)))
	})
	last := world.Entities()[9999]
	p, _ := positions.Get(last)
	fmt.Println(moved.Load(), p.X)

	world.Restore(cp)
	p, _ = positions.Get(last)
	fmt.Println(p.X)
	// Output:
	// 10000 10000
	// 9999
}

// With and Without filter entities by components that the loop does not read.
func ExampleQuery1_With() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	frozen := ecs.MustRegister[Frozen](world)
	all := world.CreateN(nil, 4)
	positions.SetAll(all, Position{})
	velocities.SetAll(all[1:], Velocity{})
	frozen.Set(all[2], Frozen{})

	moving := ecs.NewQuery1(ecs.Write(positions)).With(velocities).Without(frozen)
	for e := range moving.All() {
		fmt.Println(e)
	}
	// Output:
	// 1v1
	// 3v1
}

// The driver of a query is its smallest storage. The loop visits entities in the order of the
// driver's rows.
func ExampleQuery2_All() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	all := world.CreateN(nil, 3)
	positions.SetAll(all, Position{})
	velocities.Set(all[2], Velocity{X: 1})
	velocities.Set(all[0], Velocity{X: 2})
	for e, row := range ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities)).All() {
		row.A.X += row.B.X
		fmt.Println(e, *row.A)
	}
	// Output:
	// 2v1 {1 0}
	// 0v1 {2 0}
}

// Get looks up one entity in all storages of the query.
func ExampleQuery2_Get() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	moving := ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities))
	a, b := world.Create(), world.Create()
	positions.Set(a, Position{X: 1})
	positions.Set(b, Position{})
	velocities.Set(a, Velocity{X: 4})

	if row, ok := moving.Get(a); ok {
		row.A.X += row.B.X
	}
	fmt.Println(positions.Values(), moving.Has(b))
	// Output: [{5 0} {0 0}] false
}

// First finds a component that only one entity should have.
func ExampleQuery1_First() {
	type Player struct{ Lives int }
	world := ecs.NewWorld(ecs.Options{})
	players := ecs.MustRegister[Player](world)
	player := ecs.NewQuery1(ecs.Write(players))
	_, _, ok := player.First()
	fmt.Println(ok)

	players.Set(world.Create(), Player{Lives: 3})
	if e, p, ok := player.First(); ok {
		p.Lives--
		fmt.Println(e, players.Values())
	}
	// Output:
	// false
	// 0v1 [{2}]
}

// A mask that the program creates is restored with the world.
func ExampleMask() {
	world := ecs.NewWorld(ecs.Options{})
	visible := world.NewMask()
	for range 200 {
		e := world.Create()
		if e.Index()%80 == 0 {
			visible.Add(e.Index())
		}
	}

	cp := world.Checkpoint()
	visible.Clear()
	visible.Add(7)
	fmt.Println("now:", visible.Len(), visible.Has(80))
	world.Restore(cp)
	for i := range visible.Indices() {
		e, alive := world.EntityAt(i)
		fmt.Println(e, alive)
	}
	// Output:
	// now: 1 false
	// 0v1 true
	// 80v1 true
	// 160v1 true
}

// A storage registered with Masked has a mask that is always up to date. A combination of such
// masks is always up to date too, so the program creates it once.
func ExampleStorage_Mask() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister(world, ecs.Component[Position]{Masked: true})
	velocities := ecs.MustRegister(world, ecs.Component[Velocity]{Masked: true})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	for i := range 6 {
		e := world.Create()
		positions.Set(e, Position{})
		if i%2 == 0 {
			velocities.Set(e, Velocity{})
		}
		if i == 2 {
			frozen.Set(e, Frozen{})
		}
	}

	moving := positions.Mask().And(velocities.Mask()).AndNot(frozen.Mask())
	resting := world.AliveBits().AndNot(moving)
	fmt.Println(moving.Len(), "move,", resting.Len(), "rest")
	frozen.Clear()
	for i := range moving.Indices() {
		fmt.Print(i, " ")
	}
	// Output:
	// 2 move, 4 rest
	// 0 2 4
}

// Masks are combined 64 indices at a time, without building a new mask.
func ExampleBits_And() {
	world := ecs.NewWorld(ecs.Options{})
	seen, near := world.NewMask(), world.NewMask()
	for i := range uint32(100_000) {
		if i%3000 == 0 {
			seen.Add(i)
		}
		if i%5000 == 0 {
			near.Add(i)
		}
	}
	both := seen.And(near.Bits)
	for i := range both.Indices() {
		fmt.Print(i, " ")
	}
	fmt.Println(both.Len(), both.AndNot(near.Bits).Any())
	// Output: 0 15000 30000 45000 60000 75000 90000 7 false
}

func ExampleBits_Or() {
	world := ecs.NewWorld(ecs.Options{})
	burning := ecs.MustRegister(world, ecs.Component[Velocity]{Masked: true})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	all := world.CreateN(nil, 5)
	burning.Set(all[1], Velocity{})
	frozen.SetAll(all[3:], Frozen{})
	for i := range burning.Mask().Or(frozen.Mask()).Indices() {
		fmt.Print(i, " ")
	}
	// Output: 1 3 4
}

// AndNot finds the alive entities that are not in a mask.
func ExampleBits_AndNot() {
	world := ecs.NewWorld(ecs.Options{})
	frozen := ecs.MustRegister(world, ecs.Component[Frozen]{Masked: true})
	frozen.SetAll(world.CreateN(nil, 5)[1:4], Frozen{})
	for i := range world.AliveBits().AndNot(frozen.Mask()).Indices() {
		e, _ := world.EntityAt(i)
		fmt.Print(e, " ")
	}
	// Output: 0v1 4v1
}

// A mask is a set of entity indices that filters a query.
func ExampleMask_Remove() {
	world := ecs.NewWorld(ecs.Options{})
	selected := world.NewMask()
	e := world.Create()
	fmt.Println(selected.Add(e.Index()), selected.Bits.Has(e.Index()))
	fmt.Println(selected.Remove(e.Index()), selected.Remove(e.Index()), selected.Len())
	// Output:
	// true true
	// true false 0
}
