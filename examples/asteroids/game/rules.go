package game

import (
	"math"

	"github.com/stet-ecs/stet/ecs"
)

// Buttons are the buttons that the player holds in a tick. They are the only input of the game, so
// the same buttons in the same ticks give the same world.
type Buttons uint8

// These are the buttons.
const (
	Left Buttons = 1 << iota
	Right
	Thrust
	Fire
)

// The world is a torus: an entity that leaves it on one side comes in on the other side.
const (
	Width    = 320.0
	Height   = 176.0
	Headings = 96 // The number of directions of a ship. 0 is to the right.

	shipRadius = 3.0
	shipDelay  = 90  // Ticks from the loss of a ship to the next ship.
	shieldTime = 120 // Ticks in which a new ship cannot be hit.
	cooldown   = 8   // Ticks from shot to shot.
	bulletLife = 60
	sparkLife  = 60   // The maximum number of ticks that a spark flies.
	farAway    = 70.0 // New rocks appear at this distance from the ship.
)

// begin begins a new game.
func (g *Game) begin(*tick) {
	g.World.Clear()
	g.State.Set(State{Lives: 3})
}

// Over reports whether the game waits for the player to fire. It waits before the first game, and
// after a game has ended.
func (g *Game) Over() bool {
	s := g.State.Get()
	return s.Lives == 0 && s.Wait == 0
}

func (g *Game) wantsRestart(t *tick) bool { return g.Over() && t.Input&Fire != 0 }

// steer turns and accelerates the ship.
func (g *Game) steer(t *tick) {
	for _, row := range g.Ships.All() {
		at, v, ship := *row.A, row.B, row.C
		if t.Input&Left != 0 {
			ship.Heading = (ship.Heading + Headings - 1) % Headings
		}
		if t.Input&Right != 0 {
			ship.Heading = (ship.Heading + 1) % Headings
		}
		ahead, exhaust := Direction(ship.Heading), *v
		if ship.Thrust = t.Input&Thrust != 0; ship.Thrust {
			v.add(ahead, 0.05)
			exhaust.add(Direction((ship.Heading+Headings/2-4+uint8(t.Rand().IntN(8)))%Headings), 1)
		}
		v.X, v.Y = float64(v.X*0.99), float64(v.Y*0.99)
		// The call below invalidates the pointers of the row.
		if ship.Thrust {
			g.addSpark(t, at.plus(ahead, -4), exhaust, 8+t.Rand().IntN(12))
		}
	}
}

// fire creates bullets at the bow of the ship: one in the first wave, three in the second, then
// five.
func (g *Game) fire(t *tick) {
	for _, row := range g.Ships.All() {
		ship := row.C
		if ship.Cooldown > 0 {
			ship.Cooldown--
		} else if t.Input&Fire != 0 {
			ship.Cooldown = cooldown - 1
			g.Sounds.Send(Shot)
			at, inertia, heading := *row.A, *row.B, int32(ship.Heading)
			pairs := min(max(g.State.Get().Wave-1, 0), 2)
			for i := -pairs; i <= pairs; i++ {
				direction, v := Direction(uint8((heading+3*i+Headings)%Headings)), inertia
				v.add(direction, 2.5)
				g.NewBullet.Create(at.plus(direction, 5), v, Bullet{}, Life{bulletLife})
			}
		}
	}
}

// move moves all entities.
func (g *Game) move(*tick) {
	for _, row := range g.Moving.All() {
		*row.A = row.A.plus(*row.B, 1)
	}
}

// expire destroys bullets when their time is over, and bursts mites that have burnt down.
func (g *Game) expire(t *tick) {
	g.locateMites()
	for e, life := range g.Timed.All() {
		if life.Ticks--; life.Ticks > 0 {
			continue
		}
		if g.Mite.Has(e) {
			g.burst(t, e)
		}
		g.World.Destroy(e)
	}
}

// hit handles bullets that have reached a rock or a mite. It splits the rock or ignites the mite.
// It creates and destroys entities within its loops, which still visit every remaining bullet and
// rock.
func (g *Game) hit(t *tick) {
	g.locateMites()
	for bullet, b := range g.Bullets.All() {
		at, spent := *b.A, false
		for rock, r := range g.Rocks.All() {
			if Distance(at, *r.A) < r.C.Radius() {
				g.State.Mut().Score += r.C.points()
				g.split(t, rock)
				spent = true
				break
			}
		}
		for mite := range g.grid.near(at, miteRadius+1) {
			spent = g.ignite(t, mite) || spent
		}
		if spent {
			g.World.Destroy(bullet)
		}
	}
}

// crash destroys the ship if it touches a rock or a mite. A mite that touches a shield burns.
func (g *Game) crash(t *tick) {
	g.locateMites()
	for e, s := range g.Ships.All() {
		at, v, shielded, crashed := *s.A, *s.B, s.C.Shield > 0, false
		if shielded {
			s.C.Shield--
		}
		for mite := range g.grid.near(at, miteRadius+shipRadius) {
			crashed = g.ignite(t, mite) || crashed
		}
		for rock, r := range g.Rocks.All() {
			if !shielded && Distance(at, *r.A) < r.C.Radius()+shipRadius {
				g.split(t, rock)
				crashed = true
				break
			}
		}
		if crashed && !shielded {
			g.Sounds.Send(Crash)
			g.explode(t, at, v, 150)
			g.World.Destroy(e)
			state := g.State.Mut()
			state.Lives--
			state.Wait = shipDelay
		}
	}
}

