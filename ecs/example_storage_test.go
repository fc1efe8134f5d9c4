package ecs_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
)

// A component's kind of storage is chosen when the component is registered. The rest of the API is
// the same for all kinds.
func ExampleKind() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	frozen := ecs.MustRegister[Frozen](world) // The type has size 0, so it becomes a tag.
	velocities := ecs.MustRegister(world, ecs.Component[Velocity]{Kind: ecs.Hashed})
	fmt.Println(positions.Kind(), frozen.Kind(), velocities.Kind())
	// Output: sparse tag hashed
}

// In an Indexed storage, the row of an entity is its index. Rows never move, so Values can be
// indexed directly.
func ExampleIndexed() {
	world := ecs.NewWorld(ecs.Options{})
	heights := ecs.MustRegister(world, ecs.Component[int]{Name: "Height", Kind: ecs.Indexed})
	for i := range 4 {
		heights.Set(world.Create(), 10+i)
	}
	world.Destroy(world.Entities()[1])
	fmt.Println(heights.Values(), heights.Len(), "of", len(heights.Values()))
	fmt.Println(heights.Entities()[1] == ecs.Vacant, heights.Entities()[2])
	// Output:
	// [10 0 12 13] 3 of 4
	// true 2v1
}

// The gaps of an Indexed storage hold the default value. So a loop over Values need not check which
// entities have the component.
func ExampleComponent_default() {
	world := ecs.NewWorld(ecs.Options{})
	factors := ecs.MustRegister(world, ecs.Component[int]{Name: "Factor", Kind: ecs.Indexed, Default: 1})
	all := world.CreateN(nil, 4)
	factors.Set(all[3], 5)
	factors.Set(all[1], 3)
	product := 1
	for _, f := range factors.Values() {
		product *= f
	}
	fmt.Println(factors.Values(), product)
	// Output: [1 3 1 5] 15
}

// A Hashed storage with few components takes a fraction of the memory of other kinds. It has the
// same methods.
func ExampleHashed() {
	world := ecs.NewWorld(ecs.Options{})
	plain := ecs.MustRegister(world, ecs.Component[Position]{Name: "plain"})
	rare := ecs.MustRegister(world, ecs.Component[Position]{Name: "rare", Kind: ecs.Hashed})
	for i, e := range world.CreateN(nil, 1_000_000) {
		if i%100_001 == 0 {
			plain.Set(e, Position{X: 1})
			rare.Set(e, Position{X: 1})
		}
	}
	memory := world.MemoryUsage().Storages
	fmt.Println(rare.Len(), memory[0].Sparse > 8*memory[1].Sparse)
	// Output: 10 true
}

// A loop over an Ordered storage visits entities by ascending index, whatever the order in which
// components were added.
func ExampleOrdered() {
	world := ecs.NewWorld(ecs.Options{})
	ranks := ecs.MustRegister(world, ecs.Component[string]{Name: "Rank", Kind: ecs.Ordered})
	all := world.CreateN(nil, 3)
	ranks.Set(all[2], "last")
	ranks.Set(all[0], "first")
	ranks.Set(all[1], "second")
	for e, rank := range ecs.NewQuery1(ecs.Read(ranks)).All() {
		fmt.Println(e, *rank)
	}
	// Output:
	// 0v1 first
	// 1v1 second
	// 2v1 last
}

// A component without fields is a tag.
func ExampleTag() {
	world := ecs.NewWorld(ecs.Options{})
	frozen := ecs.MustRegister[Frozen](world)
	e := world.Create()
	frozen.Set(e, Frozen{})
	fmt.Println(frozen.Kind(), frozen.Has(e), world.MemoryUsage().Storages[0].Data)
	// Output: tag true 0
}

