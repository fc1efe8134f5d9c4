package part_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/part"
)

type (
	Name   string
	Hunts  struct{ Prey ecs.Entity }
	Mount  struct{ Rider ecs.Entity }
	Cellar struct{} // Marks an entity in the cellar.
)

// A game is a world and its storages.
type game struct {
	World   *ecs.World
	Names   *ecs.Storage[Name]
	Hunts   *ecs.Storage[Hunts]
	Mounts  *ecs.Storage[Mount]
	Cellars *ecs.Storage[Cellar]
}

func newGame() *game {
	w := ecs.NewWorld(ecs.Options{})
	return &game{w, ecs.MustRegister[Name](w), ecs.MustRegister[Hunts](w), ecs.MustRegister[Mount](w), ecs.MustRegister[Cellar](w)}
}

func (g *game) spawn(name Name) ecs.Entity {
	e := g.World.Create()
	g.Names.Set(e, name)
	return e
}

// name returns the name of e.
func (g *game) name(e ecs.Entity) string {
	n, _ := g.Names.Get(e)
	return string(n)
}

// find returns the entity with the given name.
func (g *game) find(name string) ecs.Entity {
	for e, n := range g.Names.All() {
		if string(n) == name {
			return e
		}
	}
	return 0
}

// A level is saved to a file, destroyed, and merged again. References to entities outside the
// level, such as the player, stay valid while these entities live.
func Example_levels() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "stet-example-")
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "cellar.part")
	g := newGame()
	player := g.spawn("player")
	for _, name := range []Name{"rat", "spider"} {
		e := g.spawn(name)
		g.Cellars.Set(e, Cellar{})
		g.Hunts.Set(e, Hunts{player})
	}

	inCellar := ecs.NewQuery1(ecs.Read(g.Cellars)).AppendEntities(nil)
	level, err := part.Of(g.World, inCellar, part.Options{})
	if err == nil {
		// The file is durable before the entities are destroyed.
		err = level.Save(ctx, file)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	g.World.DestroyAll(inCellar)
	fmt.Println("away:", g.World.Len(), "left")

	level, err = part.Load(ctx, file, g.World)
	if err != nil {
		fmt.Println(err)
		return
	}
	back, err := level.Merge(g.World, part.MergeOptions{Outside: part.Outside.Keep})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range back.Entities {
		h, _ := g.Hunts.Get(e)
		fmt.Println(g.name(e), "hunts", g.name(h.Prey))
	}
	rat, _ := back.Of(inCellar[0]) // What was the rat's name before it left?
	fmt.Println(inCellar[0], "is", rat)
	// Output:
	// away: 1 left
	// rat hunts player
	// spider hunts player
	// 1v1 is 1v2
}

