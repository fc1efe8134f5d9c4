package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
)

// If there are at least this many entities (crowd), no new things appear.
const (
	width, height = 16, 6
	crowd         = 24
)

// Components. A thing has a Position on the floor, or it is Inside an owner: the hero, a thief, a
// bag.
type (
	Position struct{ X, Y int8 }
	Look     struct {
		Glyph rune
		Name  string
	}
	Inside struct{ Holder ecs.Entity }
	Bag    struct{} // The entity is a bag, which can contain things.
	Thief  struct{}
	Fire   struct{}
)

// Hero is a resource with the entity that the player moves.
type Hero struct{ Entity ecs.Entity }

// An Event is something that happened in a turn.
type Event struct{ What, Name string }

// A game is a dungeon. Its whole state is in the world, so undoing a turn restores everything:
// possessions, the next random numbers and the log.
type game struct {
	Position *ecs.Storage[Position]
	Look     *ecs.Storage[Look]
	Inside   *ecs.Storage[Inside]
	Bag      *ecs.Storage[Bag]
	Thief    *ecs.Storage[Thief]
	Fire     *ecs.Storage[Fire]
	Hero     *ecs.Resource[Hero]
	Events   *ecs.Events[Event]
	Dice     *ecs.Rand

	world    *ecs.World
	at       *ecs.Index[Position, Position]
	contents *ecs.Relation[Inside]
}

// Build creates the index of places and the relation of possessions. The relation destroys the
// things of an owner together with the owner.
func (g *game) Build(w *ecs.World) error {
	g.world = w
	g.at = ecs.NewIndex(g.Position, func(p Position) Position { return p })
	g.contents = ecs.NewRelation(g.Inside, func(i Inside) ecs.Entity { return i.Holder }, ecs.RelationOptions{Policy: ecs.Cascade, Tree: true})
	return nil
}

// newGame returns a dungeon with a history of the given number of turns.
func newGame(seed uint64, turns int) (*game, error) {
	w := ecs.NewWorld(ecs.Options{History: turns})
	ecs.Must(ecs.RegisterRand(w, seed, 0))
	g := new(game)
	if err := ecs.Bind(w, g); err != nil {
		return nil, err
	}
	g.Hero.Set(Hero{g.place(Position{2, 2}, Look{'@', "you"})})
	for x := range int8(5) {
		g.Fire.Set(g.place(Position{width/2 + x, height / 2}, Look{'^', "fire"}), Fire{})
	}
	for range crowd / 2 {
		g.lose()
	}
	w.Commit() // Tick 1 is the initial dungeon, before the first turn.
	return g, nil
}

// place creates an entity on the floor.
func (g *game) place(p Position, l Look) ecs.Entity {
	e := g.world.Create()
	g.Position.Set(e, p)
	g.Look.Set(e, l)
	return e
}

// lose creates a thing at a random place on the floor.
func (g *game) lose() {
	p := Position{int8(g.Dice.IntN(width)), int8(g.Dice.IntN(height))}
	looks := []Look{{'(', "bag"}, {'!', "potion"}, {'=', "ring"}, {'/', "wand"}}
	l := looks[g.Dice.IntN(len(looks))]
	if e := g.place(p, l); l.Glyph == '(' {
		g.Bag.Set(e, Bag{})
	}
}

// Commands are the keys that start a turn.
const commands = "hjklgptd."

// turn executes a command of the hero, moves all other entities, and then commits the tick.
func (g *game) turn(command byte) {
	hero := g.Hero.Get().Entity
	switch command {
	case 'h':
		g.walk(hero, -1, 0)
	case 'j':
		g.walk(hero, 0, 1)
	case 'k':
		g.walk(hero, 0, -1)
	case 'l':
		g.walk(hero, 1, 0)
	case 'g':
		g.grab(hero)
	case 'p':
		g.pack(hero)
	case 't':
		g.takeOut(hero)
	case 'd':
		g.drop(hero)
	}
	g.prowl(hero)
	if g.Look.Len() < crowd && g.Dice.IntN(20) == 0 {
		g.lose()
	}
	g.world.Commit()
}

// turns returns the number of turns since the beginning.
func (g *game) turns() int { return int(g.world.Tick()) - 1 }

// undo undoes the last n turns.
func (g *game) undo(n int) error {
	if n > g.turns() {
		return fmt.Errorf("%d turns cannot be undone: %d were taken", n, g.turns())
	}
	return g.world.History().Rewind(n)
}

func (g *game) tell(what string, e ecs.Entity) {
	l, _ := g.Look.Get(e)
	g.Events.Send(Event{what, l.Name})
}

// walk moves the hero by a step. It kills a thief on the new place.
func (g *game) walk(hero ecs.Entity, dx, dy int8) {
	p := g.step(hero, dx, dy)
	for e := range g.at.Of(p) {
		if g.Thief.Has(e) {
			g.slay(e, p)
			break
		}
	}
	g.Position.Set(hero, p)
}

// step returns the position of e after a step. A step into a wall does not leave the dungeon.
func (g *game) step(e ecs.Entity, dx, dy int8) Position {
	p, _ := g.Position.Get(e)
	return Position{max(0, min(p.X+dx, width-1)), max(0, min(p.Y+dy, height-1))}
}

