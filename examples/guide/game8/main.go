// Game8 is the eighth step of the game in the guide: a store on the disk, with a slot.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/examples/guide/play"
	"github.com/stet-ecs/stet/persist"
)

const width, height, maxCoins = 18, 12, 20

// The number of ticks from coin to coin, and from chaser to chaser.
var coins, chasers = 6, 20

type (
	Position struct{ X, Y int }
	Velocity struct{ X, Y int }
	Glyph    byte     // The character on the screen.
	Hero     struct{} // Marks the entity that the player steers.
	Coin     struct{}
	Chaser   struct{}
	Score    int
	Scored   int // An event: the player has won points.
	tick     = schedule.Tick[play.Keys]
)

type game struct {
	Position *ecs.Storage[Position]
	Velocity *ecs.Storage[Velocity]
	Glyph    *ecs.Storage[Glyph]
	Hero     *ecs.Storage[Hero]
	Coin     *ecs.Storage[Coin]
	Chaser   *ecs.Storage[Chaser]
	Score    *ecs.Resource[Score]
	Scored   *ecs.Events[Scored]

	NewHero   *ecs.Bundle4[Position, Velocity, Glyph, Hero]
	NewCoin   *ecs.Bundle3[Position, Glyph, Coin]
	NewChaser *ecs.Bundle3[Position, Glyph, Chaser]

	Moving  *ecs.Query2[Position, Velocity]       `ecs:"write,read"`
	Heroes  *ecs.Query3[Position, Velocity, Hero] `ecs:"read,write,read"`
	Visible *ecs.Query2[Position, Glyph]          `ecs:"read,read"`
	Chasers *ecs.Query2[Position, Chaser]         `ecs:"write,read"`

	world   *ecs.World
	systems *schedule.Schedule[play.Keys]
	scored  *ecs.EventReader[Scored]
	store   *persist.Store
	message string // Shown until the next tick.
	waiting bool   // The game waits for a key.
}

// newGame continues the game in the store, or begins a new one.
func newGame() (play.Game, error) {
	g := new(game)
	err := ecs.Bind(ecs.NewWorld(ecs.Options{History: 600}), g)
	if err != nil {
		return play.Game{}, err
	}
	dir, files := play.Dir("game8")
	options := persist.Options{Files: files, History: 600}
	g.store, err = persist.Open(context.Background(), dir, g.world, options)
	g.waiting = g.world.Tick() > 0
	return play.Game{
		World: g.world, Tick: g.step, Draw: g.draw, Close: g.close,
		Actions: []play.Action{{Name: "Save", Run: g.save}, {Name: "Load", Run: g.load}},
	}, err
}

// Build creates the list of systems. Bind calls it.
func (g *game) Build(w *ecs.World) error {
	g.world, g.systems = w, schedule.New[play.Keys](w)
	g.scored = ecs.Must(g.Scored.Reader("count"))
	g.systems.Startup("begin", nil, g.begin)
	g.systems.Add("again", nil, g.begin).If(g.wantsAgain)
	g.systems.Add("steer", g.Heroes, g.steer)
	g.systems.Add("move", g.Moving, g.move)
	g.systems.Add("chase", nil, g.chase).Every(2)
	g.systems.Add("collide", nil, g.collide)
	g.systems.Add("count", nil, g.count)
	g.systems.Add("addCoin", nil, g.addCoin).Every(uint64(coins))
	g.systems.Add("addChaser", nil, g.addChaser).Every(uint64(chasers))
	return nil
}

func (g *game) begin(*tick) {
	g.world.Clear()
	g.Score.Set(0)
	g.NewHero.Create(Position{2, 6}, Velocity{1, 0}, '@', Hero{})
}

// directions has the velocity for each key of the player.
var directions = map[string]Velocity{
	"left": {-1, 0}, "right": {1, 0}, "up": {0, -1}, "down": {0, 1},
}

func (g *game) wantsAgain(t *tick) bool {
	return g.Heroes.Count() == 0 && t.Input.Has("space")
}

