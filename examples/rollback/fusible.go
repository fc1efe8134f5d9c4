package main

import "github.com/stet-ecs/stet/ecs"

// A Cloud drifts over the plane, and becomes slower.
type Cloud struct{ X, V float64 }

// addCloud adds a cloud, and a system that moves the cloud. On some machines, the formula x + v*dt
// rounds only once, and gives another result. The formula x + float64(v*dt) is safe; see
// docs/MACHINES.md.
func (g *game) addCloud() {
	clouds := ecs.MustRegister[Cloud](g.world)
	clouds.Set(g.world.Create(), Cloud{0, 1.1})
	const dt = 1.0 / 60
	g.systems.Add("drift", ecs.Write(clouds), func(*tick) {
		for _, e := range clouds.Entities() {
			c := clouds.Mut(e)
			c.X = c.X + c.V*dt
			c.V = float64(c.V * 0.999)
		}
	})
}