// split destroys a rock. A rock above the smallest size becomes two smaller rocks.
func (g *Game) split(t *tick, rock ecs.Entity) {
	row, _ := g.Rocks.Get(rock)
	at, v, size := *row.A, *row.B, row.C.Size // The pointers are invalid after the next change.
	g.World.Destroy(rock)
	g.Sounds.Send(Split)
	g.explode(t, at, v, 15*int(size))
	for mite := range g.grid.near(at, burstRadius) {
		g.ignite(t, mite)
	}
	for range 2 * min(size-1, 1) {
		g.addRock(t, at, v, size-1)
	}
}

// addRock creates a rock. Its velocity is v plus a vector in a random direction.
func (g *Game) addRock(t *tick, at Position, v Velocity, size uint8) {
	v.add(Direction(uint8(t.Rand().IntN(Headings))), 0.9/float64(size))
	g.NewRock.Create(at, v, Rock{size})
}

// explode creates sparks that fly in all directions.
func (g *Game) explode(t *tick, at Position, v Velocity, sparks int) {
	for range sparks {
		spark := v
		spark.add(Direction(uint8(t.Rand().IntN(Headings))), t.Rand().Float64())
		g.addSpark(t, at, spark, 20+t.Rand().IntN(sparkLife-20))
	}
}

// addSpark creates a spark that flies for a number of ticks.
func (g *Game) addSpark(t *tick, at Position, v Velocity, ticks int) {
	g.NewSpark.Create(at, Spark{v, uint32(t.Number), uint32(t.Number) + uint32(ticks)})
}

// fade destroys the sparks whose time is over.
func (g *Game) fade(t *tick) {
	for e, spark := range g.Sparks.All() {
		if spark.End <= uint32(t.Number) {
			g.World.Destroy(e)
		}
	}
}

// launch creates a ship in the middle of the world, some ticks after the last ship was lost. If no
// lives are left, it creates no ship. It then waits until the player releases Fire, so that a held
// key does not begin a new game. The next press of Fire begins a new game.
func (g *Game) launch(t *tick) {
	s := g.State.Get()
	if g.Ships.Count() > 0 || s.Lives == 0 && s.Wait == 1 && t.Input&Fire != 0 {
		return
	} else if s.Wait > 0 {
		s.Wait--
		g.State.Set(s)
	} else if s.Lives > 0 {
		g.NewShip.Create(Position{Width / 2, Height / 2}, Velocity{}, Ship{Heading: Headings * 3 / 4, Shield: shieldTime})
	}
}

// wave creates the rocks and mites of the next wave when no rock is left.
func (g *Game) wave(t *tick) {
	if g.Rocks.Count() > 0 {
		return
	}
	state := g.State.Mut()
	state.Wave++
	g.Sounds.Send(NextWave)
	center := Position{Width / 2, Height / 2}
	if _, ship, ok := g.Ships.First(); ok {
		center = *ship.A
	}
	for range 2 + min(state.Wave, 8) {
		g.addRock(t, g.farFrom(t, center), Velocity{}, 3)
	}
	for range min(mitesOf(state.Wave), maxMites-g.Mite.Len()) {
		g.NewMite.Create(g.farFrom(t, center), Velocity{}, Mite{})
	}
}

// farFrom returns a random position that is far from the given center.
func (g *Game) farFrom(t *tick, center Position) Position {
	at := center
	for Distance(at, center) < farAway {
		at = Position{float64(t.Rand().IntN(Width)), float64(t.Rand().IntN(Height))}
	}
	return at
}

// record sets the high score.
func (g *Game) record(*tick) {
	if s := g.State.Get().Score; s > g.High.Get().Score {
		g.High.Set(High{s})
	}
}

func (r Rock) points() int32 { return []int32{100, 50, 20}[r.Size-1] }

// Radius returns the distance from the center of the rock to its border.
func (r Rock) Radius() float64 { return []float64{4, 8, 14}[r.Size-1] }

// Direction returns a velocity of length 1 in the direction of a heading.
func Direction(heading uint8) Velocity { return directions[heading] }

// directions are computed from constants, so that a replay is equal on all machines. Results of
// math.Sin can differ in the last bits.
var directions = func() (all [Headings]Velocity) {
	// The sine and cosine of the angle between two successive headings.
	const sin, cos = 0.06540312923014306, 0.9978589232386035
	all[0] = Velocity{1, 0}
	for i, d := range all[:Headings-1] {
		all[i+1] = Velocity{float64(d.X*cos) - float64(d.Y*sin), float64(d.X*sin) + float64(d.Y*cos)}
	}
	return all
}()

// add adds n times the other velocity. The conversions to float64 prevent fused multiply-add
// instructions, which round differently on some machines.
func (v *Velocity) add(other Velocity, n float64) {
	v.X, v.Y = v.X+float64(other.X*n), v.Y+float64(other.Y*n)
}

// plus returns the position after n ticks with a velocity.
func (p Position) plus(v Velocity, n float64) Position {
	return Position{wrap(p.X+float64(v.X*n), Width), wrap(p.Y+float64(v.Y*n), Height)}
}

// wrap returns x in the range from 0 to size. It loops, because a spark may have flown around the
// world more than once.
func wrap(x, size float64) float64 {
	for x < 0 {
		x += size
	}
	for x >= size {
		x -= size
	}
	return x
}

// way returns the shortest vector from a to b. It may cross an edge of the world.
func way(a, b Position) Velocity {
	return Velocity{shorter(b.X-a.X, Width), shorter(b.Y-a.Y, Height)}
}

func shorter(d, size float64) float64 {
	switch {
	case d > size/2:
		return d - size
	case d < -size/2:
		return d + size
	}
	return d
}

// length returns the length of a vector.
func (v Velocity) length() float64 { return math.Sqrt(float64(v.X*v.X) + float64(v.Y*v.Y)) }

// Distance returns the length of the shortest path from a to b.
func Distance(a, b Position) float64 { return way(a, b).length() }
