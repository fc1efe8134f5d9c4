package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

func TestStep_RunsSystemsInOrder(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	s := schedule.New[string](w)
	var log []string
	for _, name := range []string{"c", "a", "b"} {
		s.Add(name, nil, func(t *schedule.Tick[string]) { log = append(log, name+t.Input) })
	}
	s.Step("1")
	w.Commit()
	s.Step("2")
	require.Equal(t, "c1 a1 b1 c2 a2 b2", strings.Join(log, " "))
	require.EqualValues(t, 1, w.Tick())
	require.Equal(t, []string{"c", "a", "b"}, s.Systems())
	mustPanic(t, `a second system named a; give each system a different name`, func() { s.Add("a", nil, func(*schedule.Tick[string]) {}) })
	mustPanic(t, "needs a name and a function", func() { s.Add("", nil, func(*schedule.Tick[string]) {}) })
	mustPanic(t, "every 0 ticks", func() { s.Add("d", nil, func(*schedule.Tick[string]) {}).Every(0) })
}

func TestStep_CommitInSystemPanics(t *testing.T) {
	l := newArena(ecs.Options{History: 2})
	bad := func() {}
	l.Add("bad", nil, func(*schedule.Tick[int]) { l.places.Mut(l.entities[0]).X++; bad() })
	inner := schedule.New[int](l.w)
	inner.Add("think", nil, func(*schedule.Tick[int]) {})
	for op, f := range map[string]func(){
		"Commit": l.w.Commit,
		"Seek":   func() { _ = l.w.History().Rewind(1) },
	} {
		tick := l.w.Tick()
		bad = f
		mustPanic(t, "ecs: "+op+" in the system bad", func() { l.Step(1) })
		bad = func() {}
		l.Step(1) // The world can still be used after the panic.
		l.w.Commit()
		require.Equal(t, tick+1, l.w.Tick(), op)
	}
	bad = func() { // A system may run another schedule on its world, and may commit another world.
		inner.Step(1)
		c := l.w.Clone()
		inner.StepOn(c, 1)
		c.Commit()
		_ = c.History().Rewind(1)
	}
	l.Step(1)
	l.w.Commit()
	for op, f := range map[string]func(){
		"Step":   func() { l.Step(1) },
		"StepOn": func() { l.StepOn(l.w, 1) },
		"Add":    func() { l.Add("more", nil, func(*schedule.Tick[int]) {}) },
	} {
		bad = f
		mustPanic(t, "schedule: "+op+" in a system of the same schedule", func() { l.Step(1) })
	}
	other := ecs.MustRegister[place](ecs.NewWorld(ecs.Options{}))
	bad = func() {}
	l.Add("foreign", other, func(*schedule.Tick[int]) {})
	mustPanic(t, "the access of the system foreign names place of another world", func() { l.Step(1) })
}

// A step that changes nothing may run again in a tick, for example to draw a paused game.
func TestStep_WithoutChangesRunsAgain(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{History: 2})
	places := ecs.MustRegister[place](w)
	s, drawn := schedule.New[int](w), 0
	s.Add("draw", ecs.Read(places), func(*schedule.Tick[int]) { drawn++ })
	s.Step(1)
	s.Step(1)
	require.Equal(t, 2, drawn)
}