// A wave of entities is created, changed and destroyed in batches.
func ExampleWorld_CreateN() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)

	wave := world.CreateN(nil, 4)
	positions.SetAll(wave, Position{X: 1})
	velocities.SetEach(wave[:2], []Velocity{{X: 5}, {X: 6}})
	fmt.Println(wave, velocities.Values())

	moving := ecs.NewQuery2(ecs.Read(positions), ecs.Read(velocities))
	fmt.Println(world.DestroyFound(moving), "destroyed,", world.Entities(), "left")
	// Output:
	// [0v1 1v1 2v1 3v1] [{5 0} {6 0}]
	// 2 destroyed, [2v1 3v1] left
}

// The entities that a query finds can be passed to any batch.
func ExampleQuery1_AppendEntities() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	frozen := ecs.MustRegister[Frozen](world)
	all := world.CreateN(nil, 4)
	positions.SetAll(all, Position{})
	velocities.SetAll(all[1:3], Velocity{})

	still := ecs.NewQuery1(ecs.Read(positions)).Without(velocities)
	frozen.SetAll(still.AppendEntities(nil), Frozen{})
	fmt.Println(frozen.Entities())
	// Output:
	// [0v1 3v1]
}

// RemoveAll works from the last entity to the first, so rows at the end need not move. The argument
// may be the slice that Entities of the same storage returned.
func ExampleStorage_RemoveAll() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	all := world.CreateN(nil, 4)
	fmt.Println(positions.SetAll(all, Position{}))
	fmt.Println(positions.RemoveAll(positions.Entities()[1:]), positions.Entities())
	// Output:
	// 4
	// 3 [0v1]
}

// If the entities of a batch are destroyed together, new entities reuse their indices in the same
// order.
func ExampleWorld_DestroyAll() {
	world := ecs.NewWorld(ecs.Options{})
	wave := world.CreateN(nil, 3)
	fmt.Println(world.DestroyAll(wave), world.CreateN(wave[:0], 3))
	// Output: 3 [0v2 1v2 2v2]
}

// An explosion hits entities whose rows are scattered over the storage.
func ExampleStorage_MutEach() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	all := world.CreateN(nil, 4)
	positions.SetAll(all[1:], Position{})

	hit, push := []ecs.Entity{all[3], all[0], all[1]}, []float64{7, 8, 9}
	for i, p := range positions.MutEach(hit) {
		p.X += push[i]
	}
	fmt.Println(positions.Values())
	// Output:
	// [{9 0} {0 0} {7 0}]
}

// A console reads and writes components by name. An invalid input changes nothing. A restore
// reverts these writes like all writes.
func ExampleWorld_Storage() {
	type Health struct{ Now, Max int8 }
	w := ecs.NewWorld(ecs.Options{})
	healths := ecs.MustRegister[Health](w)
	e := w.Create()
	healths.Set(e, Health{Now: 3, Max: 10})

	cp := w.Checkpoint()
	set := func(name, src string) {
		s, ok := w.Storage(name)
		if !ok {
			fmt.Println("there is no", name)
			return
		}
		if err := s.SetJSON(e, []byte(src)); err != nil {
			fmt.Println(err)
		}
		now, _ := s.GetJSON(e)
		fmt.Printf("%s %s\n", name, now)
	}
	set("Health", `{"Now": 7}`)
	set("Health", `{"Now": 300}`)
	set("Helth", `{}`)
	w.Restore(cp)
	set("Health", `{}`)
	// Output:
	// Health {"Now":7,"Max":10}
	// ecs: Health.Now of 0v1: 300 does not fit into int8
	// Health {"Now":7,"Max":10}
	// there is no Helth
	// Health {"Now":3,"Max":10}
}

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