// A template is created once, by code or in an editor, and merged as often as needed. The
// references of a copy stay within the copy.
func Example_templates() {
	workshop := newGame()
	cart, rider := workshop.spawn("cart"), workshop.spawn("rider")
	workshop.Mounts.Set(cart, Mount{rider})
	template, err := part.Of(workshop.World, []ecs.Entity{cart, rider}, part.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	g := newGame()
	g.spawn("road")
	made, err := template.Merge(g.World, part.MergeOptions{Times: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for pair := range slices.Chunk(made.Entities, 2) {
		mount, _ := g.Mounts.Get(pair[0])
		fmt.Println(g.name(pair[0]), pair[0], "carries", g.name(mount.Rider), mount.Rider)
	}
	// Output:
	// cart 1v1 carries rider 2v1
	// cart 3v1 carries rider 4v1
}

// An entity moves from one world to another: its part is taken from the first world and merged into
// the second. Entities outside the part are found by name in the second world.
func Example_worlds() {
	island, mainland := newGame(), newGame()
	wolf := island.spawn("wolf")
	island.Hunts.Set(wolf, Hunts{island.spawn("deer")})
	mainland.spawn("deer")

	ferry, err := part.Of(island.World, []ecs.Entity{wolf}, part.Options{Name: island.name})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = ferry.Merge(mainland.World, part.MergeOptions{})
	fmt.Println(err)
	landed, err := ferry.Merge(mainland.World, part.MergeOptions{Outside: func(o part.Outside) (ecs.Entity, error) {
		if e := mainland.find(o.Name); e != 0 {
			return e, nil
		}
		return o.Refuse()
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The original is destroyed last, so that no failure can lose the entity.
	island.World.Destroy(wolf)
	h, _ := mainland.Hunts.Get(landed.Entities[0])
	fmt.Println("on the mainland it hunts", mainland.name(h.Prey), h.Prey)
	// Output:
	// part: component Hunts of 0v1: Prey refers to 1v1, "deer": the entity is outside the part; MergeOptions.Outside can replace it
	// on the mainland it hunts deer 0v1
}

// A new player gets the nearby part of the world as bytes. The client inspects the part before it
// merges it.
func Example_network() {
	ctx := context.Background()
	server, client := newGame(), newGame()
	server.spawn("far away")
	server.spawn("even farther")
	near := []ecs.Entity{server.spawn("hare"), server.spawn("fox")}
	server.Hunts.Set(near[1], Hunts{near[0]})

	var connection bytes.Buffer
	region, err := part.Of(server.World, near, part.Options{})
	if err == nil {
		err = region.SaveTo(ctx, &connection)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	client.spawn("me")
	// LoadFrom returns an error for damaged bytes.
	got, err := part.LoadFrom(ctx, io.LimitReader(&connection, 1<<20), client.World)
	if err != nil {
		fmt.Println(err)
		return
	}
	if n := len(got.Entities()); n > 1000 {
		fmt.Println("too many:", n)
		return
	}
	joined, err := got.Merge(client.World, part.MergeOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, e := range joined.Entities {
		fmt.Println(client.name(e), "is", e, "here and", got.Entities()[i], "on the server")
	}
	// Output:
	// hare is 1v1 here and 2v1 on the server
	// fox is 2v1 here and 3v1 on the server
}

// Any tick of a store can be read into a typed world. A part of that world brings back entities
// that were destroyed later.
func Example_past() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "stet-example-")
	defer os.RemoveAll(dir)
	g := newGame()
	store, err := persist.Open(ctx, dir, g.World, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close(ctx) }()
	hero := g.spawn("hero")
	_ = store.Commit()
	g.World.Destroy(hero)
	_ = store.Commit()
	if err := store.Sync(ctx); err != nil {
		fmt.Println(err)
	}

	view, err := inspect.OpenReadOnly(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer view.Close()
	past := newGame()
	seq, err := view.Resolve("1")
	if err == nil {
		err = view.Fill(ctx, seq, past.World)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tick", past.World.Tick(), "has", past.name(hero))
	lost, err := part.Of(past.World, []ecs.Entity{hero}, part.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	saved, err := lost.Merge(g.World, part.MergeOptions{Outside: part.Outside.Keep})
	fmt.Println(g.name(saved.Entities[0]), "is back", err)
	// Output:
	// tick 1 has hero
	// hero is back <nil>
}

// Clear removes references to entities outside the part. The result of the merge lists them.
func ExampleOutside_Clear() {
	forest := newGame()
	owl, mouse, ghost := forest.spawn("owl"), forest.spawn("mouse"), forest.spawn("ghost")
	forest.Hunts.Set(owl, Hunts{mouse})
	forest.Hunts.Set(ghost, Hunts{owl})
	cage, err := part.Of(forest.World, []ecs.Entity{owl, ghost}, part.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The world of the part has one more entity, which stands for the mouse.
	fmt.Println("entities in the part:", len(cage.Entities()), "in its world:", cage.World().Len())

	zoo := newGame()
	merged, err := cage.Merge(zoo.World, part.MergeOptions{Outside: part.Outside.Clear})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range merged.Cleared {
		fmt.Println("cleared:", o.Component+"."+o.Field, "of", forest.name(o.From), "to", forest.name(o.To))
	}
	for _, e := range merged.Entities {
		h, _ := zoo.Hunts.Get(e)
		fmt.Println(zoo.name(e), "hunts", cmp.Or(zoo.name(h.Prey), "nothing"))
	}
	// Output:
	// entities in the part: 2 in its world: 3
	// cleared: Hunts.Prey of owl to mouse
	// owl hunts nothing
	// ghost hunts owl
}