// A step panics if the previous step changed the world and no Commit or restore followed.
func TestStep_AgainInTickPanics(t *testing.T) {
	const again = " again in tick 2, which has not ended; call Commit of the store or of the world after each Step"
	for name, step := range map[string]func(l *arena){
		"one worker":  func(l *arena) { l.Step(1) },
		"two workers": func(l *arena) { l.Workers(2).Step(1) },
		"StepSystem":  func(l *arena) { l.StepSystem(1); l.StepSystem(1) },
	} {
		l := newArena(ecs.Options{History: 5})
		step(l)
		end := l.w.Digest()
		mustPanic(t, "schedule: Step"+again, func() { l.Step(1) })
		mustPanic(t, "schedule: Step"+again, func() { l.Step(1) })
		require.Equal(t, end, l.w.Digest(), name)
		if name == "StepSystem" {
			require.Equal(t, "", l.StepSystem(1), name)
			l.EndStep()
			require.Equal(t, "", l.StepSystem(1), name)
		} else {
			mustPanic(t, "schedule: StepSystem"+again, func() { l.StepSystem(1) })
		}

		l.w.Commit()
		step(l)
		require.NoError(t, l.w.History().Rewind(0), "undo the step")
		step(l)
		l.w.Commit()
		require.NoError(t, l.w.History().Rewind(2))
		step(l)
		require.Equal(t, end, l.w.Digest(), name)
	}

	l := newArena(ecs.Options{})
	cp := l.w.Checkpoint()
	l.Step(1)
	l.w.Restore(cp)
	l.w.Release(cp)
	l.StepSystem(1)
	l.StepSystem(1)
	require.Equal(t, "age", l.BackSystem())
	require.Equal(t, "age", l.StepSystem(1), "BackSystem undid it")
	require.Equal(t, "age", l.BackSystem())
	l.Step(1)

	// A step that panicked may be repeated.
	faults := 2
	l = newArena(ecs.Options{})
	l.Add("bad", nil, func(*schedule.Tick[int]) {
		if faults--; faults >= 0 {
			panic("fault")
		}
	})
	mustPanic(t, "fault", func() { l.Step(1) })
	mustPanic(t, "fault", func() { l.Step(1) })
	l.Step(1)
	mustPanic(t, "schedule: Step"+again, func() { l.Step(1) })
}

// A system runs another schedule several times in a tick.
func TestStep_OtherScheduleRunsManySteps(t *testing.T) {
	l, parts := newArena(ecs.Options{}), 0
	physics := schedule.New[int](l.w)
	physics.Add("part", nil, func(*schedule.Tick[int]) { parts++ })
	l.Add("physics", nil, func(*schedule.Tick[int]) {
		for range 4 {
			physics.Step(1)
		}
	})
	for range 3 {
		l.Step(1)
		l.w.Commit()
	}
	require.Equal(t, 12, parts)
}

func TestSystem_RateStartupAndCondition(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{History: 20})
	s := schedule.New[bool](w)
	var ran []string
	note := func(name string) func(*schedule.Tick[bool]) {
		return func(*schedule.Tick[bool]) { ran = append(ran, name) }
	}
	s.Startup("new game", schedule.Creates, note("start"))
	s.Add("third", nil, note("third")).Every(3)
	s.Add("if", nil, note("if")).If(func(t *schedule.Tick[bool]) bool { return t.Input }).If(func(t *schedule.Tick[bool]) bool { return t.Number > 2 })
	step := func(in bool) string {
		ran = nil
		s.Step(in)
		w.Commit()
		return strings.Join(ran, " ")
	}
	require.Equal(t, "start", step(true))
	require.Equal(t, "", step(false))
	require.Equal(t, "third if", step(true))
	require.Equal(t, "if", step(true))
	require.NoError(t, w.History().Seek(2))
	require.Equal(t, "third", step(false), "the rate is that of the tick")
	require.NoError(t, w.History().Seek(0))
	require.Equal(t, "start", step(false))

	late := ecs.NewWorld(ecs.Options{})
	late.Commit()
	s = schedule.New[bool](late)
	mustPanic(t, "it runs in tick 1 only, so omit Every", func() { schedule.New[bool](late).Startup("rate", nil, note("")).Every(2) })
	s.Startup("new game", nil, note(""))
	mustPanic(t, "the startup system \"new game\" would never run", func() { s.Step(true) })
}

// The world has the state of a group, which is on or off. So a seek restores this state.
func TestGroup_IsRestored(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{History: 20})
	s := schedule.New[string](w)
	g := s.Group("menu")
	require.Same(t, g, s.Group("menu"))
	ran := 0
	s.Add("switch", g, func(t *schedule.Tick[string]) {
		if t.Input != "" {
			g.Switch(t.Input == "on")
		}
	})
	s.Add("blink", schedule.Uses(), func(*schedule.Tick[string]) { ran++ }).In(g)
	for i, want := range []int{1, 1, 1, 2} {
		s.Step([]string{"", "off", "", "on"}[i])
		w.Commit()
		require.Equal(t, want, ran, "tick %d", i+1)
	}
	require.True(t, g.On())
	require.NoError(t, w.History().Seek(2))
	require.False(t, g.On())
	s.Step("")
	require.Equal(t, 2, ran)
	require.Contains(t, s.Explain().String(), "blink (group menu) waits for switch: Group.menu (read after write)")
}

