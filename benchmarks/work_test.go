package benchmarks

import (
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
)

// A definition is something to time, as a suite published it.
type definition struct {
	name  string
	forms []form
	sizes []int // The numbers of entities; nil is all published ones.

	untracked bool // There is nothing to take a checkpoint of.
}

// A form is one way to write a definition as a program.
type form struct {
	name string
	make func(n int) *work
}

// A work is a definition at one size: a world and what is done to it.
type work struct {
	world *ecs.World

	prepare func() // Undoes the repetition before; not timed. May be nil.
	// Called before each repetition that is tracked; nil takes a checkpoint of world.
	checkpoint func()
	repeat     func() // What is timed.

	// check reports whether the world is as it must be after that many repetitions.
	check func(times int) bool
}

// tracked makes a checkpoint be taken before each repetition of k.
func (k *work) tracked() {
	checkpoint := k.checkpoint
	if checkpoint == nil {
		r := renewal{world: k.world}
		checkpoint = r.renew
	}
	repeat := k.repeat
	k.repeat = func() {
		checkpoint()
		repeat()
	}
}

// A renewal holds the newest checkpoint of a world, and no older one.
type renewal struct {
	world *ecs.World
	cp    ecs.Checkpoint
}

func (r *renewal) renew() {
	if r.cp.Valid() {
		r.world.Release(r.cp)
	}
	r.cp = r.world.Checkpoint()
}

// nanos returns how many nanoseconds a repetition takes. What prepare does is left
// out, by reading the clock: stopping the benchmark's timer would cost more than
// most repetitions of few entities.
func (k *work) nanos(b *testing.B) float64 {
	k.once() // The first one allocates.
	if k.prepare == nil {
		for b.Loop() {
			k.repeat()
		}
		return float64(b.Elapsed()) / float64(b.N)
	}
	var total time.Duration
	for b.Loop() {
		k.prepare()
		start := time.Now()
		k.repeat()
		total += time.Since(start)
	}
	return float64(total) / float64(b.N)
}

func (k *work) once() {
	if k.prepare != nil {
		k.prepare()
	}
	k.repeat()
}

// run times k and reports the nanoseconds of a repetition, divided by per, in unit.
func (k *work) run(b *testing.B, per float64, unit string) {
	b.ReportMetric(k.nanos(b)/per, unit)
	b.ReportMetric(0, "ns/op") // Not printed: it would count what prepare does.
	if !k.check(b.N + 1) {
		b.Error("the world is not as the definition leaves it")
	}
}

// each times the forms of d without a frame, and with checkpoints. The benchmarks
// are named definition/form/tracking and, if there is one, /size.
func (d *definition) each(b *testing.B, size string, n int, per float64, unit string) {
	for _, f := range d.forms {
		b.Run(d.name+"/"+f.name+"/free"+size, func(b *testing.B) { f.make(n).run(b, per, unit) })
		if d.untracked {
			continue
		}
		b.Run(d.name+"/"+f.name+"/checkpoint"+size, func(b *testing.B) {
			k := f.make(n)
			k.tracked()
			k.run(b, per, unit)
		})
	}
}
