package benchmarks

import "github.com/stet-ecs/stet/ecs"

var queryForms = []struct {
	name string
	loop func(*ecs.Query2[position, velocity])
}{
	{"all", moveAll},
	{"runs", moveRuns},
}

func moveAll(q *ecs.Query2[position, velocity]) {
	for _, row := range q.All() {
		row.A.X += row.B.X
		row.A.Y += row.B.Y
	}
}

func moveRuns(q *ecs.Query2[position, velocity]) {
	for run := range q.Runs() {
		positions, velocities := run.A, run.B
		for i := range positions {
			pos, vel := &positions[i], &velocities[i]
			pos.X += vel.X
			pos.Y += vel.Y
		}
	}
}

// queries returns a benchmark for each form of the query that adds velocities to positions. The
// function fill creates the world of the query.
func queries(fill func(n int) *movers) (forms []form) {
	for _, f := range queryForms {
		forms = append(forms, form{f.name, func(n int) *work {
			m := fill(n)
			q := ecs.NewQuery2(ecs.Write(m.positions), ecs.Read(m.velocities))
			return &work{
				world:  m.world,
				repeat: func() { f.loop(q) },
				check:  func(times int) bool { return m.sum() == float64(2*n*times) },
			}
		}})
	}
	return forms
}

// sum returns the sum of all coordinates.
func (m *movers) sum() (sum float64) {
	for _, p := range m.positions.Values() {
		sum += p.X + p.Y
	}
	return sum
}

// query2comp creates n entities with a position and a velocity, and 10·n entities with only a
// position.
func query2comp(n int) *movers {
	m := newMovers()
	for range 10 * n {
		m.place()
	}
	for range n {
		m.move(velocity{1, 1})
	}
	return m
}

// query32arch creates n entities with a position and a velocity. Each one also has a subset of five
// additional components.
func query32arch(n int) *movers {
	m := newMovers()
	x := newExtras(m.world)
	for i := range n {
		x.some(m.move(velocity{1, 1}), 5, i)
	}
	return m
}

// query256arch creates n entities with a position and a velocity. It creates another 4·n entities
// with a position and a subset of eight additional components.
func query256arch(n int) *movers {
	m := newMovers()
	x := newExtras(m.world)
	for range n {
		m.move(velocity{1, 1})
	}
	for i := range 4 * n {
		x.some(m.place(), 8, i)
	}
	return m
}

var sink float64

// random reads the positions of n entities in random order.
func random(n int) *work {
	m := newMovers()
	for range n {
		m.entities = append(m.entities, m.place())
	}
	shuffle(m.entities)
	return &work{
		world: m.world,
		repeat: func() {
			sum := 0.0
			positions, entities := m.positions, m.entities
			for _, e := range entities {
				if p, ok := positions.Get(e); ok {
					sum += p.X
				}
			}
			sink = sum
		},
		check: func(int) bool { return sink == 0 && m.positions.Len() == n },
	}
}
