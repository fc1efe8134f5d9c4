package main

import (
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// The plane is a torus with sides of this length.
const size = 1 << 12

// These bits are the buttons that a player can press.
const (
	pressLeft = 1 << iota
	pressRight
	pressUp
	pressDown
	pressFire
)

// Buttons are the buttons of both players in a tick.
type Buttons = rollback.Inputs[byte]

type tick = schedule.Tick[Buttons]

type (
	// Position is a position on the plane. In each tick, Velocity is added to Position.
	Position struct{ X, Y int32 }
	Velocity struct{ X, Y int32 }

	// Ship is the ship of a player.
	Ship struct {
		Player   uint8
		Cooldown uint8 // The number of ticks until the ship can fire again.
		Shots    int32 // The number of shots so far.
		Score    int32
	}

	// Bullet is a shot of a ship. Every third shot of a player is strong.
	Bullet struct {
		Owner ecs.Entity
		Power uint8
		Life  uint8 // The number of remaining ticks.
	}

	// Rock breaks when a bullet hits it.
	Rock struct{ Size int32 }
)

// A game is a world and its systems. Systems use only the world and the buttons, except with the
// flag -bug.
type game struct {
	world   *ecs.World
	systems *schedule.Schedule[Buttons]
	chance  *ecs.Rand

	positions  *ecs.Storage[Position]
	velocities *ecs.Storage[Velocity]
	ships      *ecs.Storage[Ship]
	bullets    *ecs.Storage[Bullet]
	rocks      *ecs.Storage[Rock]

	bug   bool
	shots [2]int32 // With -bug, a counter outside of the world, which no restore changes.
}

// newGame returns a game whose first tick is committed. Its history has up to the given number of
// ticks.
func newGame(history int, c config) *game {
	w := ecs.NewWorld(ecs.Options{History: history})
	g := &game{
		world:      w,
		systems:    schedule.New[Buttons](w),
		chance:     ecs.Must(ecs.RegisterRand(w, c.seed, 1)),
		positions:  ecs.MustRegister[Position](w),
		velocities: ecs.MustRegister[Velocity](w),
		ships:      ecs.MustRegister[Ship](w),
		bullets:    ecs.MustRegister[Bullet](w),
		rocks:      ecs.MustRegister[Rock](w),
		bug:        c.bug,
	}
	for player := range uint8(2) {
		e := w.Create()
		g.positions.Set(e, Position{size / 4 * (1 + 2*int32(player)), size / 2})
		g.velocities.Set(e, Velocity{})
		g.ships.Set(e, Ship{Player: player})
	}
	uses, reads := schedule.Uses, schedule.Reads
	g.systems.Add("steer", uses(ecs.Read(g.ships), ecs.Write(g.velocities)), g.steer)
	g.systems.Add("fire", uses(g.ships, g.bullets, g.positions, g.velocities, schedule.Creates), g.fire)
	g.systems.Add("move", uses(ecs.Read(g.velocities), ecs.Write(g.positions)), g.move)
	g.systems.Add("age", uses(ecs.Write(g.bullets), schedule.Creates), g.age)
	g.systems.Add("rocks", uses(g.rocks, g.positions, g.velocities, g.chance, schedule.Creates), g.addRock)
	g.systems.Add("hit", uses(reads(g.bullets, g.rocks, g.positions), ecs.Write(g.ships), schedule.Creates), g.hit)
	if c.fusible {
		g.addCloud()
	}
	w.Commit()
	return g
}

// steer turns buttons into velocity.
func (g *game) steer(t *tick) {
	for i, e := range g.ships.Entities() {
		buttons := t.Input[g.ships.Values()[i].Player].Value
		v := g.velocities.Mut(e)
		v.X = drag(v.X) + push(buttons, pressRight) - push(buttons, pressLeft)
		v.Y = drag(v.Y) + push(buttons, pressDown) - push(buttons, pressUp)
	}
}

func drag(v int32) int32 { return v - v/8 }

func push(buttons, button byte) int32 {
	if buttons&button != 0 {
		return 5
	}
	return 0
}

// fire creates the bullets of both ships.
func (g *game) fire(t *tick) {
	for i, e := range g.ships.Entities() {
		ship := g.ships.Mut(e)
		if ship.Cooldown > 0 {
			ship.Cooldown--
		}
		if t.Input[g.ships.Values()[i].Player].Value&pressFire == 0 || ship.Cooldown > 0 {
			continue
		}
		ship.Cooldown = 5
		ship.Shots++
		shots := ship.Shots
		if g.bug {
			g.shots[ship.Player]++
			shots = g.shots[ship.Player]
		}
		g.shoot(e, shots%3 == 0)
	}
}

// shoot creates a bullet of a ship.
func (g *game) shoot(ship ecs.Entity, power bool) {
	at, _ := g.positions.Get(ship)
	v, _ := g.velocities.Get(ship)
	b := Bullet{Owner: ship, Power: 1, Life: 40}
	if power {
		b.Power = 3
	}
	e := g.world.Create()
	g.positions.Set(e, at)
	g.velocities.Set(e, Velocity{v.X + 48, v.Y})
	g.bullets.Set(e, b)
}

// move moves all entities.
func (g *game) move(*tick) {
	for i, e := range g.velocities.Entities() {
		v := g.velocities.Values()[i]
		at := g.positions.Mut(e)
		at.X, at.Y = (at.X+v.X)&(size-1), (at.Y+v.Y)&(size-1)
	}
}

// age destroys old bullets.
func (g *game) age(*tick) {
	// Iterate backwards, because removing a row moves the last row to its index.
	for i := g.bullets.Len() - 1; i >= 0; i-- {
		e := g.bullets.Entities()[i]
		if b := g.bullets.Mut(e); b.Life > 1 {
			b.Life--
		} else {
			g.world.Destroy(e)
		}
	}
}

// addRock creates a rock at random.
func (g *game) addRock(*tick) {
	if g.rocks.Len() >= 12 || g.chance.IntN(8) > 0 {
		return
	}
	e := g.world.Create()
	g.positions.Set(e, Position{int32(g.chance.IntN(size)), int32(g.chance.IntN(size))})
	g.velocities.Set(e, Velocity{int32(g.chance.IntN(9)) - 4, int32(g.chance.IntN(9)) - 4})
	g.rocks.Set(e, Rock{int32(64 + g.chance.IntN(256))})
}

// hit destroys the rocks that bullets have reached.
func (g *game) hit(*tick) {
	for i := g.bullets.Len() - 1; i >= 0; i-- {
		e := g.bullets.Entities()[i]
		if rock, ok := g.rockAt(e); ok {
			b := g.bullets.Values()[i]
			g.ships.Mut(b.Owner).Score += int32(b.Power)
			g.world.Destroy(rock)
			g.world.Destroy(e)
		}
	}
}

// rockAt returns the first rock near e.
func (g *game) rockAt(e ecs.Entity) (rock ecs.Entity, ok bool) {
	at, _ := g.positions.Get(e)
	for i, rock := range g.rocks.Entities() {
		to, _ := g.positions.Get(rock)
		if r := g.rocks.Values()[i].Size; abs(at.X-to.X) <= r && abs(at.Y-to.Y) <= r {
			return rock, true
		}
	}
	return 0, false
}

func abs(v int32) int32 { return max(v, -v) }

// score returns the scores of the players.
func (g *game) score() (points [2]int32) {
	for _, s := range g.ships.Values() {
		points[s.Player] = s.Score
	}
	return points
}
