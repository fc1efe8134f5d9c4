package persist_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
)

var (
	simSeed    = flag.Uint64("sim.seed", 1, "seed of the first simulated program")
	simRuns    = flag.Int("sim.runs", 0, "simulated programs, with all faults; 0: a few, with some")
	simSteps   = flag.Int("sim.steps", 0, "steps of a simulated program; 0: few for -sim.runs 0, else 30")
	simText    = flag.String("sim.program", "", "simulate this program instead of drawn ones")
	simReplay  = flag.String("sim.fault", "", "simulate this fault only, as a failure printed it")
	simEvery   = flag.Int("sim.every", 1, "with -sim.runs, try one fault of so many")
	simVerbose = flag.Bool("sim.v", false, "print what each simulation did")
)

// A simulation runs one program with many faults.
type simulation struct {
	t       *testing.T
	program simProgram
	rng     *rand.Rand
	flips   *rand.Rand // Draws the bits that are flipped.
	every   int        // On average, one of this many faults is tried.
	only    string     // If not "", only this fault is tried.

	crashes, failures, double int
	flipped                   int
	recoveries                int // Recoveries after crashes and failures.
}

// try reports whether the simulation should try a fault.
func (s *simulation) try(fault string) bool {
	if s.only != "" {
		return strings.HasPrefix(s.only, fault)
	}
	return s.rng.IntN(s.every) == 0
}

// start returns a run from the beginning, which is independent of earlier runs.
func (s *simulation) start(seeds int) *simRun {
	cryptotest.SetGlobalRandom(s.t, 7)
	return newSimRun(s.program, disktest.New(), seeds)
}

// check runs the program with all faults. It returns the first broken promise, and the fault that
// led to it.
func (s *simulation) check() (fault string, err error) {
	sound := s.start(2)
	if err := sound.run(); err != nil {
		return "", err
	}
	for _, img := range sound.images {
		if fault, err := s.crash(sound, img); err != nil {
			return fault, err
		}
		if fault, err := s.flip(sound, img); err != nil {
			return fault, err
		}
	}
	for n := 1; n <= sound.mem.Calls(); n++ {
		for _, f := range []simFault{{n, false, "EIO"}, {n, false, "short"}, {n, true, "ENOSPC"}} {
			if !s.try(f.String()) {
				continue
			}
			s.failures++
			if err := s.fail(f, sound.commits); err != nil {
				return f.String(), err
			}
		}
	}
	return "", nil
}

// crash recovers the store from the disk image of a crash. Then it recovers the same image again,
// with a second fault during the recovery.
func (s *simulation) crash(r *simRun, img simImage) (fault string, err error) {
	fault = fmt.Sprintf("crash %d %d", img.n, img.seed)
	if !s.try(fault) {
		return "", nil
	}
	s.crashes++
	s.recoveries++
	calls, err := r.recover(img, img.mem.Clone(), simFault{})
	if err != nil {
		return fault, fmt.Errorf("%w\n%v", err, img)
	}
	second := simFault{1 + s.rng.IntN(calls), s.rng.IntN(2) == 0, "EIO"}
	if s.only != "" {
		if _, err := fmt.Sscanf(s.only, fault+" then %d", &second.n); err != nil {
			return "", nil
		}
		second.all = strings.HasSuffix(s.only, "all")
	}
	fault += fmt.Sprintf(" then %d", second.n)
	if second.all {
		fault += " all"
	}
	s.double++
	s.recoveries += 5
	if err := r.recoverTwice(img, second); err != nil {
		return fault, fmt.Errorf("%w\n%v", err, img)
	}
	return "", nil
}

// fail runs the program with a failing disk. Then it recovers from three images of the disk. The
// images have all bytes, only the synced bytes, and some of the unsynced bytes.
func (s *simulation) fail(f simFault, reference []simCommit) error {
	r := s.start(-1)
	r.fault, r.reference = f, reference
	if err := r.run(); err != nil {
		return err
	}
	for seed := range 3 {
		img := simImage{r.mem.CrashSeed(uint64(f.n*100 + seed)), r.simPromise, "the end", seed, r.mem.Calls()}
		switch seed {
		case 0:
			img.mem = r.mem.Crash()
		case 1:
			img.mem = r.mem.Clone()
		}
		s.recoveries++
		if _, err := r.recover(img, img.mem.Clone(), simFault{}); err != nil {
			return fmt.Errorf("%q failed, then %w\n%v", r.failing, err, img)
		}
	}
	return nil
}

// simulate checks a program in its own bubble of package synctest.
func simulate(t *testing.T, p simProgram, every int) (s *simulation) {
	var fault string
	var err error
	synctest.Test(t, func(t *testing.T) {
		s = &simulation{t: t, program: p, rng: rand.New(rand.NewPCG(1, 1)), flips: rand.New(rand.NewPCG(uint64(len(p.String())), 2)), every: every, only: *simReplay}
		fault, err = s.check()
	})
	if err != nil {
		t.Fatalf("%v\nfault: %s\nreplay: go test ./persist -run TestSimulatedStore -sim.program '%v' -sim.fault '%s'", err, fault, p, fault)
	}
	if *simVerbose {
		t.Logf("%d crashes, %d of them twice, %d flipped bits, %d failures: %v", s.crashes, s.double, s.flipped, s.failures, p)
	}
	return s
}

func TestSimulatedStore(t *testing.T) {
	inMemory(t)
	if *simText != "" {
		p, err := parseSimProgram(*simText)
		require.NoError(t, err)
		simulate(t, p, 1)
		return
	}
	runs, steps, every := *simRuns, *simSteps, *simEvery
	if runs == 0 {
		runs, every = 3, 30
	}
	if steps == 0 {
		steps = 15
		if *simRuns > 0 {
			steps = 30
		}
	}
	var total simulation
	for seed := range uint64(runs) {
		s := simulate(t, newSimProgram(*simSeed+seed, steps), every)
		total.crashes += s.crashes
		total.double += s.double
		total.flipped += s.flipped
		total.failures += s.failures
		total.recoveries += s.recoveries
	}
	t.Logf("%d programs: %d crashes, %d second faults while recovering, %d flipped bits, %d failures of the disk; %d recoveries after them",
		runs, total.crashes, total.double, total.flipped, total.failures, total.recoveries)
}

func TestSimProgram_RoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		p := newSimProgram(seed, 20)
		got, err := parseSimProgram(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
}
