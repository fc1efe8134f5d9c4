package schedule_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/internal/system"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/ecs/schedule"
)

type (
	place struct{ X, Y int32 }
	life  struct{ V int64 }
	score int
)

// An arena is a world with a few walkers, and a schedule whose systems move the walkers.
type arena struct {
	*schedule.Schedule[int]
	w        *ecs.World
	places   *ecs.Storage[place]
	lives    *ecs.Storage[life]
	score    *ecs.Resource[score]
	entities []ecs.Entity
}

func newArena(options ecs.Options) *arena {
	w := ecs.NewWorld(options)
	l := &arena{
		Schedule: schedule.New[int](w), w: w,
		places: ecs.MustRegister[place](w), lives: ecs.MustRegister[life](w),
		score: ecs.Must(ecs.RegisterResource[score](w, 0)),
	}
	l.entities = w.CreateN(nil, 8)
	for i, e := range l.entities {
		l.places.Set(e, place{X: int32(i)})
		l.lives.Set(e, life{int64(10 + 3*i)})
	}
	moving := ecs.NewQuery1(ecs.Write(l.places))
	l.Add("move", moving, func(t *schedule.Tick[int]) {
		for _, p := range moving.All() {
			p.X += int32(t.Input)
		}
	})
	l.Add("age", schedule.Uses(l.lives, schedule.Creates), func(t *schedule.Tick[int]) {
		for e, v := range ecs.NewQuery1(ecs.Write(l.lives)).All() {
			if v.V--; v.V == 0 {
				t.World.Destroy(e)
				l.lives.Set(t.World.Create(), life{20})
			}
		}
	})
	w.Commit()
	return l
}

// steps runs up to n steps of a sync test. It stops at the first error.
func (l *arena) steps(t *testing.T, distance, n int, shuffle bool) error {
	t.Helper()
	test, err := l.SyncTest(distance)
	require.NoError(t, err)
	if shuffle {
		test.Shuffle(1)
	}
	for i := range n {
		if err := test.Step(i); err != nil {
			require.Equal(t, err, test.Step(i), "Step after the end")
			return err
		}
	}
	return nil
}

func TestSyncTest_AcceptsDeterministicSystems(t *testing.T) {
	for _, distance := range []int{1, 2, 7} {
		for _, shuffle := range []bool{false, true} {
			l, twin := newArena(ecs.Options{History: 7}), newArena(ecs.Options{})
			require.NoError(t, l.steps(t, distance, 40, shuffle))
			for i := range 40 {
				twin.Step(i)
				twin.w.Commit()
			}
			require.EqualValues(t, 41, l.w.Tick())
			require.Equal(t, twin.w.Digest(), l.w.Digest(), "a world that only ran the steps")
		}
	}
}

func TestSyncTest_NamesSystem(t *testing.T) {
	outside, clock := 0, 0
	cache, others := map[uint64]bool{}, map[ecs.Entity]int{}
	for name, tt := range map[string]struct {
		system   func(l *arena, t *schedule.Tick[int])
		storage  string
		distance int
	}{
		"map order": {func(l *arena, t *schedule.Tick[int]) {
			for _, e := range l.entities {
				others[e] = 1
			}
			for e := range others {
				l.places.Remove(e)
				l.places.Set(e, place{Y: 1})
			}
		}, "place", 2},
		"state that is not registered": {func(l *arena, t *schedule.Tick[int]) {
			outside++
			l.score.Set(score(outside))
		}, "score", 3},
		"only the first time": {func(l *arena, t *schedule.Tick[int]) {
			if !cache[t.Number] {
				cache[t.Number] = true
				*l.score.Mut()++
			}
		}, "score", 1},
		"the clock": {func(l *arena, t *schedule.Tick[int]) {
			clock += 17
			l.lives.Mut(l.lives.Entities()[0]).V = int64(clock)
		}, "life", 4},
		"number of entities": {func(l *arena, t *schedule.Tick[int]) {
			if outside++; outside%5 == 0 {
				t.World.Create()
			}
		}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, shuffle := range []bool{false, true} {
				l := newArena(ecs.Options{History: 5})
				l.Add("suspect", nil, func(t *schedule.Tick[int]) { tt.system(l, t) })
				l.Add("after", l.score, func(*schedule.Tick[int]) { *l.score.Mut()++ })
				var d *schedule.Divergence
				require.ErrorAs(t, l.steps(t, tt.distance, 200, shuffle), &d)
				require.Equal(t, "suspect", d.System, d)
				require.Equal(t, tt.storage, d.Storage, d)
				require.NotEqual(t, d.FirstDigest, d.AgainDigest)
				require.Equal(t, []uint64{d.Tick, d.Tick}, []uint64{d.First.Tick(), d.Again.Tick()})
				require.NotEqual(t, d.First.Digest(), d.Again.Digest())
				require.Contains(t, d.Error(), `system "suspect"`)
			}
		})
	}
}