// slay destroys a thief. Its loot falls to the floor first, because it would be destroyed with the
// thief.
func (g *game) slay(thief ecs.Entity, p Position) {
	g.tell("slain", thief)
	for _, e := range slices.Collect(g.contents.Of(thief)) {
		g.putDown(e, p)
	}
	g.world.Destroy(thief)
}

// putDown moves a thing from its owner to the floor. If a fire is there, the thing burns together
// with its contents.
func (g *game) putDown(e ecs.Entity, p Position) {
	for other := range g.at.Of(p) {
		if g.Fire.Has(other) {
			for lost := range g.contents.Descendants(e) {
				g.tell("burnt", lost)
			}
			g.tell("burnt", e)
			g.world.Destroy(e)
			return
		}
	}
	g.tell("dropped", e)
	g.Inside.Remove(e)
	g.Position.Set(e, p)
}

// grab gives the hero all things on the hero's place.
func (g *game) grab(hero ecs.Entity) {
	p, _ := g.Position.Get(hero)
	for _, e := range slices.Collect(g.at.Of(p)) {
		if e != hero && !g.Fire.Has(e) && !g.Thief.Has(e) {
			g.tell("grabbed", e)
			g.Position.Remove(e)
			g.Inside.Set(e, Inside{hero})
		}
	}
}

// bagOf returns the first bag of an owner.
func (g *game) bagOf(e ecs.Entity) (bag ecs.Entity, ok bool) {
	for bag := range g.contents.Of(e) {
		if g.Bag.Has(bag) {
			return bag, true
		}
	}
	return 0, false
}

// pack moves the hero's first loose thing into the hero's first bag.
func (g *game) pack(hero ecs.Entity) {
	bag, ok := g.bagOf(hero)
	for e := range g.contents.Of(hero) {
		if ok && !g.Bag.Has(e) {
			g.tell("packed", e)
			g.Inside.Set(e, Inside{bag})
			return
		}
	}
}

// takeOut moves the first thing in the hero's first bag to the hero.
func (g *game) takeOut(hero ecs.Entity) {
	bag, ok := g.bagOf(hero)
	if e, full := g.contents.First(bag); ok && full {
		g.tell("taken out", e)
		g.Inside.Set(e, Inside{hero})
	}
}

// drop puts the hero's first thing on the floor.
func (g *game) drop(hero ecs.Entity) {
	if e, ok := g.contents.First(hero); ok {
		p, _ := g.Position.Get(hero)
		g.putDown(e, p)
	}
}

// prowl moves the thieves. A thief without loot approaches the hero and steals. A thief with loot
// moves randomly.
func (g *game) prowl(hero ecs.Entity) {
	if g.Thief.Len() == 0 && g.Dice.IntN(20) == 0 {
		g.Thief.Set(g.place(Position{width - 1, height - 1}, Look{'T', "thief"}), Thief{})
	}
	at, _ := g.Position.Get(hero)
	for e := range g.Thief.All() {
		p, _ := g.Position.Get(e)
		dx, dy := sign(at.X-p.X), sign(at.Y-p.Y)
		if g.contents.Len(e) > 0 {
			dx, dy = int8(g.Dice.IntN(3)-1), int8(g.Dice.IntN(3)-1)
		}
		if to := g.step(e, dx, dy); to != at {
			g.Position.Set(e, to)
		} else if g.contents.Len(e) == 0 {
			g.steal(hero, e)
		}
	}
}

// steal gives one of the hero's things to the thief, even a thing in a bag. To change the owner, it
// writes only the component Inside.
func (g *game) steal(hero, thief ecs.Entity) {
	things := slices.Collect(g.contents.Descendants(hero))
	if len(things) == 0 {
		return
	}
	e := things[g.Dice.IntN(len(things))]
	g.tell("stolen", e)
	g.Inside.Set(e, Inside{thief})
}

func sign(d int8) int8 { return max(-1, min(d, 1)) }

// String draws the dungeon, and below it the hero's things and the last events.
func (g *game) String() string {
	cells := slices.Repeat([]rune{'.'}, width*height)
	for _, e := range g.Position.Entities() {
		p, _ := g.Position.Get(e)
		l, _ := g.Look.Get(e)
		if i := int(p.Y)*width + int(p.X); cells[i] != '@' {
			cells[i] = l.Glyph
		}
	}
	var b strings.Builder
	for row := range slices.Chunk(cells, width) {
		fmt.Fprintln(&b, string(row))
	}
	fmt.Fprintf(&b, "turn %d\n", g.turns())
	g.list(&b, g.Hero.Get().Entity, "  ")
	for event := range g.Events.Last() {
		fmt.Fprintf(&b, "%s: %s\n", event.Name, event.What)
	}
	return b.String()
}

// list writes the things of an owner, one per line. The contents of a thing follow with more
// indentation.
func (g *game) list(b *strings.Builder, holder ecs.Entity, indent string) {
	for e := range g.contents.Of(holder) {
		l, _ := g.Look.Get(e)
		fmt.Fprintf(b, "%s%c %s\n", indent, l.Glyph, l.Name)
		g.list(b, e, indent+"  ")
	}
}
