package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// changeSizes has the number of entities of a world that fits the second-level cache, and of one
// that does not.
var changeSizes = []int{16_000, 256_000}

// The functions below are the measured work. They handle every entity, one by one.

func (p *benchWorld) create() {
	for i := range p.entities {
		e := p.w.Create()
		p.positions.Set(e, position{1, 2})
		p.velocities.Set(e, velocity{3, 4})
		p.entities[i] = e
	}
}

func (p *benchWorld) destroy() {
	for _, e := range p.entities {
		p.w.Destroy(e)
	}
}

func (p *benchWorld) addRemove() {
	for _, e := range p.entities {
		p.velocities.Set(e, velocity{3, 4})
	}
	for _, e := range p.entities {
		p.velocities.Remove(e)
	}
}

func (p *benchWorld) removeAdd() {
	for _, e := range p.entities {
		p.velocities.Remove(e)
	}
	for _, e := range p.entities {
		p.velocities.Set(e, velocity{3, 4})
	}
}

func (p *benchWorld) set() {
	for _, e := range p.entities {
		p.velocities.Set(e, velocity{3, 4})
	}
}

func (p *benchWorld) limitCreate() {
	w := &p.limit
	for i := range p.handles {
		e := w.create()
		w.setPosition(e, position{1, 2})
		w.setVelocity(e, velocity{3, 4})
		p.handles[i] = e
	}
}

func (p *benchWorld) limitDestroy() {
	for _, e := range p.handles {
		p.limit.destroy(e)
	}
}

func (p *benchWorld) limitAddRemove() {
	for _, e := range p.handles {
		p.limit.setVelocity(e, velocity{3, 4})
	}
	for _, e := range p.handles {
		p.limit.removeVelocity(e)
	}
}

func (p *benchWorld) removeVelocities() {
	p.addRemove()
	p.limitAddRemove()
}

// A change is one kind of work and its inverse. budget is the allowed multiple of the limit's time.
// 0 means no budget. more is the extra nanoseconds that the first call in a frame may take.
type change struct {
	name   string
	budget float64
	more   float64
	start  func(p *benchWorld) // Called after every entity got both components. May be nil.

	undo, work           func(p *benchWorld)
	limitUndo, limitWork func(p *benchWorld)
}

var changes = []change{
	{"create", 1.6, 4, nil, (*benchWorld).destroy, (*benchWorld).create, (*benchWorld).limitDestroy, (*benchWorld).limitCreate},
	{"destroy", 2, 10, nil, (*benchWorld).create, (*benchWorld).destroy, (*benchWorld).limitCreate, (*benchWorld).limitDestroy},
	{"add+remove", 1.5, 4, (*benchWorld).removeVelocities, nil, (*benchWorld).addRemove, nil, (*benchWorld).limitAddRemove},
	{"remove+add", 0, 8, nil, nil, (*benchWorld).removeAdd, nil, nil},
	{"set", 0, 4, nil, nil, (*benchWorld).set, nil, nil},
}

// world returns a world of n entities that is ready for c.undo.
func (c *change) world(n int) *benchWorld {
	p := moving(n)
	if c.start != nil {
		c.start(p)
	}
	if c.name == "destroy" {
		p.destroy()
		p.limitDestroy()
	}
	return p
}

func (c *change) side(p *benchWorld, undo, work func(p *benchWorld)) side {
	s := side{work: func() { work(p) }}
	if undo != nil {
		s.prepare = func() { undo(p) }
	}
	return s
}

// The world has no open frame, or an open frame that has already saved the rows.
func BenchmarkBudgetChange(b *testing.B) {
	for _, c := range changes {
		if c.budget == 0 {
			continue
		}
		for _, n := range changeSizes {
			for _, frame := range []string{"free", "held"} {
				b.Run(c.name+"/"+sizeName(n)+"/"+frame, func(b *testing.B) {
					p := c.world(n)
					if frame == "held" {
						p.w.Checkpoint()
					}
					ours, limit := c.side(p, c.undo, c.work), c.side(p, c.limitUndo, c.limitWork)
					compare(b, n, c.budget, ours, limit)
				})
			}
		}
	}
}

// The benchmark compares the first write of each row in a frame with later writes. It measures the
// same difference for hand-written code.
func BenchmarkBudgetChangeFirst(b *testing.B) {
	for _, c := range changes {
		for _, n := range changeSizes {
			b.Run(c.name+"/"+sizeName(n), func(b *testing.B) {
				p, held := c.world(n), c.world(n)
				held.w.Checkpoint()
				first := c.side(p, c.undo, c.work)
				undo := first.ready
				var cp ecs.Checkpoint
				first.prepare = func() {
					undo()
					if cp.Valid() {
						p.w.Release(cp)
					}
					cp = p.w.Checkpoint()
				}
				compareMore(b, n, c.more, first, c.side(held, c.undo, c.work), framedSides(c.name, n)...)
			})
		}
	}
}
