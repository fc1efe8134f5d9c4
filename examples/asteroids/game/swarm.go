package game

import (
	"iter"

	"github.com/stet-ecs/stet/ecs"
)

// A swarm of mites chases the ship. A mite that is hit burns for some ticks. Then it bursts and
// ignites the mites near it, so one shot can destroy many.

const (
	miteRadius  = 2.0
	miteSpeed   = 0.8
	mitePoints  = 10
	maxMites    = 800
	burstRadius = 9.0

	// Each mite chooses a direction once in this number of ticks.
	decision = 6
	// A fifth of the mites flies at the ship for this number of ticks. Then the next fifth does.
	attack = 80
)

// mitesOf returns the number of mites that a wave begins with: 15, 40, 75, 120 and so on.
func mitesOf(wave int32) int { return int(5 * wave * (wave + 2)) }

// chase steers the mites. Each mite circles the ship at its own distance, and attacks when it is
// its turn.
func (g *Game) chase(t *tick) {
	ship, found := Position{}, g.Ship.Len() > 0
	if found {
		ship, _ = g.Position.Get(g.Ship.Entities()[0])
	}
	for e, row := range g.Mites.All() {
		i := uint64(e.Index())
		if (i+t.Number)%decision != 0 {
			continue
		}
		side := Direction(uint8((i*37 + t.Number/8) % Headings))
		goal := row.A.plus(side, 10)
		if found {
			goal = ship
			if (i+t.Number/attack)%5 != 0 {
				goal = goal.plus(side, float64(30+i%45))
			}
		}
		d := way(*row.A, goal)
		v := Velocity{float64(row.B.X * 0.7), float64(row.B.Y * 0.7)}
		v.add(d, 0.3*miteSpeed/max(d.length(), miteSpeed))
		g.Velocity.Set(e, v)
	}
}

// ignite makes a mite burn. It reports whether the mite was alive and not burning.
func (g *Game) ignite(t *tick, mite ecs.Entity) bool {
	if !g.World.Alive(mite) || g.Life.Has(mite) {
		return false
	}
	g.Life.Set(mite, Life{uint8(3 + t.Rand().IntN(6))})
	return true
}

// burst turns a mite into sparks, and ignites the mites near it.
func (g *Game) burst(t *tick, mite ecs.Entity) {
	row, _ := g.Mites.Get(mite)
	at, v := *row.A, *row.B // The pointers are invalid after the next change.
	g.State.Mut().Score += mitePoints
	g.Sounds.Send(Burst)
	g.explode(t, at, v, 12)
	for other := range g.grid.near(at, burstRadius) {
		g.ignite(t, other)
	}
}

// locateMites fills the grid. The grid is not part of the world. So each system that uses the grid
// calls locateMites first.
func (g *Game) locateMites() {
	g.grid.begin()
	for e, row := range g.Mites.All() {
		g.grid.add(e, *row.A)
	}
	g.grid.sort()
}

// A grid finds the entities near a position. The world is divided into square cells.
//
//	added   entities in the order in which they were added
//	sorted  the same entities, ordered by cell
//	first   for each cell, the index in sorted at which its entities begin
type grid struct {
	added, sorted []located
	first         [columns*rows + 1]int
}

const (
	cellSize = 16.0 // The largest radius that near can search.
	columns  = int(Width / cellSize)
	rows     = int(Height / cellSize)
)

// A located is an entity with its position and its cell.
type located struct {
	entity ecs.Entity
	at     Position
	cell   int
}

// begin empties the grid.
func (g *grid) begin() {
	g.added = g.added[:0]
	clear(g.first[:])
}

func (g *grid) add(e ecs.Entity, at Position) {
	cell := int(at.Y/cellSize)*columns + int(at.X/cellSize)
	g.added = append(g.added, located{e, at, cell})
	g.first[cell+1]++
}

// sort makes the added entities available to near.
func (g *grid) sort() {
	for c := range columns * rows {
		g.first[c+1] += g.first[c]
	}
	g.sorted = append(g.sorted[:0], g.added...)
	next := g.first
	for _, l := range g.added {
		g.sorted[next[l.cell]] = l
		next[l.cell]++
	}
}

// near returns the entities whose distance from a position is less than the radius.
func (g *grid) near(at Position, radius float64) iter.Seq[ecs.Entity] {
	return func(yield func(ecs.Entity) bool) {
		column, row := int(at.X/cellSize), int(at.Y/cellSize)
		for y := row - 1; y <= row+1; y++ {
			for x := column - 1; x <= column+1; x++ {
				cell := (y+rows)%rows*columns + (x+columns)%columns
				for _, l := range g.sorted[g.first[cell]:g.first[cell+1]] {
					if Distance(at, l.at) < radius && !yield(l.entity) {
						return
					}
				}
			}
		}
	}
}
