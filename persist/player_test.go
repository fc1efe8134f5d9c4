package persist_test

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
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// simulated simulates a tick of w from the tick's inputs.
func simulated(w *storetest.World, inputs []inspect.Input) error {
	for _, in := range inputs {
		rng := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(in.Data), 3))
		w.Do(storetest.RandomActions(rng, 6)...)
	}
	w.ReleaseAll()
	return nil
}

// A recording is a store of reproducible ticks, with the digest of each state.
type recording struct {
	dir     string
	digests map[uint64]ecs.Digest // Digests by record.
}

// newRecording records n ticks with up to two inputs each, and some snapshots. Before some
// snapshots the world goes back, so later ticks are on another branch.
func newRecording(t testing.TB, seed uint64, n int) recording {
	t.Helper()
	r := recording{filepath.Join(t.TempDir(), "store"), map[uint64]ecs.Digest{}}
	rng := rand.New(rand.NewPCG(seed, 5))
	w := storetest.New(10)
	w.Fill(5)
	s := storetest.Open(t, r.dir, w, persist.Options{SnapshotBytes: 3000})
	r.digests[0] = storetest.Persistent(w.World)
	for range n {
		if rng.IntN(10) == 0 {
			_ = w.History().Rewind(rng.IntN(4))
		}
		inputs := make([]inspect.Input, rng.IntN(3))
		for i := range inputs {
			inputs[i] = inspect.Input{Name: "act", Data: binary.LittleEndian.AppendUint64(nil, rng.Uint64())}
			require.NoError(t, s.Input(inputs[i].Name, inputs[i].Data))
		}
		require.NoError(t, simulated(w, inputs))
		require.NoError(t, s.Commit())
		r.digests[w.Raw().Seq()] = storetest.Persistent(w.World)
		if rng.IntN(8) == 0 {
			require.NoError(t, s.MarkLast("mark"))
			r.digests[w.Raw().Seq()] = storetest.Persistent(w.World)
		}
	}
	storetest.CloseStore(t, s)
	return r
}

// played is a player with its world.
type played struct {
	*inspect.Player
	world *ecs.World
}

func openPlayer(t testing.TB, dir string, w *ecs.World, options inspect.PlayerOptions) played {
	t.Helper()
	p, err := inspect.OpenPlayer(storetest.Background, dir, w, options)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return played{p, w}
}

// requireAt requires that the player p is at the given tick, with the state recorded for that tick.
func (r recording) requireAt(t testing.TB, p played, tick uint64) {
	t.Helper()
	require.Equal(t, tick, p.Tick())
	require.Equal(t, tick, p.world.Tick())
	require.Equal(t, tick, p.Recorded().Tick)
	require.Equal(t, r.digests[p.Recorded().Seq], storetest.Persistent(p.world), "tick %d", tick)
}

// A player reaches each recorded state, whether it applies stored ticks or simulates the ticks
// again. This holds with and without the application's types, and from any start.
func TestPlayer_ReplaysRecordedTicks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := newRecording(t, seed, 60)
		before := storetest.ReadTree(t, r.dir)
		typed, again := storetest.New(0), storetest.New(3)
		for _, p := range []played{
			openPlayer(t, r.dir, typed.World, inspect.PlayerOptions{}),
			openPlayer(t, r.dir, ecs.NewWorld(ecs.Options{}), inspect.PlayerOptions{}),
			openPlayer(t, r.dir, again.World, inspect.PlayerOptions{
				Step: func(_ *ecs.World, _ uint64, inputs []inspect.Input) error { return simulated(again, inputs) },
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
					require.NoError(t, p.Seek(storetest.Background, tick))
				case k == 1 && step%5 == 0:
					tick = 0
					require.NoError(t, p.Restart(storetest.Background))
				case tick == p.End():
					require.Equal(t, io.EOF, p.Step(storetest.Background))
				default:
					tick++
					require.NoError(t, p.Step(storetest.Background))
				}
				r.requireAt(t, p, tick)
				_, storage, diverged := p.Diverged()
				require.False(t, diverged, storage)
			}
		}
		require.Equal(t, before, storetest.ReadTree(t, r.dir))
	}
}

