package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A SyncTest checks that the ticks of a [Schedule] are deterministic. After every tick it goes back
// by a fixed distance, repeats the ticks with the same inputs, and compares the results. The error
// is a [Divergence], which names the tick, the system and the storage.
//
// For example, a test with distance 2 runs tick 9, goes back to the end of tick 7, and repeats
// ticks 8 and 9. It compares the digests after each system with the digests of the first run.
//
// It finds ticks that depend on state or random numbers outside the world, on the order of a Go
// map, or on the clock. With [SyncTest.Shuffle] it also finds systems whose access is wrong.
//
// It does not find differences between builds or machines, which docs/MACHINES.md lists. To find
// these, run the same inputs on two machines. Then compare digests, as ecs/rollback does, or
// stores, with ecsdump diff --first.
//
// Use a SyncTest only in tests of the program. A step repeats distance ticks, and costs O(rows) for
// each of them. Each system also costs O(rows) of the storages that it wrote. The test keeps
// distance copies of the world. Recorders of the world also record the repeated ticks.
type SyncTest[In any] struct {
	s    *Schedule[In]
	w    *ecs.World
	back int
	// The ticks that the test can repeat. The first element is the tick before them.
	ticks []syncTick[In]
	order *rand.Rand // Chooses the order of systems in repeated ticks, or nil.
	err   error      // The error that ended the test.
}

// A syncTick is the result of the first run of a tick.
type syncTick[In any] struct {
	tick   uint64
	in     In
	stages []sums // Digests after each system of the list, then at the end of the tick.
	world  *ecs.World
}

// sums are the digests of the registry and of all storages and resources, in the order of
// registration.
type sums []uint64

// SyncTest returns a test that steps the world of s and repeats the newest ticks. The argument
// distance is the number of repeated ticks. The history of the world must retain at least as many
// ticks. The test repeats only ticks that it has run itself. If the world has uncommitted changes,
// the error wraps [raw.ErrDirty].
func (s *Schedule[In]) SyncTest(distance int) (*SyncTest[In], error) {
	switch {
	case distance < 1:
		return nil, fmt.Errorf("schedule: sync test over %d ticks: the distance must be at least 1", distance)
	case s.raw.HistoryTicks() < distance:
		return nil, fmt.Errorf("schedule: sync test over %d ticks: the history is too short; ecs.Options.History is %d", distance, s.raw.HistoryTicks())
	case s.w.Raw().Dirty():
		return nil, fmt.Errorf("schedule: sync test from tick %d: %w; commit before the first step", s.w.Tick(), raw.ErrDirty)
	}
	t := &SyncTest[In]{s: s, w: s.w, back: distance}
	start := syncTick[In]{tick: s.w.Tick(), stages: []sums{s.raw.Sums(nil, 0)}, world: s.w.Clone()}
	t.ticks = append(t.ticks, start)
	return t, nil
}

// Shuffle makes the test repeat ticks in another order of systems that the accesses allow. The seed
// determines the orders. Shuffle returns t.
func (t *SyncTest[In]) Shuffle(seed uint64) *SyncTest[In] {
	t.order = rand.New(rand.NewPCG(seed, 0))
	return t
}

// Step runs a tick with the given input, goes back and repeats the last ticks. Later steps use the
// input again, so its memory must not change.
//
// The error is a [*Divergence], or wraps one of these errors:
//
//   - [raw.ErrDirty]: the world was written outside a step.
//   - [ecs.ErrNotHeld]: a limit of bytes made the history drop a tick.
//
// An error ends the test: the world stays at its tick, and later calls return the same error.
func (t *SyncTest[In]) Step(in In) error {
	if t.err == nil {
		t.err = t.step(in)
	}
	return t.err
}

func (t *SyncTest[In]) step(in In) error {
	last := &t.ticks[len(t.ticks)-1]
	if t.w.Raw().Dirty() || t.w.Tick() != last.tick {
		return fmt.Errorf("schedule: sync test at tick %d: %w outside of a step, which the test cannot repeat; write in a system instead", last.tick, raw.ErrDirty)
	}
	before := last.end()
	if len(t.ticks) > t.back {
		copy(t.ticks, t.ticks[1:])
		t.ticks = t.ticks[:len(t.ticks)-1]
	}
	t.s.begin()
	stages := t.run(in, before, nil)
	t.ticks = append(t.ticks, syncTick[In]{t.w.Tick(), in, stages, t.w.Clone()})
	return t.again()
}

