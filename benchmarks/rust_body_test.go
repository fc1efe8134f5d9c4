package benchmarks

import "github.com/stet-ecs/stet/ecs"

// The components of ecs_bench_suite.
type (
	vector    struct{ X, Y, Z float32 }
	transform struct{ M matrix }
	place     struct{ V vector }
	rotation  struct{ V vector }
	speed     struct{ V vector }
)

const bodies = 10_000

// bodyWorld is a world of entities with all four components.
type bodyWorld struct {
	world      *ecs.World
	transforms *ecs.Storage[transform]
	places     *ecs.Storage[place]
	rotations  *ecs.Storage[rotation]
	speeds     *ecs.Storage[speed]
}

func newBodyWorld() *bodyWorld {
	w := ecs.NewWorld(ecs.Options{})
	return &bodyWorld{
		world:      w,
		transforms: ecs.MustRegister[transform](w),
		places:     ecs.MustRegister[place](w),
		rotations:  ecs.MustRegister[rotation](w),
		speeds:     ecs.MustRegister[speed](w),
	}
}

func (b *bodyWorld) insert(n int, m matrix) {
	x := vector{X: 1}
	for range n {
		e := b.world.Create()
		b.transforms.Set(e, transform{m})
		b.places.Set(e, place{x})
		b.rotations.Set(e, rotation{x})
		b.speeds.Set(e, speed{x})
	}
}

// simpleInsert creates a world with 10 000 bodies.
func simpleInsert(n int) *work {
	var b *bodyWorld
	tracked := false
	return &work{
		checkpoint: func() { tracked = true },
		repeat: func() {
			b = newBodyWorld()
			if tracked {
				b.world.Checkpoint()
			}
			b.insert(n, identity())
		},
		check: func(int) bool { return b.world.Len() == n && b.transforms.Len() == n && b.speeds.Len() == n },
	}
}

// simpleIter adds the speed of 10 000 bodies to their places.
var simpleIter = []form{
	{"all", func(n int) *work {
		b := newBodyWorld()
		b.insert(n, identity())
		q := ecs.NewQuery2(ecs.Write(b.places), ecs.Read(b.speeds))
		return b.moved(func() {
			for _, row := range q.All() {
				row.A.V.add(row.B.V)
			}
		})
	}},
	{"runs", func(n int) *work {
		b := newBodyWorld()
		b.insert(n, identity())
		q := ecs.NewQuery2(ecs.Write(b.places), ecs.Read(b.speeds))
		return b.moved(func() {
			for run := range q.Runs() {
				places, speeds := run.A, run.B
				for i := range places {
					places[i].V.add(speeds[i].V)
				}
			}
		})
	}},
}

func (v *vector) add(o vector) {
	v.X += o.X
	v.Y += o.Y
	v.Z += o.Z
}

// exact is the largest integer up to which a float32 represents every integer.
const exact = 1 << 24

func (b *bodyWorld) moved(repeat func()) *work {
	return &work{world: b.world, repeat: repeat, check: func(times int) bool {
		for _, p := range b.places.Values() {
			if p.V != (vector{X: float32(min(times+1, exact))}) {
				return false
			}
		}
		return true
	}}
}

// heavyCompute inverts the transforms of 1000 bodies a hundred times, and applies the results to
// the places of the bodies.
var heavyCompute = []form{
	{"all", func(n int) *work {
		b, q := heavyWorld(n)
		return b.inverted(func() {
			for _, row := range q.All() {
				invert(&row.A.M, &row.B.V)
			}
		})
	}},
	{"runs", func(n int) *work {
		b, q := heavyWorld(n)
		return b.inverted(func() {
			for run := range q.Runs() {
				invertRun(run)
			}
		})
	}},
	{"parallel", func(n int) *work {
		b, q := heavyWorld(n)
		return b.inverted(func() {
			q.ParallelRuns(8, invertRun)
		})
	}},
}

func heavyWorld(n int) (*bodyWorld, *ecs.Query2[transform, place]) {
	b := newBodyWorld()
	b.insert(n, turned(1.2))
	return b, ecs.NewQuery2(ecs.Write(b.transforms), ecs.Write(b.places))
}

func invert(m *matrix, v *vector) {
	for range 100 {
		inv, ok := m.inverse()
		if !ok {
			panic("benchmarks: the matrix has no inverse")
		}
		*m = inv
	}
	*v = m.turn(*v)
}

func invertRun(run ecs.Run2[transform, place]) {
	for i := range run.A {
		invert(&run.A[i].M, &run.B[i].V)
	}
}

func (b *bodyWorld) inverted(repeat func()) *work {
	return &work{world: b.world, repeat: repeat, check: func(int) bool {
		// Rounding errors accumulate, but the matrix remains invertible.
		for _, t := range b.transforms.Values() {
			inv, ok := t.M.inverse()
			if product := t.M.times(&inv); !ok || !product.near(identity()) {
				return false
			}
		}
		return true
	}}
}