func (g *game) steer(t *tick) {
	for _, hero := range g.Heroes.All() {
		for _, key := range t.Input.Names() {
			if v, ok := directions[key]; ok {
				*hero.B = v
			}
		}
	}
}

func (g *game) move(*tick) {
	for _, row := range g.Moving.All() {
		at, v := row.Get()
		at.X, at.Y = (at.X+v.X+width)%width, (at.Y+v.Y+height)%height
	}
}

// chase moves each chaser towards the hero.
func (g *game) chase(*tick) {
	_, hero, alive := g.Heroes.First()
	if !alive {
		return
	}
	for _, chaser := range g.Chasers.All() {
		at := chaser.A
		at.X += cmp.Compare(hero.A.X, at.X)
		at.Y += cmp.Compare(hero.A.Y, at.Y)
	}
}

// collide handles all pairs of entities at the same place.
func (g *game) collide(t *tick) {
	for a, at := range g.Visible.All() {
		for b, other := range g.Visible.All() {
			switch {
			case a == b || *at.A != *other.A:
			case g.Hero.Has(a) && g.Coin.Has(b):
				t.Commands().Destroy(b)
				g.Scored.Send(1)
			case g.Chaser.Has(a) && g.Hero.Has(b):
				t.Commands().Destroy(b)
			case g.Chaser.Has(a) && g.Chaser.Has(b):
				t.Commands().Destroy(a)
				g.Scored.Send(3)
			}
		}
	}
}

// count adds the points of new events to the score.
func (g *game) count(*tick) {
	for points := range g.scored.All() {
		*g.Score.Mut() += Score(points)
	}
}

func (g *game) addCoin(t *tick) {
	if g.Coin.Len() < maxCoins {
		g.NewCoin.Create(Position{t.Rand().IntN(width), t.Rand().IntN(height)}, '$', Coin{})
	}
}

// addChaser creates a chaser far away from the hero.
func (g *game) addChaser(t *tick) {
	if _, hero, alive := g.Heroes.First(); alive {
		at := Position{t.Rand().IntN(width), (hero.A.Y + height/2) % height}
		g.NewChaser.Create(at, 'M', Chaser{})
	}
}

func (g *game) step(keys play.Keys) error {
	if history := g.world.History(); keys.Has("r") {
		g.waiting = true
		return history.Seek(max(g.world.Tick(), history.Oldest()+2) - 2)
	}
	if g.waiting && keys == "" {
		return nil
	}
	g.waiting, g.message = false, ""
	g.systems.Step(keys)
	return g.store.Commit()
}

func (g *game) save() error {
	_, err := g.store.SaveSlot(context.Background(), "quick", "")
	return err
}

func (g *game) load() error {
	g.waiting = true
	err := g.store.LoadSlot(context.Background(), "quick")
	if errors.Is(err, persist.ErrNotFound) {
		g.message, err = "  nothing is saved yet", nil
	}
	return err
}

func (g *game) close() error { return g.store.Close(context.Background()) }

func (g *game) draw() string {
	screen := []byte(strings.Repeat(strings.Repeat(". ", width-1)+".\n", height))
	for _, row := range g.Visible.All() {
		at, glyph := row.Get()
		screen[2*(at.Y*width+at.X)] = byte(*glyph)
	}
	text := fmt.Sprintf("score %d", g.Score.Get())
	for points := range g.Scored.All() {
		text += fmt.Sprintf("  +%d", points)
	}
	if g.world.Tick() > 0 && g.Heroes.Count() == 0 {
		text += "  GAME OVER: press space"
	}
	return string(screen) + text + g.message + "\n"
}

func main() {
	play.Run(play.Program{
		Title: "Step 8",
		Rate:  6,
		Params: []play.Param{
			{Name: "coins", Value: &coins, Min: 1, Max: 40},
			{Name: "chasers", Value: &chasers, Min: 1, Max: 80},
		},
		New: newGame,
	})
}
