package persist

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/shell"
)

// simulated makes a tick of w: what its inputs say.
func simulated(w *testWorld, inputs []Input) error {
	for _, in := range inputs {
		rng := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(in.Data), 3))
		w.do(randomActions(rng, 6)...)
	}
	w.releaseAll()
	return nil
}

// A recording is a store of ticks that can be made again, and what it holds.
type recording struct {
	dir     string
	digests map[uint64]ecs.Digest // By record.
}

// newRecording records n ticks with up to two inputs each and some snapshots, some
// of them from an older tick on: what was then in the history is another branch.
func newRecording(t testing.TB, seed uint64, n int) recording {
	t.Helper()
	r := recording{filepath.Join(t.TempDir(), "store"), map[uint64]ecs.Digest{}}
	rng := rand.New(rand.NewPCG(seed, 5))
	w := newTestWorld(10)
	w.fill(5)
	s := open(t, r.dir, w, Options{SnapshotBytes: 3000})
	r.digests[0] = persistent(w.World)
	for range n {
		if rng.IntN(10) == 0 {
			_ = w.History().Rewind(rng.IntN(4))
		}
		inputs := make([]Input, rng.IntN(3))
		for i := range inputs {
			inputs[i] = Input{"act", binary.LittleEndian.AppendUint64(nil, rng.Uint64())}
			require.NoError(t, s.Input(inputs[i].Name, inputs[i].Data))
		}
		require.NoError(t, simulated(w, inputs))
		require.NoError(t, s.Commit())
		r.digests[w.Mark()] = persistent(w.World)
	}
	closeStore(t, s)
	return r
}

// played is a player with the world that it plays in.
type played struct {
	*Player
	world *ecs.World
}

func openPlayer(t testing.TB, dir string, w *ecs.World, options PlayerOptions) played {
	t.Helper()
	p, err := OpenPlayer(background, dir, w, options)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return played{p, w}
}

// requireAt checks that p is at a tick as it was recorded.
func (r recording) requireAt(t testing.TB, p played, tick uint64) {
	t.Helper()
	require.Equal(t, tick, p.Tick())
	require.Equal(t, tick, p.world.Tick())
	require.Equal(t, tick, p.Recorded().Tick)
	require.Equal(t, r.digests[p.Recorded().ID.Seq], persistent(p.world), "tick %d", tick)
}

// The recorded ticks, and the same simulation run again, lead through the states
// that there were, with application types and without, from wherever they start.
func TestAPlayerGoesThroughTheTicksThatWereRecorded(t *testing.T) {
	for seed := range uint64(4) {
		r := newRecording(t, seed, 60)
		before := readTree(t, r.dir)
		typed, again := newTestWorld(0), newTestWorld(3)
		for _, p := range []played{
			openPlayer(t, r.dir, typed.World, PlayerOptions{}),
			openPlayer(t, r.dir, ecs.NewWorld(ecs.Options{}), PlayerOptions{}),
			openPlayer(t, r.dir, again.World, PlayerOptions{
				Step: func(_ *ecs.World, _ uint64, inputs []Input) error { return simulated(again, inputs) },
			}),
		} {
			rng := rand.New(rand.NewPCG(seed, 6))
			r.requireAt(t, p, 0)
			require.Zero(t, p.First())
			for step := 0; step < 200; step++ {
				tick := p.Tick()
				switch k := rng.IntN(12); {
				case k == 0:
					tick = uint64(rng.IntN(int(p.End()) + 1))
					require.NoError(t, p.Seek(background, tick))
				case k == 1 && step%5 == 0:
					tick = 0
					require.NoError(t, p.Restart(background))
				case tick == p.End():
					require.Equal(t, io.EOF, p.Step(background))
				default:
					tick++
					require.NoError(t, p.Step(background))
				}
				r.requireAt(t, p, tick)
				_, storage, diverged := p.Diverged()
				require.False(t, diverged, storage)
			}
		}
		require.Equal(t, before, readTree(t, r.dir))
	}
}

