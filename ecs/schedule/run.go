package schedule

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/internal/system"
	"github.com/stet-ecs/stet/internal/naming"
)

// Step runs the systems once. It does not commit: the program then calls Commit of a store or of
// the world. A system must not call Commit or Seek; they panic there.
//
// Step panics if it already ran in this tick and changed the world. If Commit returns
// persist.ErrBacklog, the tick has not ended: call Commit again before Step. A step that panicked,
// or that a restore has undone, may be repeated. A system may call Step of another schedule of the
// same world several times.
//
// If StepSystem has run some systems in this tick, Step runs the others, one after another.
//
// If a system panics, Step panics with the same value. If several systems panic at the same time,
// the value is that of the first of them in the list.
func (s *Schedule[In]) Step(in In) {
	s.mustNotRun("Step")
	first := 0 // StepSystem has run the systems before it.
	if s.stepping() && s.next < len(s.systems) {
		first = s.next
	} else {
		s.mustBeNewTick("Step")
	}
	s.begin()
	p := s.prepare()
	s.running = true
	defer func() { s.running = false }()
	if first > 0 || s.workers == 1 || s.raw.OneAtATime() {
		for _, y := range s.systems[first:] {
			s.runOn(s.w, s.raw, y, in)
		}
	} else {
		for k := range p.batches {
			s.runBatch(&p.batches[k], in)
		}
	}
	s.complete()
}

// StepOn runs the systems on another world, one after another. Use it to simulate future ticks on a
// clone. The systems must find the storages, queries and resources of Tick.World by the methods In.
func (s *Schedule[In]) StepOn(w *ecs.World, in In) {
	s.mustNotRun("StepOn")
	s.prepare()
	s.running = true
	defer func() { s.running = false }()
	for _, y := range s.systems {
		s.runOn(w, runner(w), y, in)
	}
}

// mustNotRun panics if a step is running. op is the method that the system calls.
func (s *Schedule[In]) mustNotRun(op string) {
	if s.running {
		panic("schedule: " + op + " in a system of the same schedule; use another schedule for steps inside of a step")
	}
}

// mustBeNewTick panics if all systems have already run in this tick and changed the world. The
// parameter op is the method that the program has called. If a system of another schedule has
// called it, mustBeNewTick does not panic: such a system may run several steps in a tick.
func (s *Schedule[In]) mustBeNewTick(op string) {
	if tick := s.w.Tick() + 1; s.completed == tick && s.undone == s.w.Restores() && !s.raw.InSystem() {
		panic(fmt.Sprintf("schedule: %s again in tick %d, which has not ended; call Commit of the store or of the world after each Step", op, tick))
	}
}

// complete records that all systems ran in this tick, if they changed the world. A step that
// changed nothing may run again.
func (s *Schedule[In]) complete() {
	if s.w.Dirty() {
		s.completed, s.undone = s.w.Tick()+1, s.w.Restores()
	}
}

// begin prepares a step.
func (s *Schedule[In]) begin() {
	s.EndStep()
	s.next, s.at = 0, 0
	if s.began {
		return
	}
	if s.w.Tick() > 0 && s.w.Restores() == 0 {
		for _, y := range s.systems {
			if y.startup {
				panic(fmt.Sprintf("schedule: the startup system %s would never run, because the world is at tick %d before the first step; omit it, or call Step before the first Commit", naming.Shown(y.Name), s.w.Tick()))
			}
		}
	}
	s.began = true
}

// runOn runs y on w, if it runs in this tick.
func (s *Schedule[In]) runOn(w *ecs.World, raw system.World, y *System[In], in In) {
	if !y.due(w.Tick() + 1) {
		return
	}
	y.set(w, in, s.seed)
	run := y.begin()
	raw.RunSystem(&y.plannedSystem, y.body)
	if w == s.w {
		y.end(run)
	}
}

// due reports whether y runs in the given tick.
func (y *System[In]) due(tick uint64) bool {
	return tick%y.every == 0 && (!y.startup || tick == 1)
}

// set prepares y.now for a call of body.
func (y *System[In]) set(w *ecs.World, in In, seed uint64) {
	t := &y.now
	t.World, t.Input, t.Number, t.seed, t.system, t.drawn = w, in, w.Tick()+1, seed, y, false
	if t.commands.Len() > 0 { // The last run recorded commands and panicked.
		t.commands = ecs.Commands{}
	}
}

// runBody runs y with y.now, and then applies the recorded commands.
func (y *System[In]) runBody() {
	t := &y.now
	y.ran = false
	if y.group != nil && !y.group.onIn(t.World) {
		return
	}
	for _, when := range y.when {
		if !when(t) {
			return
		}
	}
	y.ran = true
	y.run(t)
	if t.commands.Len() > 0 {
		t.World.Apply(&t.commands)
	}
}

// onIn reports whether g is on in w, which may be a clone.
func (g *Group) onIn(w *ecs.World) bool {
	on := g.on.In(w)
	return on == nil || !on.Read().Off
}

