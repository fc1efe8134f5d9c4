package benchmarks

import (
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
)

// A definition is a benchmark of a published suite.
type definition struct {
	name  string
	forms []form
	sizes []int // Numbers of entities. nil means all published numbers.

	untracked bool // True if the benchmark only runs without checkpoints.
}

// A form is one way to program a definition.
type form struct {
	name string
	make func(n int) *work
}

// A work is a definition at one size: a world and the operation to time.
type work struct {
	world *ecs.World

	prepare func() // Undoes the previous repetition. Its time is not measured. It may be nil.
	// checkpoint is called before each repetition when the benchmark runs with checkpoints. If it
	// is nil, a checkpoint of the world is taken instead.
	checkpoint func()
	repeat     func() // The timed operation.

	// check reports whether the world has the expected state after the given number of repetitions.
	check func(times int) bool
}

// tracked changes the timed operation of k: it takes a checkpoint, and then does the work.
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

// A renewal replaces the checkpoint of a world: it releases the previous one before it takes the
// next.
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

// nanos returns the nanoseconds per repetition, without the time of prepare(). It reads the clock
// itself. Stopping the timer of the benchmark takes longer than most repetitions with few entities.
func (k *work) nanos(b *testing.B) float64 {
	k.once() // The first repetition is not timed, because it allocates.
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

// run measures the time of a repetition, in nanoseconds. It divides that time by a number (per),
// and reports the quotient as a metric with the given unit.
func (k *work) run(b *testing.B, per float64, unit string) {
	b.ReportMetric(k.nanos(b)/per, unit)
	b.ReportMetric(0, "ns/op") // Omit ns/op, because it would include the time of prepare().
	if !k.check(b.N + 1) {
		b.Error("the world is not as the definition leaves it")
	}
}

// each times the forms of d without checkpoints, and then with a checkpoint before each repetition.
// The names are d.name, form, "free" or "checkpoint", and size:
//
//	query2comp/all/free/1000
//	query2comp/all/checkpoint/1000
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
