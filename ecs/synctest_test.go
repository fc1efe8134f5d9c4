package ecs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// An arena is a world with a few walkers, and a stepper whose systems move the walkers.
type arena struct {
	w        *World
	places   *Storage[plain]
	lives    *Storage[extra]
	score    *Resource[int]
	stepper  Stepper[int]
	entities []Entity
}

func newArena(t *testing.T, options Options) *arena {
	l := &arena{w: NewWorld(options)}
	checkAtEnd(t, l.w)
	l.places, l.lives = MustRegister[plain](l.w), MustRegister[extra](l.w)
	l.score = Must(RegisterResource(l.w, 0, Component[int]{Name: "Score"}))
	l.entities = l.w.CreateN(nil, 8)
	for i, e := range l.entities {
		l.places.Set(e, plain{X: int32(i)})
		l.lives.Set(e, extra{int64(10 + 3*i)})
	}
	l.stepper.Add("move", func(_ *World, in int) {
		for _, p := range NewQuery1(Write(l.places)).All() {
			p.X += int32(in)
		}
	})
	l.stepper.Add("age", func(w *World, _ int) {
		for e, v := range NewQuery1(Write(l.lives)).All() {
			if v.V--; v.V == 0 {
				w.Destroy(e)
				l.lives.Set(w.Create(), extra{20})
			}
		}
	})
	l.w.Commit()
	return l
}

// steps runs up to n steps of a sync test. It stops at the first error.
func (l *arena) steps(t *testing.T, distance, n int) error {
	t.Helper()
	test, err := l.stepper.SyncTest(l.w, distance)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := test.Step(i); err != nil {
			if again := test.Step(i); again != err {
				t.Errorf("Step after the end = %v, want %v", again, err)
			}
			return err
		}
	}
	return nil
}

func TestSyncTest_AcceptsDeterministicSystems(t *testing.T) {
	for _, distance := range []int{1, 2, 7} {
		l := newArena(t, Options{History: 7})
		twin := newArena(t, Options{})
		if err := l.steps(t, distance, 40); err != nil {
			t.Errorf("distance %d: %v", distance, err)
		}
		for i := range 40 {
			twin.stepper.Step(twin.w, i)
		}
		if l.w.Tick() != 41 || l.w.Digest() != twin.w.Digest() {
			t.Errorf("distance %d: the world is at tick %d and differs from a world that only ran the steps", distance, l.w.Tick())
		}
	}
}

func TestSyncTest_NamesSystem(t *testing.T) {
	outside := 0
	cache := map[uint64]bool{}
	others := map[Entity]int{}
	clock := 0
	for name, tt := range map[string]struct {
		system   func(l *arena) func(*World, int)
		storage  string
		distance int
	}{
		"map order": {func(l *arena) func(*World, int) {
			for _, e := range l.entities {
				others[e] = 1
			}
			return func(*World, int) {
				for e := range others {
					l.places.Remove(e)
					l.places.Set(e, plain{Y: 1})
				}
			}
		}, "plain", 2},
		"state that is not registered": {func(l *arena) func(*World, int) {
			return func(*World, int) { outside++; l.score.Set(outside) }
		}, "Score", 3},
		"what only the first time does": {func(l *arena) func(*World, int) {
			return func(w *World, _ int) {
				if !cache[w.Tick()] {
					cache[w.Tick()] = true
					*l.score.Mut()++
				}
			}
		}, "Score", 1},
		"the clock": {func(l *arena) func(*World, int) {
			return func(*World, int) { clock += 17; l.lives.Mut(l.lives.Entities()[0]).V = int64(clock) }
		}, "extra", 4},
		"who is created": {func(l *arena) func(*World, int) {
			return func(w *World, _ int) {
				if outside++; outside%5 == 0 {
					w.Create()
				}
			}
		}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newArena(t, Options{History: 5})
			l.stepper.Add("suspect", tt.system(l))
			l.stepper.Add("after", func(*World, int) { *l.score.Mut()++ })
			var d *Divergence
			if err := l.steps(t, tt.distance, 200); !errors.As(err, &d) {
				t.Fatalf("Step = %v, want a Divergence", err)
			}
			if d.System != "suspect" || d.Storage != tt.storage || d.FirstDigest == d.AgainDigest {
				t.Errorf("%v: system %q and storage %q, want %q", d, d.System, d.Storage, tt.storage)
			}
			if d.First.Tick() != d.Tick || d.Again.Tick() != d.Tick || d.First.Digest() == d.Again.Digest() || d.Again.Digest() != l.w.Digest() {
				t.Errorf("%v: the worlds are of ticks %d and %d, digests %v and %v", d, d.First.Tick(), d.Again.Tick(), d.First.Digest(), d.Again.Digest())
			}
			if !strings.Contains(d.Error(), `system "suspect"`) {
				t.Errorf("Error() = %q", d)
			}
		})
	}
}