// A group keeps the rows of entities that have both components at the front of both storages, after
// any change.
func ExampleGroup() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	moving := ecs.Must(world.NewGroup(positions, velocities))

	var entities []ecs.Entity
	for i := range 6 {
		e := world.Create()
		positions.Set(e, Position{X: float64(i)})
		if i%2 == 1 {
			velocities.Set(e, Velocity{X: 1})
		}
		entities = append(entities, e)
	}
	fmt.Println(moving.Len(), "of", positions.Entities())

	velocities.Remove(entities[1])
	velocities.Set(entities[0], Velocity{X: 2})
	for run := range ecs.NewQuery2(ecs.Write(positions), ecs.Read(velocities)).Runs() {
		for i := range run.Entities {
			run.A[i].X += run.B[i].X
		}
		fmt.Println("one run of", run.Entities)
	}
	fmt.Println(positions.Values()[:moving.Len()])
	// Output:
	// 3 of [1v1 3v1 5v1 0v1 4v1 2v1]
	// one run of [5v1 3v1 0v1]
	// [{6 0} {4 0} {2 0}]
}

// The order of rows is part of the state, so a restore restores it.
func ExampleStorage_SortFunc() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	for _, x := range []float64{3, 1, 2} {
		positions.Set(world.Create(), Position{X: x})
	}
	unsorted := world.Checkpoint()
	positions.SortFunc(func(a, b Position) int { return cmp.Compare(a.X, b.X) })
	fmt.Println(positions.Entities(), positions.Values())
	world.Restore(unsorted)
	fmt.Println(positions.Entities(), positions.Values())
	// Output:
	// [1v1 2v1 0v1] [{1 0} {2 0} {3 0}]
	// [0v1 1v1 2v1] [{3 0} {1 0} {2 0}]
}

// The sort puts parents before their children. The function compares two entities by a component of
// another storage.
func ExampleStorage_SortEntities() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	depths := ecs.MustRegister(world, ecs.Component[int]{Name: "depth"})
	for _, depth := range []int{2, 0, 1} {
		e := world.Create()
		positions.Set(e, Position{Y: float64(depth)})
		depths.Set(e, depth)
	}
	positions.SortEntities(func(a, b ecs.Entity) int {
		x, _ := depths.Get(a)
		y, _ := depths.Get(b)
		return cmp.Compare(x, y)
	})
	fmt.Println(positions.Entities())
	// Output: [1v1 2v1 0v1]
}

// After SortLike, the entities that both storages have are in the same order in both.
func ExampleStorage_SortLike() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	var entities []ecs.Entity
	for range 4 {
		e := world.Create()
		positions.Set(e, Position{})
		entities = append(entities, e)
	}
	velocities.Set(entities[3], Velocity{})
	velocities.Set(entities[1], Velocity{})

	positions.SortLike(velocities)
	fmt.Println(velocities.Entities(), positions.Entities())
	// Output: [3v1 1v1] [3v1 1v1 0v1 2v1]
}

// Reserve allocates before the game starts, and Shrink frees what a level no longer needs.
func ExampleWorld_Reserve() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	world.Reserve(10_000)
	positions.Reserve(10_000)
	memory := world.MemoryUsage()
	reserved, full := memory.Total(), memory.Storages[0].Total()
	for range 100 {
		positions.Set(world.Create(), Position{})
	}
	memory = world.MemoryUsage()
	fmt.Println("grown:", memory.Total() > reserved, memory.Storages[0].Total() > full)
	world.Shrink()
	memory = world.MemoryUsage()
	fmt.Println("smaller:", memory.Total() < reserved, memory.Storages[0].Total() < full)
	// Output:
	// grown: false false
	// smaller: true true
}

