package main

import "github.com/stet-ecs/stet/ecs"

// A Cloud drifts over the plane, ever more slowly, and does nothing else.
type Cloud struct{ X, V float64 }

// addCloud adds a cloud, and a system that moves it in the unsafe form. A game for several kinds of
// machines must not do that. In the safe form there is a conversion around each product; see
// docs/MACHINES.md.
func (g *game) addCloud() {
	clouds := ecs.MustRegister[Cloud](g.world)
	clouds.Set(g.world.Create(), Cloud{0, 1.1})
	const dt = 1.0 / 60
	g.stepper.Add("drift", func(*ecs.World, Buttons) {
		for _, e := range clouds.Entities() {
			c := clouds.Mut(e)
			c.X = c.X + c.V*dt
			c.V = float64(c.V * 0.999)
		}
	})
}
