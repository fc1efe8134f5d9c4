// Game4 is the fourth step of the game in the guide: entities collide.
package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/examples/guide/play"
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

	NewHero   *ecs.Bundle4[Position, Velocity, Glyph, Hero]
	NewCoin   *ecs.Bundle3[Position, Glyph, Coin]
	NewChaser *ecs.Bundle3[Position, Glyph, Chaser]

	Moving  *ecs.Query2[Position, Velocity]       `ecs:"write,read"`
	Heroes  *ecs.Query3[Position, Velocity, Hero] `ecs:"read,write,read"`
	Visible *ecs.Query2[Position, Glyph]          `ecs:"read,read"`
	Chasers *ecs.Query2[Position, Chaser]         `ecs:"write,read"`

	world   *ecs.World
	systems *schedule.Schedule[play.Keys]
}

func newGame() (play.Game, error) {
	g := new(game)
	err := ecs.Bind(ecs.NewWorld(ecs.Options{History: 600}), g)
	return play.Game{World: g.world, Tick: g.step, Draw: g.draw}, err
}

// Build creates the list of systems. Bind calls it.
func (g *game) Build(w *ecs.World) error {
	g.world, g.systems = w, schedule.New[play.Keys](w)
	g.systems.Startup("begin", nil, g.begin)
	g.systems.Add("steer", g.Heroes, g.steer)
	g.systems.Add("move", g.Moving, g.move)
	g.systems.Add("chase", nil, g.chase).Every(2)
	g.systems.Add("collide", nil, g.collide)
	g.systems.Add("addCoin", nil, g.addCoin).Every(uint64(coins))
	g.systems.Add("addChaser", nil, g.addChaser).Every(uint64(chasers))
	return nil
}

func (g *game) begin(*tick) {
	g.NewHero.Create(Position{2, 6}, Velocity{1, 0}, '@', Hero{})
}

// directions has the velocity for each key of the player.
var directions = map[string]Velocity{
	"left": {-1, 0}, "right": {1, 0}, "up": {0, -1}, "down": {0, 1},
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
				*g.Score.Mut()++
			case g.Chaser.Has(a) && g.Hero.Has(b):
				t.Commands().Destroy(b)
			case g.Chaser.Has(a) && g.Chaser.Has(b):
				t.Commands().Destroy(a)
				*g.Score.Mut() += 3
			}
		}
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
	g.systems.Step(keys)
	g.world.Commit()
	return nil
}

func (g *game) draw() string {
	screen := []byte(strings.Repeat(strings.Repeat(". ", width-1)+".\n", height))
	for _, row := range g.Visible.All() {
		at, glyph := row.Get()
		screen[2*(at.Y*width+at.X)] = byte(*glyph)
	}
	text := fmt.Sprintf("score %d", g.Score.Get())
	if g.world.Tick() > 0 && g.Heroes.Count() == 0 {
		text += "  GAME OVER"
	}
	return string(screen) + text + "\n"
}

func main() {
	play.Run(play.Program{
		Title: "Step 4",
		Params: []play.Param{
			{Name: "coins", Value: &coins, Min: 1, Max: 40},
			{Name: "chasers", Value: &chasers, Min: 1, Max: 80},
		},
		New: newGame,
	})
}