// Tools and consoles use storages by their names, and values as JSON.
func ExampleWorld_Storages() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	lives := ecs.Must(ecs.RegisterResource(world, 3, ecs.Component[int]{Name: "Lives"}))
	e := world.Create()
	positions.Set(e, Position{1, 2})

	for _, s := range world.Storages() {
		fmt.Println(s.Name(), s.Len(), s.Entities())
	}
	json, _ := positions.GetJSON(e)
	fmt.Println(string(json))
	fmt.Println(positions.SetJSON(e, []byte(`{"Y": 7}`)), positions.SetJSON(e, []byte(`{"Z": 7}`)))
	value, _ := positions.GetAny(e)
	fmt.Println(value, positions.SetAny(e, Position{3, 4}), positions.Values())

	json, _ = lives.GetJSON(ecs.None)
	fmt.Println(lives.SetJSON(ecs.None, []byte("5")), "was", string(json))
	anything, _ := lives.GetAny(ecs.None)
	fmt.Println(anything, lives.SetAny(ecs.None, 6), *lives.Read(), lives.Len(), lives.Entities())
	fmt.Println(lives.In(world.Clone()).Get(), lives.Raw().Name())
	// Output:
	// Position 1 [0v1]
	// Lives 1 []
	// {"X":1,"Y":2}
	// <nil> ecs: Position of 0v1: no field "Z"; did you mean X or Y?
	// {1 7} <nil> [{3 4}]
	// <nil> was 3
	// 5 <nil> 6 1 []
	// 6 Lives
}

// A storage can be a work queue. The loop also visits the entities that it adds.
func ExampleStorage_Drain() {
	type Depth struct{ N int }
	world := ecs.NewWorld(ecs.Options{})
	queue := ecs.MustRegister[Depth](world)
	queue.Set(world.Create(), Depth{0})
	for e, d := range queue.Drain() {
		fmt.Println(e, d.N)
		if d.N < 3 {
			queue.Set(world.Create(), Depth{d.N + 1})
		}
	}
	fmt.Println(queue.Len())
	// Output:
	// 0v1 0
	// 1v1 1
	// 2v1 2
	// 3v1 3
	// 0
}

// A bundle sets and removes several components at once.
func ExampleBundle2_Set() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	body := ecs.NewBundle2(positions, velocities)
	e := world.Create()
	fmt.Println(body.Set(e, Position{1, 1}, Velocity{2, 2}), positions.Values(), velocities.Values())
	fmt.Println(body.Remove(e), body.Remove(e), positions.Len(), velocities.Len())
	// Output:
	// true [{1 1}] [{2 2}]
	// true false 0 0
}

// An index can demand that each key belongs to at most one entity.
func ExampleIndex_Set() {
	type Cell struct{ X, Y int }
	world := ecs.NewWorld(ecs.Options{})
	cells := ecs.MustRegister[Cell](world)
	byCell := ecs.NewIndex(cells, func(c Cell) Cell { return c })
	rock, hero := world.Create(), world.Create()
	fmt.Println(byCell.Set(rock, Cell{1, 1}), byCell.Set(hero, Cell{2, 1}))
	fmt.Println(byCell.Set(hero, Cell{1, 1}))
	there, taken := byCell.First(Cell{1, 1})
	fmt.Println(there == rock, taken, slices.Collect(byCell.Keys()))

	fmt.Println(byCell.Replace(hero, Cell{1, 1}), cells.Has(rock))
	fmt.Println(byCell.In(world.Clone()).Len(Cell{1, 1}))
	byCell.Close() // The index no longer follows the component.
	// Output:
	// <nil> <nil>
	// ecs: Cell of 1v1: the key is taken: 0v1 has it
	// true true [{1 1} {2 1}]
	// true false
	// 1
}

// Align sorts the rows of storages once, so that a query visits consecutive rows. With a group, the
// rows stay consecutive after later changes.
func ExampleWorld_Align() {
	world := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[Position](world)
	velocities := ecs.MustRegister[Velocity](world)
	for i := range 6 {
		e := world.Create()
		positions.Set(e, Position{})
		if i%2 == 1 {
			velocities.Set(e, Velocity{})
		}
	}
	world.Align(velocities, positions)
	fmt.Println(velocities.Entities(), positions.Entities())

	group := ecs.Must(world.NewGroup(positions, velocities))
	velocities.Set(positions.Entities()[3], Velocity{})
	group.Pack() // Needed only after a load or a rewind.
	fmt.Println(group.Entities(), group.In(world.Clone()).Len())
	// Output:
	// [1v1 3v1 5v1] [1v1 3v1 5v1 0v1 4v1 2v1]
	// [1v1 3v1 5v1 0v1] 4
}