func TestSyncTest_ChangeOutsideSystems(t *testing.T) {
	l := newArena(t, Options{History: 5})
	calls := 0
	l.lives.OnChange(func(Entity, extra, extra) { calls++; l.score.Set(calls) })
	var d *Divergence
	if err := l.steps(t, 2, 3); !errors.As(err, &d) || d.System != "Commit" || d.Storage != "Score" {
		t.Errorf("with a hook that counts: %v", err)
	}
	if debug {
		return // A debug build panics earlier.
	}
	l = newArena(t, Options{History: 5})
	other := MustRegister[padded](l.w)
	for _, e := range l.entities {
		other.Set(e, padded{})
	}
	l.w.Commit()
	l.stepper.Add("stray", func(*World, int) { other.Values()[3].B++ })
	if err := l.steps(t, 2, 3); !errors.As(err, &d) || d.System != "Seek" || d.Storage != "padded" {
		t.Errorf("a stray write: %v", err)
	}
}

func TestSyncTest_Misuse(t *testing.T) {
	l := newArena(t, Options{History: 3})
	for distance, want := range map[int]string{-1: "at least 1", 0: "at least 1", 4: "the history is too short"} {
		if _, err := l.stepper.SyncTest(l.w, distance); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("SyncTest over %d ticks = %v, want %q", distance, err, want)
		}
	}
	l.w.Create()
	if _, err := l.stepper.SyncTest(l.w, 1); !errors.Is(err, raw.ErrDirty) {
		t.Errorf("SyncTest of a world with changes = %v", err)
	}
	l.w.Commit()
	test, err := l.stepper.SyncTest(l.w, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := test.Step(1); err != nil {
		t.Error(err)
	}
	l.w.Create()
	if err := test.Step(2); !errors.Is(err, raw.ErrDirty) {
		t.Errorf("Step after a change outside of systems = %v", err)
	}
	test, _ = l.stepper.SyncTest(NewWorld(Options{History: 1}), 1)
	test.w.Commit()
	if err := test.Step(1); !errors.Is(err, raw.ErrDirty) {
		t.Errorf("Step after a Commit outside of steps = %v", err)
	}
}

func TestSyncTest_TickEvicted(t *testing.T) {
	l := newArena(t, Options{History: 5, HistoryBytes: 1})
	if err := l.steps(t, 3, 5); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Step = %v, want ErrNotHeld", err)
	}
}

func TestStepper_RunsSystemsInOrder(t *testing.T) {
	var s Stepper[string]
	var log []string
	for _, name := range []string{"c", "a", "b"} {
		s.Add(name, func(w *World, in string) { log = append(log, name+in) })
	}
	w := NewWorld(Options{})
	s.Step(w, "1")
	s.Run(w, "2")
	if got, want := strings.Join(log, " "), "c1 a1 b1 c2 a2 b2"; got != want || w.Tick() != 1 {
		t.Errorf("ran %s to tick %d, want %s to tick 1", got, w.Tick(), want)
	}
	if !slices.Equal(s.Systems(), []string{"c", "a", "b"}) {
		t.Errorf("Systems() = %v", s.Systems())
	}
	mustPanic(t, `ecs: a second system named "a"; give each system a different name`, func() { s.Add("a", nil) })
}