// again goes back, repeats the ticks and compares their digests.
func (t *SyncTest[In]) again() error {
	start := &t.ticks[0]
	if err := t.w.History().Seek(start.tick); err != nil {
		return fmt.Errorf("schedule: sync test: %w", err)
	}
	end := sums(t.s.raw.Sums(nil, 0))
	if j := end.differs(start.end()); j >= 0 {
		return t.divergence(start, inSeek, j, start.end(), end, nil)
	}
	for i := range t.ticks[1:] {
		tick := &t.ticks[i+1]
		var order []int
		if t.order != nil {
			order = t.s.prepare().shuffled(t.order)
		}
		stages := t.run(tick.in, end, order)
		if d := t.compare(tick, end, stages, order); d != nil {
			return d
		}
		end = stages[len(stages)-1]
	}
	return nil
}

// compare compares the stages of a repeated tick with the stages of the first run. The parameter
// order is the order of systems. The parameter before has the digests at the start of the tick.
func (t *SyncTest[In]) compare(tick *syncTick[In], before sums, stages []sums, order []int) *Divergence {
	for k := range stages {
		i, was := k, before
		if k > 0 {
			was = stages[k-1]
		}
		if order != nil && k < len(order) {
			i = order[k]
		}
		first, again := tick.stages[i], stages[k]
		if order == nil || k == len(order) {
			if j := again.differs(first); j >= 0 {
				return t.divergence(tick, t.stageName(i), j, first, again, order)
			}
			continue
		}
		y := &t.s.systems[i].plannedSystem
		for j := range again {
			// Compare only what y may write. In this order, other systems may write the rest
			// earlier or later than in the first run.
			wrote := again.at(j) != was.at(j)
			may := y.May(t.partName(j), raw.Writes, raw.Unused) || y.May(t.partName(j), raw.Unused, raw.Writes) || creates(y.Uses)
			switch {
			case wrote && !may:
				d := t.divergence(tick, y.Name, j, was, again, order)
				d.NotNamed = true
				return d
			case may && again.at(j) != first.at(j):
				return t.divergence(tick, y.Name, j, first, again, order)
			}
		}
	}
	return nil
}

func (t *SyncTest[In]) divergence(tick *syncTick[In], system string, j int, first, again sums, order []int) *Divergence {
	var ran []string
	for _, i := range order {
		ran = append(ran, t.s.systems[i].Name)
	}
	return &Divergence{
		Order: ran,
		Tick:  tick.tick, System: system, Storage: t.partName(j),
		FirstDigest: ecs.Digest(first.at(j)), AgainDigest: ecs.Digest(again.at(j)),
		First: tick.world, Again: t.w.Clone(),
	}
}

// run runs a tick, and returns the digests after each system and at the end. The parameter before
// has the digests at the start. After a system, run computes only the digests of what the system
// wrote. The parameter order has the positions of the systems to run; nil means the order of the
// list.
func (t *SyncTest[In]) run(in In, before sums, order []int) []sums {
	t.s.prepare()
	stages := make([]sums, 0, len(t.s.systems)+1)
	for k := range t.s.systems {
		i := k
		if order != nil {
			i = order[k]
		}
		span := t.s.raw.Stage()
		t.s.runOn(t.w, t.s.raw, t.s.systems[i], in)
		before = t.s.raw.Sums(before, span)
		stages = append(stages, before)
	}
	t.w.Commit()
	return append(stages, t.s.raw.Sums(nil, 0))
}

func (t *SyncTest[In]) stageName(k int) string {
	if k < len(t.s.systems) {
		return t.s.systems[k].Name
	}
	return inCommit
}

// shuffled returns a random order in which each system runs after all earlier systems that it
// conflicts with.
func (p *plan) shuffled(r *rand.Rand) []int {
	order := make([]int, 0, len(p.systems))
	ran := make([]bool, len(p.systems))
	for len(order) < len(p.systems) {
		var ready []int
		for i := range p.systems {
			if !ran[i] && !slices.ContainsFunc(p.waits[i], func(j int) bool { return !ran[j] }) {
				ready = append(ready, i)
			}
		}
		i := ready[r.IntN(len(ready))]
		ran[i] = true
		order = append(order, i)
	}
	return order
}

func (t *syncTick[In]) end() sums { return t.stages[len(t.stages)-1] }

// partName returns the name of the storage or resource to which element j of sums belongs, or ""
// for the registry.
func (t *SyncTest[In]) partName(j int) string {
	if j == 0 {
		return ""
	}
	return t.w.Storages()[j-1].Name()
}

// at returns element j of s. It returns 0 if the storage was registered after s was computed.
func (s sums) at(j int) uint64 {
	if j < len(s) {
		return s[j]
	}
	return 0
}

// differs returns the first position at which the digests differ, or -1.
func (s sums) differs(other sums) int {
	for j := range max(len(s), len(other)) {
		if s.at(j) != other.at(j) {
			return j
		}
	}
	return -1
}