func TestPlayer_FindsDivergence(t *testing.T) {
	t.Parallel()
	r := newRecording(t, 3, 30)
	for storage, change := range map[string]func(*storetest.World){
		"armor": func(w *storetest.World) { // Both armor and rank differ; armor is reported.
			for _, e := range w.Entities() {
				w.Armor.Set(e, storetest.Armor{Points: -7})
				w.Rank.Set(e, storetest.Rank{Place: 77})
			}
		},
		"rules": func(w *storetest.World) { w.Rules.Mut().Limit++; *w.Seed.Mut()++ },
		"seed":  func(w *storetest.World) { *w.Seed.Mut()++ },
		"":      func(w *storetest.World) { w.Rules.Mut().Limit++; w.Create() },
	} {
		w := storetest.New(0)
		p := openPlayer(t, r.dir, w.World, inspect.PlayerOptions{Step: func(_ *ecs.World, tick uint64, inputs []inspect.Input) error {
			err := simulated(w, inputs)
			if tick == 7 || tick == 9 {
				change(w)
			}
			return err
		}})
		for p.Tick() < 12 {
			require.NoError(t, p.Step(storetest.Background))
			tick, where, diverged := p.Diverged()
			require.Equal(t, p.Tick() >= 7, diverged, "%s at tick %d", storage, p.Tick())
			if diverged {
				require.Equal(t, uint64(7), tick)
				require.Equal(t, storage, where)
			}
		}
		require.NoError(t, p.Seek(storetest.Background, 8))
		r.requireAt(t, p, 8)
		_, _, diverged := p.Diverged()
		require.False(t, diverged)
		require.NoError(t, p.Step(storetest.Background))
		tick, _, diverged := p.Diverged()
		require.True(t, diverged)
		require.Equal(t, uint64(9), tick)

		dir := filepath.Join(t.TempDir(), "new", "dir")
		command, err := p.SaveBoth(storetest.Background, dir)
		require.NoError(t, err)
		words := strings.Fields(command)
		require.Equal(t, []string{"ecsdump", "diff"}, words[:2])
		recorded, played := storetest.New(0), storetest.New(0)
		require.NoError(t, persist.Load(storetest.Background, words[2], recorded.World))
		require.NoError(t, persist.Load(storetest.Background, words[3], played.World))
		require.Equal(t, r.digests[p.Recorded().Seq], storetest.Persistent(recorded.World))
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(played.World))
		require.NotEqual(t, storetest.Persistent(recorded.World), storetest.Persistent(played.World))

		spaced := filepath.Join(t.TempDir(), "it's of today")
		command, err = p.SaveBoth(storetest.Background, spaced)
		require.NoError(t, err)
		require.Equal(t, shell.Command("ecsdump", "diff", filepath.Join(spaced, "tick9-recorded.save"), filepath.Join(spaced, "tick9-played.save")), command)
	}
}