func TestTick_RandRepeats(t *testing.T) {
	draw := func(seed uint64, from uint64, names ...string) map[string][]uint64 {
		w := ecs.NewWorld(ecs.Options{History: 20})
		for range from {
			w.Commit()
		}
		s := schedule.New[int](w).Seed(seed)
		drawn := map[string][]uint64{}
		for _, name := range names {
			s.Add(name, schedule.Uses(), func(t *schedule.Tick[int]) {
				drawn[name] = append(drawn[name], t.Rand().Uint64(), t.Rand().Uint64())
			})
		}
		for range 3 {
			s.Step(0)
			w.Commit()
		}
		return drawn
	}
	one := draw(7, 0, "a", "b")
	require.Equal(t, one, draw(7, 0, "b", "a"))
	require.Equal(t, one["a"][2:4], draw(7, 1, "a")["a"][:2])
	seen := map[uint64]bool{}
	for _, other := range []map[string][]uint64{one, draw(8, 0, "a", "b"), draw(7, 3, "a", "b")} {
		for _, numbers := range other {
			for _, n := range numbers {
				require.False(t, seen[n], "the same number twice")
				seen[n] = true
			}
		}
	}
}

func TestTick_CommandsRunAtPlaceInList(t *testing.T) {
	l := newArena(ecs.Options{})
	n := l.w.Len()
	l.Add("spawn", schedule.Uses(l.places, schedule.Creates), func(t *schedule.Tick[int]) {
		c := t.Commands()
		e := c.Create()
		l.places.Later(c).Set(e, place{Y: 77})
		require2(l.w.Len() == n)
	})
	found := 0
	l.Add("see", ecs.Read(l.places), func(*schedule.Tick[int]) {
		for _, p := range l.places.All() {
			if p.Y == 77 {
				found++
			}
		}
	})
	for _, workers := range []int{1, 2} {
		n = l.w.Len()
		found = 0
		l.Workers(workers).Step(0)
		require.Equal(t, workers, found)
		l.w.Commit()
	}
	n = l.w.Len()
	l.Add("bad", schedule.Uses(l.places), func(t *schedule.Tick[int]) { t.Commands() })
	mustPanic(t, `the system bad records commands; add schedule.Creates to its access`, func() { l.Step(0) })
}

func require2(ok bool) {
	if !ok {
		panic(errors.New("a command ran early"))
	}
}

func TestStepOn_Clone(t *testing.T) {
	l := newArena(ecs.Options{})
	s := schedule.New[int](l.w)
	s.Add("run", ecs.Write(l.places), func(t *schedule.Tick[int]) {
		of := l.places.In(t.World)
		of.Mut(l.entities[0]).X += int32(t.Input)
	})
	clone := l.w.Clone()
	before := l.w.Digest()
	for range 3 {
		s.StepOn(clone, 5)
		clone.Commit()
	}
	v, _ := l.places.In(clone).Get(l.entities[0])
	require.EqualValues(t, 15, v.X)
	require.Equal(t, before, l.w.Digest())
	require.Zero(t, s.Times()[0].Runs)
	require.Equal(t, l.w.Tick()+3, clone.Tick())
}