// debugBuild reports whether the test runs in a debug build.
func debugBuild(w *ecs.World) bool { return w.Raw().(system.World).OneAtATime() }

// A system uses the score, but its access does not name the score. The test finds this error only
// by another order of systems.
func TestSyncTest_ShuffleFindsMissingAccess(t *testing.T) {
	if debugBuild(ecs.NewWorld(ecs.Options{})) {
		t.Skip("a debug build panics at the use")
	}
	for _, reads := range []bool{false, true} {
		wrong := func() *arena {
			l := newArena(ecs.Options{History: 5})
			l.Add("count", l.score, func(*schedule.Tick[int]) { *l.score.Mut() += 3 })
			l.Add("suspect", ecs.Write(l.places), func(*schedule.Tick[int]) {
				if reads {
					l.places.Mut(l.places.Entities()[0]).Y += int32(l.score.Get())
				} else {
					*l.score.Mut() *= 2
				}
			})
			return l
		}
		require.NoError(t, wrong().steps(t, 2, 20, false))
		var d *schedule.Divergence
		require.ErrorAs(t, wrong().steps(t, 2, 200, true), &d)
		require.Equal(t, "suspect", d.System)
		require.Equal(t, !reads, d.NotNamed)
		if reads {
			require.Contains(t, d.Error(), "The order was then ")
		} else {
			require.Contains(t, d.Error(), `the system "suspect" writes score, which its access does not name`)
		}
	}
}

func TestSyncTest_ChangeOutsideSystems(t *testing.T) {
	l := newArena(ecs.Options{History: 5})
	calls := score(0)
	l.lives.OnChange(func(ecs.Entity, life, life) { calls++; l.score.Set(calls) })
	var d *schedule.Divergence
	require.ErrorAs(t, l.steps(t, 2, 3, false), &d)
	require.Equal(t, []string{"Commit", "score"}, []string{d.System, d.Storage}, "a hook that counts")

	if debugBuild(l.w) {
		return // A debug build panics earlier.
	}
	l = newArena(ecs.Options{History: 5})
	other := ecs.MustRegister[struct{ N int }](l.w, ecs.Component[struct{ N int }]{Name: "other"})
	for _, e := range l.entities {
		other.Set(e, struct{ N int }{})
	}
	l.w.Commit()
	l.Add("stray", nil, func(*schedule.Tick[int]) { other.Values()[3].N++ })
	require.ErrorAs(t, l.steps(t, 2, 3, false), &d)
	require.Equal(t, []string{"Seek", "other"}, []string{d.System, d.Storage}, "a stray write")
}

func TestSyncTest_Misuse(t *testing.T) {
	l := newArena(ecs.Options{History: 3})
	for distance, want := range map[int]string{-1: "at least 1", 0: "at least 1", 4: "the history is too short"} {
		_, err := l.SyncTest(distance)
		require.ErrorContains(t, err, want)
	}
	l.w.Create()
	_, err := l.SyncTest(1)
	require.ErrorIs(t, err, raw.ErrDirty)
	l.w.Commit()
	test, err := l.SyncTest(3)
	require.NoError(t, err)
	require.NoError(t, test.Step(1))
	l.w.Create()
	require.ErrorIs(t, test.Step(2), raw.ErrDirty, "after a change outside of systems")

	other := ecs.NewWorld(ecs.Options{History: 1})
	test, err = schedule.New[int](other).SyncTest(1)
	require.NoError(t, err)
	other.Commit()
	require.ErrorIs(t, test.Step(1), raw.ErrDirty, "after a Commit outside of steps")
}

func TestSyncTest_TickEvicted(t *testing.T) {
	l := newArena(ecs.Options{History: 5, HistoryBytes: 1})
	require.ErrorIs(t, l.steps(t, 3, 5, false), ecs.ErrNotHeld)
}

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		reason := recover()
		err, _ := reason.(error)
		text, _ := reason.(string)
		if err != nil {
			text = err.Error()
		}
		require.True(t, reason != nil && strings.Contains(text, want), "panic %v, want %q", reason, want)
	}()
	f()
}
