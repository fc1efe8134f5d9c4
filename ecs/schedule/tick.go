package schedule

import (
	"fmt"
	"hash/fnv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/naming"
)

// A Tick is what a system receives. It is valid until the system returns.
type Tick[In any] struct {
	World  *ecs.World
	Input  In     // The input of the step.
	Number uint64 // The number of the tick that the step makes. It is World.Tick plus 1.

	seed     uint64
	system   *System[In]
	rand     *ecs.Rand
	drawn    bool // Rand was called in this tick.
	commands ecs.Commands
}

// Rand returns a source of random numbers for this system in this tick. A repeated tick draws the
// same numbers, in any order of systems. The source needs no access. Its seeds are computed from
// the seed of the schedule, the number of the tick and the name of the system.
func (t *Tick[In]) Rand() *ecs.Rand {
	if t.drawn {
		return t.rand
	}
	h := fnv.New64a()
	h.Write([]byte(t.system.Name))
	if t.rand == nil {
		t.rand = ecs.NewRand(0, 0)
	}
	t.rand.Seed(h.Sum64()^t.seed, t.Number)
	t.rand.Seed(t.rand.Uint64(), t.rand.Uint64())
	t.drawn = true
	return t.rand
}

// Commands returns commands that the schedule applies after the system has returned. Use them in a
// loop in which the world must not change. The access of the system must include [Creates].
func (t *Tick[In]) Commands() *ecs.Commands {
	if y := t.system; !y.Alone && !creates(y.Uses) {
		panic(fmt.Sprintf("schedule: the system %s records commands; add schedule.Creates to its access", naming.Shown(y.Name)))
	}
	return &t.commands
}
