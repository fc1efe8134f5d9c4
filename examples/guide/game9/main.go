// Game9 is the last step of the game in the guide: two players, with a bad line between them.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/examples/guide/play"
)

const width, height, maxCoins = 18, 12, 20

// The numbers of ticks from coin to coin, from chaser to chaser, and from sending a message to its
// arrival. The last number is the percentage of lost messages.
var coins, chasers, delay, loss = 6, 20, 3, 20

type (
	Position struct{ X, Y int }
	Velocity struct{ X, Y int }
	Glyph    byte                 // The character on the screen.
	Hero     struct{ Player int } // A player steers the entity.
	Coin     struct{}
	Chaser   struct{}
	Score    int
	Scored   int                          // An event: the player has won points.
	inputs   = rollback.Inputs[play.Keys] // The keys of both players.
	tick     = schedule.Tick[inputs]
	message  = rollback.Message[play.Keys]
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
	systems *schedule.Schedule[inputs]
	scored  *ecs.EventReader[Scored]
}

// Build creates the list of systems. Bind calls it.
func (g *game) Build(w *ecs.World) error {
	g.world, g.systems = w, schedule.New[inputs](w)
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
	g.NewHero.Create(Position{2, 3}, Velocity{1, 0}, '@', Hero{0})
	g.NewHero.Create(Position{15, 8}, Velocity{-1, 0}, '&', Hero{1})
}

// directions has the velocity for each key of each player.
var directions = [2]map[string]Velocity{
	{"left": {-1, 0}, "right": {1, 0}, "up": {0, -1}, "down": {0, 1}},
	{"a": {-1, 0}, "d": {1, 0}, "w": {0, -1}, "s": {0, 1}},
}

func (g *game) wantsAgain(t *tick) bool {
	return g.Heroes.Count() == 0 && t.Input[0].Value.Has("space")
}

func (g *game) steer(t *tick) {
	for _, hero := range g.Heroes.All() {
		for _, key := range t.Input[hero.C.Player].Value.Names() {
			if v, ok := directions[hero.C.Player][key]; ok {
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
	return string(screen) + text + "\n"
}

// A match is two games, as on two machines, and the lines between them.
type match struct {
	games    [2]*game
	sessions [2]*rollback.Session[play.Keys]
	lines    [2]play.Line[message] // The line to each game.
}

func newMatch() (play.Game, error) {
	m := new(match)
	for i := range m.games {
		m.games[i] = new(game)
		if err := ecs.Bind(ecs.NewWorld(ecs.Options{History: 600}), m.games[i]); err != nil {
			return play.Game{}, err
		}
	}
	return play.Game{World: m.games[0].world, Tick: m.step, Draw: m.draw, Seek: m.seek}, m.join(0)
}

// join goes to a tick in both games, and begins new sessions at this tick.
func (m *match) join(tick uint64) error {
	for i, g := range m.games {
		if err := g.world.History().Seek(tick); err != nil {
			return err
		}
		options := rollback.Options[play.Keys]{Peers: 2, Peer: i, Players: []int{0, 1}}
		m.sessions[i] = ecs.Must(rollback.New(g.systems, options))
		m.lines[i] = play.Line[message]{Delay: delay, Loss: loss}
	}
	return nil
}

// seek goes to a tick. It goes back further if a game does not have the keys of both players up to
// this tick.
func (m *match) seek(tick uint64) error {
	return m.join(min(tick, m.sessions[0].Confirmed(), m.sessions[1].Confirmed()))
}

// step runs a tick of both games, and sends the keys of each player to the other one.
func (m *match) step(keys play.Keys) (err error) {
	for i, session := range m.sessions {
		for received := range m.lines[i].Receive() {
			err = errors.Join(err, session.Receive(1-i, &received))
		}
		if e := session.Advance(keys); !errors.Is(e, rollback.ErrAhead) {
			err = errors.Join(err, e)
		}
		var sent message
		err = errors.Join(err, session.Report(1-i, &sent))
		m.lines[1-i].Send(sent)
	}
	return err
}

func (m *match) draw() string {
	text := play.Columns(m.games[0].draw(), m.games[1].draw())
	for i, s := range m.sessions {
		text += fmt.Sprintf("game %d repeated %d ticks; equal at tick %d\n", i+1, s.Remade(), s.Agreed(1-i))
	}
	return text
}

func main() {
	play.Run(play.Program{
		Title: "Step 9",
		Rate:  6,
		Params: []play.Param{
			{Name: "coins", Value: &coins, Min: 1, Max: 40},
			{Name: "chasers", Value: &chasers, Min: 1, Max: 80},
			{Name: "delay", Value: &delay, Min: 0, Max: 7},
			{Name: "loss", Value: &loss, Min: 0, Max: 80},
		},
		New: newMatch,
	})
}