func TestStepSystem_GoesBackBySystem(t *testing.T) {
	l, twin := newArena(ecs.Options{History: 5}), newArena(ecs.Options{})
	digests := []ecs.Digest{l.w.Digest()}
	forward := func(want ...string) {
		for _, name := range want {
			require.Equal(t, name, l.StepSystem(3))
			digests = append(digests, l.w.Digest())
		}
	}
	back := func(want ...string) {
		for _, name := range want {
			require.Equal(t, name, l.BackSystem())
			if name != "" {
				digests = digests[:len(digests)-1]
			}
			require.Equal(t, digests[len(digests)-1], l.w.Digest())
		}
	}
	for range 3 {
		digests = []ecs.Digest{l.w.Digest()}
		forward("move", "age", "")
		digests = digests[:3]
		back("age", "move", "", "")
		forward("move", "age")
		back("age")
		forward("age", "")
		l.w.Commit()
		twin.Step(3)
		twin.w.Commit()
		require.Equal(t, twin.w.Digest(), l.w.Digest())
		require.Equal(t, "", l.BackSystem(), "the tick has ended")
	}
	forward("move")
	l.Step(3) // It runs the other system.
	for range l.w.Checkpoints() {
		t.Error("a checkpoint is left")
	}
	l.w.Commit()
	twin.Step(3)
	twin.w.Commit()
	require.Equal(t, twin.w.Digest(), l.w.Digest())
	require.NoError(t, l.w.History().Rewind(1))
	require.Equal(t, "move", l.StepSystem(3))
	require.NoError(t, l.w.History().Rewind(1), "seek away in the middle of a step")
	require.Equal(t, "", l.BackSystem())
	require.Equal(t, "move", l.StepSystem(3))
	l.EndStep()
	require.Equal(t, "", l.BackSystem())
	require.Equal(t, "age", l.StepSystem(3), "EndStep keeps what has run")
	require.Equal(t, "age", l.BackSystem())
	require.Equal(t, "", l.BackSystem(), "EndStep released the checkpoint before move")
	l.Step(3)
	mustPanic(t, "schedule: Step again in tick", func() { l.Step(3) })
}

// Step after StepSystem runs the systems that have not run in this tick, for any number of workers
// and of systems that have run.
func TestStep_AfterStepSystemRunsTheOthers(t *testing.T) {
	for workers := range 3 {
		for ran := range 5 {
			w := ecs.NewWorld(ecs.Options{History: 2})
			score := ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "Score"}))
			s := schedule.New[int](w).Workers(workers + 1)
			for i := range 4 {
				s.Add(fmt.Sprint(i), score, func(t *schedule.Tick[int]) { *score.Mut() = *score.Mut()*10 + i + t.Input })
			}
			for range ran {
				s.StepSystem(1)
			}
			if ran < 4 {
				s.Step(1)
			} else {
				mustPanic(t, "schedule: Step again in tick", func() { s.Step(1) })
			}
			require.Equal(t, 1234, score.Get(), "%d workers, %d systems by StepSystem", workers+1, ran)
		}
	}
}

func TestTimes_CountRuns(t *testing.T) {
	for _, workers := range []int{1, 2} {
		l := newArena(ecs.Options{})
		l.Workers(workers)
		menu, none := l.Group("menu"), func(*schedule.Tick[int]) {}
		l.Add("rare", nil, none).Every(10)
		l.Add("menu", schedule.Uses(), none).In(menu)
		l.Add("if", schedule.Uses(), none).If(func(t *schedule.Tick[int]) bool { return t.Number <= 8 })
		l.Add("never", schedule.Uses(), none).If(func(*schedule.Tick[int]) bool { return false })
		for range 30 {
			menu.Switch(l.w.Tick() < 20)
			l.Step(0)
			l.w.Commit()
		}
		var runs []uint64
		times := l.Times()
		for _, y := range times {
			runs = append(runs, y.Runs)
			ran := y.Runs > 0
			require.True(t, y.Worst >= y.Last && y.Worst >= y.Mean && y.Mean > 0 == ran && y.Last > 0 == ran, "%+v", y)
		}
		require.Equal(t, []uint64{30, 30, 3, 19, 7, 0}, runs, "%d workers", workers)
		require.Equal(t, "rare", times[2].System)
	}
}