func TestAPlayerFindsTheTickThatComesOutOtherwise(t *testing.T) {
	r := newRecording(t, 3, 30)
	for storage, change := range map[string]func(*testWorld){
		"armor": func(w *testWorld) { // The first by name of two.
			for _, e := range w.Entities() {
				w.armor.Set(e, armor{-7})
				w.rank.Set(e, rank{77})
			}
		},
		"rules": func(w *testWorld) { w.rules.Mut().Limit++; *w.seed.Mut()++ },
		"seed":  func(w *testWorld) { *w.seed.Mut()++ },
		"":      func(w *testWorld) { w.rules.Mut().Limit++; w.Create() },
	} {
		w := newTestWorld(0)
		p := openPlayer(t, r.dir, w.World, PlayerOptions{Step: func(_ *ecs.World, tick uint64, inputs []Input) error {
			err := simulated(w, inputs)
			if tick == 7 || tick == 9 {
				change(w)
			}
			return err
		}})
		for p.Tick() < 12 {
			require.NoError(t, p.Step(background))
			tick, where, diverged := p.Diverged()
			require.Equal(t, p.Tick() >= 7, diverged, "%s at tick %d", storage, p.Tick())
			if diverged {
				require.Equal(t, uint64(7), tick)
				require.Equal(t, storage, where)
			}
		}
		require.NoError(t, p.Seek(background, 8))
		r.requireAt(t, p, 8)
		_, _, diverged := p.Diverged()
		require.False(t, diverged)
		require.NoError(t, p.Step(background))
		tick, _, diverged := p.Diverged()
		require.True(t, diverged)
		require.Equal(t, uint64(9), tick)

		dir := filepath.Join(t.TempDir(), "new", "dir")
		command, err := p.SaveBoth(background, dir)
		require.NoError(t, err)
		words := strings.Fields(command)
		require.Equal(t, []string{"ecsdump", "diff"}, words[:2])
		recorded, played := newTestWorld(0), newTestWorld(0)
		require.NoError(t, Load(background, words[2], recorded.World))
		require.NoError(t, Load(background, words[3], played.World))
		require.Equal(t, r.digests[p.Recorded().ID.Seq], persistent(recorded.World))
		require.Equal(t, persistent(w.World), persistent(played.World))
		require.NotEqual(t, persistent(recorded.World), persistent(played.World))

		spaced := filepath.Join(t.TempDir(), "it's of today")
		command, err = p.SaveBoth(background, spaced)
		require.NoError(t, err)
		require.Equal(t, shell.Command("ecsdump", "diff", filepath.Join(spaced, "tick9-recorded.save"), filepath.Join(spaced, "tick9-played.save")), command)
	}
}

