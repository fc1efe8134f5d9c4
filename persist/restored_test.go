package persist_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// An outside is an index that a program keeps next to a world. It uses OnRestore to follow changes
// that the program did not make itself.
type outside struct {
	w    *storetest.World
	rows map[uint64]storetest.Position // Positions by entity.
	tick uint64
	made int // How often the index was rebuilt.
}

func newOutside(history int) *outside {
	o := &outside{w: storetest.New(history)}
	o.w.OnRestore(func() { o.made++; o.follow() })
	o.follow()
	return o
}

// follow rebuilds the index. The program also calls it after its own changes.
func (o *outside) follow() { o.rows, o.tick = o.look(), o.w.Tick() }

func (o *outside) look() map[uint64]storetest.Position {
	rows := map[uint64]storetest.Position{}
	for e, p := range o.w.Position.All() {
		rows[uint64(e)] = p
	}
	return rows
}

// follows reports whether the index is correct.
func (o *outside) follows() bool { return o.tick == o.w.Tick() && maps.Equal(o.rows, o.look()) }

// filled commits some ticks and sometimes goes back. The store s must have the world of o.
func (o *outside) filled(t *testing.T, s *persist.Store, ticks int) {
	t.Helper()
	for i := range ticks {
		o.w.Fill(1 + i%3)
		require.NoError(t, s.Commit())
		o.follow()
		if i%4 == 3 {
			require.NoError(t, o.w.History().Rewind(2))
		}
		require.True(t, o.follows())
	}
}

func TestOnRestore_CalledByOpenLoadAndGoto(t *testing.T) {
	t.Parallel()
	file, dir := filepath.Join(t.TempDir(), "save"), filepath.Join(t.TempDir(), "store")
	o := newOutside(5)
	s := storetest.Open(t, dir, o.w, persist.Options{})
	require.Zero(t, o.made, "a new store does not change the world")
	o.filled(t, s, 12)
	require.NoError(t, persist.Save(storetest.Background, file, o.w.World))
	storetest.CloseStore(t, s)

	loaded := newOutside(0)
	require.NoError(t, persist.Load(storetest.Background, file, loaded.w.World))
	require.Equal(t, 1, loaded.made)
	require.True(t, loaded.follows())
	require.Equal(t, o.rows, loaded.rows)
	require.Error(t, persist.Load(storetest.Background, filepath.Join(dir, "none"), loaded.w.World))
	require.Equal(t, 1, loaded.made, "a failed Load must not change the world")

	opened := newOutside(5)
	s = storetest.Open(t, dir, opened.w, persist.Options{})
	require.Equal(t, 1, opened.made)
	require.True(t, opened.follows())
	require.Equal(t, o.rows, opened.rows)
	storetest.CloseStore(t, s)

	branched := newOutside(5)
	s = storetest.Open(t, dir, branched.w, persist.Options{At: "3"})
	require.True(t, branched.follows())
	require.EqualValues(t, 3, branched.tick)
	storetest.CloseStore(t, s)
}

// After a failed Open, the index matches the world: both are empty.
func TestOnRestore_OpenFails(t *testing.T) {
	mem := disktest.New()
	o := newOutside(5)
	s, err := persist.Open(storetest.Background, ".", o.w.World, persist.Options{Files: mem})
	require.NoError(t, err)
	o.filled(t, s, 6)
	require.NoError(t, s.Close(storetest.Background))

	emptied, opened := 0, false
	for n := 1; !opened; n++ {
		files := mem.Clone()
		files.FailFrom(files.Calls()+n, errors.New("broken"))
		again := newOutside(5)
		s, err := persist.Open(storetest.Background, ".", again.w.World, persist.Options{Files: files})
		require.True(t, again.follows(), "call %d failed", n)
		if opened = err == nil; opened {
			require.Equal(t, o.rows, again.rows)
			_ = s.Close(storetest.Background) // The disk still fails, so Close fails too.
			continue
		}
		require.Empty(t, again.rows)
		if again.made > 0 {
			require.Equal(t, 2, again.made, "filled, and emptied again")
			emptied++
		}
	}
	require.NotZero(t, emptied, "no call failed after the world was filled")
}

func TestOnRestore_CalledWhilePlayerPlays(t *testing.T) {
	t.Parallel()
	r := newRecording(t, 1, 30)
	o := newOutside(0)
	p := openPlayer(t, r.dir, o.w.World, inspect.PlayerOptions{})
	require.True(t, o.follows())
	rng := rand.New(rand.NewPCG(1, 7))
	most := 0
	for range 60 {
		if rng.IntN(4) == 0 || p.Tick() == p.End() {
			require.NoError(t, p.Seek(storetest.Background, uint64(rng.IntN(int(p.Tick())+1))))
			require.True(t, o.follows())
		}
		made := o.made
		require.NoError(t, p.Step(storetest.Background))
		require.Greater(t, o.made, made)
		require.True(t, o.follows(), "tick %d", p.Tick())
		most = max(most, len(o.rows))
	}
	require.NotZero(t, most)
}
