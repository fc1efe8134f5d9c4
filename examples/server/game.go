package main

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

const (
	size  = 64 // Coordinates are from 0 to size-1.
	sight = 10 // A player sees this many places in each direction.
)

// These types are the components.
type (
	Player   struct{ Name string }
	Position struct{ X, Y int32 }
	Goal     struct{ X, Y int32 } // The place to which a player walks.
	Online   struct{}             // The player has a connection.
)

// Said is an event: a player has said a text.
type Said struct {
	Player ecs.Entity
	Text   string
}

// An Order is what a player wants to do. Orders are the only input of the game, so the same orders
// in the same ticks give the same world.
type Order struct {
	Player, Line string
	Verb, Text   string // The two parts of the line.
	DX, DY       int32  // The distance of the verb "move".
}

// parseOrder returns the order in a line of a client, or in a recorded line.
func parseOrder(player, line string) (o Order, err error) {
	o = Order{Player: player, Line: line}
	o.Verb, o.Text, _ = strings.Cut(line, " ")
	valid := false
	switch o.Verb {
	case "join", "say", "list", "leave":
		valid = true
	case "move":
		n, _ := fmt.Sscan(o.Text, &o.DX, &o.DY)
		valid = n == 2
	}
	if !valid {
		return o, fmt.Errorf("want move DX DY, say TEXT, list or leave, not %q", line)
	}
	return o, nil
}

// A game has the handles of a world, and the systems that change it. Its whole state is in the
// world.
type game struct {
	Player   *ecs.Storage[Player]
	Position *ecs.Storage[Position]
	Goal     *ecs.Storage[Goal]
	Online   *ecs.Storage[Online]
	Said     *ecs.Events[Said]
	Walking  *ecs.Query2[Position, Goal] `ecs:"write,read"`

	world   *ecs.World
	byName  *ecs.Index[Player, string]
	online  *ecs.Query2[Player, Position]
	systems *schedule.Schedule[[]Order]
}

// newGame returns a game with an empty world.
func newGame(options ecs.Options) *game {
	g := new(game)
	if err := ecs.Bind(ecs.NewWorld(options), g); err != nil {
		panic(err) // The declaration of game is wrong.
	}
	return g
}

// Build creates everything that needs the handles: the index, the query with a filter, and the
// systems.
func (g *game) Build(w *ecs.World) error {
	g.world = w
	g.byName = ecs.NewIndex(g.Player, func(p Player) string { return p.Name })
	g.online = ecs.NewQuery2(ecs.Read(g.Player), ecs.Read(g.Position)).With(g.Online)

	players := schedule.Uses(schedule.Creates, g.Player, g.Position, g.byName)
	g.systems = schedule.New[[]Order](w)
	g.systems.Add("obey", schedule.Uses(players, g.Goal, g.Online, g.Said), g.obey)
	g.systems.Add("walk", schedule.Uses(g.Walking, g.Goal), g.walk).Every(6) // 10 steps a second.
	return nil
}

// tick is the argument of a system.
type tick = schedule.Tick[[]Order]

// obey executes the orders of the players. A new player starts at a random place. Tick.Rand draws
// the same numbers in a replay.
func (g *game) obey(t *tick) {
	for _, o := range t.Input {
		e, known := g.byName.First(o.Player)
		if !known {
			e = t.World.Create()
			g.Player.Set(e, Player{o.Player})
			g.Position.Set(e, Position{int32(t.Rand().IntN(size)), int32(t.Rand().IntN(size))})
		}
		switch o.Verb {
		case "join":
			g.Online.Set(e, Online{})
		case "leave":
			g.Online.Remove(e)
			g.Goal.Remove(e)
		case "move":
			p, _ := g.Position.Get(e)
			dx, dy := clamp(o.DX, -size, size), clamp(o.DY, -size, size)
			g.Goal.Set(e, Goal{clamp(p.X+dx, 0, size-1), clamp(p.Y+dy, 0, size-1)})
		case "say":
			g.Said.Send(Said{e, o.Text})
		}
	}
}

// walk moves each player that has a Goal by one step. It removes the Goal of a player that arrives.
func (g *game) walk(*tick) {
	for e, row := range g.Walking.All() {
		row.A.X += clamp(row.B.X-row.A.X, -1, 1)
		row.A.Y += clamp(row.B.Y-row.A.Y, -1, 1)
		if *row.A == Position(*row.B) {
			g.Goal.Remove(e)
		}
	}
}

func clamp(v, low, high int32) int32 { return max(low, min(v, high)) }

// sees reports whether two players see each other.
func (g *game) sees(a, b ecs.Entity) bool {
	p, _ := g.Position.Get(a)
	q, _ := g.Position.Get(b)
	return max(p.X-q.X, q.X-p.X, p.Y-q.Y, q.Y-p.Y) <= sight
}

// view lists the online players for which visible() returns true.
func (g *game) view(visible func(e ecs.Entity) bool) (view string) {
	for e, row := range g.online.All() {
		if visible(e) {
			view += fmt.Sprintf(" %s@%d,%d", row.A.Name, row.B.X, row.B.Y)
		}
	}
	return view
}