func TestTimes_CountVisitedRows(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	places, lives := ecs.MustRegister[place](w), ecs.MustRegister[life](w)
	all, both := ecs.NewQuery1(ecs.Write(places)), ecs.NewQuery2(ecs.Read(places), ecs.Read(lives))
	// A system visits this query, but its access omits the query.
	other := ecs.NewQuery1(ecs.Read(lives))
	for i := range 4_000 {
		e := w.Create()
		places.Set(e, place{})
		if i%5 == 0 {
			lives.Set(e, life{})
		}
	}
	w.Commit()
	for _, workers := range []int{1, 2} {
		s := schedule.New[int](w).Workers(workers)
		s.Add("runs", all, func(*schedule.Tick[int]) {
			for range all.Runs() {
			}
			_, _ = all.Count(), all.AppendEntities(nil) // Both calls visit no rows.
		})
		s.Add("parallel", all, func(*schedule.Tick[int]) { all.ParallelRuns(2, func(ecs.Run1[place]) {}) })
		s.Add("twice", schedule.Uses(both, both, schedule.Reads(lives)), func(t *schedule.Tick[int]) {
			for range t.Input {
				for range both.All() {
				}
			}
			for range other.All() {
			}
		})
		s.Add("ends early", all, func(*schedule.Tick[int]) {
			for range all.All() {
				break
			}
		})
		s.Add("idle", schedule.Uses(all, places), func(*schedule.Tick[int]) {})
		for in := 1; in <= 3; in++ {
			s.Step(in)
			var rows []uint64
			for _, y := range s.Times() {
				require.Equal(t, uint64(in), y.Runs)
				rows = append(rows, y.Rows)
			}
			early := rows[3]
			require.True(t, early >= 1 && early <= 4_000, early)
			require.Equal(t, []uint64{4_000, 4_000, uint64(in) * 800, early, 0}, rows, "%d workers", workers)
			w.Commit()
		}
	}
}

func TestExplain_NamesReasons(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	places, lives := ecs.MustRegister[place](w), ecs.MustRegister[life](w)
	total := ecs.Must(ecs.RegisterResource[score](w, 0))
	hits := ecs.Must(ecs.RegisterEvent[string](w, ecs.Component[string]{Name: "hits"}))
	s := schedule.New[int](w)
	none := func(*schedule.Tick[int]) {}
	moving := ecs.NewQuery1(ecs.Write(places)).Without(lives)
	s.Startup("begin", schedule.Creates, none)
	s.Add("move", moving, none)
	s.Add("again", moving, none)
	s.Add("heal", ecs.Write(lives), none)
	s.Add("wound", lives, none).Every(2)
	s.Add("count", schedule.Uses(total, schedule.Reads(hits)), none)
	s.Add("send", hits, none)
	s.Add("load", nil, none)
	s.Add("last", schedule.Reads(places), none)
	require.Equal(t, `batch 1: begin (in the first tick)
batch 2: move waits for begin: it creates or destroys entities
batch 3: again waits for move: the same query or relation
batch 2: heal waits for begin: it creates or destroys entities
batch 4: wound (every 2 ticks) waits for again: life (add or remove after read of members)
batch 2: count waits for begin: it creates or destroys entities
batch 3: send waits for count: hits (write after read)
batch 5: load (alone) waits for wound: runs alone
batch 6: last waits for load: it runs alone
`, s.Explain().String())
	b, err := json.Marshal(s.Explain())
	require.NoError(t, err)
	require.Contains(t, string(b), `{"system":"send","batch":3,"waits":[{"system":"count","on":"hits","kind":"write after read"}]}`)
}

// A system runs alone if it may call a hook. A write through a pointer of a query calls no hook.
func TestAccess_SystemWithHooksRunsAlone(t *testing.T) {
	l := newArena(ecs.Options{})
	s := schedule.New[int](l.w)
	none := func(*schedule.Tick[int]) {}
	l.places.OnSet(func(ecs.Entity, place, place) {})
	l.lives.OnRemove(func(ecs.Entity, life) {})
	s.Add("set", ecs.Write(l.places), none)
	s.Add("loop", ecs.NewQuery1(ecs.Write(l.places)), none)
	s.Add("read", ecs.Read(l.places), none)
	s.Add("wound", ecs.Write(l.lives), none)
	s.Add("kill", l.lives, none)
	var alone []bool
	for _, y := range s.Explain().Systems {
		alone = append(alone, y.Alone)
	}
	require.Equal(t, []bool{true, false, false, false, true}, alone)
}

// The commands of a system that panicked are dropped.
func TestTick_CommandsDroppedAfterPanic(t *testing.T) {
	l := newArena(ecs.Options{})
	s := schedule.New[bool](l.w)
	s.Add("spawn", schedule.Creates, func(t *schedule.Tick[bool]) {
		t.Commands().Create()
		if t.Input {
			panic("fault")
		}
	})
	n := l.w.Len()
	mustPanic(t, "fault", func() { s.Step(true) })
	require.Equal(t, n, l.w.Len())
	s.Step(false)
	require.Equal(t, n+1, l.w.Len())
}
