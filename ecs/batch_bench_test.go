package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// The benchmarks compare batches with loops that have the same effect. Batch and loop run
// alternately. The metric x/limit is the time of the batch divided by the time of the loop:
//
//	go test -run '^$' -bench BenchmarkBatch -benchtime 1x ./ecs

const batchSize = 10_000

// visitors is a world whose entities are created and destroyed in batches.
type visitors struct {
	*benchWorld
	values []position
}

func newVisitors() *visitors {
	c := &visitors{benchWorld: newBenchWorld(0), values: make([]position, batchSize)}
	e := c.w.Create() // One entity is never destroyed.
	c.positions.Set(e, position{})
	c.velocities.Set(e, velocity{})
	c.fill()
	return c
}

func (c *visitors) fill() {
	c.entities = c.w.CreateN(c.entities[:0], batchSize)
	c.positions.SetAll(c.entities, position{1, 2})
	c.velocities.SetAll(c.entities, velocity{3, 4})
}

func (c *visitors) fillOneByOne() {
	c.entities = c.entities[:0]
	for range batchSize {
		e := c.w.Create()
		c.positions.Set(e, position{1, 2})
		c.velocities.Set(e, velocity{3, 4})
		c.entities = append(c.entities, e)
	}
}

func (c *visitors) leave() { c.w.DestroyAll(c.entities) }

func (c *visitors) leaveOneByOne() {
	for _, e := range c.entities {
		c.w.Destroy(e)
	}
}

func (c *visitors) stop() { c.velocities.RemoveAll(c.entities) }

func (c *visitors) stopOneByOne() {
	for _, e := range c.entities {
		c.velocities.Remove(e)
	}
}

func (c *visitors) start() { c.velocities.SetAll(c.entities, velocity{3, 4}) }

func (c *visitors) place() { c.positions.SetEach(c.entities, c.values) }

func (c *visitors) placeOneByOne() {
	for i, e := range c.entities {
		c.positions.Set(e, c.values[i])
	}
}

func (c *visitors) shuffle() {
	list := make([]ecs.Entity, 0, batchSize)
	for _, i := range permutation(batchSize, 3) {
		list = append(list, c.entities[i])
	}
	c.entities = list
}

func BenchmarkBatch(b *testing.B) {
	for _, m := range []struct {
		name                 string
		shuffled             bool
		prepare, batch, loop func(c *visitors)
	}{
		{"create2", false, (*visitors).leave, (*visitors).fill, (*visitors).fillOneByOne},
		{"destroy2", false, (*visitors).fill, (*visitors).leave, (*visitors).leaveOneByOne},
		{"set", false, nil, (*visitors).place, (*visitors).placeOneByOne},
		{"set/shuffled", true, nil, (*visitors).place, (*visitors).placeOneByOne},
		{"remove", false, (*visitors).start, (*visitors).stop, (*visitors).stopOneByOne},
	} {
		for _, frame := range []string{"free", "held"} {
			b.Run(m.name+"/"+frame, func(b *testing.B) {
				sideOf := func(work func(*visitors)) side {
					c := newVisitors()
					if m.shuffled {
						c.shuffle()
					}
					if frame == "held" {
						c.w.Checkpoint()
					}
					s := side{work: func() { work(c) }}
					if m.prepare != nil {
						s.prepare = func() { m.prepare(c) }
					}
					return s
				}
				compare(b, batchSize, 1, sideOf(m.batch), sideOf(m.loop))
			})
		}
	}
}

// The world grows from zero entities. Most of the time is spent on memory that the operating system
// provides for the first time.
func BenchmarkBatchCreateFresh(b *testing.B) {
	const n = 1_000_000
	work := func() {
		p := newBenchWorld(0)
		entities := p.w.CreateN(nil, n)
		p.positions.SetAll(entities, position{1, 2})
		p.velocities.SetAll(entities, velocity{3, 4})
	}
	limit := func() {
		entities, sparse := make([]ecs.Entity, n), make([]uint32, n)
		for i := range entities {
			entities[i], sparse[i] = ecs.NewEntity(uint32(i), 1), uint32(i)
		}
		for range 2 {
			dense, sparse, data := make([]ecs.Entity, n), make([]uint32, n), make([]position, n)
			copy(dense, entities)
			for i := range data {
				data[i], sparse[i] = position{1, 2}, uint32(i)
			}
		}
	}
	compare(b, n, 2, side{work: work}, side{work: limit})
}
