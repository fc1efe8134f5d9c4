package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// A SyncTest runs ticks with a [Stepper] and checks that they are deterministic. After every tick
// it goes back by a fixed distance, repeats the later ticks with the same inputs, and compares the
// results. It finds ticks that depend on state or random numbers outside the world, on the order of
// a Go map, or on the clock. The error is a [Divergence], which names the tick, the system and the
// storage.
//
// Both runs use the same program on the same machine. So the test does not find differences between
// builds or machines: x + v*dt, math.Sin and the other cases of docs/MACHINES.md. To find these,
// run the same inputs on two machines. Then compare digests, as ecs/rollback does, or stores, with
// ecsdump diff --first.
//
//	tick      7     8     9
//	first     *---->*---->*     a digest after every system
//	again     *---->*---->*     must have the same digests
//	          `-----------'
//	            distance 2
//
// Use a SyncTest only in tests of the program. A step repeats distance ticks, and costs O(rows) for
// each of them. Each system also costs O(rows) of the storages that it wrote. The test keeps
// distance copies of the world. If the world has a recorder, it also records the repeated ticks.
type SyncTest[In any] struct {
	w       *World
	stepper *Stepper[In]
	back    int
	// The ticks that the test can repeat, oldest first. The first element is the tick before them.
	ticks []syncTick[In]
	err   error // The error that ended the test.
}

// A syncTick is the result of the first run of a tick.
type syncTick[In any] struct {
	tick   uint64
	in     In
	stages []partSums // The digests after each system, then at the end of the tick.
	world  *World     // A copy of the world at the end of the tick.
}

// partSums are the digests of the registry and of all storages and resources, in the order of
// registration. The digest is 0 if a storage has no rows or is excluded from digests.
type partSums []Digest

// SyncTest returns a test that steps w and goes back by distance ticks. The history of w must
// retain at least distance ticks. The test never goes back beyond the current tick of w. If w has
// uncommitted changes, the error wraps [raw.ErrDirty].
func (s *Stepper[In]) SyncTest(w *World, distance int) (*SyncTest[In], error) {
	switch {
	case distance < 1:
		return nil, fmt.Errorf("ecs: sync test over %d ticks: the distance must be at least 1", distance)
	case w.options.History < distance:
		return nil, fmt.Errorf("ecs: sync test over %d ticks: ecs: the history is too short; Options.History is %d", distance, w.options.History)
	case w.Raw().Dirty():
		return nil, fmt.Errorf("ecs: sync test from tick %d: %w; commit before the first step", w.tick, raw.ErrDirty)
	}
	t := &SyncTest[In]{w: w, stepper: s, back: distance}
	start := syncTick[In]{tick: w.tick, stages: []partSums{w.partSums(nil, 0)}, world: w.Clone()}
	t.ticks = append(t.ticks, start)
	return t, nil
}

// Step runs a tick with in, goes back and repeats the last ticks. Later steps use in again, so the
// memory that in refers to must not change.
//
// The error is a [*Divergence], or wraps one of two errors. [raw.ErrDirty] means that the world was
// written outside a step. [ErrNotHeld] means that the history dropped a tick because of a limit of
// bytes. An error ends the test: the world stays at its tick, and Step returns the same error in
// each later call.
func (t *SyncTest[In]) Step(in In) error {
	if t.err == nil {
		t.err = t.step(in)
	}
	return t.err
}

func (t *SyncTest[In]) step(in In) error {
	last := &t.ticks[len(t.ticks)-1]
	if t.w.Raw().Dirty() || t.w.tick != last.tick {
		return fmt.Errorf("ecs: sync test at tick %d: %w outside of a step, which the test cannot repeat; write in a system instead", last.tick, raw.ErrDirty)
	}
	if len(t.ticks) > t.back {
		copy(t.ticks, t.ticks[1:])
		t.ticks = t.ticks[:len(t.ticks)-1]
	}
	stages := t.run(in, t.ticks[len(t.ticks)-1].end())
	t.ticks = append(t.ticks, syncTick[In]{t.w.tick, in, stages, t.w.Clone()})
	return t.again()
}

// again goes back, repeats the ticks and compares their digests.
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

// run runs a tick, and returns the digests after each system and at the end. Each system gets a new
// span, so that run detects which storages the system wrote.
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

// partSums returns the current digests. It computes the digests of storages that were written in
// span or later, and copies the other digests from before.
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

// partName returns the name of the storage or resource with digest j, or "" for the registry.
func (w *World) partName(j int) string {
	if j == 0 {
		return ""
	}
	return w.Storages()[j-1].Name()
}

// at returns digest j, or 0 if its storage was registered after s was computed.
func (s partSums) at(j int) Digest {
	if j < len(s) {
		return s[j]
	}
	return 0
}

// differs returns the first position at which s and other differ, or -1.
func (s partSums) differs(other partSums) int {
	for j := range max(len(s), len(other)) {
		if s.at(j) != other.at(j) {
			return j
		}
	}
	return -1
}