func TestAPlayerPlaysABranchFromOnePointToAnother(t *testing.T) {
	dir := markedStore(t)
	w := newTestWorld(0)
	p := openPlayer(t, dir, w.World, PlayerOptions{From: "mark:b~2", To: "tip:2"})
	require.Equal(t, [3]uint64{3, 3, 5}, [3]uint64{p.First(), p.Tick(), p.End()})
	var seqs []uint64
	for p.Step(background) == nil {
		seqs = append(seqs, p.Recorded().ID.Seq)
	}
	require.Equal(t, []uint64{7, 8}, seqs)
	require.NoError(t, p.Seek(background, 3))
	require.Equal(t, uint64(6), p.Recorded().ID.Seq)
	require.ErrorIs(t, p.Seek(background, 2), ErrNotFound)
	require.Equal(t, uint64(3), p.Tick())

	for _, options := range []PlayerOptions{{From: "mark:nobody"}, {To: "mark:nobody"}, {From: "tip:1", To: "tip:2"}, {From: "@latest", To: "@first"}} {
		_, err := OpenPlayer(background, dir, newTestWorld(0).World, options)
		require.ErrorIs(t, err, ErrNotFound, "%v", options)
	}
	_, err := OpenPlayer(background, dir, w.World, PlayerOptions{})
	require.ErrorIs(t, err, ErrNotEmpty)
	_, err = OpenPlayer(background, filepath.Join(dir, "none"), newTestWorld(0).World, PlayerOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A resource that the record knows only later has the value that the program gave
// it, after going back too.
func TestGoingBackBringsBackWhatTheRecordDidNotKnowYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	known(w)
	s, err := Open(background, dir, w, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Commit())
	late := ecs.MustRegisterResource(w, seed(5))
	require.NoError(t, s.Commit())
	late.Set(6)
	require.NoError(t, s.Commit())
	closeStore(t, s)

	w = ecs.NewWorld(ecs.Options{})
	known(w)
	late = ecs.MustRegisterResource(w, seed(5))
	p := openPlayer(t, dir, w, PlayerOptions{})
	require.NoError(t, p.Seek(background, 3))
	require.Equal(t, seed(6), late.Get())
	require.NoError(t, p.Restart(background))
	require.Equal(t, seed(5), late.Get())
}

func TestAPlayerThatFailsGoesOnFromASeek(t *testing.T) {
	r := newRecording(t, 2, 10)
	w := newTestWorld(0)
	stuck := errors.New("stuck")
	fail := false
	commits := 0
	p := openPlayer(t, r.dir, w.World, PlayerOptions{Step: func(w2 *ecs.World, _ uint64, inputs []Input) error {
		require.Same(t, w.World, w2)
		for range commits {
			w.Commit()
		}
		if fail {
			w.Create()
			return stuck
		}
		return simulated(w, inputs)
	}})
	require.NoError(t, p.Step(background))
	fail = true
	require.ErrorIs(t, p.Step(background), stuck)
	require.ErrorIs(t, p.Step(background), stuck, "its world is of no use")
	_, err := p.SaveBoth(background, t.TempDir())
	require.ErrorIs(t, err, stuck)
	fail = false
	require.ErrorIs(t, p.Step(background), stuck)
	require.NoError(t, p.Seek(background, 1))
	r.requireAt(t, p, 1)
	require.NoError(t, p.Step(background))
	r.requireAt(t, p, 2)
	commits = 1
	require.ErrorContains(t, p.Step(background), "leaves Commit to the player")
	require.NoError(t, p.Restart(background))
	r.requireAt(t, p, 0)
}

func TestAPlayerNeedsTheTypesThatWereRecordedToSimulate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	type before struct{ Now int16 }
	type after struct{ Now, Max int64 }
	w := ecs.NewWorld(ecs.Options{})
	s, err := Open(background, dir, w, Options{})
	require.NoError(t, err)
	old := ecs.MustRegister[before](w, ecs.Named("health"))
	for range 2 {
		old.Set(w.Create(), before{7})
		require.NoError(t, s.Commit())
	}
	closeStore(t, s)
	w = ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister[after](w, ecs.Named("health"))
	s, err = Open(background, dir, w, Options{})
	require.NoError(t, err)
	more := func(w *ecs.World, _ uint64, _ []Input) error {
		health.In(w).Set(w.Create(), after{8, 9})
		return nil
	}
	require.NoError(t, more(w, 0, nil))
	require.NoError(t, s.Commit())
	closeStore(t, s)

	newer := func() *ecs.World {
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister[after](w, ecs.Named("health"))
		return w
	}
	w = newer() // What was recorded is converted,
	p := openPlayer(t, dir, w, PlayerOptions{})
	require.NoError(t, p.Seek(background, 2))
	require.Equal(t, []after{{7, 0}, {7, 0}}, health.In(w).Values())
	require.NoError(t, p.Step(background))
	require.Equal(t, []after{{7, 0}, {7, 0}, {8, 9}}, health.In(w).Values())
	_, err = OpenPlayer(background, dir, newer(), PlayerOptions{From: "1", Step: more}) // but not simulated again.
	require.ErrorIs(t, err, ErrSchema)
	w = ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[string](w, ecs.Named("health"))
	p = openPlayer(t, dir, w, PlayerOptions{}) // At first there is none.
	require.ErrorIs(t, p.Step(background), ErrSchema)
	require.ErrorIs(t, p.Seek(background, 3), ErrSchema)
	require.NoError(t, p.Restart(background))
	_, err = OpenPlayer(background, dir, w, PlayerOptions{From: "1"})
	require.ErrorIs(t, err, ErrSchema)
}

func TestAPlayerReportsDamageAndPlaysWhatIsBehindIt(t *testing.T) {
	dir, digests := branching(t)
	e, _ := verified(t, dir).Log().Find(3)
	w := newTestWorld(0)
	p := openPlayer(t, dir, w.World, PlayerOptions{})
	require.NoError(t, flipAt(filepath.Join(dir, segments(t, dir)[0]), int(e.Offset)+60))
	require.NoError(t, p.Step(background))
	require.NoError(t, p.Step(background))
	require.ErrorIs(t, p.Step(background), ErrCorrupt)
	require.ErrorIs(t, p.Seek(background, 3), ErrCorrupt)
	require.NoError(t, p.Seek(background, 8)) // From the snapshot of tick 7.
	require.Equal(t, digests[8], persistent(w.World))
	require.ErrorIs(t, p.Seek(background, 4), ErrCorrupt)
	require.NoError(t, p.Restart(background))

	again := openPlayer(t, dir, newTestWorld(0).World, PlayerOptions{}) // The record is not there at all now.
	require.Equal(t, [2]uint64{7, 10}, [2]uint64{again.First(), again.End()})
}
