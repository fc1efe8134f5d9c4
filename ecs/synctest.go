package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// A SyncTest makes ticks with a [Stepper] and checks that they are deterministic. After every
// tick it goes back by a fixed distance, repeats the ticks since with the same inputs, and
// compares the results. It finds state outside the world, the order of a Go map, the clock, and
// random numbers from outside the world. The error is a [Divergence], which names the tick, the
// system and the storage.
//
// Both runs use one program on one machine. Differences between builds or machines stay
// undetected: x + v*dt, math.Sin and the other cases of docs/MACHINES.md. To find these, play the
// same inputs on two machines. Then compare digests, as ecs/rollback does, or stores, by ecsdump
// diff --first.
//
//	tick      7     8     9
//	first     *---->*---->*     a digest after every system
//	again     *---->*---->*     must have the same
//	          `-----------'
//	            distance 2
//
// A SyncTest is for tests. A step repeats distance ticks, and costs O(rows) for each of them.
// Each system also costs O(rows) of the storages that it wrote. The test keeps distance copies of
// the world. If the world has a recorder, the repeated ticks are recorded as well.
type SyncTest[In any] struct {
	w       *World
	stepper *Stepper[In]
	back    int
	// The ticks that the test can repeat, oldest first, and before them the tick that they start
	// from.
	ticks []syncTick[In]
	err   error // The error that ended the test.
}

// A syncTick is the result of the first run of a tick.
type syncTick[In any] struct {
	tick   uint64
	in     In
	stages []partSums // The digests after each system, and at the end of the tick.
	world  *World     // A copy of the world at the end of the tick.
}

// partSums are the digests of the registry and of all storages and resources, in the order of
// registration. A part that has no rows, or is excluded from digests, has 0.
type partSums []Digest

// SyncTest returns a test that steps w and goes back by distance ticks. The history of w must
// retain at least that many ticks. The test never goes back beyond the present tick of w, which
// must be committed: otherwise the error wraps [raw.ErrDirty].
func (s *Stepper[In]) SyncTest(w *World, distance int) (*SyncTest[In], error) {
	switch {
	case distance < 1:
		return nil, fmt.Errorf("ecs: sync test over %d ticks: going back takes at least 1", distance)
	case w.options.History < distance:
		return nil, fmt.Errorf("ecs: sync test over %d ticks: ecs: the history is too short; Options.History is %d", distance, w.options.History)
	case w.Raw().Dirty():
		return nil, fmt.Errorf("ecs: sync test from tick %d: %w; commit what the first step begins with", w.tick, raw.ErrDirty)
	}
	t := &SyncTest[In]{w: w, stepper: s, back: distance}
	start := syncTick[In]{tick: w.tick, stages: []partSums{w.partSums(nil, 0)}, world: w.Clone()}
	t.ticks = append(t.ticks, start)
	return t, nil
}

// Step makes a tick with in, goes back and repeats the last ticks. Later steps use in again, so
// data that in refers to must not change.
//
// The error is a [*Divergence], or wraps one of two errors. [raw.ErrDirty] means that the world
// was written since the last step. [ErrNotHeld] means that a limit of bytes made the history drop
// a tick. An error ends the test: the world stays where it is, and Step returns the same error
// from then on.
func (t *SyncTest[In]) Step(in In) error {
	if t.err == nil {
		t.err = t.step(in)
	}
	return t.err
}

func (t *SyncTest[In]) step(in In) error {
	last := &t.ticks[len(t.ticks)-1]
	if t.w.Raw().Dirty() || t.w.tick != last.tick {
		return fmt.Errorf("ecs: sync test at tick %d: %w outside of a step, which cannot be made again; do it in a system", last.tick, raw.ErrDirty)
	}
	if len(t.ticks) > t.back {
		copy(t.ticks, t.ticks[1:])
		t.ticks = t.ticks[:len(t.ticks)-1]
	}
	stages := t.run(in, t.ticks[len(t.ticks)-1].end())
	t.ticks = append(t.ticks, syncTick[In]{t.w.tick, in, stages, t.w.Clone()})
	return t.again()
}

// again repeats the ticks.
func (t *SyncTest[In]) again() error {
	start := &t.ticks[0]
	if err := t.w.History().Seek(start.tick); err != nil {
		return fmt.Errorf("ecs: sync test: %w", err)
	}
	end := t.w.partSums(nil, 0)
	if j := end.differs(start.end()); j >= 0 {
		return t.divergence(start, inSeek, j, start.end(), end)
	}
	for i := range t.ticks[1:] {
		tick := &t.ticks[i+1]
		stages := t.run(tick.in, end)
		for k, s := range stages {
			if j := s.differs(tick.stages[k]); j >= 0 {
				return t.divergence(tick, t.stageName(k), j, tick.stages[k], s)
			}
		}
		end = stages[len(stages)-1]
	}
	return nil
}

func (t *SyncTest[In]) divergence(tick *syncTick[In], system string, j int, first, again partSums) error {
	return &Divergence{
		Tick: tick.tick, System: system, Storage: t.w.partName(j),
		FirstDigest: first.at(j), AgainDigest: again.at(j),
		First: tick.world, Again: t.w.Clone(),
	}
}

// run makes a tick, and returns the digests after each system and at the end. Each system gets a
// new span, which shows what the system wrote.
func (t *SyncTest[In]) run(in In, before partSums) []partSums {
	stages := make([]partSums, 0, len(t.stepper.systems)+1)
	for i := range t.stepper.systems {
		t.w.verify()
		t.w.newSpan()
		span := t.w.clock.Span
		t.stepper.systems[i].on(t.w, in)
		before = t.w.partSums(before, span)
		stages = append(stages, before)
	}
	t.w.Commit()
	return append(stages, t.w.partSums(nil, 0))
}

func (t *SyncTest[In]) stageName(k int) string {
	if k < len(t.stepper.systems) {
		return t.stepper.systems[k].name
	}
	return inCommit
}

func (t *syncTick[In]) end() partSums { return t.stages[len(t.stages)-1] }

// partSums returns the present digests. It computes those of parts written in span or later, and
// takes the others from before.
func (w *World) partSums(before partSums, span uint64) partSums {
	var h digest.Hasher
	now := make(partSums, 0, 1+len(w.storages)+len(w.resources))
	add := func(t *track.Tracker, sum func() uint64) {
		if j := len(now); j < len(before) && t.Span < span {
			now = append(now, before[j])
			return
		}
		now = append(now, Digest(sum()))
	}
	add(&w.entities.rows, func() uint64 { return w.entities.sum(&h) })
	for _, s := range w.Storages() {
		add(s.tracked(), func() uint64 {
			if !digested(s.Raw()) {
				return 0
			}
			return storageSum(&h, s.Raw())
		})
	}
	return now
}

// partName returns the name of part j.
func (w *World) partName(j int) string {
	if j == 0 {
		return ""
	}
	return w.Storages()[j-1].Name()
}

// at returns digest j, or 0 for a storage that was registered later.
func (s partSums) at(j int) Digest {
	if j < len(s) {
		return s[j]
	}
	return 0
}

// differs returns the first part that differs between s and other, or -1.
func (s partSums) differs(other partSums) int {
	for j := range max(len(s), len(other)) {
		if s.at(j) != other.at(j) {
			return j
		}
	}
	return -1
}