func TestPlayer_PlaysOtherBranch(t *testing.T) {
	dir := markedStore(t)
	w := storetest.New(0)
	p := openPlayer(t, dir, w.World, inspect.PlayerOptions{From: "mark:b~2", To: "tip:2"})
	require.Equal(t, [3]uint64{3, 3, 5}, [3]uint64{p.First(), p.Tick(), p.End()})
	var seqs []uint64
	for p.Step(storetest.Background) == nil {
		seqs = append(seqs, p.Recorded().Seq)
	}
	require.Equal(t, []uint64{7, 8}, seqs)
	require.NoError(t, p.Seek(storetest.Background, 3))
	require.Equal(t, uint64(6), p.Recorded().Seq)
	require.ErrorIs(t, p.Seek(storetest.Background, 2), persist.ErrNotFound)
	require.Equal(t, uint64(3), p.Tick())

	for _, options := range []inspect.PlayerOptions{{From: "mark:nobody"}, {To: "mark:nobody"}, {From: "tip:1", To: "tip:2"}, {From: "@latest", To: "@first"}} {
		_, err := inspect.OpenPlayer(storetest.Background, dir, storetest.New(0).World, options)
		require.ErrorIs(t, err, persist.ErrNotFound, "%v", options)
	}
	_, err := inspect.OpenPlayer(storetest.Background, dir, w.World, inspect.PlayerOptions{})
	require.ErrorIs(t, err, persist.ErrNotEmpty)
	_, err = inspect.OpenPlayer(storetest.Background, filepath.Join(dir, "none"), storetest.New(0).World, inspect.PlayerOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A resource was registered in the middle of a recording. Before that tick, the resource has the
// value that the playing program gave it. Going back restores that value.
func TestPlayer_UnrecordedResource(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	known(w)
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Commit())
	late := ecs.Must(ecs.RegisterResource(w, storetest.Seed(5)))
	require.NoError(t, s.Commit())
	late.Set(6)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	w = ecs.NewWorld(ecs.Options{})
	known(w)
	late = ecs.Must(ecs.RegisterResource(w, storetest.Seed(5)))
	p := openPlayer(t, dir, w, inspect.PlayerOptions{})
	require.NoError(t, p.Seek(storetest.Background, 3))
	require.Equal(t, storetest.Seed(6), late.Get())
	require.NoError(t, p.Restart(storetest.Background))
	require.Equal(t, storetest.Seed(5), late.Get())
}

func TestPlayer_SeekAfterFailure(t *testing.T) {
	r := newRecording(t, 2, 10)
	w := storetest.New(0)
	stuck := errors.New("stuck")
	fail := false
	commits := 0
	p := openPlayer(t, r.dir, w.World, inspect.PlayerOptions{Step: func(w2 *ecs.World, _ uint64, inputs []inspect.Input) error {
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
	require.NoError(t, p.Step(storetest.Background))
	fail = true
	require.ErrorIs(t, p.Step(storetest.Background), stuck)
	require.ErrorIs(t, p.Step(storetest.Background), stuck, "its world is of no use")
	_, err := p.SaveBoth(storetest.Background, t.TempDir())
	require.ErrorIs(t, err, stuck)
	fail = false
	require.ErrorIs(t, p.Step(storetest.Background), stuck)
	require.NoError(t, p.Seek(storetest.Background, 1))
	r.requireAt(t, p, 1)
	require.NoError(t, p.Step(storetest.Background))
	r.requireAt(t, p, 2)
	commits = 1
	require.ErrorContains(t, p.Step(storetest.Background), "must not call Commit")
	require.NoError(t, p.Restart(storetest.Background))
	r.requireAt(t, p, 0)
}

func TestPlayer_OtherTypes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	type before struct{ Now int16 }
	type after struct{ Now, Max int64 }
	w := ecs.NewWorld(ecs.Options{})
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	old := ecs.MustRegister(w, ecs.Component[before]{Name: "health"})
	for range 2 {
		old.Set(w.Create(), before{7})
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	w = ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister(w, ecs.Component[after]{Name: "health"})
	s, err = persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	more := func(w *ecs.World, _ uint64, _ []inspect.Input) error {
		health.In(w).Set(w.Create(), after{8, 9})
		return nil
	}
	require.NoError(t, more(w, 0, nil))
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)

	newer := func() *ecs.World {
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister(w, ecs.Component[after]{Name: "health"})
		return w
	}
	w = newer() // Recorded ticks are converted to these types.
	p := openPlayer(t, dir, w, inspect.PlayerOptions{})
	require.NoError(t, p.Seek(storetest.Background, 2))
	require.Equal(t, []after{{7, 0}, {7, 0}}, health.In(w).Values())
	require.NoError(t, p.Step(storetest.Background))
	require.Equal(t, []after{{7, 0}, {7, 0}, {8, 9}}, health.In(w).Values())
	// Converted ticks cannot be simulated again.
	_, err = inspect.OpenPlayer(storetest.Background, dir, newer(), inspect.PlayerOptions{From: "1", Step: more})
	require.ErrorIs(t, err, persist.ErrSchema)
	w = ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(w, ecs.Component[string]{Name: "health"})
	// The recording begins without the resource. So OpenPlayer succeeds, and Step finds that the
	// types do not fit.
	p = openPlayer(t, dir, w, inspect.PlayerOptions{})
	require.ErrorIs(t, p.Step(storetest.Background), persist.ErrSchema)
	require.ErrorIs(t, p.Seek(storetest.Background, 3), persist.ErrSchema)
	require.NoError(t, p.Restart(storetest.Background))
	_, err = inspect.OpenPlayer(storetest.Background, dir, w, inspect.PlayerOptions{From: "1"})
	require.ErrorIs(t, err, persist.ErrSchema)
}

func TestPlayer_DamagedRecord(t *testing.T) {
	dir, digests := Branching(t)
	e, _ := storetest.Verified(t, dir).Log().Find(3)
	w := storetest.New(0)
	p := openPlayer(t, dir, w.World, inspect.PlayerOptions{})
	require.NoError(t, flipAt(filepath.Join(dir, storetest.Segments(t, dir)[0]), int(e.Offset)+60))
	require.NoError(t, p.Step(storetest.Background))
	require.NoError(t, p.Step(storetest.Background))
	require.ErrorIs(t, p.Step(storetest.Background), persist.ErrCorrupt)
	require.ErrorIs(t, p.Seek(storetest.Background, 3), persist.ErrCorrupt)
	require.NoError(t, p.Seek(storetest.Background, 8)) // Seek starts at the snapshot of tick 7.
	require.Equal(t, digests[8], storetest.Persistent(w.World))
	require.ErrorIs(t, p.Seek(storetest.Background, 4), persist.ErrCorrupt)
	require.NoError(t, p.Restart(storetest.Background))

	// A player that is opened now begins at the snapshot of tick 7. Earlier ticks need the damaged
	// record.
	again := openPlayer(t, dir, storetest.New(0).World, inspect.PlayerOptions{})
	require.Equal(t, [2]uint64{7, 10}, [2]uint64{again.First(), again.End()})
}

// A player at the end of a store continues when the store grows. It goes back if the store went
// back. If pruning removed ticks before they were played, it goes to the oldest state. Typed and
// untyped worlds are at the recorded states after each step.
func TestPlayer_GrowingStore(t *testing.T) {
	t.Parallel()
	removed, back := 0, 0
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 0x72))
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(10)
		options := persist.Options{SnapshotBytes: 3000}
		if seed%2 == 1 {
			options.Retain = persist.Retention{Last: 1}
		}
		s := storetest.Open(t, dir, w, persist.Segmented(options, 4000))
		digests := map[uint64]ecs.Digest{0: storetest.Persistent(w.World)}
		typed := storetest.New(int(seed) % 3 * 5)
		var players []played
		for _, w := range []*ecs.World{typed.World, ecs.NewWorld(ecs.Options{})} {
			players = append(players, openPlayer(t, dir, w, inspect.PlayerOptions{}))
		}
		for range 60 {
			for range 1 + rng.IntN(4) {
				if rng.IntN(10) == 0 {
					_ = w.History().Rewind(rng.IntN(4))
				}
				change(w, rng)
				require.NoError(t, s.Commit())
				digests[w.Raw().Seq()] = storetest.Persistent(w.World)
			}
			require.NoError(t, s.Sync(storetest.Background))
			for _, p := range players {
				if rng.IntN(3) == 0 {
					continue // The player falls behind.
				}
				at, first := p.Recorded().Seq, p.First()
				more, err := p.Refresh(storetest.Background)
				require.NoError(t, err)
				require.True(t, more || at == w.Raw().Seq())
				if p.First() != first {
					removed++
				}
				if p.Recorded().Seq < at {
					back++
				}
				for n := rng.IntN(8); n > 0; n-- {
					if err = p.Step(storetest.Background); err != nil {
						break
					}
					require.Equal(t, digests[p.Recorded().Seq], storetest.Persistent(p.world))
				}
				switch {
				// The tick was removed while the player stepped.
				case errors.Is(err, persist.ErrNotFound) && options.Retain.Last > 0:
					_, err := p.Refresh(storetest.Background)
					require.NoError(t, err)
				case err != nil:
					require.Equal(t, io.EOF, err)
					require.Equal(t, w.Raw().Seq(), p.Recorded().Seq)
				}
				require.Equal(t, digests[p.Recorded().Seq], storetest.Persistent(p.world))
				require.Equal(t, p.Tick(), p.world.Tick())
			}
		}
		storetest.CloseStore(t, s)
	}
	require.NotZero(t, removed)
	require.NotZero(t, back)
}

