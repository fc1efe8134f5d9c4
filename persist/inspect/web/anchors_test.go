package web

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// wander makes a store of some hundred ticks, with rewound branches. It returns the digest of
// each state, keyed by its record.
func wander(t *testing.T) (dir string, want map[uint64]ecs.Digest) {
	t.Helper()
	dir, want = filepath.Join(t.TempDir(), "D"), map[uint64]ecs.Digest{}
	s := begin(t, dir)
	for n := range 700 {
		switch {
		case n%97 == 50:
			require.NoError(t, s.world.History().Rewind(n%11+1))
		case n%13 == 3:
			e := s.world.Create()
			s.entities = append(s.entities, e)
			s.positions.Set(e, Position{float64(n), 1})
			s.targets.Set(e, Target{s.entities[n%10]})
		case n%31 == 7:
			s.world.Destroy(s.entities[n%len(s.entities)])
		case n == 350:
			_, err := s.store.SaveSlot(context.Background(), "half", "")
			require.NoError(t, err)
		}
		if e := s.entities[n%10]; s.world.Alive(e) {
			s.positions.Set(e, Position{float64(n), 2})
		}
		s.commit(t)
		want[uint64(len(want)+1)] = s.world.Digest()
	}
	require.NoError(t, s.store.Close(context.Background()))
	return dir, want
}

// The memory limit for anchors must not change any state, or any entity in it.
func TestAnchors_MemoryLimitKeepsStates(t *testing.T) {
	dir, want := wander(t)
	ctx := context.Background()
	for seed, room := range []int{0, 1 << 10, 6 << 10, 40 << 10, 64 << 20} {
		view, err := inspect.OpenReadOnly(ctx, dir)
		require.NoError(t, err)
		d := newSession(view, room)
		rng, seq, most := rand.New(rand.NewPCG(uint64(seed), 3)), uint64(1), 0
		for range 150 {
			switch rng.IntN(6) {
			case 0:
				seq = 1 + rng.Uint64N(uint64(len(want)))
			case 1:
				seq = min(uint64(len(want)), seq+rng.Uint64N(5))
			default:
				seq = max(1, seq-min(seq, rng.Uint64N(4)))
			}
			e := ecs.NewEntity(rng.Uint32N(70), 1+rng.Uint32N(2))
			asked, err := d.peek(ctx, e, seq)
			require.NoError(t, err)
			read, err := view.Peek(ctx, e, seq)
			require.NoError(t, err)
			// View.Peek also lists the components that the entity does not have.
			lacks := func(c inspect.EntityComponent) bool { return c.Row < 0 }
			held := slices.DeleteFunc(read.Components, lacks)
			require.ElementsMatch(t, held, slices.DeleteFunc(asked.Components, lacks), "seed %d: %v after record %d", seed, e, seq)
			read.Components, asked.Components = nil, nil
			require.Equal(t, read, asked, "seed %d: %v after record %d", seed, e, seq)
			im, err := d.state(ctx, seq)
			require.NoError(t, err)
			require.Equal(t, want[seq], im.Digest(), "seed %d: record %d", seed, seq)
			size := 0
			for i, a := range d.anchors.held {
				size += a.size
				require.Equal(t, want[a.Seq()], a.Image().Digest(), "seed %d: the anchor at record %d", seed, a.Seq())
				require.True(t, i == 0 || d.anchors.held[i-1].Seq() < a.Seq())
			}
			require.Equal(t, size, d.anchors.size)
			require.LessOrEqual(t, size, room, "seed %d", seed)
			most = max(most, len(d.anchors.held))
		}
		assert.Equal(t, room >= 6<<10, most > 0, "%d anchors in %d bytes", most, room)
		assert.Equal(t, room >= 40<<10, most > 6, "%d anchors in %d bytes", most, room)
		require.NoError(t, d.close())
	}
}

// A request for one entity in a distant, large state must not load that state.
func TestPeek_DoesNotLoadLargeState(t *testing.T) {
	dir, _ := wander(t)
	ctx := context.Background()
	view, err := inspect.OpenReadOnly(ctx, dir)
	require.NoError(t, err)
	d := newSession(view, fastRoom)
	_, err = d.state(ctx, 20)
	require.NoError(t, err)
	d.size = 100 << 20
	_, err = d.peek(ctx, ecs.NewEntity(0, 1), 690)
	require.NoError(t, err)
	assert.EqualValues(t, 20, d.cursor.Seq())
	_, err = d.peek(ctx, ecs.NewEntity(0, 1), 25)
	require.NoError(t, err)
	assert.EqualValues(t, 25, d.cursor.Seq(), "near it, ticks are gone")
	require.NoError(t, d.close())
}
