//go:build !stetdebug

package schedule_test

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// Shuffle repeats ticks in another order that the accesses allow. So it finds a system whose access
// does not name everything that it uses. A debug build finds it without a test.
func ExampleSyncTest_Shuffle() {
	world := ecs.NewWorld(ecs.Options{History: 2})
	score := ecs.Must(ecs.RegisterResource(world, 1, ecs.Component[int]{Name: "Score"}))
	s := schedule.New[struct{}](world)
	s.Add("add", score, func(*schedule.Tick[struct{}]) { *score.Mut() += 3 })
	// The access of this system should name the score.
	s.Add("double", schedule.Uses(), func(*schedule.Tick[struct{}]) { *score.Mut() *= 2 })
	test, err := s.SyncTest(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	test.Shuffle(1)
	for err == nil && world.Tick() < 100 {
		err = test.Step(struct{}{})
	}
	var d *schedule.Divergence
	if errors.As(err, &d) && d.NotNamed {
		fmt.Println("the access of", d.System, "does not name", d.Storage)
	}
	// Output:
	// the access of double does not name Score
}
