package ecs_test

import (
	"math/rand/v2"

	"github.com/stet-ecs/stet/ecs"
)

// A benchWorld is a world with two components, and a limitWorld with the same entities in the same
// order.
type benchWorld struct {
	w          *ecs.World
	positions  *ecs.Storage[position]
	velocities *ecs.Storage[velocity]
	entities   []ecs.Entity

	limit   limitWorld
	handles []limitEntity
}

// newBenchWorld returns a world of n entities without components.
func newBenchWorld(n int) *benchWorld {
	p := &benchWorld{w: ecs.NewWorld(ecs.Options{})}
	p.positions = ecs.MustRegister[position](p.w)
	p.velocities = ecs.MustRegister[velocity](p.w)
	for range n {
		p.entities = append(p.entities, p.w.Create())
		p.handles = append(p.handles, p.limit.create())
	}
	return p
}

// moving returns a world of n entities that have both components, added in the same order.
func moving(n int) *benchWorld {
	p := newBenchWorld(n)
	for i := range n {
		p.setPosition(i)
		p.setVelocity(i)
	}
	return p
}

// shuffled returns a world of n entities that have both components, added in two random orders.
func shuffled(n int) *benchWorld {
	p := newBenchWorld(n)
	for _, i := range permutation(n, 1) {
		p.setPosition(i)
	}
	for _, i := range permutation(n, 2) {
		p.setVelocity(i)
	}
	return p
}

func (p *benchWorld) setPosition(i int) {
	v := position{float64(i), 1}
	p.positions.Set(p.entities[i], v)
	p.limit.positions.set(p.handles[i].index, v)
}

func (p *benchWorld) setVelocity(i int) {
	v := velocity{1, float64(i)}
	p.velocities.Set(p.entities[i], v)
	p.limit.velocities.set(p.handles[i].index, v)
}

// permutation returns a random order of 0 .. n-1 that depends only on the seed.
func permutation(n int, seed uint64) []int {
	return rand.New(rand.NewPCG(seed, 0)).Perm(n)
}

// sink stores results, so that the compiler does not remove their computation.
var sink float64
