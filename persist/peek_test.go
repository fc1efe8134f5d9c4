package persist

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
)

// wildView is a view of a store that a random program of this seed left: with
// groups, sorts, clears, rewinds, components of all kinds, snapshots that share
// pages, and an opening at an older record.
func wildView(t testing.TB, seed uint64) *View {
	rng := rand.New(rand.NewPCG(seed, 61))
	dir := filepath.Join(t.TempDir(), "store")
	for round := range 2 {
		w := newGroupedWorld(8)
		at := ""
		if round > 0 {
			at = fmt.Sprint("seq:", 3+rng.IntN(3))
		}
		s := open(t, dir, w, Options{At: at, Sync: journal.SyncNever(), SnapshotBytes: 4000})
		for n := range 14 {
			w.do(randomActions(rng, 6)...)
			w.sort(rng.Uint32N(12))
			for range 3 {
				w.chase.Set(w.pick(rng.Uint32()), chase{w.pick(rng.Uint32()), 1})
			}
			w.releaseAll()
			require.NoError(t, s.Commit())
			if rng.IntN(4) == 0 {
				_ = w.History().Rewind(1 + rng.IntN(2))
			}
			if n == 6 {
				snapshotOf(t, s)
			}
		}
		closeStore(t, s)
	}
	return viewOf(t, dir)
}

func viewOf(t testing.TB, path string) *View {
	t.Helper()
	v, err := OpenReadOnly(background, path)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

// seqsOf returns 0 and the records of v.
func seqsOf(v *View) []uint64 {
	seqs := []uint64{0}
	for _, e := range v.log.Entries {
		seqs = append(seqs, e.ID.Seq)
	}
	return seqs
}

// lives returns all entities that are alive in any state of v, and some that never
// were.
func lives(t testing.TB, v *View) []ecs.Entity {
	t.Helper()
	list := []ecs.Entity{0, ecs.NewEntity(0, 1000), ecs.NewEntity(1000, 1), ecs.Vacant}
	for _, seq := range seqsOf(v) {
		list = append(list, imageAt(t, v, seq).Registry...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func imageAt(t testing.TB, v *View, seq uint64) *Image {
	t.Helper()
	im, err := v.At(background, seq)
	require.NoError(t, err)
	return im
}

// peekedAt is what Peek is to return, worked out from the whole state.
func peekedAt(t testing.TB, im *Image, e ecs.Entity) *EntityState {
	t.Helper()
	s := &EntityState{
		Entity: e, Seq: im.ID.Seq, Tick: im.Tick, Alive: im.IsAlive(e), Row: -1,
		Living: im.Alive, Free: im.Free, Indices: len(im.Registry),
	}
	for row, holder := range im.Registry {
		if holder.Index() == e.Index() {
			s.Row, s.Holder = row, holder
		}
	}
	for _, c := range im.Components {
		p := EntityComponent{Name: c.Name, Layout: c.Layout, Resource: c.Resource, Row: -1}
		if row := slices.Index(c.Entities, e); row >= 0 && e != ecs.Vacant {
			p.Row, p.Value = row, valueOf(t, c, row)
		}
		s.Components = append(s.Components, p)
	}
	return s
}

func valueOf(t testing.TB, c *Component, row int) layout.Value {
	t.Helper()
	v, err := c.Value(row)
	require.NoError(t, err)
	return v
}

func TestAnEntityPeekedAtIsWhatTheWholeStateHasOfIt(t *testing.T) {
	for seed := range uint64(2) {
		v := wildView(t, seed)
		require.GreaterOrEqual(t, len(v.Snapshots()), 3)
		entities := lives(t, v)
		for _, seq := range seqsOf(v) {
			im := imageAt(t, v, seq)
			for _, e := range entities {
				s, err := v.Peek(background, e, seq)
				require.NoError(t, err)
				require.Equal(t, peekedAt(t, im, e), s, "seed %d, %v at record %d", seed, e, seq)
			}
		}
	}
}

// Whatever block of a save is damaged, Peek is right or says so; most blocks it does
// not read.
func TestDamageElsewhereDoesNotKeepFromPeeking(t *testing.T) {
	const block = 64 << 10
	file := filepath.Join(t.TempDir(), "save")
	w := ecs.NewWorld(ecs.Options{})
	positions := ecs.MustRegister[position](w)
	for i := range 60_000 {
		positions.Set(w.Create(), position{float32(i), 1})
	}
	require.NoError(t, Save(background, file, w))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	e := ecs.NewEntity(40_002, 1)
	want := peekedAt(t, imageAt(t, viewOf(t, file), 0), e)
	right, refused := 0, 0
	for at := block / 2; at < len(good); at += block {
		bad := slices.Clone(good)
		bad[at] ^= 1
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		v, err := OpenReadOnly(background, file)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			continue
		}
		if got, err := v.Peek(background, e, 0); err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			refused++
		} else {
			require.Equal(t, want, got)
			right++
		}
		require.NoError(t, v.Close())
	}
	require.Positive(t, refused)
	require.Greater(t, right, refused)
}

func TestAPeekGoesPastASnapshotThatIsDamaged(t *testing.T) {
	mem, _ := bushy(t)
	v := newView(mem)
	require.NoError(t, v.scan(background))
	im := imageAt(t, v, v.Head())
	e := im.Registry[7]
	want := peekedAt(t, im, e)
	for at := 0; at+100 < len(mem.Bytes(snapshotName(4))); at += 4096 {
		v := newView(flipped(mem, snapshotName(4), 8*at+8*100))
		require.NoError(t, v.scan(background))
		got, err := v.Peek(background, e, v.Head())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := v.Peek(background, e, 99)
	require.ErrorIs(t, err, ErrNotFound)
}