// A world with NoPersist resources and events, which no store contains, can be played and followed.
func TestNoPersist_ResourcesInPlayerAndFollower(t *testing.T) {
	type reply struct{ Text string }
	type game struct {
		*ecs.World
		score   *ecs.Resource[int]
		cache   *ecs.Resource[[]string]
		replies *ecs.Events[reply]
	}
	newGame := func() *game {
		w := ecs.NewWorld(ecs.Options{})
		return &game{
			World: w, score: ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int]{Name: "Score"})),
			cache:   ecs.Must(ecs.RegisterResource(w, nil, ecs.Component[[]string]{Name: "Cache", NoPersist: true})),
			replies: ecs.Must(ecs.RegisterEvent(w, ecs.Component[reply]{NoPersist: true})),
		}
	}
	step := func(g *game) {
		*g.score.Mut()++
		*g.cache.Mut() = append(g.cache.Get(), "entry")
		g.replies.Send(reply{"ok"})
	}
	dir := filepath.Join(t.TempDir(), "game")
	g := newGame()
	s, err := persist.Open(storetest.Background, dir, g.World, persist.Options{})
	require.NoError(t, err)
	for range 3 {
		step(g)
		require.NoError(t, s.Commit())
	}
	require.NoError(t, s.Sync(storetest.Background))

	followed := newGame()
	f, err := persist.Follow(storetest.Background, dir, followed.World)
	require.NoError(t, err)
	require.Equal(t, 3, followed.score.Get())
	require.NoError(t, s.Goto(storetest.Background, "1"))
	step(g)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(storetest.Background))
	_, err = f.Advance(storetest.Background)
	require.NoError(t, err)
	require.Equal(t, 2, followed.score.Get())
	require.NoError(t, f.Close())
	storetest.CloseStore(t, s)

	played := newGame()
	p, err := inspect.OpenPlayer(storetest.Background, dir, played.World, inspect.PlayerOptions{Step: func(*ecs.World, uint64, []inspect.Input) error {
		step(played)
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, p.Step(storetest.Background))
	require.NoError(t, p.Seek(storetest.Background, 0))
	for err == nil {
		err = p.Step(storetest.Background)
	}
	require.Equal(t, io.EOF, err)
	_, storage, diverged := p.Diverged()
	require.False(t, diverged, storage)
	require.Equal(t, 2, played.score.Get())
	require.NoError(t, p.Close())

	// An Open that fails late puts the world back.
	before := image.WithoutEntities(newGame().World)
	require.NoError(t, newGame().Raw().Load(before))
}