// runBatch runs the systems of a batch.
func (s *Schedule[In]) runBatch(b *batch, in In) {
	tick, due := s.w.Tick()+1, 0
	for _, i := range b.together {
		if s.systems[i].due(tick) {
			due++
		}
	}
	if due > 1 {
		s.raw.RunTogether(b.names, func() { s.runTogether(b.together, min(s.workers, due), in) })
	} else {
		for _, i := range b.together {
			s.runOn(s.w, s.raw, s.systems[i], in)
		}
	}
	for _, i := range b.single {
		s.runOn(s.w, s.raw, s.systems[i], in)
	}
}

// runTogether runs systems on several goroutines. A free goroutine takes the next system of the
// list.
func (s *Schedule[In]) runTogether(list []int, workers int, in In) {
	var taken atomic.Int64
	var group sync.WaitGroup
	failures := make([]any, len(list))
	work := func() {
		for {
			k := int(taken.Add(1)) - 1
			if k >= len(list) {
				return
			}
			if y := s.systems[list[k]]; y.due(s.w.Tick() + 1) {
				failures[k] = y.runRecovered(s.w, in, s.seed)
			}
		}
	}
	for range workers - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	for _, failure := range failures {
		if failure != nil {
			panic(failure)
		}
	}
}

// runRecovered runs y. If y panics, it returns the panic value.
func (y *System[In]) runRecovered(w *ecs.World, in In, seed uint64) (failure any) {
	ended := false
	defer func() {
		if !ended {
			if failure = recover(); failure == nil {
				failure = fmt.Sprintf("schedule: the system %s ended its goroutine (runtime.Goexit, or FailNow of a test); return from it instead", naming.Shown(y.Name))
			}
		}
	}()
	y.set(w, in, seed)
	run := y.begin()
	y.body()
	y.end(run)
	ended = true
	return nil
}

// A Time says how long a system ran, including its conditions and commands. A tick counts only if
// the function of the system ran. Runs by [Schedule.StepOn] do not count.
type Time struct {
	System string
	Runs   uint64
	Last   time.Duration
	Mean   time.Duration
	Worst  time.Duration
	// The number of rows that loops visited in the last run of the system. Only loops over queries
	// in its access count. A loop that ends early counts its last block of contiguous rows in full.
	Rows uint64

	total time.Duration
}

// A measurement has the start time of a run, and the number of rows that were visited before the
// run.
type measurement struct {
	start time.Time
	rows  uint64
}

// begin begins to measure a run.
func (y *System[In]) begin() measurement { return measurement{time.Now(), y.visited()} }

// end adds a run to the times of y, unless the function of the system was not called.
func (y *System[In]) end(run measurement) {
	if !y.ran {
		return
	}
	t, d := &y.times, time.Since(run.start)
	t.Runs++
	t.total += d
	t.Last, t.Worst, t.Rows = d, max(t.Worst, d), y.visited()-run.rows
}

// visited returns the number of rows that loops over the queries of y have visited so far.
func (y *System[In]) visited() (rows uint64) {
	for _, q := range y.queries {
		rows += q.Visited()
	}
	return rows
}

// Times returns the times of the systems, in the order of the list.
func (s *Schedule[In]) Times() []Time {
	times := make([]Time, 0, len(s.systems))
	for _, y := range s.systems {
		t := y.times
		if t.Runs > 0 {
			t.Mean = t.total / time.Duration(t.Runs)
		}
		times = append(times, t)
	}
	return times
}

// StepSystem runs the next system of a step, after creating a checkpoint. It returns the name of
// the system, or "" if all systems of the step have run. The program then ends the tick by Commit,
// and the next call begins another step. Until then, [Schedule.BackSystem] can undo the systems,
// and [Schedule.Step] runs those that have not run yet.
//
// StepSystem is for debuggers. Systems that are not due, or whose conditions do not hold, count as
// run. No system runs twice in a tick.
func (s *Schedule[In]) StepSystem(in In) (name string) {
	if !s.stepping() {
		s.mustBeNewTick("StepSystem")
		s.begin()
		s.at = s.w.Tick() + 1
	}
	s.prepare()
	s.restores = s.w.Restores()
	if s.next == len(s.systems) {
		return ""
	}
	s.points = append(s.points, s.w.Checkpoint())
	y := s.systems[s.next]
	s.next++
	s.runOn(s.w, s.raw, y, in)
	s.restores = s.w.Restores()
	if s.next == len(s.systems) {
		s.complete()
	}
	return y.Name
}

// stepping reports whether StepSystem ran in this tick, and the world has not been restored since.
func (s *Schedule[In]) stepping() bool {
	return s.at == s.w.Tick()+1 && s.restores == s.w.Restores()
}

// BackSystem undoes the last system that StepSystem ran in this step. It returns the name of the
// system, or "" if no system is left to undo. After EndStep, no system can be undone.
func (s *Schedule[In]) BackSystem() (name string) {
	last := len(s.points) - 1
	if last < 0 || !s.stepping() {
		return ""
	}
	s.next--
	point := s.points[last]
	s.points = s.points[:last]
	s.w.Restore(point)
	s.w.Release(point)
	s.restores = s.w.Restores()
	return s.systems[s.next].Name
}

// EndStep releases the checkpoints of StepSystem. Call it before an operation that needs a world
// without checkpoints, such as loading. The next step also calls it.
func (s *Schedule[In]) EndStep() {
	for len(s.points) > 0 {
		last := len(s.points) - 1
		if s.points[last].Valid() {
			s.w.Release(s.points[last])
		}
		s.points = s.points[:last]
	}
}
