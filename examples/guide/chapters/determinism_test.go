package chapters_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// The digest is the same on every machine.
func Example_determinismDigest() {
	type Ball struct{ Height, Speed float64 }
	world := ecs.NewWorld(ecs.Options{})
	balls := ecs.MustRegister[Ball](world)
	random := ecs.Must(ecs.RegisterRand(world, 1, 2)) // Its state is in the world.
	for range 100 {
		balls.Set(world.Create(), Ball{Height: 10 + random.Float64()})
	}
	falling := ecs.NewQuery1(ecs.Write(balls))
	const dt = 1.0 / 60
	for range 600 {
		for _, ball := range falling.All() {
			ball.Speed -= 9.81 * dt                 // A constant is the same everywhere.
			ball.Height += float64(ball.Speed * dt) // The conversion rounds the product.
			if ball.Height < 0 {
				ball.Height, ball.Speed = 0, float64(-0.8*ball.Speed)
			}
		}
		world.Commit()
	}
	fmt.Println("tick", world.Tick(), "digest", world.Digest())
	// Output:
	// tick 600 digest ad51e13f962f9035
}
