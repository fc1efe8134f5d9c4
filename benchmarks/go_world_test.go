package benchmarks

import (
	"math/rand/v2"

	"github.com/stet-ecs/stet/ecs"
)

// The components of go-ecs-benchmarks.
type (
	position struct{ X, Y float64 }
	velocity struct{ X, Y float64 }
	c1       struct{ X, Y float64 }
	c2       struct{ X, Y float64 }
	c3       struct{ X, Y float64 }
	c4       struct{ X, Y float64 }
	c5       struct{ X, Y float64 }
	c6       struct{ X, Y float64 }
	c7       struct{ X, Y float64 }
	c8       struct{ X, Y float64 }
	c9       struct{ X, Y float64 }
	c10      struct{ X, Y float64 }
)

// movers is a world of entities with positions. Some of them have velocities.
type movers struct {
	world      *ecs.World
	positions  *ecs.Storage[position]
	velocities *ecs.Storage[velocity]
	entities   []ecs.Entity // The entities on which the benchmark works.
}

func newMovers() *movers {
	w := ecs.NewWorld(ecs.Options{})
	return &movers{world: w, positions: ecs.MustRegister[position](w), velocities: ecs.MustRegister[velocity](w)}
}

// place creates an entity with a position.
func (m *movers) place() ecs.Entity {
	e := m.world.Create()
	m.positions.Set(e, position{})
	return e
}

// move creates an entity with a position and a velocity.
func (m *movers) move(v velocity) ecs.Entity {
	e := m.world.Create()
	m.positions.Set(e, position{})
	m.velocities.Set(e, v)
	return e
}

// extras adds the components c1 to c10 to entities. Benchmarks do this outside of the measured
// time.
type extras struct {
	c1  *ecs.Storage[c1]
	c2  *ecs.Storage[c2]
	c3  *ecs.Storage[c3]
	c4  *ecs.Storage[c4]
	c5  *ecs.Storage[c5]
	c6  *ecs.Storage[c6]
	c7  *ecs.Storage[c7]
	c8  *ecs.Storage[c8]
	c9  *ecs.Storage[c9]
	c10 *ecs.Storage[c10]

	give []func(ecs.Entity)
}

func newExtras(w *ecs.World) *extras {
	x := new(extras)
	x.c1, x.c2, x.c3, x.c4 = extra[c1](w, x), extra[c2](w, x), extra[c3](w, x), extra[c4](w, x)
	x.c5, x.c6, x.c7, x.c8 = extra[c5](w, x), extra[c6](w, x), extra[c7](w, x), extra[c8](w, x)
	x.c9, x.c10 = extra[c9](w, x), extra[c10](w, x)
	return x
}

func extra[T any](w *ecs.World, x *extras) *ecs.Storage[T] {
	s := ecs.MustRegister[T](w)
	x.give = append(x.give, func(e ecs.Entity) {
		var zero T
		s.Set(e, zero)
	})
	return s
}

// some adds a subset of the first n components to e. Bit k of i tells whether the component with
// index k is in the subset.
func (x *extras) some(e ecs.Entity, n, i int) {
	for bit, give := range x.give[:n] {
		if i>>bit&1 == 1 {
			give(e)
		}
	}
}

// all adds all ten components to e.
func (x *extras) all(e ecs.Entity) {
	x.c1.Set(e, c1{})
	x.c2.Set(e, c2{})
	x.c3.Set(e, c3{})
	x.c4.Set(e, c4{})
	x.c5.Set(e, c5{})
	x.c6.Set(e, c6{})
	x.c7.Set(e, c7{})
	x.c8.Set(e, c8{})
	x.c9.Set(e, c9{})
	x.c10.Set(e, c10{})
}

func shuffle(entities []ecs.Entity) {
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(entities), func(i, j int) {
		entities[i], entities[j] = entities[j], entities[i]
	})
}
